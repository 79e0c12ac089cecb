//! States of the inputs of a decision: the metrics of a variant and its scale target.

use serde::{Deserialize, Serialize};

wva_base::named! {
    shown
    /// State of a variant's metrics in one cycle.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum MetricsState {
        /// Its model was analysed and at least one replica of the variant reported.
        Available = "metrics are available",
        /// No sample of its ready replicas, or none that is a number in its range and younger than the
        /// unavailable threshold.
        Missing = "metrics are missing",
        /// Only samples too old to act on, and younger than that.
        Stale = "metrics are too old to act on",
        /// The query failed.
        QueryFailed = "the metrics query failed",
        /// No query has been answered yet.
        NotCollected = "no answer has been collected yet",
        /// It has no replicas that could report.
        NoReplicas = "no replica to measure",
        /// They were not looked at, since the target is not resolved.
        NotEvaluated = "metrics were not looked at",
    }
}

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
