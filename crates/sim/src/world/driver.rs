//! What moves the world: one task that plays requests, scrapes, lets troubles happen, and shows
//! frames, in an order that the times alone decide.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::{Either, select};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::controller::PodListeners;
use super::frame::{Frame, ModelFrame, Totals, VariantFrame, steps};
use super::hidden::without;
use super::objects::{SYSTEM, VARIANT};
use super::routers::{self, Question};
use super::scenario::{Scenario, ScenarioFault, ScenarioVariant};
use super::service::{ModelService, ReplicaTally, tally};
use crate::apiserver::Insider;
use crate::exposition::Page;
use crate::number;
use crate::prometheus::{Conflicts, Prometheus, ScrapeTarget, Scraped};
use crate::threads::locked;
use crate::workloads::object::{Object, stamp};
use crate::workloads::{Outages, Workloads, leader_worker_sets};
use wva::policy::key::VariantKey;
use wva::policy::plan::{Action, Plan};
use wva::policy::units::Replicas;
use wva::state::PlanProposal;
use wva_base::moment::Moment;
use wva_supervise::{CellFollower, Clock};

/// How often requests are played and a frame is shown.
const TICK: Duration = Duration::from_secs(1);

const WORKLOADS: [&str; 2] = ["deployments.apps", leader_worker_sets::RESOURCE];

pub(super) struct Driver {
    pub(super) scenario: Scenario,
    pub(super) clock: Clock,
    pub(super) server: Insider,
    pub(super) workloads: Workloads,
    pub(super) outages: Outages,
    pub(super) prometheus: Arc<Mutex<Prometheus>>,
    pub(super) doors: PodListeners,
    pub(super) plans: CellFollower<Option<PlanProposal>>,
    pub(super) services: Vec<ModelService>,
    pub(super) questions: mpsc::UnboundedReceiver<Question>,
    pub(super) frames: watch::Sender<Arc<Frame>>,
    pub(super) state: DriverState,
}

enum Event {
    Planned(Arc<Option<PlanProposal>>),
    Asked(Question),
}

/// The action of a decision that changes nothing. Its reason is that of now, not of the first one.
const HOLD: &str = "hold";

#[derive(Debug, Clone)]
struct Decided {
    target: Option<Replicas>,
    action: &'static str,
    why: String,
    steps: Vec<String>,
    /// Why it does not grow although requests wait.
    unserved: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct DriverState {
    /// The version of the objects that servers and targets follow.
    version: u64,
    pods: Vec<Object>,
    /// What the pods of each variant come to.
    tallies: BTreeMap<&'static str, ReplicaTally>,
    sizes: BTreeMap<String, u32>,
    decided: BTreeMap<VariantKey, Decided>,
    totals: Totals,
    troubles: usize,
    prometheus_back: Option<Duration>,
    prometheus_in_time: Option<Duration>,
    pages_back: Option<Duration>,
    ticked: Option<Duration>,
}

impl Driver {
    pub(super) async fn run(mut self) -> Infallible {
        loop {
            let now = self.clock.now();
            self.strike(now).await;
            self.follow(now);
            self.scrape(now).await;
            let ticked = self.state.ticked;
            if ticked.is_none_or(|ticked| now.monotonic >= ticked + TICK) {
                self.tick(now);
            }
            self.rest(now).await;
        }
    }

    /// Waits for the next step, takes down every plan that is made meanwhile, and lets routers answer.
    async fn rest(&mut self, now: Moment) {
        let mut over = pin!(sleep(self.wait(now)));
        loop {
            let event = {
                let event = pin!(self.event());
                match select(over.as_mut(), event).await {
                    Either::Left(_) => return,
                    Either::Right((event, _)) => event,
                }
            };
            match event {
                Event::Planned(last) => {
                    if let Some(PlanProposal { plan, .. }) = &*last {
                        self.note(plan);
                    }
                }
                Event::Asked(question) => {
                    let page = match question.listener(&self.state.pods) {
                        Some((pod, routers::PORT)) => self
                            .answering_router(pod)
                            .map(|service| service.backend.router_queue_page()),
                        Some((pod, routers::SERVER_PORT)) if self.state.pages_back.is_none() => {
                            self.server_page(pod.name())
                        }
                        _ => None,
                    };
                    let page = page.map(|page| without(page, &self.scenario.missing).to_string());
                    question.answer(page);
                }
            }
        }
    }

    /// The next one. Nothing is lost when this is not waited for any longer.
    async fn event(&mut self) -> Event {
        let planned = async { Event::Planned(self.plans.changed().await) };
        let asked = async {
            match self.questions.recv().await {
                Some(question) => Event::Asked(question),
                None => pending().await,
            }
        };
        select(pin!(planned), pin!(asked)).await.factor_first().0
    }

    fn note(&mut self, plan: &Plan) {
        for (key, decision) in &plan.decisions {
            let unserved = decision.unserved().map(ToString::to_string);
            let known = self.state.decided.get_mut(key);
            if let Some(known) = known.filter(|known| known.target == decision.target) {
                known.unserved = unserved;
                if known.action == HOLD {
                    known.why = decision.reason();
                    known.steps = steps(decision);
                }
                continue;
            }
            let action = match decision.action() {
                Action::ScaleUp => "up",
                Action::ScaleDown => "down",
                Action::NoChange => HOLD,
            };
            let decided = Decided {
                target: decision.target,
                action,
                why: decision.reason(),
                steps: steps(decision),
                unserved,
            };
            self.state.decided.insert(key.clone(), decided);
        }
    }

    fn wait(&self, now: Moment) -> Duration {
        let into = now.monotonic.as_nanos() % TICK.as_nanos();
        let into = Duration::from_nanos(u64::try_from(into).unwrap_or(0));
        let tick = TICK.saturating_sub(into);
        let scrape = self.prometheus().next_event().map_or(TICK, |at| {
            let millis = at.0.saturating_sub(now.wall.0).max(1);
            Duration::from_millis(u64::try_from(millis).unwrap_or(1))
        });
        tick.min(scrape).max(Duration::from_millis(1))
    }

    fn prometheus(&self) -> MutexGuard<'_, Prometheus> {
        locked(&self.prometheus)
    }

    /// Lets the troubles happen whose time has come.
    async fn strike(&mut self, now: Moment) {
        let is_over = |at: &mut Duration| *at <= now.monotonic;
        if self.state.prometheus_back.take_if(is_over).is_some() {
            self.prometheus().set_down(false);
        }
        if self.state.prometheus_in_time.take_if(is_over).is_some() {
            self.prometheus().set_lag(Duration::ZERO);
        }
        self.state.pages_back.take_if(is_over);
        while let Some((at, trouble)) = self.scenario.troubles.get(self.state.troubles) {
            if *at > now.monotonic {
                return;
            }
            self.state.troubles += 1;
            match trouble {
                ScenarioFault::Workload(fault) => {
                    if let Err(denied) = self.workloads.strike(fault).await {
                        tracing::warn!(%denied, "trouble that could not happen");
                    }
                }
                ScenarioFault::NoPrometheus(lasts) => {
                    self.state.prometheus_back = Some(now.monotonic + *lasts);
                    self.prometheus().set_down(true);
                }
                ScenarioFault::NoScrapes(lasts) => {
                    let until = now.wall.later(*lasts);
                    self.prometheus().set_gap(Some(until));
                }
                ScenarioFault::NoPages(lasts) => {
                    self.state.pages_back = Some(now.monotonic + *lasts);
                }
                ScenarioFault::LatePrometheus { lag, lasts } => {
                    self.state.prometheus_in_time = Some(now.monotonic + *lasts);
                    self.prometheus().set_lag(*lag);
                }
                // The controller's connection knows by itself.
                ScenarioFault::ApiServer { .. } => {}
            }
        }
    }

    fn follow(&mut self, now: Moment) {
        for service in &mut self.services {
            service.advance(now.monotonic);
        }
        let version = self.server.version();
        let before = self.state.version;
        if version == before && self.outages.is_empty() {
            return;
        }
        self.state.version = version;
        if self.server.changed_since(before, &WORKLOADS) {
            self.count_scalings(now);
        }
        let changed = self.server.changed_since(before, &["pods."]);
        if !changed && self.outages.is_empty() {
            return;
        }
        let pods = self.server.list("pods.");
        self.state.pods = pods.into_iter().map(Object).collect();
        let variants = self.services.iter().flat_map(|one| &one.model.variants);
        let tallies = variants.map(|one| (one.name, tally(one, &self.state.pods)));
        self.state.tallies = tallies.collect();
        for service in &mut self.services {
            service.follow(&self.state.pods, &self.outages, now.monotonic);
        }
        let targets = self.targets();
        self.prometheus().set_targets(targets, now.wall);
    }

    fn targets(&self) -> Vec<ScrapeTarget> {
        let namespace = self.scenario.namespace;
        let target =
            |job: &str, namespace: &str, pod: &str, address: String, conflicts| ScrapeTarget {
                labels: [("job", job), ("namespace", namespace), ("pod", pod)]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                address,
                interval: self.scenario.scrape_interval,
                conflicts,
            };
        let pods = |label| {
            self.state.pods.iter().filter(move |pod| {
                pod.label(label).is_some()
                    && !pod.text("/status/podIP").is_empty()
                    && !matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
            })
        };
        let servers = pods(VARIANT).map(|pod| {
            let address = format!("server/{}", pod.name());
            target("vllm", namespace, pod.name(), address, Conflicts::Honored)
        });
        let routers = pods(routers::LABEL).map(|pod| {
            let address = format!("router/{}", pod.name());
            target("epp", namespace, pod.name(), address, Conflicts::Exported)
        });
        let controllers = self.doors.pods().into_iter().map(|pod| {
            let address = format!("controller/{pod}");
            let job = "workload-variant-autoscaler";
            target(job, SYSTEM, &pod, address, Conflicts::Exported)
        });
        servers.chain(routers).chain(controllers).collect()
    }

    async fn scrape(&mut self, now: Moment) {
        let due = self.prometheus().due(now.wall);
        for (id, at) in due {
            let address = self.prometheus().target(id).map(|target| target.address.clone());
            let address = address.unwrap_or_default();
            if let Some(pod) = address.strip_prefix("controller/") {
                let text = self.doors.metrics(pod).await;
                let scraped = text.as_deref().map_or(Scraped::Failed, Scraped::Text);
                self.prometheus().scraped(id, at, scraped);
                continue;
            }
            let page = match address.split_once('/') {
                Some(("server", pod)) => self.server_page(pod),
                Some(("router", name)) => {
                    let mut pods = self.state.pods.iter();
                    let pod = pods.find(|pod| pod.name() == name);
                    pod.and_then(|pod| self.answering_router(pod))
                        .map(|service| service.backend.router_page())
                }
                _ => None,
            };
            let page = page.map(|page| without(page, &self.scenario.missing));
            let scraped = page.as_ref().map_or(Scraped::Failed, Scraped::Page);
            self.prometheus().scraped(id, at, scraped);
        }
    }

    fn server_page(&self, pod: &str) -> Option<Page> {
        let mut services = self.services.iter();
        services.find_map(|service| service.backend.server_page(pod))
    }

    /// The model behind a router's pod, where that answers.
    fn answering_router(&self, pod: &Object) -> Option<&ModelService> {
        let model = pod.label(routers::LABEL)?;
        let answers = pod.holds("Ready") && !self.outages.holds(pod.text("/spec/nodeName"));
        let mut services = self.services.iter();
        let service = services.find(|service| service.model.name == model);
        service.filter(|_| answers)
    }

    fn tick(&mut self, now: Moment) {
        let before = self.state.ticked.replace(now.monotonic);
        let passed = now.monotonic.saturating_sub(before.unwrap_or_default());
        let models: Vec<ModelFrame> =
            self.services.iter().map(|service| self.model_frame(service, now)).collect();
        let (mut cost, mut gpus) = (0.0, 0);
        for variant in self.services.iter().flat_map(|one| &one.model.variants) {
            let tally = self.tally(variant.name);
            cost += f64::from(tally.placed) * variant.cost;
            gpus += tally.gpus;
        }
        let hours = passed.as_secs_f64() / 3_600.0;
        let sum = |count: fn(&ModelService) -> u64| self.services.iter().map(count).sum::<u64>();
        let totals = &mut self.state.totals;
        totals.requests = sum(|one| one.score.requests);
        totals.answered = sum(|one| one.score.answered);
        totals.failed = sum(|one| one.score.failed);
        totals.good = sum(|one| one.score.good);
        totals.gpu_hours += f64::from(gpus) * hours;
        totals.cost += cost * hours;
        let struck = self.scenario.troubles.iter().take(self.state.troubles);
        self.frames.send_replace(Arc::new(Frame {
            seconds: now.monotonic.as_secs_f64(),
            at: stamp(now.wall),
            models,
            cost_per_hour: cost,
            gpus_used: gpus,
            gpus_total: self.scenario.gpus(),
            totals: self.state.totals.clone(),
            faults: struck.map(|(at, fault)| (at.as_secs_f64(), fault.to_string())).collect(),
        }));
    }

    fn tally(&self, variant: &str) -> ReplicaTally {
        let tally = self.state.tallies.get(variant);
        tally.copied().unwrap_or_default()
    }

    fn count_scalings(&mut self, now: Moment) {
        let workloads = WORKLOADS.iter().flat_map(|kind| self.server.list(kind));
        let workloads = workloads.map(Object);
        let ours = workloads.filter(|one| one.namespace() == self.scenario.namespace);
        let size = |one: &Object| one.count("/spec/replicas").unwrap_or(0);
        let sizes = ours.map(|one| (one.name().to_owned(), size(&one)));
        let sizes: BTreeMap<String, u32> = sizes.collect();
        let known = std::mem::take(&mut self.state.sizes);
        let changed = sizes
            .iter()
            .filter(|(name, size)| known.get(*name).is_some_and(|known| known != *size));
        let changed = number::rounded(number::length(changed.count()));
        self.state.sizes = sizes;
        if changed > 0 {
            let totals = &mut self.state.totals;
            totals.scalings += u64::from(changed);
            totals.first_scaling.get_or_insert(now.monotonic.as_secs_f64());
        }
    }

    fn model_frame(&self, service: &ModelService, now: Moment) -> ModelFrame {
        let reading = service.backend.reading();
        let slo = service.model.slo;
        let variants = service.model.variants.iter();
        ModelFrame {
            name: service.model.name.to_owned(),
            id: service.model.id.to_owned(),
            rate: service.score.rate(now.monotonic),
            held: reading.held,
            dispatched: reading.dispatched,
            running: reading.running,
            queue: reading.queue,
            shortest_queue: reading.shortest_queue,
            kv_usage: reading.kv_usage,
            first_token_p95_ms: service.score.percentiles.first_token,
            per_token_p95_ms: service.score.percentiles.per_token,
            slo_ms: (slo.first_token.as_secs_f64() * 1e3, slo.per_token.as_secs_f64() * 1e3),
            attainment: service.score.attainment(),
            ended: service.score.ended_and_good(),
            broken: service.backend.broken().map(str::to_owned),
            variants: variants.map(|variant| self.variant_frame(variant)).collect(),
        }
    }

    fn variant_frame(&self, variant: &ScenarioVariant) -> VariantFrame {
        let key = VariantKey::new(self.scenario.namespace, variant.name);
        let decided = self.state.decided.get(&key);
        let tally = self.tally(variant.name);
        let sizes = &self.state.sizes;
        VariantFrame {
            name: variant.name.to_owned(),
            accelerator: variant.accelerator.to_owned(),
            gpus: variant.replica_gpus(),
            cost: variant.cost,
            desired: self.doors.desired(&key).map(|desired| number::rounded(desired.to_f64())),
            scaled_to: sizes.get(variant.name).copied().unwrap_or(0),
            ready: tally.ready,
            pending: tally.pending,
            action: decided.map_or("", |decided| decided.action).to_owned(),
            why: decided.map_or_else(String::new, |decided| decided.why.clone()),
            steps: decided.map_or_else(Vec::new, |decided| decided.steps.clone()),
            unserved: decided.and_then(|decided| decided.unserved.clone()),
        }
    }
}
