//! A model whose requests are a stream: no single one is known, so that days cost little.

use std::collections::BTreeMap;
use std::time::Duration;

use super::backend::Backend;
use super::scenario::{Model, Variant};
use super::score::{Batch, Score};
use crate::sim::engine::{CoarseEngine, Dialect, Mix};
use crate::sim::exposition::{Family, Kind, Page, labels};
use crate::sim::load::Shape;
use crate::sim::number;
use crate::sim::router::{FlowControl, PoolReading};

/// The longest time over which the rate is taken as constant.
const STRIDE: Duration = Duration::from_secs(1);

/// A server and what it has counted when last asked.
#[derive(Debug, Clone)]
struct Vessel {
    engine: CoarseEngine,
    draining: bool,
    seen: Seen,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    finished: u64,
    first_token: f64,
    per_token: f64,
}

/// The servers of a model and the stream that is shared out among them.
#[derive(Debug)]
pub(super) struct Flow {
    id: &'static str,
    pool: &'static str,
    shape: Shape,
    mix: Mix,
    control: FlowControl,
    vessels: BTreeMap<String, Vessel>,
    /// Requests that the router holds.
    held: f64,
    /// What has come and does not make a whole request yet.
    rest: f64,
    lost: f64,
    came: u64,
    now: Duration,
}

impl Flow {
    pub(super) fn new(model: &Model, shape: Shape, mix: Mix) -> Self {
        Self {
            id: model.id,
            pool: model.name,
            shape,
            mix,
            control: model.flow_control.unwrap_or_default(),
            vessels: BTreeMap::new(),
            held: 0.0,
            rest: 0.0,
            lost: 0.0,
            came: 0,
            now: Duration::ZERO,
        }
    }

    fn serving(&self) -> f64 {
        let serving = self.vessels.values().filter(|vessel| !vessel.draining);
        number::length(serving.count())
    }

    /// One stride, within which everything flows evenly.
    fn flow(&mut self, to: Duration, score: &mut Score) {
        let seconds = to.saturating_sub(self.now).as_secs_f64();
        let rate = self.shape.rate(self.now);
        self.count(rate * seconds, score);
        let share = rate / self.serving().max(1.0);
        let most = self.control.queue_depth;
        let mut accepted = 0.0;
        for vessel in self.vessels.values_mut() {
            let open = !vessel.draining && vessel.engine.waiting() < most;
            let rate = if open { share } else { 0.0 };
            accepted += rate * seconds;
            vessel.engine.advance(to, rate);
        }
        self.held += (rate * seconds - accepted).max(0.0);
        self.release(most);
        let surplus = self.held - number::length(self.control.max_requests);
        if surplus > 0.0 {
            self.held -= surplus;
            self.lost += surplus;
        }
        self.now = to;
        self.tell(score);
    }

    /// Sends what is held on to servers with room.
    fn release(&mut self, most: f64) {
        let mut open: Vec<&mut Vessel> = self
            .vessels
            .values_mut()
            .filter(|vessel| !vessel.draining && vessel.engine.waiting() < most)
            .collect();
        let share = self.held / number::length(open.len().max(1));
        for vessel in &mut open {
            let poured = share.min(most - vessel.engine.waiting()).max(0.0);
            vessel.engine.pour(poured);
            self.held = (self.held - poured).max(0.0);
        }
    }

    fn count(&mut self, requests: f64, score: &mut Score) {
        self.rest += requests;
        let whole = number::rounded(self.rest - 0.5);
        self.rest -= f64::from(whole);
        self.came += u64::from(whole);
        score.came_many(self.now, u64::from(whole));
    }

    /// Tells what has been answered and lost since the last time.
    fn tell(&mut self, score: &mut Score) {
        // Little's law: what is held over the rate at which it comes.
        let rate = self.shape.rate(self.now);
        let held = if rate > 0.0 { self.held / rate } else { 0.0 };
        for vessel in self.vessels.values_mut() {
            let statistics = vessel.engine.statistics();
            let now = Seen {
                finished: statistics.finished,
                first_token: statistics.first_token.sum(),
                per_token: statistics.per_output_token.sum(),
            };
            let before = std::mem::replace(&mut vessel.seen, now);
            let answered = now.finished.saturating_sub(before.finished);
            if answered == 0 {
                continue;
            }
            let mean = |sum: f64| sum / number::real(answered);
            score.answered_many(Batch {
                at: self.now,
                requests: answered,
                first_token: number::duration(held + mean(now.first_token - before.first_token)),
                per_token: number::duration(mean(now.per_token - before.per_token)),
            });
        }
        let whole = number::rounded(self.lost - 0.5);
        self.lost -= f64::from(whole);
        score.failed_many(self.now, u64::from(whole));
    }
}

impl Backend for Flow {
    fn advance(&mut self, now: Duration, score: &mut Score) {
        while self.now < now {
            let to = now.min(self.now.saturating_add(STRIDE));
            self.flow(to, score);
        }
    }

    fn add(&mut self, pod: &str, variant: &Variant, now: Duration) {
        let engine = CoarseEngine::new(variant.profile, variant.limits, self.mix, now);
        let vessel = Vessel {
            engine,
            draining: false,
            seen: Seen::default(),
        };
        self.vessels.insert(pod.to_owned(), vessel);
    }

    fn drain(&mut self, pod: &str, _now: Duration) {
        if let Some(vessel) = self.vessels.get_mut(pod) {
            vessel.draining = true;
        }
    }

    fn remove(&mut self, pod: &str, _now: Duration) {
        if let Some(vessel) = self.vessels.remove(pod) {
            self.lost += vessel.engine.running() + vessel.engine.waiting();
        }
    }

    fn reading(&self) -> PoolReading {
        let serving = self.serving();
        let mean = |of: fn(&CoarseEngine) -> f64| {
            let serving = self.vessels.values().filter(|vessel| !vessel.draining);
            let sum: f64 = serving.map(|vessel| of(&vessel.engine)).sum();
            sum / self.serving().max(1.0)
        };
        let whole = |quantity: f64| usize::try_from(number::rounded(quantity)).unwrap_or(0);
        let queue = mean(CoarseEngine::waiting);
        let kv_usage = mean(CoarseEngine::kv_usage);
        let all = self.vessels.values();
        let dispatched: f64 = all
            .map(|vessel| vessel.engine.running() + vessel.engine.waiting())
            .sum();
        let full = (queue / self.control.queue_depth).max(kv_usage / self.control.kv_usage);
        PoolReading {
            held: whole(self.held),
            dispatched: whole(dispatched),
            ready: whole(serving),
            queue,
            kv_usage,
            running: mean(CoarseEngine::running),
            saturation: if serving > 0.0 { full } else { 1.0 },
        }
    }

    fn server_page(&self, pod: &str) -> Option<Page> {
        let vessel = self.vessels.get(pod)?;
        Some(vessel.engine.page(Dialect::Vllm, self.id))
    }

    fn router_page(&self) -> Page {
        let models = [("model_name", self.id), ("target_model_name", self.id)];
        let flow = [
            ("fairness_id", "default-flow"),
            ("inference_pool", self.pool),
            ("priority", "0"),
        ];
        let flow = labels(flow.into_iter().chain(models));
        let requests = number::real(self.came);
        let families = vec![
            Family::single(
                "llm_d_epp_request_total",
                "Requests that came.",
                Kind::Counter,
                &labels(models),
                requests,
            ),
            Family::single(
                "llm_d_epp_flow_control_queue_size",
                "Requests held.",
                Kind::Gauge,
                &flow,
                self.held.round(),
            ),
        ];
        Page { families }
    }

    fn broken(&self) -> Option<&str> {
        None
    }
}
