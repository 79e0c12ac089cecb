//! A model whose requests are a stream: no single one is known, so that days cost little.

use std::time::Duration;

use super::backend::Backend;
use super::replica_group::ReplicaGroup;
use super::scenario::{ScenarioModel, ScenarioVariant};
use super::score::Score;
use crate::engine::{CoarseEngine, Dialect, Mix};
use crate::exposition::{MetricFamily, MetricKind, Page, SeriesValue, labels};
use crate::load::RateProfile;
use crate::number;
use crate::router::{FlowControl, PoolReading, least};
use wva::policy::capacity::ServingRole;

/// The longest time over which the rate is taken as constant.
const STRIDE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Flow {
    id: &'static str,
    pool: &'static str,
    namespace: String,
    dialect: Dialect,
    shape: RateProfile,
    mixes: Vec<(Duration, Mix)>,
    control: FlowControl,
    /// Those who serve it, in the order in which a request meets them.
    crews: Vec<ReplicaGroup>,
    held: f64,
    /// What has come and does not make a whole request yet.
    rest: f64,
    lost: f64,
    came: u64,
    now: Duration,
}

impl Flow {
    pub(super) fn new(
        namespace: &str,
        model: &ScenarioModel,
        shape: RateProfile,
        mixes: Vec<(Duration, Mix)>,
    ) -> Self {
        Self {
            id: model.id,
            pool: model.name,
            dialect: model.dialect,
            shape,
            mixes,
            control: model.flow_control.unwrap_or_default(),
            crews: model.roles().into_iter().map(ReplicaGroup::new).collect(),
            namespace: namespace.to_owned(),
            held: 0.0,
            rest: 0.0,
            lost: 0.0,
            came: 0,
            now: Duration::ZERO,
        }
    }

    fn mix(&self) -> Option<Mix> {
        let mut begun = self.mixes.iter().filter(|(from, _)| *from <= self.now);
        begun.next_back().map(|(_, mix)| *mix)
    }

    /// One stride, within which everything flows evenly.
    fn flow(&mut self, to: Duration, score: &mut Score) {
        let seconds = to.saturating_sub(self.now).as_secs_f64();
        let rate = self.shape.rate(self.now);
        self.count(rate * seconds, score);
        let mix = self.mix();
        let most = self.control.queue_depth;
        let is_open = self.crews.iter().all(|crew| crew.is_open(most));
        let mut passed = 0.0;
        for (place, crew) in self.crews.iter_mut().enumerate() {
            if let Some(mix) = mix {
                crew.adapt(mix);
            }
            if place == 0 {
                let rate_in = if is_open { rate } else { 0.0 };
                let accepted = crew.advance(to, rate_in, most);
                self.held += (rate - accepted).max(0.0) * seconds;
                if is_open {
                    self.held = (self.held - crew.release(self.held, most)).max(0.0);
                }
            } else {
                crew.receive(passed);
                crew.advance(to, 0.0, most);
            }
            passed = crew.settle();
        }
        let surplus = self.held - number::length(self.control.max_requests);
        if surplus > 0.0 {
            self.held -= surplus;
            self.lost += surplus;
        }
        self.now = to;
        self.report(score);
    }

    fn count(&mut self, requests: f64, score: &mut Score) {
        self.rest += requests;
        let whole = number::rounded(self.rest - 0.5);
        self.rest -= f64::from(whole);
        self.came += u64::from(whole);
        score.came_many(self.now, u64::from(whole));
    }

    fn report(&mut self, score: &mut Score) {
        // Little's law: what is held over the rate at which it comes.
        let rate = self.shape.rate(self.now);
        let held = if rate > 0.0 { self.held / rate } else { 0.0 };
        let until_first: f64 = self.crews.iter().map(|crew| crew.first_token).sum();
        if let Some(last) = self.crews.last()
            && last.answered > 0
        {
            let first_token = number::duration(held + until_first);
            let per_token = number::duration(last.per_token);
            let requests = last.answered;
            score.answered_many(self.now, requests, Some(first_token), Some(per_token));
        }
        let whole = number::rounded(self.lost - 0.5);
        self.lost -= f64::from(whole);
        score.failed_many(self.now, u64::from(whole));
    }

    fn models(&self) -> [(&'static str, &'static str); 2] {
        [("model_name", self.id), ("target_model_name", self.id)]
    }

    fn queue_size(&self) -> MetricFamily {
        let flow =
            [("fairness_id", "default-flow"), ("inference_pool", self.pool), ("priority", "0")];
        MetricFamily::single(
            "llm_d_epp_flow_control_queue_size",
            MetricKind::Gauge,
            &labels(flow.into_iter().chain(self.models())),
            self.held.round(),
        )
    }

    fn crew(&mut self, role: ServingRole) -> Option<&mut ReplicaGroup> {
        self.crews.iter_mut().find(|crew| crew.role == role)
    }
}

impl Backend for Flow {
    fn advance(&mut self, now: Duration, score: &mut Score) {
        while self.now < now {
            let to = now.min(self.now.saturating_add(STRIDE));
            self.flow(to, score);
        }
    }

    fn add(&mut self, pod: &str, variant: &ScenarioVariant, now: Duration) {
        if let Some(mix) = self.mix()
            && let Some(crew) = self.crew(variant.role)
        {
            let engine = CoarseEngine::new(variant.profile, variant.limits, mix, now);
            crew.add(pod, engine, mix);
        }
    }

    fn drain(&mut self, pod: &str, _now: Duration) {
        for crew in &mut self.crews {
            crew.drain(pod);
        }
    }

    fn remove(&mut self, pod: &str, _now: Duration) {
        for crew in &mut self.crews {
            self.lost += crew.remove(pod);
        }
    }

    fn reading(&self) -> PoolReading {
        let engines = || self.crews.iter().flat_map(ReplicaGroup::engines);
        let serving: f64 = self.crews.iter().map(ReplicaGroup::serving).sum();
        let mean = |of: fn(&CoarseEngine) -> f64| {
            let all = engines().filter(|(_, serves)| *serves);
            all.map(|(engine, _)| of(engine)).sum::<f64>() / serving.max(1.0)
        };
        let whole = |quantity: f64| usize::try_from(number::rounded(quantity)).unwrap_or(0);
        let dispatched: f64 =
            engines().map(|(engine, _)| engine.running() + engine.waiting()).sum();
        let ready = engines().filter(|(_, serves)| *serves);
        PoolReading {
            shortest_queue: least(ready.map(|(engine, _)| engine.waiting())),
            held: whole(self.held),
            dispatched: whole(dispatched),
            ready: whole(serving),
            queue: mean(CoarseEngine::waiting),
            kv_usage: mean(CoarseEngine::kv_usage),
            running: mean(CoarseEngine::running),
        }
    }

    fn server_page(&self, pod: &str) -> Option<Page> {
        let engine = self.crews.iter().find_map(|crew| crew.engine(pod))?;
        Some(engine.page(self.dialect, self.id))
    }

    fn router_page(&self) -> Page {
        let requests = number::real(self.came);
        let picked = self.crews.iter().flat_map(ReplicaGroup::taken);
        let picked = picked.map(|(pod, requests)| {
            let what = labels([
                ("status", "success"),
                ("target_model_name", self.id),
                ("endpoint_name", pod),
                ("namespace", &*self.namespace),
                ("port", "8000"),
            ]);
            (what, SeriesValue::Value(requests.floor()))
        });
        let families = vec![
            MetricFamily::single(
                "llm_d_epp_request_total",
                MetricKind::Counter,
                &labels(self.models()),
                requests,
            ),
            self.queue_size(),
            MetricFamily::of(
                "llm_d_epp_scheduler_attempts_total",
                MetricKind::Counter,
                picked.collect(),
            ),
        ];
        Page { families }
    }

    fn router_queue_page(&self) -> Page {
        Page { families: vec![self.queue_size()] }
    }
}
