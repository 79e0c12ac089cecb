//! What the GPUs allow: physical ones by what nodes offer and pods use, quotas by what is declared.
//! Both bind: a replica is granted where every pool that it draws from has room.
//!
//! An unknown, an unlimited and a finite budget are three things. Where it is unknown nothing grows
//! above its floor and nothing is lowered. What a replica holds by resource claims is unknown as well: it takes
//! nothing of what nodes offer as a resource, and leaves a quota that counts it unknown to all.
//!
//! [`rescale()`] shares a contended budget by priority, `headroom` says how it would be shared by headroom.

mod accelerator_name;
mod budget;
mod gpu_demand;
mod inventory;
mod not_counted;
mod pass;
mod pool;
mod pools;
mod rescale;
mod rescale_candidate;
mod water_filling;
mod withheld;

pub use budget::Budget;
pub use inventory::{GpuPod, NodeView, PodPhase, Scheduling, is_gpu_device, pod_gpus};
pub use not_counted::{GpuCount, ReplicaClaim};
pub use pool::{GpuPool, PoolFigures, PoolScope};
pub use pools::Physical;
pub use withheld::Withheld;

pub use accelerator_name::reconcile;
pub(crate) use accelerator_name::short_name;
pub(crate) use gpu_demand::{HeadroomShare, by_headroom, gpu_demand};
pub(crate) use inventory::{leaving, physical};
pub(crate) use not_counted::{NotCounted, claims_not_counted};
pub(crate) use pass::{GrowthRequest, allocate};
pub(crate) use pool::HeldGpus;
pub(crate) use pools::{GpuPools, GpuSupply, ManagedUse, UncountedUse};
pub(crate) use rescale::{AwaitedStart, BudgetClaim, Turn, rescale};
pub(crate) use rescale_candidate::{RescaleCandidate, ShareVariant};
pub(crate) use withheld::DemandGap;

#[cfg(test)]
pub(crate) use gpu_demand::{Claimant, headroom};
#[cfg(test)]
pub(crate) use pass::Grant;
#[cfg(test)]
pub(crate) use rescale::Rescaled;
#[cfg(test)]
pub(crate) use water_filling::{Bidder, round_shares, water_fill};
