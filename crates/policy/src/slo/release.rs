//! What keeps replicas from being released.

use serde::{Deserialize, Serialize};

use crate::combine::Band;
use crate::reason::Awaited;
use crate::rounding;
use crate::throughput::floor::{MARGIN, orders_nothing};
use crate::units::Replicas;

/// Part of a replica below which a share of replicas is a whole number of them.
const WHOLE: f64 = 1e-6;

wva_base::named! {
    /// Why replicas of a role are not released; its text is the end of a line.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ReleaseHold {
        /// Requests wait.
        Backlog = "; nothing is released while requests wait",
        /// Nothing waits, and replicas exceed the objective between tokens.
        OverObjective = "; nothing is released while replicas are over the objectives",
        /// Needs are known for less than the horizon.
        ShortMemory = "; what was found is kept until needs were seen for the whole horizon",
        /// A release was taken back at about the same need.
        TakenBack = "; a release was taken back, and needs are about the same still",
        /// What fewer replicas bear is assumed.
        AssumedLatency = "; the latency of fewer replicas is assumed: one, or a fifth, is released at once",
    }
}

impl From<ReleaseHold> for Awaited {
    fn from(hold: ReleaseHold) -> Self {
        match hold {
            ReleaseHold::Backlog => Self::Backlog,
            ReleaseHold::OverObjective => Self::Objectives,
            ReleaseHold::ShortMemory => Self::Horizon,
            ReleaseHold::TakenBack => Self::OtherNeeds,
            ReleaseHold::AssumedLatency => Self::ShownLoad,
        }
    }
}

impl ReleaseHold {
    /// Whether only what fewer replicas bear is in question: a larger demand does not show it.
    pub(super) fn is_of_fewer(self) -> bool {
        matches!(self, Self::TakenBack | Self::AssumedLatency)
    }

    /// The least demand at which nothing is released that is held: everything, or the `kept` share of what so many
    /// `ready` replicas supply. It orders nothing.
    pub(super) fn floor(
        self,
        kept: f64,
        ready: Replicas,
        (supply, anticipated): (f64, f64),
        band: Band,
    ) -> f64 {
        // A release begins at the lower end of the band and aims at its middle.
        let aim = f64::midpoint(band.scale_up, band.scale_down);
        let share = band.scale_down.min(aim * kept);
        let released = |left: f64| rounding::floor(ready.to_f64() * (1.0 - left) + WHOLE);
        let is_held = match self {
            Self::Backlog | Self::OverObjective => true,
            // Not one more may go, so none does where the lower end of the band lets more go.
            Self::ShortMemory | Self::TakenBack => released(share / aim) > released(kept),
            Self::AssumedLatency => false,
        };
        if is_held || kept >= 1.0 {
            (band.scale_up * supply * (1.0 + MARGIN)).min(orders_nothing(anticipated, band))
        } else {
            share * supply * (1.0 - MARGIN)
        }
    }
}
