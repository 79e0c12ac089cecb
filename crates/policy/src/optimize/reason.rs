//! Why an optimizer changed or kept a count.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Method;
use super::feed::write_fed;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::combine::{BlockReason, CapacityClaim};
use crate::units::Replicas;

/// An amount that an analyzer wants added or leaves to be released, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WantedAmount {
    /// The analyzer.
    pub analyzer: AnalyzerName,
    /// How much.
    pub amount: f64,
}

/// What a role still lacks after everything was added that may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Unmet {
    /// Whose claim.
    pub analyzer: AnalyzerName,
    /// How much of it, in its own unit.
    pub amount: f64,
}

/// Why an optimizer changed or kept a count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WhyOptimized {
    /// Added.
    Grown {
        /// How variants were chosen.
        method: Method,
        /// What its role needed.
        required: Vec<WantedAmount>,
    },
    /// Others of the role meet the claims at less cost, or none of it was needed.
    NotChosen {
        /// How variants were chosen.
        method: Method,
    },
    /// Its role needs more, and counts on replicas that it has on order.
    Ordered {
        /// Replicas that it will have then, by its minimum or by what was published.
        standing: Replicas,
    },
    /// At its maximum while its role needs more.
    AtMaximum {
        /// The maximum.
        max: Replicas,
    },
    /// Its role grows no further than prefill, which is at its maximum, can feed it.
    FedByPrefill {
        /// The share of its need that prefill reaches.
        reached: f64,
    },
    /// No analyzer knows what one replica of it supplies.
    NotSized,
    /// Taken away.
    Released {
        /// How variants were chosen.
        method: Method,
        /// What its role may lose.
        releasable: Vec<WantedAmount>,
    },
    /// Its role could shrink, and this one stays: others save more, it does not fit what may go, it
    /// stands at its minimum, or it is the last of its role.
    Kept {
        /// What its role may lose.
        releasable: Vec<WantedAmount>,
    },
    /// Another role of the model needs capacity, so nothing of the model shrinks.
    ModelGrows,
    /// Its role stays as it is.
    Held {
        /// Why.
        hold: BlockReason,
    },
    /// The queueing model has no opinion on it, or none that may be followed: in hybrid mode,
    /// saturation decides alone.
    LeftToSaturation,
    /// Nobody said anything about its role.
    NoMandate {
        /// The role.
        role: ServingRole,
    },
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

impl Method {
    /// The name in reasons.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LeastCost | Self::Greedy => "cost-aware",
        }
    }
}

/// One amount alone needs no name.
struct Amounts<'a>(&'a [WantedAmount]);

impl fmt::Display for Amounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0 {
            return write!(f, "{:.0}", only.amount);
        }
        for (index, wanted) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(
                f,
                "{separator}{} {:.0}",
                wanted.analyzer.as_str(),
                wanted.amount
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for WhyOptimized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grown { method, required } => write!(
                f,
                "V2 scale-up (optimizer: {}, required: {})",
                method.as_str(),
                Amounts(required)
            ),
            Self::Released { method, releasable } => write!(
                f,
                "V2 scale-down (optimizer: {}, releasable: {})",
                method.as_str(),
                Amounts(releasable)
            ),
            Self::NotChosen { method } => write!(
                f,
                "V2 steady state (optimizer: {}): other variants meet the need",
                method.as_str()
            ),
            Self::Ordered { standing } => write!(
                f,
                "more capacity is needed, and its {standing} replicas, published or its minimum, are \
                 counted on"
            ),
            Self::AtMaximum { max } => {
                write!(f, "more capacity is needed, but the maximum is {max}")
            }
            Self::FedByPrefill { reached } => write_fed(f, *reached),
            Self::NotSized => f.write_str("no analyzer knows the capacity of one replica"),
            Self::Kept { releasable } => write!(
                f,
                "V2 steady state: releasable: {}, but not by this variant",
                Amounts(releasable)
            ),
            Self::ModelGrows => f.write_str("another role of the model needs capacity"),
            Self::Held { hold } => write!(f, "V2 steady state: {hold}"),
            Self::LeftToSaturation => {
                f.write_str("the queueing model has no opinion to follow: saturation decides alone")
            }
            Self::NoMandate { role } => write!(f, "no analyzer has a view on role {role}"),
        }
    }
}
