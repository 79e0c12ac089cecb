//! When each model was last in use, as far as this process knows. It errs late: what was not seen
//! to be idle counts as use.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::{Activity, ModelLoad};
use crate::policy::key::ModelKey;
use crate::policy::moment::Moment;

/// When each model was last in use. Holds the models of the last look and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActivityLog {
    last: BTreeMap<ModelKey, Moment>,
}

impl ActivityLog {
    /// Adds one look at every model. A model that is new, busy, woken, or of which not everything is
    /// known, is in use now; a model that is missing is forgotten, and starts anew when it is back.
    #[must_use]
    pub fn learn(
        mut self,
        loads: &BTreeMap<ModelKey, ModelLoad>,
        woken: &BTreeSet<ModelKey>,
        now: Moment,
    ) -> Self {
        self.last.retain(|model, _| loads.contains_key(model));
        for (model, load) in loads {
            let last = self.last.entry(model.clone()).or_insert(now);
            if load.activity() != Activity::Idle || woken.contains(model) {
                *last = now;
            }
        }
        self
    }

    /// How long a model has been idle; `None` where nothing is known about it.
    pub fn idle_for(&self, model: &ModelKey, now: Moment) -> Option<Duration> {
        self.last.get(model).map(|last| now.since(*last))
    }
}
