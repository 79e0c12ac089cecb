//! What a stage compared or chose by: sources of bounds, amounts, methods, opinions.

use serde::{Deserialize, Serialize};

use crate::capacity::AnalyzerName;
use crate::units::Replicas;

/// How an optimizer chooses among variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The least resulting cost, searched from the greedy answer and never dearer than it.
    LeastCost,
    /// The variant with the least cost for its capacity first, or the most expensive first when shrinking.
    Greedy,
}

impl Method {
    /// The name in reasons.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LeastCost | Self::Greedy => "cost-aware",
        }
    }
}

/// An amount that an analyzer wants added, still lacks, or leaves to be released, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WantedAmount {
    pub analyzer: AnalyzerName,
    pub amount: f64,
}

/// Why a variant keeps its replicas although its role could lose some.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseObstacle {
    /// It stands at its minimum.
    Minimum(Replicas),
    /// It has no replicas.
    NoReplicas,
    /// Its replica is the last one of its role.
    LastOfRole,
    /// One of its replicas supplies more than may go.
    TooLarge(WantedAmount),
    /// Others of its role go first, and what may go is used up.
    #[default]
    OthersFirst,
}

/// Whether the saturation analysis finds a model able to bear one replica less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shrinking {
    Safe,
    /// It is not, or nothing is known.
    Unsafe,
}

/// Whose opinion was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Saturation kept replicas that the model would have taken away.
    SafetyOverride,
    Saturation,
    Model,
    /// Neither wants a change.
    Neither,
}

/// A variant that is too slow to serve with the others of its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Straggler {
    /// Sequences that one replica holds within the objectives.
    pub sequences: u32,
    /// The fewest that one of the others holds.
    pub others: u32,
    /// Whether ready replicas of the others do all that is needed.
    pub is_replaced: bool,
}

wva_base::named! {
    shown
    /// Where a bound comes from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum BoundSource {
        /// Written on the object.
        Object = "minReplicas",
        /// `minReplicas` absent, scale to zero not enabled for the model: 1.
        ScaleToZeroDisabled = "minReplicas absent, scale to zero not enabled",
        /// `minReplicas` absent, scale to zero enabled for the model: 0.
        ScaleToZeroEnabled = "minReplicas absent, scale to zero enabled",
    }
}
