//! When each model was last in use, as far as this process knows. It errs late: what was not seen
//! to be idle counts as use.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::{ModelActivity, ModelLoad};
use crate::key::ModelKey;
use crate::signal::LOOK;
use wva_base::moment::Moment;

/// How much later than that the next look may come: collections take a while, and not always the same.
const LATENESS: Duration = Duration::from_secs(15);

/// One look at every model, and the time that was not seen before it.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub now: Moment,
    /// How long after the look before.
    pub after: Duration,
}

impl Look {
    /// The end of the time that was not seen since the look before; `None` where looks follow each other
    /// as they should. A model may have been in use until then.
    fn unseen_until(self) -> Option<Moment> {
        (self.after > LOOK + LATENESS).then(|| self.now.earlier(LOOK))
    }
}

/// When each model was last in use. Holds the models of the last look and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActivityLog {
    last: BTreeMap<ModelKey, Moment>,
}

impl ActivityLog {
    /// Adds one look at every model. A model that is new, busy, woken, or of which not everything is
    /// known, is in use now, and any was as long as there was no look; a model that is missing is forgotten,
    /// and starts anew when it is back.
    #[must_use]
    pub fn learn(
        mut self,
        loads: &BTreeMap<ModelKey, ModelLoad>,
        woken: &BTreeSet<ModelKey>,
        look: Look,
    ) -> Self {
        let Look { now, .. } = look;
        self.last.retain(|model, _| loads.contains_key(model));
        for (model, load) in loads {
            let last = self.last.entry(model.clone()).or_insert(now);
            if load.activity() != ModelActivity::Idle || woken.contains(model) {
                *last = now;
            } else if let Some(unseen) = look.unseen_until() {
                *last = unseen.max(*last);
            }
        }
        self
    }

    /// How long a model has been idle; `None` where nothing is known about it.
    pub fn idle_for(&self, model: &ModelKey, now: Moment) -> Option<Duration> {
        self.last.get(model).map(|last| now.since(*last))
    }
}
