//! What must hold at every moment, each by the number that it has in the list of invariants. What can be
//! judged from values alone is a function of them.

pub(super) mod autoscalers;
pub(super) mod claims;
pub(super) mod ends;
pub(super) mod hearing;
pub(super) mod kept;
pub(super) mod known;
pub(super) mod pace;
pub(super) mod plans;
pub(super) mod series;
pub(super) mod settings;
pub(super) mod tree;

use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvariantViolation {
    pub(crate) invariant: &'static str,
    pub(crate) text: String,
}

impl InvariantViolation {
    pub(super) fn new(invariant: &'static str, text: impl Into<String>) -> Self {
        Self { invariant, text: text.into() }
    }
}

wva_base::display_of! { InvariantViolation: Self { invariant, text } => "{invariant}: {text}"; }

/// What may be for a moment, and must not last.
#[derive(Debug, Default)]
pub(crate) struct Eventually(BTreeMap<&'static str, BTreeMap<String, Duration>>);

impl Eventually {
    /// Takes in how things are now; those that have lasted for `limit` of undisturbed time. `calm` is
    /// since when nothing has disturbed the controller.
    pub(crate) fn lasting(
        &mut self,
        group: &'static str,
        present: Vec<String>,
        (now, calm): (Duration, Option<Duration>),
        limit: Duration,
    ) -> Vec<String> {
        let known = self.0.entry(group).or_default();
        known.retain(|what, _| calm.is_some() && present.contains(what));
        let Some(calm) = calm else {
            return Vec::new();
        };
        let lasts = |what: &String| {
            let since = known.entry(what.clone()).or_insert(now);
            *since = calm.max(*since);
            now.saturating_sub(*since) >= limit
        };
        present.into_iter().filter(lasts).collect()
    }

    pub(crate) fn judge(
        &mut self,
        (invariant, group): (&'static str, &'static str),
        present: impl IntoIterator<Item = String>,
        times: (Duration, Option<Duration>),
        limit: Duration,
    ) -> Vec<InvariantViolation> {
        let lasting = self.lasting(group, present.into_iter().collect(), times, limit);
        lasting.into_iter().map(|text| InvariantViolation::new(invariant, text)).collect()
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
            let present = present.iter().map(|text| (*text).to_owned()).collect();
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
