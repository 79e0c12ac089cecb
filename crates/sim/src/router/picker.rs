//! Which server gets a request.

use wva_supervise::Generator;

/// How much each score counts by llm-d's default profile: short queues, room in the KV cache, and the share of the prompt
/// in the server's prefix cache. Every score lies between 0 and 1, and the highest weighted sum wins.
const WEIGHTS: [f64; 3] = [2.0, 2.0, 3.0];

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate<T> {
    pub(super) endpoint: T,
    pub(super) waiting: f64,
    pub(super) kv_usage: f64,
    /// Share of the prompt it has cached, 0 to 1.
    pub(super) cached: f64,
}

/// The best of them; chance decides among equals, so that not all requests of a quiet time go to the
/// first.
pub(super) fn pick<T: Copy>(candidates: &[Candidate<T>], generator: &mut Generator) -> Option<T> {
    /// Scores this close are equal.
    const TIE: f64 = 1e-9;
    let waiting = candidates.iter().map(|candidate| candidate.waiting);
    let longest = waiting.clone().fold(f64::NEG_INFINITY, f64::max);
    let shortest = waiting.fold(f64::INFINITY, f64::min);
    let score = |candidate: &Candidate<T>| {
        let queue = if longest > shortest {
            (longest - candidate.waiting) / (longest - shortest)
        } else {
            1.0
        };
        let [queues, room, prefixes] = WEIGHTS;
        queues * queue + room * (1.0 - candidate.kv_usage) + prefixes * candidate.cached
    };
    let best = candidates.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
    let equals = candidates.iter().filter(|candidate| score(candidate) >= best - TIE);
    let count = u64::try_from(equals.clone().count()).ok()?;
    let chosen = generator.next_u64().checked_rem(count)?;
    let mut equals = equals.skip(usize::try_from(chosen).ok()?);
    equals.next().map(|candidate| candidate.endpoint)
}
