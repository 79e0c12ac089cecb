//! Requests that wait for a model, and since when they do.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::ModelKey;
use wva_base::moment::Moment;

/// Time from which on a backlog stands: longer than a burst that replicas work off by themselves.
pub(crate) const STANDS: Duration = Duration::from_mins(2);

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Waiting {
    /// Requests in the queues of its engines and its router, as far as those are known.
    pub requests: f64,
    pub ready: u32,
}

impl Waiting {
    /// Whether more requests wait than `each` for every ready replica: shorter queues are how engines
    /// work.
    pub(super) fn is_backlog(self, each: f64) -> bool {
        self.requests > each * f64::from(self.ready.max(1))
    }
}

/// Since when each model has a backlog. Holds models with one, and no others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Backlogs {
    since: BTreeMap<ModelKey, Moment>,
}

impl Backlogs {
    /// Adds one collection: what waits for each model, and how many requests a replica may have waiting.
    /// A model that is missing has no backlog.
    pub(crate) fn learn(mut self, seen: &BTreeMap<ModelKey, (Waiting, f64)>, now: Moment) -> Self {
        let has_backlog = |model: &ModelKey| {
            let seen = seen.get(model);
            seen.is_some_and(|(waiting, each)| waiting.is_backlog(*each))
        };
        self.since.retain(|model, _| has_backlog(model));
        for model in seen.keys().filter(|model| has_backlog(model)) {
            self.since.entry(model.clone()).or_insert(now);
        }
        self
    }

    /// How long a model has had a backlog, where it stands.
    pub(crate) fn standing(&self, model: &ModelKey, now: Moment) -> Option<Duration> {
        let lasts = now.since(*self.since.get(model)?);
        (lasts >= STANDS).then_some(lasts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::world::at;

    #[test]
    fn a_backlog_stands_after_two_minutes_without_a_gap() {
        let model = ModelKey::new("ns", "m");
        let look = |known: Backlogs, requests: f64, seconds: u64| {
            let waiting = Waiting { requests, ready: 2 };
            known.learn(&BTreeMap::from([(model.clone(), (waiting, 5.0))]), at(seconds))
        };
        let standing = |known: &Backlogs, seconds| known.standing(&model, at(seconds));

        let short = look(Backlogs::default(), 10.0, 0);
        assert_eq!(short, Backlogs::default(), "five for each replica");
        let known = look(look(short, 11.0, 0), 400.0, 90);
        assert_eq!(standing(&known, 119), None);
        assert_eq!(standing(&known, 120), Some(STANDS));
        let known = look(look(known, 0.0, 130), 400.0, 140);
        assert_eq!(standing(&known, 259), None, "it was gone in between");
        assert_eq!(standing(&known, 260), Some(STANDS));
        assert_eq!(known.learn(&BTreeMap::new(), at(270)), Backlogs::default());
    }
}
