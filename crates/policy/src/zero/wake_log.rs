//! Variants that were started from zero keep their replica for a retention period, or for as long as
//! they may take to be ready where that is longer, whatever their load is until then.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::key::VariantKey;
use wva_base::moment::Moment;

/// A recent start from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// How long ago it was noticed; zero where no collection knows of it.
    pub ago: Duration,
    /// For how long its replica is kept.
    pub hold: Duration,
}

/// When each variant was started from zero. Holds variants that exist, until their hold has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WakeLog {
    started: BTreeMap<VariantKey, Moment>,
}

impl WakeLog {
    /// Adds the starts of one cycle. `holds` names every variant that exists, with the time for which
    /// it is kept.
    #[must_use]
    pub fn learn(
        mut self,
        started: &BTreeSet<VariantKey>,
        holds: &BTreeMap<VariantKey, Duration>,
        now: Moment,
    ) -> Self {
        for variant in started {
            self.started.insert(variant.clone(), now);
        }
        self.started
            .retain(|variant, at| holds.get(variant).is_some_and(|hold| now.since(*at) < *hold));
        self
    }

    /// The start that a variant keeps its replica for; `None` where there is none, or no longer.
    pub fn kept(&self, variant: &VariantKey, hold: Duration, now: Moment) -> Option<Kept> {
        let ago = now.since(*self.started.get(variant)?);
        (ago < hold).then_some(Kept { ago, hold })
    }
}
