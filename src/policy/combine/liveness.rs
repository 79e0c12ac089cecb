//! Which analyzers were informative of late. One that was not has no say in whether to shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::policy::capacity::AnalyzerName;
use crate::policy::key::ModelKey;
use crate::policy::moment::Moment;

/// Loop intervals for which an informative result keeps an analyzer live.
const LIVE_INTERVALS: u32 = 3;

/// Taken where the interval is zero.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(30);

/// Whether an analyzer was informative of late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Liveness {
    /// Its last informative result is at most three loop intervals old.
    Live,
    /// It never was informative, or not for longer.
    Silent,
}

/// An informative result: at least one variant was sized by data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The analyzer.
    pub analyzer: AnalyzerName,
    /// When the result was made; absent means now.
    pub at: Option<Moment>,
}

/// When each analyzer was last informative about each model. Holds as many models as there are, and
/// at most one entry for each analyzer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnalyzerLog {
    models: BTreeMap<ModelKey, BTreeMap<AnalyzerName, Moment>>,
}

impl AnalyzerLog {
    /// Adds the informative results of one cycle. A model that is not among the active ones is
    /// forgotten, except where none is active: that is a cycle that saw nothing.
    #[must_use]
    pub fn learn(
        mut self,
        active: &BTreeSet<ModelKey>,
        sightings: &BTreeMap<ModelKey, Vec<Sighting>>,
        now: Moment,
    ) -> Self {
        if !active.is_empty() {
            self.models.retain(|model, _| active.contains(model));
        }
        for (model, seen) in sightings.iter().filter(|(model, _)| active.contains(model)) {
            let analyzers = self.models.entry(model.clone()).or_default();
            for sighting in seen {
                let at = sighting.at.unwrap_or(now);
                let last = analyzers.entry(sighting.analyzer).or_insert(at);
                *last = at.max(*last);
            }
        }
        self
    }

    /// Whether an analyzer was informative about a model of late.
    pub fn liveness(
        &self,
        model: &ModelKey,
        analyzer: AnalyzerName,
        interval: Duration,
        now: Moment,
    ) -> Liveness {
        let interval = if interval.is_zero() {
            DEFAULT_INTERVAL
        } else {
            interval
        };
        let last = self
            .models
            .get(model)
            .and_then(|analyzers| analyzers.get(&analyzer));
        match last {
            Some(last) if now.since(*last) <= interval.saturating_mul(LIVE_INTERVALS) => {
                Liveness::Live
            }
            _ => Liveness::Silent,
        }
    }
}
