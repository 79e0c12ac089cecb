//! GPUs that are kept for a start from zero.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::pool::GpuPool;
use crate::key::ModelKey;
use crate::units::Gpus;

/// GPUs of one pool that the growth of other models does not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldGpus {
    /// The model that starts, or will once there are enough.
    pub model: ModelKey,
    /// The pool.
    pub pool: GpuPool,
    /// GPUs.
    pub gpus: Gpus,
}

impl fmt::Display for HeldGpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, pool, gpus } = self;
        let ModelKey { namespace, model } = model;
        write!(f, "{gpus} in {pool} for {namespace}/{model}")
    }
}
