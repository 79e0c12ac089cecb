//! One run: a scenario under a policy, with a seed, on a paused runtime of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::accounting::{Accounts, Scored};
use super::fluid::{fixed_fleet, mean_lengths, scored};
use super::meter::Meter;
use super::number;
use super::policies::{ControllerSetup, PolicyChoice, PolicyKind, ZeroStep, controller};
use super::record::{LabRecord, SizingTerms, VERSION};
use super::scenario::{LoadedScenario, NAMESPACE, Prepared, prepare};
use super::schema::{HpaActuation, KedaActuation, LabScenario, TimeSpan};
use super::seats::{Seats, scale};
use super::series::SeriesRecorder;
use super::waits::WaitRecorder;
use crate::apiserver::Insider;
use crate::threads::paused;
use crate::workloads::object::path;
use crate::world::{EndedRequest, Frame, PodListeners, World};
use wva_base::moment::WallTime;

/// Time between the moments at which terms are kept.
const TERMS_EVERY: Duration = Duration::from_mins(1);
/// The date at which every run begins, an hour of a day in 2026: Prometheus scrapes on a grid of dates.
const DATE: WallTime = WallTime(1_767_225_600_000);

#[derive(Debug, thiserror::Error)]
pub(super) enum PlayError {
    /// Its scenario describes no world, under any policy.
    #[error("{0}")]
    Scenario(String),
    #[error("{0}")]
    Other(String),
}

impl From<String> for PlayError {
    fn from(problem: String) -> Self {
        Self::Other(problem)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LabRun<'a> {
    pub(super) scenario: &'a LoadedScenario,
    pub(super) policy: &'a PolicyChoice,
    pub(super) traces: Option<&'a Path>,
    pub(super) seed: u64,
}

impl LabRun<'_> {
    pub(super) fn run(self) -> Result<LabRecord, PlayError> {
        let began = cpu_seconds();
        let runtime =
            paused().map_err(|error| format!("the runtime of a run cannot start: {error}"))?;
        let mut record = runtime.block_on(self.play())?;
        record.cpu_seconds = (cpu_seconds() - began).max(0.0);
        Ok(record)
    }

    async fn play(self) -> Result<LabRecord, PlayError> {
        let spec = &*self.scenario.spec;
        let prepared = prepare(spec, self.traces, self.seed);
        let mut prepared = prepared.map_err(PlayError::Scenario)?;
        let mut actuation = Actuation::of(spec);
        let setup = self.set_up(spec, &mut prepared, &mut actuation);
        let is_peer = self.policy.family.kind != PolicyKind::Controller;
        let staff = is_peer.then(PodListeners::default);
        prepared.scenario.config.extend(setup.config);
        prepared.scenario.without = self.policy.without;
        prepared.scenario.interval = setup.interval.unwrap_or(prepared.scenario.interval);
        let sync = match actuation {
            Actuation::Hpa(hpa) => hpa.sync.0,
            Actuation::Keda(_) | Actuation::Scale => HpaActuation::default().sync.0,
        };
        let world = &prepared.scenario;
        let world = World::arranged(world, self.seed, DATE, staff, sync, false).await?;
        let server = Insider::new(world.server.clone(), "laboratory");
        actuation.arrange(&server, &prepared).await?;
        let scored = scored(spec.prelude.0, spec.duration.0);
        let lengths = prepared.loads.iter().map(mean_lengths);
        let peers = Seats::new(self.policy, prepared.scenario.models.iter().zip(lengths));
        let stage = Stage {
            meter: Meter::new(server.clone(), &prepared.scenario, scored),
            series: SeriesRecorder::new(prepared.loads.len()),
            waits: WaitRecorder::new(&prepared.scenario),
            peers,
            outcomes: (prepared.loads.iter())
                .map(|load| Vec::with_capacity(load.arrivals.len()))
                .collect(),
            ended: vec![0; prepared.loads.len()],
            last: scored.until + spec.tail.0,
            server,
            actuation,
            activation: Activation::default(),
            scored,
            prepared,
            reasons: BTreeMap::new(),
            terms: Vec::new(),
        };
        let played = stage.follow(&world).await;
        world.end().await;
        let (stage, seconds) = played?;
        Ok(stage.record(self, seconds))
    }

    fn set_up(
        self,
        spec: &LabScenario,
        prepared: &mut Prepared,
        actuation: &mut Actuation,
    ) -> ControllerSetup {
        let kind = self.policy.family.kind;
        if kind == PolicyKind::Controller {
            let setup = controller(self.policy, spec);
            if let Some(hpa) = setup.hpa {
                *actuation = Actuation::Hpa(hpa);
            }
            return setup;
        }
        *actuation = Actuation::Scale;
        if matches!(kind, PolicyKind::Static | PolicyKind::StaticBest) {
            let count = number::rounded(self.policy.knob.unwrap_or(1.0));
            for (model, load) in prepared.scenario.models.iter_mut().zip(&prepared.loads) {
                let fleet = fixed_fleet(model, mean_lengths(load), count);
                for variant in &mut model.variants {
                    let known = fleet.get(variant.name).copied();
                    let count = known.unwrap_or(variant.bounds.0);
                    variant.replicas = count;
                    variant.bounds = (count, count.max(1));
                }
            }
        }
        ControllerSetup::default()
    }
}

#[derive(Debug, Clone, Copy)]
enum Actuation {
    /// By the HPAs of the world.
    Hpa(HpaActuation),
    /// By the HPAs of the world, which KEDA owns, and by KEDA between zero and one.
    Keda(KedaActuation),
    /// By the policy itself.
    Scale,
}

impl Actuation {
    fn of(spec: &LabScenario) -> Self {
        let given = &spec.actuation;
        match (given.direct, given.keda) {
            (Some(_), _) => Self::Scale,
            (None, Some(keda)) => Self::Keda(keda),
            (None, None) => Self::Hpa(given.hpa.unwrap_or_default()),
        }
    }

    async fn arrange(&self, server: &Insider, prepared: &Prepared) -> Result<(), String> {
        for variant in prepared.scenario.variants() {
            let plural = "horizontalpodautoscalers";
            let path = path("autoscaling/v2", NAMESPACE, plural, variant.name);
            let window = |span: TimeSpan| json!({"stabilizationWindowSeconds": span.0.as_secs()});
            let change = match self {
                Self::Hpa(hpa) => {
                    let mut up = window(hpa.up);
                    if let (Some(pods), Some(up)) = (hpa.pods, up.as_object_mut()) {
                        let policy = json!({"type": "Pods", "value": pods, "periodSeconds": 15});
                        up.insert("policies".to_owned(), json!([policy]));
                    }
                    let behavior = json!({"scaleUp": up, "scaleDown": window(hpa.down)});
                    json!({"spec": {"behavior": behavior}})
                }
                Self::Keda(keda) => json!({"spec": {
                    "minReplicas": variant.bounds.0.max(1),
                    "behavior": {
                        "scaleUp": window(TimeSpan::default()),
                        "scaleDown": window(keda.down),
                    },
                }}),
                Self::Scale => {
                    server.delete(&path, &json!({})).await?;
                    continue;
                }
            };
            server.merge(&path, &change).await?;
        }
        Ok(())
    }
}

/// KEDA's own part: the step from zero to one when a metric rises, and back when it has been zero for long.
#[derive(Debug, Default)]
struct Activation {
    next: Duration,
    zero: BTreeMap<String, ZeroStep>,
}

impl Activation {
    fn steps(&mut self, keda: KedaActuation, frame: &Frame, now: Duration) -> Vec<(String, u32)> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + keda.poll.0;
        let mut steps = Vec::new();
        for variant in frame.models.iter().flat_map(|model| &model.variants) {
            let Some(desired) = variant.desired else {
                self.zero.remove(&variant.name);
                continue;
            };
            let zero = self.zero.entry(variant.name.clone()).or_default();
            let step = zero.step(desired > 0, variant.scaled_to, keda.cooldown.0, now);
            let step = step.filter(|replicas| *replicas != variant.scaled_to);
            steps.extend(step.map(|replicas| (variant.name.clone(), replicas)));
        }
        steps
    }
}

struct Stage {
    prepared: Prepared,
    scored: Scored,
    last: Duration,
    server: Insider,
    actuation: Actuation,
    activation: Activation,
    meter: Meter,
    series: SeriesRecorder,
    waits: WaitRecorder,
    peers: Seats,
    outcomes: Vec<Vec<EndedRequest>>,
    /// Scored requests among those of each model.
    ended: Vec<usize>,
    reasons: BTreeMap<&'static str, String>,
    terms: Vec<SizingTerms>,
}

impl Stage {
    /// Itself at its end, and when that was, in virtual seconds.
    async fn follow(mut self, world: &World) -> Result<(Self, f64), String> {
        let ended = "the world of a run ended early; run it again alone with RUST_BACKTRACE=1";
        let mut frames = world.frames.clone();
        loop {
            frames.changed().await.map_err(|_gone| ended.to_owned())?;
            let frame = Arc::clone(&frames.borrow_and_update());
            let now = number::duration(frame.seconds);
            self.observe(&frame, now);
            self.keep_terms(world, frame.seconds);
            if now >= self.scored.until && (self.is_settled() || now >= self.last) {
                return Ok((self, frame.seconds));
            }
            self.act(world, &frame, now).await?;
        }
    }

    fn observe(&mut self, frame: &Frame, now: Duration) {
        let reasons = &self.reasons;
        self.meter.advance(now, |variant| {
            let by_rule = reasons.get(variant).cloned();
            by_rule.unwrap_or_else(|| why(frame, variant))
        });
        self.series.observe(frame, &self.prepared.loads);
        self.waits.observe(frame, now);
        let models = self.prepared.logs.iter().zip(&mut self.outcomes).zip(&mut self.ended);
        for ((log, outcomes), ended) in models {
            let new = log.take();
            *ended += new.iter().filter(|one| self.scored.holds(one.arrival)).count();
            outcomes.extend(new);
        }
    }

    /// Keeps the terms of the last plan once a minute.
    fn keep_terms(&mut self, world: &World, seconds: f64) {
        let next = (self.terms.last()).map_or(0.0, |last| last.at + TERMS_EVERY.as_secs_f64());
        let Some(plan) = world.plan().filter(|_| seconds >= next) else {
            return;
        };
        let sized = plan.models.iter().filter_map(|(key, figures)| {
            let report = figures.slo.as_ref()?;
            Some(SizingTerms { at: seconds, model: key.model.to_string(), lines: report.lines() })
        });
        self.terms.extend(sized);
    }

    /// Whether every scored request has ended.
    fn is_settled(&self) -> bool {
        let mut loads = self.prepared.loads.iter().zip(&self.ended);
        loads.all(|(load, ended)| {
            let arrivals = &load.arrivals;
            let first = arrivals.partition_point(|one| one.at < self.scored.from);
            let end = arrivals.partition_point(|one| one.at < self.scored.until);
            *ended >= end.saturating_sub(first)
        })
    }

    async fn act(&mut self, world: &World, frame: &Frame, now: Duration) -> Result<(), String> {
        if let Actuation::Keda(keda) = self.actuation {
            for (variant, replicas) in self.activation.steps(keda, frame, now) {
                scale(&self.server, &variant, replicas).await?;
            }
        }
        let at = (&*world.prometheus, world.clock.now().wall);
        let written = self.peers.act(&self.server, at, frame, now).await?;
        self.reasons.extend(written);
        Ok(())
    }

    fn record(self, play: LabRun<'_>, seconds: f64) -> LabRecord {
        let Stage { prepared, scored, meter, series, waits, outcomes, terms, .. } = self;
        let mut accounts = Accounts::new(scored);
        let models = prepared.scenario.models.iter();
        for ((model, load), outcomes) in models.zip(&prepared.loads).zip(&outcomes) {
            accounts.model(model.name, load, outcomes);
        }
        let mut score = accounts.finish();
        meter.finish(&mut score);
        LabRecord {
            version: VERSION,
            scenario: play.scenario.name().to_owned(),
            policy: play.policy.name.clone(),
            family: play.policy.family.name.to_owned(),
            knob: play.policy.knob,
            seed: play.seed,
            key: String::new(),
            virtual_seconds: seconds,
            cpu_seconds: 0.0,
            score,
            series: series.series,
            decisions: meter.changes,
            terms,
            waits: waits.found,
        }
    }
}

fn why(frame: &Frame, variant: &str) -> String {
    let mut variants = frame.models.iter().flat_map(|model| &model.variants);
    let found = variants.find(|one| one.name == variant);
    found.map_or_else(String::new, |one| one.why.clone())
}

/// Processor time of this thread; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|first| first.parse().ok());
    number::real(nanoseconds.unwrap_or(0)) / 1e9
}
