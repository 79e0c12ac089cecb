//! What the controller is compared with: the smallest fixed fleet that keeps the objectives, and a rule under the same load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};

use serde::Serialize;
use tokio::sync::watch;

use crate::lab::FixedFleet;
use crate::world::{Frame, Scenario, Totals};
use wva_base::moment::WallTime;

#[derive(Debug)]
pub(super) struct FixedSearch {
    found: Arc<OnceLock<Option<FixedFleet>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FixedSearch {
    pub(super) fn begin(scenario: Scenario, seed: u64, date: WallTime) -> Self {
        let found = Arc::new(OnceLock::new());
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, stopped) = (Arc::clone(&found), Arc::clone(&stop));
        let search = move || {
            let fleet = FixedFleet::search(&scenario, seed, date, &stopped);
            // Nothing else sets it.
            drop(sender.set(fleet));
        };
        let thread = Builder::new().name("fixed-fleet".to_owned()).spawn(search);
        let thread = thread.inspect_err(|error| tracing::warn!(%error, "failed to start a search"));
        Self { found, stop, thread: thread.ok() }
    }

    pub(super) fn finish(&mut self) {
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_panic)) = ended {
            tracing::error!("the search for a fixed fleet has panicked");
        }
    }

    fn state(&self) -> FixedState {
        match self.found.get() {
            None => FixedState::Searching,
            Some(None) => FixedState::Impossible,
            Some(Some(fleet)) => FixedState::Found(fleet.cost_per_hour),
        }
    }
}

impl Drop for FixedSearch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum FixedState {
    #[default]
    Searching,
    Impossible,
    Found(f64),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RivalFrame {
    pub(super) name: String,
    pub(super) cost_per_hour: f64,
    pub(super) totals: Totals,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Comparison {
    pub(super) fixed: FixedState,
    pub(super) rival: Option<RivalFrame>,
}

impl Comparison {
    pub(super) fn fixed_cost(&self, seconds: f64) -> Option<f64> {
        match self.fixed {
            FixedState::Found(cost) => Some(cost * seconds / 3_600.0),
            FixedState::Searching | FixedState::Impossible => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Rivals {
    pub(super) fixed: FixedSearch,
    pub(super) policy: Option<(String, watch::Receiver<Arc<Frame>>)>,
}

impl Rivals {
    pub(super) fn now(&self) -> Comparison {
        let rival = self.policy.as_ref().map(|(name, frames)| {
            let frame = frames.borrow();
            RivalFrame {
                name: name.clone(),
                cost_per_hour: frame.cost_per_hour,
                totals: frame.totals.clone(),
            }
        });
        Comparison { fixed: self.fixed.state(), rival }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ComparedFrame<'a> {
    #[serde(flatten)]
    frame: &'a Frame,
    fixed_cost: Option<f64>,
    rival: Option<RivalFrame>,
}

impl<'a> ComparedFrame<'a> {
    pub(super) fn new(frame: &'a Frame, comparison: Comparison) -> Self {
        Self { frame, fixed_cost: comparison.fixed_cost(frame.seconds), rival: comparison.rival }
    }
}
