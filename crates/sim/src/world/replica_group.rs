//! Servers that do the same part of every request, and how a stream is shared out among them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::{CoarseEngine, Mix};
use crate::number;
use wva::policy::capacity::ServingRole;

#[derive(Debug, Clone)]
struct FluidServer {
    engine: CoarseEngine,
    draining: bool,
    seen: Seen,
    taken: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    finished: u64,
    first_token: f64,
    per_token: f64,
}

#[derive(Debug, Default)]
pub(super) struct ReplicaGroup {
    pub(super) role: ServingRole,
    vessels: BTreeMap<String, FluidServer>,
    /// Requests that are on their way from the crew before.
    inbox: f64,
    /// Requests that it ended within the last stride.
    pub(super) answered: u64,
    /// Mean time of those that ended last until their first token, in seconds.
    pub(super) first_token: f64,
    /// Their mean time between tokens, in seconds.
    pub(super) per_token: f64,
}

impl ReplicaGroup {
    pub(super) fn new(role: ServingRole) -> Self {
        Self { role, ..Self::default() }
    }

    pub(super) fn add(&mut self, pod: &str, engine: CoarseEngine, mix: Mix) {
        let mut vessel = FluidServer { engine, draining: false, seen: Seen::default(), taken: 0.0 };
        vessel.engine.adapt(part(self.role, mix));
        self.vessels.insert(pod.to_owned(), vessel);
    }

    pub(super) fn drain(&mut self, pod: &str) {
        if let Some(vessel) = self.vessels.get_mut(pod) {
            vessel.draining = true;
        }
    }

    /// A server is gone; the requests that it had.
    pub(super) fn remove(&mut self, pod: &str) -> f64 {
        let gone = self.vessels.remove(pod);
        gone.map_or(0.0, |vessel| vessel.engine.running() + vessel.engine.waiting())
    }

    pub(super) fn adapt(&mut self, mix: Mix) {
        for vessel in self.vessels.values_mut() {
            vessel.engine.adapt(part(self.role, mix));
        }
    }

    pub(super) fn serving(&self) -> f64 {
        let serving = self.vessels.values().filter(|vessel| !vessel.draining);
        number::length(serving.count())
    }

    pub(super) fn is_open(&self, most: f64) -> bool {
        self.vessels.values().any(|vessel| vessel.is_open(most))
    }

    /// Does all work up to `to` while `rate` requests per second are shared out evenly; the rate that
    /// servers with a queue below `most` accept of it.
    pub(super) fn advance(&mut self, to: Duration, rate: f64, most: f64) -> f64 {
        let share = rate / self.serving().max(1.0);
        let mut accepted = 0.0;
        for vessel in self.vessels.values_mut() {
            let rate = if vessel.is_open(most) { share } else { 0.0 };
            accepted += rate;
            let passed = vessel.engine.advance(to, rate);
            vessel.taken += rate * passed.as_secs_f64();
        }
        accepted
    }

    /// Sends what is held on to servers with room; how much.
    pub(super) fn release(&mut self, held: f64, most: f64) -> f64 {
        let mut open: Vec<&mut FluidServer> =
            self.vessels.values_mut().filter(|vessel| vessel.is_open(most)).collect();
        let share = held / number::length(open.len().max(1));
        let mut released = 0.0;
        for vessel in &mut open {
            let poured = share.min(most - vessel.engine.waiting()).max(0.0);
            vessel.take(poured);
            released += poured;
        }
        released
    }

    /// Takes what another crew has done, whatever its queues are.
    pub(super) fn receive(&mut self, requests: f64) {
        self.inbox += requests;
        let serving = self.serving();
        if serving < 1.0 {
            return;
        }
        let share = self.inbox / serving;
        for vessel in self.vessels.values_mut() {
            if !vessel.draining {
                vessel.take(share);
            }
        }
        self.inbox = 0.0;
    }

    /// Counts what was done since the last time; how many requests.
    pub(super) fn settle(&mut self) -> f64 {
        let mut sum = Seen::default();
        for vessel in self.vessels.values_mut() {
            let statistics = &vessel.engine.statistics;
            let now = Seen {
                finished: statistics.finished,
                first_token: statistics.first_token.sum(),
                per_token: statistics.per_output_token.sum(),
            };
            let before = std::mem::replace(&mut vessel.seen, now);
            sum.finished += now.finished.saturating_sub(before.finished);
            sum.first_token += now.first_token - before.first_token;
            sum.per_token += now.per_token - before.per_token;
        }
        let requests = number::real(sum.finished);
        if sum.finished > 0 {
            self.first_token = sum.first_token / requests;
            self.per_token = sum.per_token / requests;
        }
        self.answered = sum.finished;
        requests
    }

    pub(super) fn engines(&self) -> impl Iterator<Item = (&CoarseEngine, bool)> {
        let vessels = self.vessels.values();
        vessels.map(|vessel| (&vessel.engine, !vessel.draining))
    }

    pub(super) fn engine(&self, pod: &str) -> Option<&CoarseEngine> {
        self.vessels.get(pod).map(|vessel| &vessel.engine)
    }

    pub(super) fn taken(&self) -> impl Iterator<Item = (&str, f64)> {
        let vessels = self.vessels.iter();
        vessels.map(|(pod, vessel)| (&**pod, vessel.taken))
    }
}

impl FluidServer {
    fn is_open(&self, most: f64) -> bool {
        !self.draining && self.engine.waiting() < most
    }

    fn take(&mut self, requests: f64) {
        self.engine.pour(requests);
        self.taken += requests;
    }
}

/// What a request is to the servers of a role. Prefill writes one token of the answer; decode finds
/// the whole prompt in its cache.
fn part(role: ServingRole, mix: Mix) -> Mix {
    match role {
        ServingRole::Both => mix,
        ServingRole::Prefill => Mix { output_tokens: 1, ..mix },
        ServingRole::Decode => Mix { cached: 1.0, ..mix },
    }
}
