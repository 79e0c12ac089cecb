//! Prefill behind a full decode: what prefill shows then is decode's backlog.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use wva_base::moment::Moment;

/// Time after decode was full during which prefill readings still show its backlog.
const AFTERMATH: Duration = Duration::from_mins(1);

/// When decode was last seen full and queued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Coupling {
    last_full: Option<Moment>,
}

impl Coupling {
    /// Takes note of this cycle. A queue alone does not make decode full: requests that wait for
    /// remote KV count as waiting, too.
    pub(crate) fn observe(self, now: Moment, is_decode_full_and_queued: bool) -> Self {
        Self {
            last_full: if is_decode_full_and_queued {
                Some(now)
            } else {
                self.last_full.filter(|at| now.since(*at) <= AFTERMATH)
            },
        }
    }

    /// Whether prefill readings of `now` must not be recorded.
    pub(crate) fn masks_prefill(self, now: Moment) -> bool {
        self.last_full.is_some_and(|at| now.since(at) <= AFTERMATH)
    }
}
