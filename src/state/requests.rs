//! How those who ask the API server for something fare, for the readiness page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::policy::readiness::{ReadinessReason, ReadinessState};

wva_base::named! {
    /// Who asks. Watchers are not among them: their mirrors know how they fare.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum Asker {
        Lease = "write/lease",
        Status = "write/status",
        Autoscalers = "write/podautoscalers",
        Pods = "write/pods",
        Targets = "write/scale",
        MetricsApis = "read/metrics-apis",
        Events = "write/events",
        Scale = "read/scale",
    }
}

/// The outcome of the last request of each. Clones are handles on the same.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<Outcomes>>);

/// By who asks: answered, or why not.
type Outcomes = BTreeMap<Asker, Result<(), Arc<str>>>;

/// Reports the outcomes of one that asks.
#[derive(Debug)]
pub struct RequestReporter {
    asker: Asker,
    requests: Requests,
}

impl RequestReporter {
    /// The last request was answered as it should be.
    pub fn worked(&self) {
        self.requests.outcomes().insert(self.asker, Ok(()));
    }

    /// The last request was refused, or not answered.
    pub fn failed(&self, why: &str) {
        let why = Err(Arc::from(why));
        self.requests.outcomes().insert(self.asker, why);
    }
}

impl Requests {
    pub(super) fn reporter(&self, asker: Asker) -> RequestReporter {
        let requests = self.clone();
        RequestReporter { asker, requests }
    }

    /// One reason for each that has asked.
    pub fn reasons(&self) -> Vec<ReadinessReason> {
        let outcomes = self.outcomes();
        let reasons = outcomes.iter().map(|(asker, outcome)| {
            let (state, detail) = match outcome {
                Ok(()) => (ReadinessState::Ok, "accepted".to_owned()),
                Err(why) => (ReadinessState::Degraded, why.to_string()),
            };
            ReadinessReason { name: asker.as_str().to_owned(), state, detail }
        });
        reasons.collect()
    }

    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
