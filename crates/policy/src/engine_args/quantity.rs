//! Two kinds of tokens that are never added, compared or exchanged: those that stay in a KV cache,
//! and those that one step computes.

use std::cmp::Ordering;
use std::iter::Sum;

use serde::{Deserialize, Serialize};

/// Tokens resident in a KV cache, or room for them; finite and at least zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(into = "f64", try_from = "f64")]
pub struct KvTokens(pub f64);

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{tokens} is no amount of KV tokens; give a finite number of at least 0")]
pub struct InvalidTokens {
    tokens: f64,
}

impl From<KvTokens> for f64 {
    fn from(tokens: KvTokens) -> Self {
        tokens.0
    }
}

impl TryFrom<f64> for KvTokens {
    type Error = InvalidTokens;

    fn try_from(tokens: f64) -> Result<Self, InvalidTokens> {
        if tokens.is_finite() && tokens >= 0.0 {
            Ok(Self(tokens))
        } else {
            Err(InvalidTokens { tokens })
        }
    }
}

impl KvTokens {
    pub const ZERO: Self = Self(0.0);

    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// A share of it in whole tokens, rounded down.
    #[must_use]
    pub fn share(self, share: f64) -> Self {
        Self((self.0 * share).floor())
    }

    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self(self.0 * f64::from(count))
    }

    pub fn order(self, other: Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }

    /// Whether there is at least one.
    pub fn is_some(self) -> bool {
        self.0 > 0.0
    }
}

impl Sum for KvTokens {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Self::plus)
    }
}

wva_base::display_of! { KvTokens: Self(count) => "{count} KV tokens"; }

/// Tokens that an engine computes in one step at most.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StepTokens(pub u32);

wva_base::display_of! { StepTokens: Self(count) => "{count} tokens a step"; }
