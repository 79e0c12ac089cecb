//! What is wrong with a scale target.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is wrong with a scale target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TargetProblem {
    /// It does not exist.
    NotFound,
    /// Several variants name it.
    Contested,
    /// Its kind cannot be scaled.
    UnsupportedKind,
    /// It has not been seen yet.
    Unknown,
    /// The object that names it is malformed.
    Malformed,
}

impl TargetProblem {
    /// The problem in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "the scale target does not exist",
            Self::Contested => "several variants name the scale target",
            Self::UnsupportedKind => "the kind of the scale target is not supported",
            Self::Unknown => "the scale target has not been seen yet",
            Self::Malformed => "the object is malformed",
        }
    }
}

impl fmt::Display for TargetProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
