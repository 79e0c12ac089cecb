//! GPU quotas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How many GPUs of one type may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Quota {
    /// As many as there are; written -1.
    Unlimited,
    /// This many; 0 denies the type.
    AtMost(u32),
}

/// Quotas by accelerator type.
pub type Quotas = BTreeMap<String, Quota>;

/// One limiter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limiter {
    /// Unique among the limiters of one list.
    pub name: Arc<str>,
    /// What it limits.
    pub scope: LimiterScope,
    /// Namespaces that it does not limit.
    pub exclude: BTreeSet<String>,
}

/// What a limiter limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimiterScope {
    /// The sum over the cluster.
    Cluster(Quotas),
    /// Each namespace by itself; `default` stands for those that are not listed.
    Namespaces(BTreeMap<String, Quotas>),
}
