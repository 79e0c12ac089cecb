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
mod figures;
mod gpu_demand;
mod inventory;
mod not_counted;
mod pass;
mod pool;
mod pools;
mod rescale;
mod rescale_candidate;
mod usage;
mod water_filling;
mod withheld;

pub use budget::Budget;
pub use figures::{PoolFigures, PoolScope};
pub use gpu_demand::HeadroomShare;
pub use inventory::{NodeView, Scheduling, is_gpu_device};
pub use not_counted::{GpuCount, NotCounted, ReplicaClaim};
pub use pool::{GpuPool, HeldGpus};
pub use pools::Physical;
pub use rescale::BudgetClaim;
pub use usage::{GpuPod, PodPhase, pod_gpus};
pub use withheld::{DemandGap, Withheld};

pub use accelerator_name::reconcile;
pub(crate) use accelerator_name::short_name;
pub(crate) use gpu_demand::{GpuDemand, by_headroom};
pub(crate) use inventory::{leaving, physical};
pub(crate) use not_counted::claims_not_counted;
pub(crate) use pass::{GrowthRequest, allocate};
pub(crate) use pools::{GpuPools, GpuSupply, ManagedUse, UncountedUse};
pub(crate) use rescale::{AwaitedStart, RescaleSwitches, Turn, rescale};
pub(crate) use rescale_candidate::{RescaleCandidate, ShareVariant};

#[cfg(test)]
pub(crate) use gpu_demand::{Claimant, headroom};
#[cfg(test)]
pub(crate) use pass::Grant;
#[cfg(test)]
pub(crate) use rescale::Rescaled;
#[cfg(test)]
pub(crate) use water_filling::{Bidder, round_shares, water_fill};
