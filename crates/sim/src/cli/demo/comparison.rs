//! What the controller is compared with: the smallest fixed fleet that keeps the objectives, and a rule under the same load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};

use serde::Serialize;
use tokio::sync::watch;

use crate::lab::FixedFleet;
use crate::world::{Frame, Scenario, Totals};
use wva_base::moment::WallTime;

/// A search for the smallest fixed fleet, on a thread of its own.
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
        Self {
            found,
            stop,
            thread: thread.ok(),
        }
    }

    /// Waits for the result.
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

/// What is known of the smallest fixed fleet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum FixedState {
    #[default]
    Searching,
    /// No fleet within the bounds keeps the objectives.
    Impossible,
    /// Its cost per hour.
    Found(f64),
}

/// A rule under the same load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RivalFrame {
    /// The policy.
    pub(super) name: String,
    pub(super) cost_per_hour: f64,
    pub(super) totals: Totals,
}

/// What is known at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Comparison {
    pub(super) fixed: FixedState,
    pub(super) rival: Option<RivalFrame>,
}

impl Comparison {
    /// What the smallest fixed fleet would have cost by a time, in virtual seconds.
    pub(super) fn fixed_cost(&self, seconds: f64) -> Option<f64> {
        match self.fixed {
            FixedState::Found(cost) => Some(cost * seconds / 3_600.0),
            FixedState::Searching | FixedState::Impossible => None,
        }
    }
}

/// Where comparisons come from.
#[derive(Debug)]
pub(super) struct Rivals {
    pub(super) fixed: FixedSearch,
    /// The name of a policy, and the frames of its world.
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
        Comparison {
            fixed: self.fixed.state(),
            rival,
        }
    }
}

/// A frame with its comparison, for the page.
#[derive(Debug, Serialize)]
pub(super) struct ComparedFrame<'a> {
    #[serde(flatten)]
    frame: &'a Frame,
    /// Cost of the smallest fixed fleet from the start until now.
    fixed_cost: Option<f64>,
    rival: Option<RivalFrame>,
}

impl<'a> ComparedFrame<'a> {
    pub(super) fn new(frame: &'a Frame, comparison: Comparison) -> Self {
        Self {
            frame,
            fixed_cost: comparison.fixed_cost(frame.seconds),
            rival: comparison.rival,
        }
    }
}
