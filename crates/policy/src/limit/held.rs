//! GPUs that are kept for a start from zero.

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

wva_base::display_of! { HeldGpus:
    Self { model: ModelKey { namespace, model }, pool, gpus } => "{gpus} in {pool} for {namespace}/{model}";
}
