//! From the views of several analyzers on one model to one mandate for each role: grow by so much,
//! release so much, or hold.
//!
//! Growth takes one voter that lacks capacity; release takes every live voter. The views keep their
//! units to the end: what a mandate hands to an optimizer is one claim for each voter, with the
//! capacities that this voter sees.

mod anchor;
mod balance;
mod ballot;
mod claim;
mod liveness;
mod mandate;
mod participation;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::capacity::{AnalyzerName, Assessment, CapacityUnit, ServingRole};
use super::key::VariantKey;
use super::units::Cost;

pub use anchor::Anchor;
pub use balance::{Balance, Band};
pub use ballot::{Direction, Vote, combine_votes};
pub use claim::Claim;
pub use liveness::{AnalyzerLog, AskedLog, Liveness, Sighting};
pub use mandate::{Awaited, Hold, Mandate};
pub use participation::{Participation, lacks_saturation_vote, participation};

/// One analyzer's part in one cycle of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    /// The analyzer.
    pub analyzer: AnalyzerName,
    /// Its weight among the voters, not negative.
    pub score: f64,
    /// Its utilization band.
    pub band: Band,
    /// Whether it votes.
    pub participation: Participation,
    /// Whether it was informative of late.
    pub liveness: Liveness,
    /// What it says; `None` where it said nothing this cycle.
    pub assessment: Option<Assessment>,
}

/// The view of one voter, role by role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoterFigures {
    /// The analyzer.
    pub analyzer: AnalyzerName,
    /// Its weight.
    pub score: f64,
    /// Whether its agreement is needed to shrink.
    pub liveness: Liveness,
    /// Of its balances; absent where it said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<CapacityUnit>,
    /// Demand, supply, and what follows; a role without an entry is one that it abstains from.
    pub roles: BTreeMap<ServingRole, Balance>,
}

/// What the analyzers agreed on for one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consensus {
    /// Who sizes the model.
    pub anchor: Anchor,
    /// Every voter's view.
    pub voters: Vec<VoterFigures>,
    /// The outcome by role.
    pub roles: BTreeMap<ServingRole, Mandate>,
}

impl Consensus {
    /// Says of a voter that vetoes the release of a role since it waits that it does, and at which
    /// measured balance.
    pub fn name_wait(
        &mut self,
        role: ServingRole,
        analyzer: AnalyzerName,
        awaits: Awaited,
        measured: &Balance,
    ) {
        let is_its =
            |hold: &Hold| matches!(hold, Hold::Vetoed { analyzer: by, .. } if *by == analyzer);
        if let Some(Mandate::Hold(hold)) = self.roles.get_mut(&role)
            && is_its(hold)
        {
            *hold = Hold::Waiting {
                analyzer,
                awaits,
                utilization: (measured.supply > 0.0).then(|| measured.demand / measured.supply),
            };
        }
    }

    /// Keeps every role from shrinking, since `role` serves and nobody could judge it.
    pub fn hold_partners_of(&mut self, role: ServingRole) {
        for mandate in self.roles.values_mut() {
            if matches!(mandate, Mandate::Release { .. }) {
                *mandate = Mandate::Hold(Hold::Unjudged { role });
            }
        }
    }
}

/// Combines the seats of one model. `costs` names its variants; a variant that it does not name
/// cannot be scaled and supplies capacity only.
pub fn combine(seats: &[Seat], costs: &BTreeMap<VariantKey, Cost>) -> Consensus {
    let anchor = anchor::choose(seats);
    let ballots: Vec<balance::View<'_>> = seats
        .iter()
        .filter(|seat| seat.participation == Participation::Votes)
        .map(balance::View::of)
        .collect();
    let mut roles = BTreeMap::new();
    for view in &ballots {
        for role in view.roles.keys() {
            roles
                .entry(*role)
                .or_insert_with(|| mandate::decide(*role, &anchor, &ballots, costs));
        }
    }
    Consensus {
        anchor,
        voters: ballots.into_iter().map(balance::View::figures).collect(),
        roles,
    }
}
