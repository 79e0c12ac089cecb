//! Asks the routers of models at zero, and of those that are sized for latency, for the requests that they hold: what
//! Prometheus says is old by a scrape and a query, and it may not say anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};

use crate::actors::mailboxes::Mailboxes;
use crate::actors::pod_autoscalers::AutoscalerInvalidation;
use crate::cluster::mirror::ObjectKey;
use crate::policy::capacity::ServingRole;
use crate::policy::key::{ModelKey, TargetKey, VariantKey};
use crate::policy::router_queue::{CountedQueue, DirectQueue, DirectQueues};
use crate::policy::snapshot::VariantView;
use crate::policy::units::Replicas;
use crate::signals::{HeldRequests, RouterApi, RouterError};
use crate::state::Readers;
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorResult, Context, Event, Writer};

/// From one round to the next, where there are few pools.
const ROUND: Duration = Duration::from_secs(1);
/// Least time of a round for each pool: 100 scrapes a second.
const ROUND_PER_POOL: Duration = Duration::from_millis(10);
const DEADLINE: Duration = Duration::from_secs(5);
/// How often the width of scrapes fits into one handled message: well below the limit on silence.
const DEPTH: usize = 6;
const ROUTERS: usize = 4;
/// Least time between two cycles for requests that wait for replicas: a third of a scrape.
const JUMP_GAP: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum RouterScraperMessage {
    /// To itself: time for the next round.
    Round,
    /// To itself: go on with the pools that are waiting.
    Scrape,
}

#[derive(Debug, Clone)]
pub(crate) struct RouterScraper {
    shared: Readers,
    writer: Arc<Writer<DirectQueues>>,
    routers: Arc<dyn RouterApi>,
    mailboxes: Arc<Mailboxes>,
    waiting: VecDeque<ObjectKey>,
    asked: BTreeMap<ObjectKey, Asked>,
    /// When a cycle was wanted last, for requests that wait for replicas.
    jumped: Option<Moment>,
}

/// A pool with models to ask about, and what its routers said.
#[derive(Debug, Clone, Default)]
struct Asked {
    models: BTreeSet<ModelKey>,
    last: Option<LastAnswer>,
    /// Why one of them did not answer when it was asked last.
    failure: Option<Arc<str>>,
}

impl Asked {
    /// Takes an answer in. The last answer stays, and ages, while nothing else is known.
    fn take_in(&mut self, answer: Answer) {
        self.failure = answer.failure.map(|silence| Arc::from(silence.why));
        let Some(at) = answer.at else {
            return;
        };
        let mut held = answer.held;
        held.retain(|name, _| self.models.iter().any(|model| model.model == *name));
        let is_whole = answer.is_whole && self.failure.is_none();
        if is_whole || held.values().any(|requests| *requests > 0.0) {
            self.last = Some(LastAnswer { held, at, is_whole });
        }
    }
}

/// What the routers of a pool held at their last answer.
#[derive(Debug, Clone)]
struct LastAnswer {
    held: HeldRequests,
    at: Moment,
    /// Whether all of them answered: what they do not name, none of them holds.
    is_whole: bool,
}

impl RouterScraper {
    pub(crate) fn new(
        shared: Readers,
        writer: Arc<Writer<DirectQueues>>,
        routers: Arc<dyn RouterApi>,
        mailboxes: Arc<Mailboxes>,
    ) -> Self {
        Self {
            shared,
            writer,
            routers,
            mailboxes,
            waiting: VecDeque::new(),
            asked: BTreeMap::new(),
            jumped: None,
        }
    }

    /// Models that nothing serves, that may sleep, or that are sized for latency, with their targets.
    fn watched(&self) -> BTreeMap<ModelKey, Vec<TargetKey>> {
        let views = self.shared.board.snapshot();
        let served = served(&views);
        let mut models: BTreeMap<ModelKey, Vec<TargetKey>> = BTreeMap::new();
        let settings = self.shared.settings.load();
        let saturation = &settings.generation.dynamic.saturation;
        for view in views.values() {
            let is_watched =
                !served.contains(&view.model) || saturation.sizes_for_latency(&view.model);
            if let Some(target) = view.target.resolved().filter(|_| is_watched) {
                let targets = models.entry(view.model.clone()).or_default();
                targets.push(target.key.clone());
            }
        }
        // Those of PodAutoscalers are asked before they sleep, too: one that no router answers for may not.
        for (_, record) in self.shared.autoscalers.snapshot() {
            if let (Some(model), Some(target)) = (&record.model, &record.target) {
                let targets = models.entry(model.clone()).or_default();
                targets.push(target.clone());
            }
        }
        models
    }

    /// Pools to ask, with the watched models behind them. None where this instance decides nothing.
    fn pools(&self, now: Moment) -> BTreeMap<ObjectKey, BTreeSet<ModelKey>> {
        let mut pools: BTreeMap<ObjectKey, BTreeSet<ModelKey>> = BTreeMap::new();
        if !self.shared.claim.may_write(now) {
            return pools;
        }
        for (model, targets) in self.watched() {
            let keys = targets.iter();
            for pool in keys.flat_map(|target| self.shared.mirrors.pools_of(target)) {
                pools.entry(pool).or_default().insert(model.clone());
            }
        }
        pools
    }

    fn begin_round(&mut self, cx: &Context<RouterScraperMessage>) -> ActorResult {
        let pools = self.pools(cx.now());
        self.waiting = pools.keys().cloned().collect();
        self.asked.retain(|pool, _| pools.contains_key(pool));
        for (pool, models) in pools {
            self.asked.entry(pool).or_default().models = models;
        }
        let count = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let round = ROUND.max(ROUND_PER_POOL.saturating_mul(count));
        cx.arm(round, RouterScraperMessage::Round);
        self.publish(cx)
    }

    /// Asks the routers of the first pools waiting, and publishes what they say.
    async fn scrape(&mut self, cx: &Context<RouterScraperMessage>) -> ActorResult {
        let dynamic = &self.shared.settings.load().generation.dynamic;
        let width = dynamic.scale_from_zero_concurrency.max(1);
        let mut answers = BTreeMap::new();
        let mut scrapes = Vec::new();
        while scrapes.len() < width.saturating_mul(DEPTH)
            && let Some(pool) = self.waiting.pop_front()
        {
            let mut answer = Answer::default();
            match self.routers_of(&pool) {
                Ok(routers) => {
                    answer.is_whole = routers.len() <= ROUTERS;
                    let routers = routers.into_iter().take(ROUTERS);
                    scrapes.extend(routers.map(|router| self.ask(pool.clone(), router)));
                }
                Err(silence) => answer.fail(silence),
            }
            answers.insert(pool, answer);
        }
        let found: Vec<_> = stream::iter(scrapes).buffered(width).collect().await;
        for (pool, held) in found {
            answers.entry(pool).or_default().add(held);
        }
        for (pool, answer) in answers {
            self.take(&pool, answer);
        }
        if !self.waiting.is_empty() {
            cx.send_self(RouterScraperMessage::Scrape);
        }
        self.publish(cx)
    }

    fn routers_of(&self, pool: &ObjectKey) -> Result<Vec<SocketAddr>, Silence> {
        let pool = self.shared.mirrors.pools.get(pool);
        let pool = pool.ok_or_else(|| Silence::new("no_router", "it is gone"))?;
        let routers = self.shared.mirrors.routers(&pool);
        routers.map_err(|why| Silence::new("no_router", &why))
    }

    fn ask(
        &self,
        pool: ObjectKey,
        router: SocketAddr,
    ) -> impl Future<Output = (ObjectKey, Held)> + use<> {
        let (routers, clock) = (Arc::clone(&self.routers), self.shared.clock.clone());
        async move {
            let held = routers.held(router, DEADLINE).await;
            let held = held.map_err(|error| Silence::of(router, &error));
            (pool, held.map(|held| (held, clock.now())))
        }
    }

    fn take(&mut self, pool: &ObjectKey, mut answer: Answer) {
        let Some(asked) = self.asked.get_mut(pool) else {
            return;
        };
        if let Some(silence) = &mut answer.failure {
            let errors = &self.shared.series.process.errors;
            let labels = ["router-scraper", silence.reason];
            errors.with_label_values(&labels).inc();
            silence.why = format!("InferencePool {pool}: {}", silence.why);
        }
        let before = asked.failure.clone();
        asked.take_in(answer);
        if asked.failure != before {
            if let Some(why) = &asked.failure {
                tracing::warn!(why = &**why, "router does not answer");
            } else {
                tracing::info!(%pool, "router answers");
            }
        }
    }

    /// Has cycles decide while more and more requests wait for replicas.
    fn report_jump(&mut self, before: &DirectQueues, after: &DirectQueues, now: Moment) {
        let count = |queues: &DirectQueues, model: &ModelKey| {
            let counted = queues.get(model).and_then(|queue| queue.counted);
            counted.map_or(0.0, |counted| counted.requests)
        };
        let learned = self.shared.learned.load();
        let mut models = after.keys();
        let jumps = models.any(|model| {
            let requests = count(after, model);
            requests > count(before, model) && learned.slo.is_backlog(model, requests)
        });
        if jumps && self.jumped.is_none_or(|at| now.since(at) >= JUMP_GAP) {
            self.jumped = Some(now);
            self.mailboxes.want_early_cycle();
        }
    }

    /// Publishes what is known of each model, and has a cycle decide where requests have come.
    fn publish(&mut self, cx: &Context<RouterScraperMessage>) -> ActorResult {
        let mut pools: BTreeMap<&ModelKey, Vec<&Asked>> = BTreeMap::new();
        for asked in self.asked.values() {
            for model in &asked.models {
                pools.entry(model).or_default().push(asked);
            }
        }
        let after: DirectQueues = pools
            .into_iter()
            .map(|(model, asked)| (model.clone(), together(model, &asked)))
            .collect();
        let before = self.writer.load();
        if *before == after {
            return Ok(());
        }
        let waits = |queue: &DirectQueue| queue.counted.is_some_and(|queue| queue.requests > 0.0);
        let come = after.iter();
        let come: BTreeSet<ModelKey> = come
            .filter(|(model, queue)| waits(queue) && !before.get(model).is_some_and(waits))
            .map(|(model, _)| model.clone())
            .collect();
        let after = Arc::new(after);
        self.writer.publish(cx.epoch(), Arc::clone(&after))?;
        self.report_jump(&before, &after, cx.now());
        if !come.is_empty() {
            for (key, record) in self.shared.autoscalers.snapshot() {
                if record.model.as_ref().is_some_and(|model| come.contains(model)) {
                    self.mailboxes.autoscalers.insert(AutoscalerInvalidation::Object(key));
                }
            }
            let views = self.shared.board.snapshot();
            if !come.is_subset(&served(&views)) {
                self.mailboxes.want_early_cycle();
            }
        }
        Ok(())
    }
}

/// Models that replicas serve. Those of prefill alone serve nothing.
fn served(views: &BTreeMap<VariantKey, Arc<VariantView>>) -> BTreeSet<ModelKey> {
    let serving = views.values().filter(|view| {
        let target = view.target.resolved();
        target.is_some_and(|target| target.current > Replicas::ZERO)
            && view.template.role != ServingRole::Prefill
    });
    serving.map(|view| view.model.clone()).collect()
}

type Held = Result<(HeldRequests, Moment), Silence>;

#[derive(Debug, Default)]
struct Answer {
    held: HeldRequests,
    at: Option<Moment>,
    is_whole: bool,
    failure: Option<Silence>,
}

impl Answer {
    fn add(&mut self, held: Held) {
        match held {
            Ok((held, at)) => {
                self.at = Some(self.at.map_or(at, |oldest| oldest.min(at)));
                for (model, requests) in held {
                    *self.held.entry(model).or_default() += requests;
                }
            }
            Err(silence) => self.fail(silence),
        }
    }

    fn fail(&mut self, silence: Silence) {
        self.failure.get_or_insert(silence);
    }
}

/// What the pools in front of one model say together. A model that a page does not name has no
/// requests there. While not all answer, requests are known, and not that there are none.
fn together(model: &ModelKey, asked: &[&Asked]) -> DirectQueue {
    let answers: Vec<&LastAnswer> = asked.iter().filter_map(|asked| asked.last.as_ref()).collect();
    let held = |answer: &&LastAnswer| answer.held.get(&model.model).copied().unwrap_or_default();
    let requests: f64 = answers.iter().map(held).sum();
    let is_whole = answers.len() == asked.len() && answers.iter().all(|answer| answer.is_whole);
    let oldest = answers.iter().map(|answer| answer.at).min();
    DirectQueue {
        counted: oldest
            .filter(|_| is_whole || requests > 0.0)
            .map(|at| CountedQueue { requests, at }),
        failure: asked.iter().find_map(|asked| asked.failure.clone()),
    }
}

#[derive(Debug)]
struct Silence {
    reason: &'static str,
    why: String,
}

impl Silence {
    fn new(reason: &'static str, why: &str) -> Self {
        let why = why.to_owned();
        Self { reason, why }
    }

    fn of(router: SocketAddr, error: &RouterError) -> Self {
        Self::new(error.reason(), &format!("router {router}: {error}"))
    }
}

impl Actor for RouterScraper {
    type Msg = RouterScraperMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        match event {
            Event::Started | Event::Message(RouterScraperMessage::Round) => self.begin_round(cx)?,
            Event::Message(RouterScraperMessage::Scrape) => {}
        }
        self.scrape(cx).await
    }
}

#[cfg(test)]
mod tests;
