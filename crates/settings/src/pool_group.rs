//! Which InferencePool flavour is watched.

use std::fmt;

/// The API group of the InferencePools that are watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PoolGroup {
    /// Each flavour that discovery shows; the stable one wins for a pool present in both.
    #[default]
    Discovered,
    /// Version `v1` only.
    Stable,
    /// Version `v1alpha2` only.
    Alpha,
}

impl PoolGroup {
    /// API group of `v1`.
    pub const STABLE: &'static str = "inference.networking.k8s.io";
    /// API group of `v1alpha2`.
    pub const ALPHA: &'static str = "inference.networking.x-k8s.io";

    /// Reads a group; empty is every flavour.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" => Some(Self::Discovered),
            Self::STABLE => Some(Self::Stable),
            Self::ALPHA => Some(Self::Alpha),
            _ => None,
        }
    }

    /// Whether `v1` is watched.
    pub fn includes_stable(self) -> bool {
        matches!(self, Self::Discovered | Self::Stable)
    }

    /// Whether `v1alpha2` is watched.
    pub fn includes_alpha(self) -> bool {
        matches!(self, Self::Discovered | Self::Alpha)
    }
}

impl fmt::Display for PoolGroup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Discovered => "",
            Self::Stable => Self::STABLE,
            Self::Alpha => Self::ALPHA,
        })
    }
}
