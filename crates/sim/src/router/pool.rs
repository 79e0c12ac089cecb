//! One pool: its servers and the router before them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::binding::{self, Binding, Candidate, QueueOrder};
use super::handover::Handover;
use super::served::{Rejection, RequestVerdict, Served};
use crate::engine::{Completion, Engine, Phase, Request, RequestEnd, RequestId};
use crate::load::Arrival;
use crate::number;
use wva::policy::capacity::ServingRole;
use wva_supervise::{Generator, SeedTree};

/// How often the router looks whether a held request can go. Source: the metrics refresh interval of
/// the endpoint picker.
const LOOK: Duration = Duration::from_millis(50);
const BYTES_PER_TOKEN: f64 = 4.0;

/// When requests are held before the servers, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowControl {
    /// Requests that are held at most.
    pub(crate) max_requests: usize,
    pub(crate) ttl: Duration,
    pub(crate) queue_depth: f64,
    pub(crate) kv_usage: f64,
    pub(crate) order: QueueOrder,
}

/// The set points of the endpoint picker's saturation detector, and room for a wake from zero.
impl Default for FlowControl {
    fn default() -> Self {
        Self {
            max_requests: 10_000,
            ttl: Duration::from_mins(10),
            queue_depth: 5.0,
            kv_usage: 0.8,
            order: QueueOrder::Fcfs,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PoolSpec {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The model that clients request.
    pub(crate) model: String,
    /// The model that servers know.
    pub(crate) target_model: String,
    pub(crate) binding: Binding,
    /// Whether and how requests are held; without it, a request that finds no server is rejected.
    pub(crate) flow_control: Option<FlowControl>,
    /// How long the KV cache of one prompt token takes from a prefill server to a decode server; none where every
    /// server does whole requests.
    pub(crate) handover: Option<Duration>,
}

#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) engine: Engine,
    role: ServingRole,
    ready: bool,
}

impl Endpoint {
    pub(super) fn serves(&self) -> bool {
        self.ready && self.engine.phase() == Phase::Serving
    }
}

#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) request: Request,
    pub(super) arrival: Duration,
    /// What the queue is ordered by.
    pub(super) deadline: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct Dispatched {
    arrival: Duration,
    held: Duration,
}

#[derive(Debug, Clone, Default)]
pub(super) struct RouterStatistics {
    pub(super) requests: u64,
    /// Attempts to pick a server, by the one that was found.
    pub(super) picked: BTreeMap<String, u64>,
    pub(super) not_picked: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct RouterPool {
    pub(super) spec: PoolSpec,
    pub(super) endpoints: BTreeMap<String, Endpoint>,
    pub(super) queue: VecDeque<Held>,
    pub(super) dispatched: BTreeMap<RequestId, Dispatched>,
    pub(super) handover: Option<Handover>,
    served: Vec<Served>,
    pub(super) statistics: RouterStatistics,
    generator: Generator,
    bound: Option<String>,
    now: Duration,
}

impl RouterPool {
    pub(crate) fn new(spec: PoolSpec, seed: &SeedTree) -> Self {
        let generator = seed.child(&format!("router/{}/{}", spec.namespace, spec.name));
        Self {
            handover: spec.handover.map(Handover::new),
            spec,
            endpoints: BTreeMap::new(),
            queue: VecDeque::new(),
            dispatched: BTreeMap::new(),
            served: Vec::new(),
            statistics: RouterStatistics::default(),
            generator,
            bound: None,
            now: Duration::ZERO,
        }
    }

    /// Adds a server that gets no requests before [`RouterPool::set_ready`]; one of the same name is
    /// stopped first.
    pub(crate) fn add_for(
        &mut self,
        role: ServingRole,
        endpoint: impl Into<String>,
        engine: Engine,
        at: Duration,
    ) {
        let endpoint = endpoint.into();
        self.remove(&endpoint, at);
        let added = Endpoint { engine, role, ready: false };
        self.endpoints.insert(endpoint, added);
    }

    /// Whether the router may send requests to a server, which also has to serve by itself.
    pub(crate) fn set_ready(&mut self, endpoint: &str, ready: bool, at: Duration) {
        self.advance(at);
        if let Some(endpoint) = self.endpoints.get_mut(endpoint) {
            endpoint.ready = ready;
        }
        self.dispatch_held();
    }

    /// Lets a server end what it has and sends it nothing more.
    pub(crate) fn drain(&mut self, endpoint: &str, at: Duration) {
        self.advance(at);
        if let Some(endpoint) = self.endpoints.get_mut(endpoint) {
            endpoint.engine.drain(at);
        }
    }

    /// Stops and forgets a server; what it had is lost.
    pub(crate) fn remove(&mut self, endpoint: &str, at: Duration) {
        self.advance(at);
        if let Some((name, mut removed)) = self.endpoints.remove_entry(endpoint) {
            removed.engine.stop(at);
            for completion in removed.engine.take_completions() {
                self.completed(&name, completion);
            }
        }
    }

    pub(crate) fn engine(&self, endpoint: &str) -> Option<&Engine> {
        self.endpoints.get(endpoint).map(|endpoint| &endpoint.engine)
    }

    /// A request comes at `at`; its end appears in [`RouterPool::take_served`].
    pub(crate) fn submit(&mut self, arrival: Arrival, at: Duration) -> RequestId {
        self.advance(at);
        self.statistics.requests += 1;
        let id = RequestId(self.statistics.requests);
        let held = Held {
            request: Request {
                id,
                prompt_tokens: arrival.prompt_tokens,
                output_tokens: arrival.output_tokens,
                prefix: arrival.prefix,
                received_tokens: 0,
            },
            arrival: at,
            deadline: match self.order() {
                QueueOrder::Fcfs => at,
                QueueOrder::SloDeadline => {
                    at.saturating_add(arrival.within.unwrap_or(Duration::MAX))
                }
            },
        };
        match self.spec.flow_control {
            None if self.has_endpoints() => self.dispatch(held),
            None => self.reject(&held, Rejection::NoEndpoints),
            Some(control) if self.queue.len() >= control.max_requests => {
                self.reject(&held, Rejection::Capacity);
            }
            Some(_) => {
                let before = |one: &Held| one.deadline <= held.deadline;
                let place = self.queue.partition_point(before);
                self.queue.insert(place, held);
                self.dispatch_held();
            }
        }
        id
    }

    /// Does all work up to `to`. A time that has passed changes nothing.
    pub(crate) fn advance(&mut self, to: Duration) {
        while self.now < to {
            // Looks lie on a grid of their own, so that it does not matter in which parts time is
            // advanced.
            let is_handing_over = self.handover.as_ref().is_some_and(Handover::is_busy);
            let next = match self.oldest() {
                _ if is_handing_over => to.min(next_look(self.now)),
                None => to,
                Some(_) if self.has_endpoints() => to.min(next_look(self.now)),
                Some((_, held)) => to.min(self.expiry(held)).max(self.now),
            };
            self.now = next;
            self.advance_engines();
            self.hand_over();
            self.expire();
            if !self.queue.is_empty() && next.as_nanos().is_multiple_of(LOOK.as_nanos()) {
                self.dispatch_held();
            }
        }
    }

    fn advance_engines(&mut self) {
        let mut left = Vec::new();
        for (name, endpoint) in &mut self.endpoints {
            endpoint.engine.advance(self.now);
            let completions = endpoint.engine.take_completions();
            left.extend(completions.into_iter().map(|one| (name.clone(), one)));
        }
        left.sort_by_key(|(_, completion)| (completion.at, completion.request));
        for (name, completion) in left {
            self.completed(&name, completion);
        }
    }

    fn completed(&mut self, endpoint: &str, completion: Completion) {
        let Some(dispatched) = self.dispatched.remove(&completion.request) else {
            return;
        };
        let request = completion.request;
        let at = completion.at;
        if let Some(handover) = &mut self.handover
            && handover.takes(&completion, dispatched.arrival)
        {
            return;
        }
        self.served.push(Served {
            request,
            arrival: dispatched.arrival,
            at,
            held: dispatched.held,
            endpoint: Some(endpoint.to_owned()),
            verdict: match completion.outcome {
                RequestEnd::Finished => RequestVerdict::Answered(completion),
                RequestEnd::Aborted => RequestVerdict::Lost(completion),
            },
        });
    }

    fn reject(&mut self, held: &Held, rejection: Rejection) {
        let waited = self.now.saturating_sub(held.arrival);
        if self.spec.flow_control.is_none() {
            self.statistics.not_picked += 1;
        }
        self.served.push(Served {
            request: held.request.id,
            arrival: held.arrival,
            at: self.now,
            held: waited,
            endpoint: None,
            verdict: RequestVerdict::Rejected(rejection),
        });
    }

    fn expiry(&self, held: &Held) -> Duration {
        let ttl = self.spec.flow_control.map_or(Duration::MAX, |control| control.ttl);
        held.arrival.saturating_add(ttl)
    }

    fn order(&self) -> QueueOrder {
        let control = self.spec.flow_control;
        control.map_or(QueueOrder::Fcfs, |control| control.order)
    }

    fn oldest(&self) -> Option<(usize, &Held)> {
        let mut held = self.queue.iter().enumerate();
        match self.order() {
            QueueOrder::Fcfs => held.next(),
            QueueOrder::SloDeadline => held.min_by_key(|(_, held)| held.arrival),
        }
    }

    fn expire(&mut self) {
        while let Some((place, held)) = self.oldest() {
            if self.expiry(held) > self.now {
                return;
            }
            if let Some(held) = self.queue.remove(place) {
                self.reject(&held, Rejection::Expired);
            }
        }
    }

    pub(super) fn roles(&self) -> &'static [ServingRole] {
        match self.handover {
            None => &[ServingRole::Both],
            Some(_) => &[ServingRole::Prefill, ServingRole::Decode],
        }
    }

    fn has_endpoints(&self) -> bool {
        let serves = |role: &ServingRole| ready(&self.endpoints, *role).next().is_some();
        self.roles().iter().all(serves)
    }

    /// Whether a held request can go: by early binding to any server, else to servers below the set point.
    fn is_open(&self) -> bool {
        if self.spec.binding.is_early() { self.has_endpoints() } else { self.saturation() < 1.0 }
    }

    fn dispatch_held(&mut self) {
        while !self.queue.is_empty() && self.is_open() {
            if let Some(held) = self.queue.pop_front() {
                self.dispatch(held);
            }
        }
    }

    fn hand_over(&mut self) {
        while let Some(held) = (self.handover.as_mut()).and_then(|one| one.next(self.now)) {
            let name = self.pick_best(&held.request, ServingRole::Decode);
            self.send(held, name);
        }
    }

    fn dispatch(&mut self, held: Held) {
        let name = self.pick(&held.request);
        self.send(held, name);
    }

    fn send(&mut self, held: Held, name: Option<String>) {
        let Some(name) = name else {
            return self.reject(&held, Rejection::NoEndpoints);
        };
        if let Some(picked) = self.statistics.picked.get_mut(&name) {
            *picked += 1;
        } else {
            self.statistics.picked.insert(name.clone(), 1);
        }
        let Some(endpoint) = self.endpoints.get_mut(&name) else {
            return;
        };
        let request = held.request.id;
        let waited = self.now.saturating_sub(held.arrival);
        let request_of_role = match &mut self.handover {
            Some(handover) if endpoint.role == ServingRole::Prefill => {
                handover.prompt_of(held.request)
            }
            _ => held.request,
        };
        match endpoint.engine.submit(request_of_role, self.now) {
            Ok(()) => {
                let (arrival, held) = (held.arrival, waited);
                self.dispatched.insert(request, Dispatched { arrival, held });
            }
            Err(refusal) => {
                if let Some(handover) = &mut self.handover {
                    handover.forget(request);
                }
                self.served.push(Served {
                    request,
                    arrival: held.arrival,
                    at: self.now,
                    held: waited,
                    endpoint: Some(name),
                    verdict: RequestVerdict::Refused(refusal),
                });
            }
        }
    }

    fn pick(&mut self, request: &Request) -> Option<String> {
        let role = *self.roles().first()?;
        match self.spec.binding {
            Binding::Late => self.pick_best(request, role),
            Binding::RoundRobin => {
                let last = self.bound.as_deref();
                let next =
                    binding::next(ready(&self.endpoints, role).map(|(name, _)| &**name), last);
                let next = next.map(str::to_owned);
                self.bound.clone_from(&next);
                next
            }
            Binding::LeastRequest => {
                let requests = |endpoint: &Endpoint| {
                    let reading = endpoint.engine.reading();
                    reading.running + reading.waiting
                };
                let loads = ready(&self.endpoints, role);
                let loads = loads.map(|(name, endpoint)| (name, requests(endpoint)));
                let loads: Vec<_> = loads.collect();
                binding::least_loaded(&loads, &mut self.generator).cloned()
            }
        }
    }

    fn pick_best(&mut self, request: &Request, role: ServingRole) -> Option<String> {
        let ready = ready(&self.endpoints, role);
        let candidate = |(name, endpoint): (_, &Endpoint)| {
            let reading = endpoint.engine.reading();
            let cached = f64::from(endpoint.engine.kv().lookup(request));
            Candidate {
                endpoint: name,
                waiting: number::length(reading.waiting),
                kv_usage: reading.kv_usage,
                cached: cached / f64::from(request.prompt_tokens.max(1)),
            }
        };
        let candidates: Vec<Candidate<&String>> = ready.map(candidate).collect();
        binding::pick(&candidates, &mut self.generator).cloned()
    }

    pub(super) fn held_bytes(&self) -> f64 {
        let tokens = self.queue.iter().map(|held| f64::from(held.request.prompt_tokens));
        tokens.sum::<f64>() * BYTES_PER_TOKEN
    }

    /// The requests that left since this was last asked, in the order of leaving.
    pub(crate) fn take_served(&mut self) -> Vec<Served> {
        std::mem::take(&mut self.served)
    }
}

pub(super) fn ready(
    endpoints: &BTreeMap<String, Endpoint>,
    role: ServingRole,
) -> impl Iterator<Item = (&String, &Endpoint)> {
    let serves = move |(_, one): &(&String, &Endpoint)| one.role == role && one.serves();
    endpoints.iter().filter(serves)
}

/// The first time after `now` at which the router looks at its queue.
fn next_look(now: Duration) -> Duration {
    let looks = now.as_nanos() / LOOK.as_nanos() + 1;
    LOOK.saturating_mul(u32::try_from(looks).unwrap_or(u32::MAX))
}
