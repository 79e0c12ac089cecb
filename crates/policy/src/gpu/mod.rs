//! GPUs of the cluster: those that nodes offer and pods hold, quotas of them, and the pools that variants draw from.
//!
//! An unknown, an unlimited and a finite budget are three things. What a replica holds by resource claims is unknown as
//! well: it takes nothing of what nodes offer as a resource, and leaves a quota that counts it unknown to all.

mod accelerator_name;
mod budget;
mod inventory;
mod not_counted;
mod pool;
mod pools;

pub use accelerator_name::reconcile;
pub use budget::Budget;
pub use inventory::{GpuPod, NodeView, PodPhase, Scheduling, is_gpu_device, pod_gpus};
pub use not_counted::{GpuCount, ReplicaClaim};
pub use pool::{GpuPool, PoolFigures, PoolScope};
pub use pools::Physical;

pub(crate) use inventory::{leaving, physical};
pub(crate) use not_counted::{NotCounted, claims_not_counted};
pub(crate) use pool::HeldGpus;
pub(crate) use pools::{GpuPools, GpuSupply, ManagedUse, UncountedUse};

#[cfg(test)]
pub(crate) use accelerator_name::short_name;
