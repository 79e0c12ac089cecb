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
    /// Those in its router alone, where that is known.
    pub routed: Option<f64>,
    pub ready: u32,
}

impl Waiting {
    /// Whether more requests wait than `each` for every ready replica: shorter queues are how engines
    /// work.
    pub(super) fn is_backlog(self, each: f64) -> bool {
        self.is_beyond(self.requests, each)
    }

    /// Whether more than that wait in the router alone; `None` where that is not known.
    pub(super) fn is_routed_backlog(self, each: f64) -> Option<bool> {
        Some(self.is_beyond(self.routed?, each))
    }

    fn is_beyond(self, requests: f64, each: f64) -> bool {
        requests > each * f64::from(self.ready.max(1))
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

/// The backlog in the router of each model. Holds models with one, and no others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouterBacklogs {
    models: BTreeMap<ModelKey, RouterBacklog>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct RouterBacklog {
    since: Moment,
    /// When it was known last.
    seen: Moment,
    /// The fewest requests since the most replicas have been ready.
    pub(crate) fewest: f64,
    /// Since when they have not become fewer, with no more replicas.
    at: Moment,
    /// The most replicas that were ready.
    ready: u32,
}

impl RouterBacklog {
    fn add(known: Option<Self>, requests: f64, ready: u32, now: Moment) -> Self {
        let anew = Self { since: now, seen: now, fewest: requests, at: now, ready };
        match known.filter(|known| known.is_current(now)) {
            Some(known) if requests >= known.fewest && ready <= known.ready => {
                Self { seen: now, ..known }
            }
            Some(known) => Self { since: known.since, ready: known.ready.max(ready), ..anew },
            None => anew,
        }
    }

    /// How long too many requests have waited.
    pub(crate) fn lasts(&self, now: Moment) -> Duration {
        now.since(self.since)
    }

    /// Whether it was seen within the time for which one must last to stand: a longer gap, of collections or of what
    /// the router says, ends it.
    fn is_current(&self, now: Moment) -> bool {
        now.since(self.seen) <= STANDS
    }

    /// How long no fewer requests have waited, with no more replicas.
    pub(crate) fn stagnates(&self, now: Moment) -> Duration {
        now.since(self.at)
    }
}

impl RouterBacklogs {
    pub(crate) fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// Adds one collection, like [`Backlogs::learn`]. A router that says nothing for a while has emptied no queue.
    pub(crate) fn learn(self, seen: &BTreeMap<ModelKey, (Waiting, f64)>, now: Moment) -> Self {
        let next = |(model, (waiting, each)): (&ModelKey, &(Waiting, f64))| {
            let known = self.models.get(model).copied();
            let next = match (waiting.routed, waiting.is_routed_backlog(*each)) {
                (Some(requests), Some(true)) => {
                    Some(RouterBacklog::add(known, requests, waiting.ready, now))
                }
                (Some(_), _) => None,
                (None, _) => known.filter(|known| known.is_current(now)),
            };
            Some((model.clone(), next?))
        };
        Self { models: seen.iter().filter_map(next).collect() }
    }

    /// The backlog in the router of a model, where it stands.
    pub(crate) fn standing(&self, model: &ModelKey, now: Moment) -> Option<&RouterBacklog> {
        let known = self.models.get(model);
        known.filter(|known| known.lasts(now) >= STANDS && known.is_current(now))
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
            let waiting = Waiting { requests, routed: None, ready: 2 };
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

    #[test]
    fn a_backlog_in_the_router_stagnates_from_its_fewest_requests_on() {
        let model = ModelKey::new("ns", "m");
        let look = |known: &RouterBacklogs, routed: Option<f64>, ready: u32, seconds: u64| {
            let waiting = Waiting { requests: 0.0, routed, ready };
            let seen = BTreeMap::from([(model.clone(), (waiting, 5.0))]);
            known.clone().learn(&seen, at(seconds))
        };
        let found = |known: &RouterBacklogs, seconds| {
            let (known, now) = (known.standing(&model, at(seconds))?, at(seconds));
            Some((known.fewest, known.lasts(now).as_secs(), known.stagnates(now).as_secs()))
        };
        let none = RouterBacklogs::default();
        assert_eq!(look(&none, Some(10.0), 2, 0), none, "five for each replica");
        let known = look(&look(&none, Some(11.0), 2, 0), Some(40.0), 2, 90);
        assert_eq!(found(&known, 119), None);
        assert_eq!(found(&known, 120), Some((11.0, 120, 120)));

        let fewer = look(&known, Some(10.5), 2, 130);
        assert_eq!(found(&fewer, 150), Some((10.5, 150, 20)));
        let served = look(&known, Some(40.0), 3, 130);
        assert_eq!(found(&served, 150), Some((40.0, 150, 20)), "a third replica serves");
        let lost = look(&served, Some(60.0), 1, 140);
        let back = look(&lost, Some(60.0), 3, 150);
        assert_eq!(found(&back, 150), Some((40.0, 150, 20)), "as many served before");

        assert_eq!(found(&known, 210), Some((11.0, 210, 210)));
        assert_eq!(found(&known, 211), None, "not seen for more than two minutes");
        assert_eq!(found(&look(&known, Some(40.0), 2, 211), 211), None, "and begun anew");

        let silent = look(&known, None, 2, 210);
        assert_eq!(found(&silent, 210), Some((11.0, 210, 210)));
        assert_eq!(look(&known, None, 2, 211), none, "more than two minutes without a word");
        assert_eq!(look(&known, Some(10.0), 2, 130), none);
        assert_eq!(known.clone().learn(&BTreeMap::new(), at(130)), none);
    }
}
