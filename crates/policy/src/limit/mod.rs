//! What the GPUs allow: physical ones by what nodes offer and pods use, quotas by what is declared.
//! Both bind: a replica is granted where every pool that it draws from has room.
//!
//! An unknown, an unlimited and a finite budget are three things. Where it is unknown nothing grows
//! above its floor and nothing is lowered.
//!
//! [`rescale()`] shares a contended budget by priority, [`headroom()`] says how it would be shared by
//! headroom.

mod accelerator_name;
mod budget;
mod figures;
mod gpu_demand;
mod headroom;
mod held;
mod inventory;
mod pass;
mod pool;
mod pools;
mod rescale;
mod rescale_candidate;
mod usage;
mod water_filling;
mod withheld;

pub use accelerator_name::{reconcile, short_name};
pub use budget::Budget;
pub use figures::{PoolFigures, PoolScope};
pub use gpu_demand::{GpuDemand, HeadroomShare, by_headroom};
pub use headroom::{Claimant, Transfer, TransferEnd, TransferHolds, headroom};
pub use held::HeldGpus;
pub use inventory::{NodeGpus, NodeView, Scheduling, VENDORS, Vendor, discover, leaving, physical};
pub use pass::{Grant, GrowthRequest, allocate};
pub use pool::{GpuPool, Room};
pub use pools::{GpuPools, GpuSupply, ManagedUse, Physical};
pub use rescale::{AwaitedStart, BudgetClaim, RescaleSwitches, Rescaled, Turn, rescale};
pub use rescale_candidate::{RescaleCandidate, ShareVariant};
pub use usage::{GpuPod, PodPhase, pod_gpus, usage_by_node, usage_by_product};
pub use water_filling::{Bidder, Filled, round_shares, water_fill};
pub use withheld::{DemandGap, Withheld};
