//! What serves a model: a router with its servers and the requests that come to it, or servers that show what they are
//! set to show; and how each request ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::iter::Peekable;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::flow::Flow;
use super::scenario::{LoadSource, Pose, ScenarioModel, ScenarioVariant};
use super::score::Score;
use crate::engine::{CoarseEngine, Dialect, Engine, Mix};
use crate::exposition::Page;
use crate::load::{Arrival, Arrivals, RequestTrace};
use crate::router::{PoolReading, PoolSpec, Rejection, RequestVerdict, RouterPool, Served};
use crate::threads::locked;
use wva::policy::capacity::ServingRole;
use wva_supervise::SeedTree;

pub(super) trait Backend: Send {
    fn advance(&mut self, now: Duration, score: &mut Score);
    fn add(&mut self, pod: &str, variant: &ScenarioVariant, now: Duration);
    fn drain(&mut self, _pod: &str, _now: Duration) {}
    fn remove(&mut self, pod: &str, now: Duration);
    fn reading(&self) -> PoolReading;
    fn server_page(&self, pod: &str) -> Option<Page>;
    fn router_page(&self) -> Page;
    /// The part of it that says how many requests the router holds.
    fn router_queue_page(&self) -> Page;
    fn broken(&self) -> Option<&str> {
        None
    }
}

type Arriving = Box<dyn Iterator<Item = Result<Arrival, String>> + Send>;

struct Requests {
    id: &'static str,
    dialect: Dialect,
    pool: RouterPool,
    arriving: Peekable<Arriving>,
    log: Option<RequestLog>,
    broken: Option<String>,
}

pub(super) fn backend(
    namespace: &str,
    model: &ScenarioModel,
    seed: &SeedTree,
) -> Result<Box<dyn Backend>, String> {
    let unusable = |error: String| format!("the load of model {}: {error}", model.name);
    let mut log = None;
    let arriving: Arriving = match &model.load {
        LoadSource::Flow { shape, mixes } => {
            shape.check().map_err(unusable)?;
            return Ok(Box::new(Flow::new(namespace, model, shape.clone(), mixes.clone())));
        }
        LoadSource::Posed(poses) => return Ok(Box::new(Posed::new(model, poses.clone()))),
        LoadSource::Generated(demand) => {
            let arrivals = Arrivals::new(demand.clone(), seed, model.name);
            Box::new(arrivals.map_err(unusable)?.map(Ok))
        }
        LoadSource::Replayed(file) => {
            let unusable = |error: &str| format!("trace {}: {error}", file.display());
            let reader = File::open(file).map_err(|error| unusable(&error.to_string()))?;
            let trace = RequestTrace::open(BufReader::new(reader), 1.0, seed);
            let mut trace = trace.map_err(|error| unusable(&error))?.peekable();
            // A file of another kind shows itself at its first request, not when that is due.
            if let Some(Err(error)) = trace.peek() {
                return Err(unusable(error));
            }
            Box::new(trace)
        }
        LoadSource::Prepared { arrivals, log: sink } => {
            log = Some(sink.clone());
            let arrivals = Arc::clone(arrivals);
            let mut next = 0;
            Box::new(std::iter::from_fn(move || {
                let arrival = arrivals.get(next)?;
                next += 1;
                Some(Ok(arrival.clone()))
            }))
        }
    };
    let spec = PoolSpec {
        name: model.name.to_owned(),
        namespace: namespace.to_owned(),
        model: model.id.to_owned(),
        target_model: model.id.to_owned(),
        binding: model.binding,
        flow_control: model.flow_control,
        handover: (model.roles().contains(&ServingRole::Prefill)).then_some(model.handover),
    };
    Ok(Box::new(Requests {
        id: model.id,
        dialect: model.dialect,
        pool: RouterPool::new(spec, seed),
        arriving: arriving.peekable(),
        log,
        broken: None,
    }))
}

impl Backend for Requests {
    fn advance(&mut self, now: Duration, score: &mut Score) {
        while let Some(next) = self.arriving.next_if(|next| match next {
            Ok(arrival) => arrival.at <= now,
            Err(_) => true,
        }) {
            match next {
                Ok(arrival) => {
                    let at = arrival.at;
                    score.came_many(at, 1);
                    self.pool.submit(arrival, at);
                }
                Err(error) => self.broken = Some(error),
            }
        }
        self.pool.advance(now);
        for served in self.pool.take_served() {
            if let Some(log) = &self.log {
                log.ended(&served);
            }
            score.ended(&served);
        }
    }

    fn add(&mut self, pod: &str, variant: &ScenarioVariant, now: Duration) {
        let engine = Engine::new(variant.profile, variant.limits, now);
        self.pool.add_for(variant.role, pod, engine, now);
        self.pool.set_ready(pod, true, now);
    }

    fn drain(&mut self, pod: &str, now: Duration) {
        self.pool.drain(pod, now);
    }

    fn remove(&mut self, pod: &str, now: Duration) {
        self.pool.remove(pod, now);
    }

    fn reading(&self) -> PoolReading {
        self.pool.reading()
    }

    fn server_page(&self, pod: &str) -> Option<Page> {
        self.pool.engine(pod)?.page(self.dialect, self.id)
    }

    fn router_page(&self) -> Page {
        self.pool.page()
    }

    fn router_queue_page(&self) -> Page {
        self.pool.queue_page()
    }

    fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestResult {
    Answered {
        /// From its arrival at the router to its first token.
        first_token: Duration,
        /// Mean time between its tokens; none with a single token.
        per_token: Option<Duration>,
        tokens: u32,
    },
    /// A server or the router did not take it.
    Refused,
    /// Its server died, or the router held it for too long.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedRequest {
    /// Its place in the order of arrival, from 0.
    pub(crate) index: u64,
    pub(crate) arrival: Duration,
    pub(crate) at: Duration,
    pub(crate) result: RequestResult,
}

/// Ends of requests in the order of leaving. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Arc<Mutex<Vec<EndedRequest>>>);

impl RequestLog {
    pub(super) fn ended(&self, served: &Served) {
        let result = match &served.verdict {
            RequestVerdict::Answered(completion) => match served.time_to_first_token() {
                Some(first_token) => RequestResult::Answered {
                    first_token,
                    per_token: completion.time_per_output_token(),
                    tokens: completion.output_tokens,
                },
                None => RequestResult::Failed,
            },
            RequestVerdict::Lost(_) | RequestVerdict::Rejected(Rejection::Expired) => {
                RequestResult::Failed
            }
            RequestVerdict::Refused(_) | RequestVerdict::Rejected(_) => RequestResult::Refused,
        };
        locked(&self.0).push(EndedRequest {
            index: served.request.0.saturating_sub(1),
            arrival: served.arrival,
            at: served.at,
            result,
        });
    }

    /// Takes what has ended since this was last called.
    pub(crate) fn take(&self) -> Vec<EndedRequest> {
        std::mem::take(&mut *locked(&self.0))
    }
}

/// What the requests would be like that this server seems to hold.
const MIX: Mix = Mix { prompt_tokens: 500, output_tokens: 200, cached: 0.0 };

/// A model without requests, whose servers show what they are set to show.
#[derive(Debug)]
struct Posed {
    id: &'static str,
    dialect: Dialect,
    poses: Vec<(Duration, Pose)>,
    servers: BTreeMap<String, CoarseEngine>,
    now: Duration,
}

impl Posed {
    fn new(model: &ScenarioModel, poses: Vec<(Duration, Pose)>) -> Self {
        Self {
            id: model.id,
            dialect: model.dialect,
            poses,
            servers: BTreeMap::new(),
            now: Duration::ZERO,
        }
    }

    fn pose(&self) -> Option<Pose> {
        let mut begun = self.poses.iter().filter(|(from, _)| *from <= self.now);
        begun.next_back().map(|(_, pose)| *pose)
    }
}

impl Backend for Posed {
    fn advance(&mut self, now: Duration, _score: &mut Score) {
        self.now = now;
    }

    fn add(&mut self, pod: &str, variant: &ScenarioVariant, now: Duration) {
        let engine = CoarseEngine::new(variant.profile, variant.limits, MIX, now);
        self.servers.insert(pod.to_owned(), engine);
    }

    fn remove(&mut self, pod: &str, _now: Duration) {
        self.servers.remove(pod);
    }

    fn reading(&self) -> PoolReading {
        let pose = self.pose();
        PoolReading {
            held: 0,
            dispatched: 0,
            ready: self.servers.len(),
            queue: pose.map_or(0.0, |pose| pose.waiting),
            shortest_queue: pose.map_or(0.0, |pose| pose.waiting),
            kv_usage: pose.map_or(0.0, |pose| pose.kv_usage),
            running: 0.0,
        }
    }

    fn server_page(&self, pod: &str) -> Option<Page> {
        let pose = self.pose()?;
        let server = self.servers.get(pod)?.clone();
        let posed = server.posed(pose.kv_usage, pose.waiting);
        Some(posed.page(self.dialect, self.id))
    }

    fn router_page(&self) -> Page {
        Page { families: Vec::new() }
    }

    fn router_queue_page(&self) -> Page {
        self.router_page()
    }
}
