//! What replicas that have more to do than they can do say of the size of requests, before their mean shows it.

use super::demand::DemandTrack;
use crate::units::Replicas;

/// The most by which requests are taken to be larger than their mean of the last minutes.
const MOST_LARGER: f64 = 2.0;

/// How many times as large as their known mean requests are, where `ready` replicas that can do `supply` per second take
/// fewer than arrive: 1 unless requests become more in the router, and the same replicas took them.
pub(super) fn larger(demand: &DemandTrack, supply: f64, per_request: f64, ready: Replicas) -> f64 {
    let are_seen = demand.waiting.is_some_and(|seen| seen.replicas >= ready.0);
    let taken = demand.taken().map(|requests| requests * per_request);
    let taken = taken.filter(|work| are_seen && *work > 0.0);
    taken.map_or(1.0, |work| (supply / work).clamp(1.0, MOST_LARGER))
}
