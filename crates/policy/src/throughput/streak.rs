//! Symmetric confirmation: one look orders nothing, in neither direction.

use serde::{Deserialize, Serialize};

use crate::combine::{Balance, VoteDirection};

pub(crate) const CONFIRMING_CYCLES: u8 = 2;

/// How many cycles in a row wanted the same direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    pub direction: VoteDirection,
    /// Cycles, the latest one included.
    pub cycles: u8,
}

impl Streak {
    /// Continues a streak with a cycle, or starts a new one; none where the cycle wants neither.
    pub(crate) fn next(previous: Option<Self>, wanted: Option<VoteDirection>) -> Option<Self> {
        let direction = wanted?;
        let before = previous
            .filter(|streak| streak.direction == direction)
            .map_or(0, |streak| streak.cycles);
        Some(Self { direction, cycles: before.saturating_add(1) })
    }

    pub(crate) fn confirms(self, direction: VoteDirection) -> bool {
        self.direction == direction && self.cycles >= CONFIRMING_CYCLES
    }
}

pub(crate) fn wanted(balance: &Balance) -> Option<VoteDirection> {
    if balance.required > 0.0 {
        Some(VoteDirection::Up)
    } else if balance.spare > 0.0 {
        Some(VoteDirection::Down)
    } else {
        None
    }
}
