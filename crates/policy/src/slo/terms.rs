//! Terms of the demand that can be left out, to see what each is worth.

use serde::{Deserialize, Serialize};

use super::demand::DemandTrack;

/// A term that the laboratory leaves out. No setting does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SloTerm {
    /// The last minute, where it exceeds the smoothed rate.
    ShortWindow,
    /// Tokens that are generated.
    Generated,
    /// Growth of the requests in flight.
    Surge,
    /// What arrived since the last count.
    Jump,
    /// The slope of the latency over the work.
    Slope,
    /// The backlog at landing.
    Landing,
    /// Replicas on their way, until they are ready.
    Starts,
    /// Needs of before.
    Memory,
    /// What the need grows by until a start is over.
    Growth,
    /// Variants that are too slow to serve with the others.
    Stragglers,
}

impl SloTerm {
    /// Every term, with its name.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::ShortWindow, "short-window"),
        (Self::Generated, "generated"),
        (Self::Surge, "surge"),
        (Self::Jump, "jump"),
        (Self::Slope, "slope"),
        (Self::Landing, "landing"),
        (Self::Starts, "starts"),
        (Self::Memory, "memory"),
        (Self::Growth, "growth"),
        (Self::Stragglers, "stragglers"),
    ];

    /// The demand without the term.
    pub(super) fn left_out(self, mut demand: DemandTrack) -> DemandTrack {
        match self {
            Self::ShortWindow => {
                demand.arrivals.recent = demand.arrivals.smoothed;
                demand.queue_growth = 0.0;
            }
            Self::Generated => demand.generated = None,
            Self::Surge => demand.surge = 0.0,
            Self::Jump => demand.jump = 0.0,
            Self::Slope
            | Self::Landing
            | Self::Starts
            | Self::Memory
            | Self::Growth
            | Self::Stragglers => {}
        }
        demand
    }
}
