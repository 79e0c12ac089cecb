//! What may be for a moment, and must not last.

use std::collections::BTreeMap;
use std::time::Duration;

/// Since when things are as they should not be.
#[derive(Debug, Default)]
pub(in crate::chaos) struct Eventually(BTreeMap<String, Duration>);

impl Eventually {
    /// Takes in how things are now; those that have lasted for `limit` of undisturbed time. `calm` is
    /// since when nothing has disturbed the controller.
    pub(in crate::chaos) fn lasting(
        &mut self,
        group: &str,
        present: impl IntoIterator<Item = String>,
        (now, calm): (Duration, Option<Duration>),
        limit: Duration,
    ) -> Vec<String> {
        let present: Vec<String> = present
            .into_iter()
            .map(|what| format!("{group}: {what}"))
            .collect();
        let prefix = format!("{group}: ");
        self.0
            .retain(|what, _| !what.starts_with(&prefix) || present.contains(what));
        let Some(calm) = calm else {
            self.0.retain(|what, _| !present.contains(what));
            return Vec::new();
        };
        let mut lasting = Vec::new();
        for what in present {
            let since = self.0.entry(what.clone()).or_insert(now);
            *since = (*since).max(calm);
            if now.saturating_sub(*since) >= limit {
                let text = what.strip_prefix(&prefix).unwrap_or(&what);
                lasting.push(text.to_owned());
            }
        }
        lasting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lasts_in_calm_counts() {
        let seconds = Duration::from_secs;
        let mut patience = Eventually::default();
        let mut look = |now, calm: Option<u64>, present: &[&str]| {
            let present = present.iter().map(|text| (*text).to_owned());
            patience.lasting("g", present, (seconds(now), calm.map(seconds)), seconds(5))
        };
        assert_eq!(look(0, Some(0), &["a"]), [""; 0]);
        assert_eq!(look(4, Some(0), &["a", "b"]), [""; 0]);
        assert_eq!(look(5, Some(0), &["a", "b"]), ["a"]);
        assert_eq!(look(9, Some(8), &["b"]), [""; 0], "disturbed since");
        assert_eq!(look(13, Some(8), &["b"]), ["b"]);
        assert_eq!(look(14, None, &["b"]), [""; 0], "disturbed now");
        assert_eq!(look(15, Some(15), &["b"]), [""; 0]);
        assert_eq!(look(16, Some(15), &[]), [""; 0]);
        assert_eq!(look(21, Some(15), &["b"]), [""; 0], "gone in between");
    }
}
