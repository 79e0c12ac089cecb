//! E6: what is not stored yet is tried again.

use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Attempts(BTreeMap<String, Duration>);

impl Attempts {
    pub(crate) fn note(&mut self, path: &str, now: Duration) {
        if let Some(variant) = variant_of(path) {
            self.0.insert(variant, now);
        }
    }

    pub(crate) fn none_within(&self, variant: &str, time: Duration, now: Duration) -> bool {
        let last = self.0.get(variant);
        last.is_none_or(|last| now.saturating_sub(*last) > time)
    }
}

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
