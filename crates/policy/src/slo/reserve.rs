//! What is held for bursts that come faster than a replica starts.

use std::time::Duration;

use super::memory::{MAX_HORIZON, NeedMemory};
use crate::params::BurstReserve;
use wva_base::moment::Moment;

/// Time from a need to the order of a replica: a scrape, a cycle, and the poll of a scaler, 15 s each.
pub(super) const REACTION: Duration = Duration::from_secs(45);
/// How long a burst is worth replicas that idle.
const WORTH: Duration = Duration::from_mins(10);

/// What is held on top of the remembered need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldReserve {
    /// Share of the remembered need.
    pub share: f64,
    /// Work of the largest burst that is held for.
    pub burst: f64,
}

impl HeldReserve {
    const NONE: Self = Self { share: 0.0, burst: 0.0 };

    /// What is held for a role whose replicas start within so long.
    pub fn of(
        memory: Option<&NeedMemory>,
        chosen: BurstReserve,
        start: Duration,
        now: Moment,
    ) -> Self {
        let Some(memory) = memory else {
            return Self::NONE;
        };
        let landing = start + REACTION;
        let held = match chosen {
            BurstReserve::None => return Self::NONE,
            BurstReserve::Economical => WORTH,
            BurstReserve::Strict => MAX_HORIZON,
        };
        Self { share: memory.reserve(landing), burst: memory.burst(held, now) }
    }

    /// Work that replicas are held for, on top of which nothing is needed.
    pub fn with(self, remembered: f64) -> f64 {
        (remembered * (1.0 + self.share)).max(self.burst)
    }
}
