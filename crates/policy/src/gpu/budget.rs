//! How many more GPUs may be taken.

use serde::{Deserialize, Serialize};

use crate::units::Gpus;

/// How many more GPUs may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Budget {
    /// Not known: nothing grows by it and nothing is lowered.
    Unknown,
    /// This many.
    Finite(Gpus),
    /// As many as anybody wants.
    Unlimited,
}

impl Budget {
    /// Both bind. What is not known decides, since it might be the tighter one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Unlimited, other) => other,
            (this, Self::Unlimited) => this,
            (Self::Finite(one), Self::Finite(other)) => Self::Finite(one.min(other)),
        }
    }

    /// What is left once some are taken; never negative.
    #[must_use]
    pub fn less(self, taken: Gpus) -> Self {
        match self {
            Self::Finite(free) => Self::Finite(free.saturating_sub(taken)),
            Self::Unknown | Self::Unlimited => self,
        }
    }

    /// How many of `wanted` it grants; none where it is not known.
    pub fn grant(self, wanted: Gpus) -> Gpus {
        match self {
            Self::Unknown => Gpus::ZERO,
            Self::Finite(free) => free.min(wanted),
            Self::Unlimited => wanted,
        }
    }
}

wva_base::display_of! { Budget:
    Self::Unknown => "unknown";
    Self::Finite(gpus) => "{gpus} GPUs";
    Self::Unlimited => "unlimited";
}
