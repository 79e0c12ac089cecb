//! What replicas that have more to do than they can do say of the size of requests, before their mean shows it.

use super::demand::DemandTrack;

/// The most by which requests are taken to be larger than their mean of the last minutes.
const MOST_LARGER: f64 = 2.0;

/// How many times as large as their known mean requests are, where `ready` replicas that can do `supply` per second take
/// fewer than arrive: 1 unless requests become more in the router, and the same replicas took them.
pub(super) fn larger(demand: &DemandTrack, supply: f64, per_request: f64, ready: u32) -> f64 {
    let are_seen = demand.waiting.is_some_and(|seen| seen.replicas >= ready);
    let taken = demand.taken().filter(|_| are_seen);
    taken.map_or(1.0, |taken| {
        (supply / (taken * per_request)).clamp(1.0, MOST_LARGER)
    })
}
