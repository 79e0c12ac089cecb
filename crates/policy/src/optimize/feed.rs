//! What prefill lets through to decode.
//!
//! Decode receives what prefill lets through, so a prefill role that cannot reach its need even at its
//! maxima limits decode to the share that it reaches. Nothing limits prefill: what decode cannot take
//! arrives all the same. GPUs that are short today set no bound, as they may be free tomorrow.

use crate::combine::CapacityClaim;

/// GPUs that roles take replica by replica.
pub(super) const SINGLY: u32 = 1024;

/// Share of a claim that is a rounding error and not a need.
pub(super) const TOLERANCE: f64 = 1e-9;

/// The share of its need that a role reaches with every variant at its maximum; `None` where it
/// reaches all of it, or where what it reaches is not known. `variants` are those that a claim can
/// size: what one replica of each means to every claim, and the replicas that may be added.
pub(super) fn reach(claims: &[CapacityClaim], variants: &[(&[f64], u32)]) -> Option<f64> {
    if variants.is_empty() {
        return None;
    }
    let shares = claims.iter().enumerate().filter_map(|(index, claim)| {
        let room: f64 = variants
            .iter()
            .filter_map(|(gains, room)| {
                let gain = gains.get(index).filter(|gain| **gain > 0.0)?;
                Some(gain * f64::from(*room))
            })
            .sum();
        let unmet = claim.amount - room;
        let need = claim.anticipated + claim.amount;
        let is_short = !claim.per_replica.is_empty() && unmet > claim.amount * TOLERANCE;
        is_short.then(|| (need - unmet) / need)
    });
    shares.reduce(f64::min)
}

pub(super) fn follow(claims: &[CapacityClaim], share: f64) -> Vec<CapacityClaim> {
    claims
        .iter()
        .map(|claim| {
            let need = claim.anticipated + claim.amount;
            let amount = (need * share - claim.anticipated).clamp(0.0, claim.amount);
            CapacityClaim { amount, ..claim.clone() }
        })
        .collect()
}
