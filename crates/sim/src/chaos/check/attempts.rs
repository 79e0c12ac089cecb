//! E6: what is not stored yet is tried again.

use std::collections::BTreeMap;
use std::time::Duration;

/// When one process last tried to write the status of each variant.
#[derive(Debug, Default)]
pub(crate) struct Attempts(BTreeMap<String, Duration>);

impl Attempts {
    pub(crate) fn note(&mut self, path: &str, now: Duration) {
        if let Some(variant) = variant_of(path) {
            self.0.insert(variant, now);
        }
    }

    /// Whether nobody has tried to write this status, as `namespace/name`, for so long.
    pub(crate) fn none_within(&self, variant: &str, time: Duration, now: Duration) -> bool {
        let last = self.0.get(variant);
        last.is_none_or(|last| now.saturating_sub(*last) > time)
    }
}

/// The variant whose status lies at this path, as `namespace/name`.
fn variant_of(path: &str) -> Option<String> {
    let (_, rest) = path.split_once("/namespaces/")?;
    let mut parts = rest.split('/');
    let namespace = parts.next()?;
    // The count of one that a scaler declares is no status.
    let place = match parts.next()? {
        "variantautoscalings" => Some("status"),
        "horizontalpodautoscalers" => None,
        _ => return None,
    };
    let name = parts.next()?;
    (parts.next() == place).then(|| format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_counts_for_its_variant_alone() {
        let seconds = Duration::from_secs;
        let mut attempts = Attempts::default();
        let base = "/apis/llmd.ai/v1alpha1/namespaces/n/variantautoscalings/a";
        attempts.note(base, seconds(90));
        assert!(attempts.none_within("n/a", seconds(50), seconds(90)));
        attempts.note(&format!("{base}/status"), seconds(100));
        assert!(!attempts.none_within("n/a", seconds(50), seconds(150)));
        assert!(attempts.none_within("n/a", seconds(50), seconds(151)));
        assert!(attempts.none_within("n/b", seconds(50), seconds(100)));
        attempts.note(
            "/apis/autoscaling/v2/namespaces/n/horizontalpodautoscalers/b",
            seconds(100),
        );
        assert!(!attempts.none_within("n/b", seconds(50), seconds(100)));
    }
}
