//! Which analyzers were informative recently. One that was not has no say in whether to shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::capacity::AnalyzerName;
use crate::key::ModelKey;
use wva_base::moment::Moment;

/// Loop intervals for which an informative result keeps an analyzer live.
const LIVE_INTERVALS: u32 = 3;

/// Taken where the interval is zero.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(30);

/// Whether an analyzer was informative recently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Liveness {
    /// Its last informative result is at most three loop intervals old.
    Live,
    /// It never was informative, or not for longer.
    Silent,
    /// It never was informative, and was first asked at most three loop intervals ago: whether it
    /// is live cannot be known yet. Where a vote of it is needed to shrink, it is waited for.
    #[serde(rename = "Unheard")]
    Undetermined {
        /// Time since it was first asked.
        asked_for: Duration,
        /// Time from then on after which it counts as silent.
        limit: Duration,
    },
}

/// When each voter was first asked about each model by this process. A controller that has just
/// started or come to lead, a model that is new and a voter that was just selected have that in
/// common: nothing is known of who lives. Like the log of activity it errs late.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AskedLog {
    models: BTreeMap<ModelKey, BTreeMap<AnalyzerName, Moment>>,
}

impl AskedLog {
    /// Adds the voters that one cycle asked. Who is not among them is forgotten, and starts anew once
    /// asked again; except where none was asked, which is a cycle that saw nothing.
    #[must_use]
    pub fn learn(
        mut self,
        voters: &BTreeMap<ModelKey, BTreeSet<AnalyzerName>>,
        now: Moment,
    ) -> Self {
        if voters.is_empty() {
            return self;
        }
        let first = |model: &ModelKey, analyzer: &AnalyzerName| {
            let known = self.models.get(model).and_then(|asked| asked.get(analyzer));
            known.copied().unwrap_or(now)
        };
        let models = voters.iter().map(|(model, asked)| {
            let asked = asked.iter().map(|one| (*one, first(model, one)));
            (model.clone(), asked.collect())
        });
        self.models = models.collect();
        self
    }

    /// Whether it is too early to take the silence of an analyzer that was never informative for
    /// what it is. A voter that was not asked yet has had no time to answer.
    pub fn silence(
        &self,
        model: &ModelKey,
        analyzer: AnalyzerName,
        interval: Duration,
        now: Moment,
    ) -> Liveness {
        let limit = live_for(interval);
        let asked = self.models.get(model).and_then(|asked| asked.get(&analyzer));
        let asked_for = asked.map_or(Duration::ZERO, |first| now.since(*first));
        if asked_for <= limit {
            Liveness::Undetermined { asked_for, limit }
        } else {
            Liveness::Silent
        }
    }
}

fn live_for(interval: Duration) -> Duration {
    let interval = if interval.is_zero() { DEFAULT_INTERVAL } else { interval };
    interval.saturating_mul(LIVE_INTERVALS)
}

/// When each analyzer was last informative about each model. Holds as many models as there are, and
/// at most one entry for each analyzer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnalyzerLog {
    models: BTreeMap<ModelKey, BTreeMap<AnalyzerName, Moment>>,
}

impl AnalyzerLog {
    /// Adds the analyzers that were informative in one cycle: each sized at least one variant by data. A model that is
    /// not among the active ones is forgotten, except where none is active: that is a cycle that saw nothing.
    #[must_use]
    pub fn learn(mut self, active: &BTreeMap<ModelKey, Vec<AnalyzerName>>, now: Moment) -> Self {
        if !active.is_empty() {
            self.models.retain(|model, _| active.contains_key(model));
        }
        for (model, informative) in active {
            let last = informative.iter().map(|analyzer| (*analyzer, now));
            self.models.entry(model.clone()).or_default().extend(last);
        }
        self
    }

    /// Whether an analyzer was informative about a model recently; `None` where it never was.
    pub fn liveness(
        &self,
        model: &ModelKey,
        analyzer: AnalyzerName,
        interval: Duration,
        now: Moment,
    ) -> Option<Liveness> {
        let last = self.models.get(model)?.get(&analyzer)?;
        let is_live = now.since(*last) <= live_for(interval);
        Some(if is_live { Liveness::Live } else { Liveness::Silent })
    }
}
