//! The demand without one of its terms.

use super::demand::DemandTrack;
use crate::params::SloTerm;

impl SloTerm {
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
