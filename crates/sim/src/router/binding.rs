//! When a request gets its server, and which one.

use serde::Deserialize;

use wva_supervise::Generator;

/// When and how a request gets its server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// Held by flow control until a server has room, then given to the best one.
    #[default]
    Late,
    /// Given on arrival to a ready server with the fewest requests, running and waiting together; chance decides
    /// among equals.
    #[serde(rename = "early")]
    LeastRequest,
    /// Given on arrival to the ready servers in turn, in the order of their names.
    #[serde(rename = "early-round-robin")]
    RoundRobin,
}

/// Which held request goes first. Source: the ordering policies of llm-d's flow control, by their names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QueueOrder {
    /// The first that came.
    #[default]
    Fcfs,
    /// The one whose objective of the first token ends first; those without an objective last.
    SloDeadline,
}

impl Binding {
    /// Whether a request gets its server on arrival and waits in that server's queue. Flow control then holds requests
    /// only while no server is ready.
    pub(crate) fn is_early(self) -> bool {
        self != Self::Late
    }
}

pub(super) fn next<'a>(
    names: impl Iterator<Item = &'a str>,
    last: Option<&str>,
) -> Option<&'a str> {
    let mut first = None;
    for name in names {
        if last.is_none_or(|last| name > last) {
            return Some(name);
        }
        first.get_or_insert(name);
    }
    first
}

pub(super) fn least_loaded<T: Copy>(loads: &[(T, usize)], generator: &mut Generator) -> Option<T> {
    let least = loads.iter().map(|(_, load)| *load).min()?;
    let equals = loads.iter().filter(|(_, load)| *load == least);
    drawn(equals.map(|(endpoint, _)| *endpoint), generator)
}

/// One of these by chance.
fn drawn<T>(mut equals: impl Iterator<Item = T> + Clone, generator: &mut Generator) -> Option<T> {
    let count = u64::try_from(equals.clone().count()).ok()?;
    let chosen = generator.next_u64().checked_rem(count)?;
    equals.nth(usize::try_from(chosen).ok()?)
}

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
    drawn(equals.map(|candidate| candidate.endpoint), generator)
}
