//! Amounts of capacity that analyzers state.

use serde::{Deserialize, Serialize};

use crate::capacity::AnalyzerName;
use crate::combine::CapacityClaim;

/// An amount that an analyzer wants added, still lacks, or leaves to be released, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WantedAmount {
    /// The analyzer.
    pub analyzer: AnalyzerName,
    /// How much.
    pub amount: f64,
}

impl WantedAmount {
    pub(super) fn of(claims: &[CapacityClaim]) -> Vec<Self> {
        claims
            .iter()
            .map(|claim| Self {
                analyzer: claim.analyzer,
                amount: claim.amount,
            })
            .collect()
    }
}
