//! What is wrong with a scale target.

use serde::{Deserialize, Serialize};

wva_base::named! {
    shown
    /// What is wrong with a scale target.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum TargetProblem {
        /// It does not exist.
        NotFound = "the scale target does not exist",
        /// Several variants name it.
        Contested = "several variants name the scale target",
        /// Its kind cannot be scaled.
        UnsupportedKind = "the kind of the scale target is not supported",
        /// It has not been seen yet.
        Unknown = "the scale target has not been seen yet",
        /// The object that names it is malformed.
        Malformed = "the object is malformed",
    }
}
