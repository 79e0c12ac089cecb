//! When a request gets its server, and which one where the router does not look into servers.

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
    let mut equals = loads.iter().filter(|(_, load)| *load == least);
    let count = u64::try_from(equals.clone().count()).ok()?;
    let chosen = generator.next_u64().checked_rem(count)?;
    let chosen = equals.nth(usize::try_from(chosen).ok()?);
    chosen.map(|(endpoint, _)| *endpoint)
}
