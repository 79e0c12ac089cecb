//! Who gets the GPUs of the pools: a replica is granted where every pool that it draws from has room. Where a budget is
//! unknown nothing grows above its floor and nothing is lowered.
//!
//! [`rescale()`] shares a contended budget by priority, `headroom` says how it would be shared by headroom.

mod gpu_demand;
mod pass;
mod rescale;
mod rescale_candidate;
mod water_filling;

pub(crate) use gpu_demand::{HeadroomShare, by_headroom, gpu_demand};
pub(crate) use pass::{GrowthRequest, allocate};
pub(crate) use rescale::{AwaitedStart, BudgetClaim, Turn, rescale};
pub(crate) use rescale_candidate::{RescaleCandidate, ShareVariant};

#[cfg(test)]
pub(crate) use gpu_demand::{Claimant, headroom};
#[cfg(test)]
pub(crate) use pass::Grant;
#[cfg(test)]
pub(crate) use rescale::Rescaled;
#[cfg(test)]
pub(crate) use water_filling::{Bidder, round_shares, water_fill};
