//! How those who write to the API server fare, for the readiness page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::policy::readiness::{Reason, State};

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    /// Leadership, on the Lease.
    Lease,
    /// The status writer, on VariantAutoscalings.
    Status,
    /// The event recorder.
    Events,
}

impl Writer {
    fn name(self) -> &'static str {
        match self {
            Self::Lease => "write/lease",
            Self::Status => "write/status",
            Self::Events => "write/events",
        }
    }
}

/// What the last request of each writer came to. Clones are handles on the same.
#[derive(Debug, Clone, Default)]
pub struct Writes(Arc<Mutex<Outcomes>>);

/// By writer: accepted, or why not.
type Outcomes = BTreeMap<Writer, Result<(), Arc<str>>>;

impl Writes {
    /// The last request was answered as it should be.
    pub fn worked(&self, writer: Writer) {
        self.outcomes().insert(writer, Ok(()));
    }

    /// The last request was refused, or not answered.
    pub fn failed(&self, writer: Writer, why: &str) {
        self.outcomes().insert(writer, Err(Arc::from(why)));
    }

    /// One reason for each writer that has written.
    pub fn reasons(&self) -> Vec<Reason> {
        let outcomes = self.outcomes();
        let reasons = outcomes.iter().map(|(writer, outcome)| {
            let (state, detail) = match outcome {
                Ok(()) => (State::Ok, "accepted".to_owned()),
                Err(why) => (State::Degraded, why.to_string()),
            };
            Reason {
                name: writer.name().to_owned(),
                state,
                detail,
            }
        });
        reasons.collect()
    }

    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
