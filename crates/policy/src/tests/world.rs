//! A small world to decide on: variants with their pods, and what those report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::accelerator::Accelerator;
use crate::bounds::{Bounds, ZeroPolicy};
use crate::capacity::ServingRole;
use crate::key::{ModelKey, TargetKey, TargetKind, VariantKey};
use crate::learned::Learned;
use crate::optimize::Candidate;
use crate::params::{DynamicSettings, TransitionLimits};
use crate::plan::Plan;
use crate::scaler::{
    Absence, Aim, Input, Published, Scaler, ScalerActivity, ScalerKind, Tolerance,
};
use crate::signal::{FreshnessBands, SignalName};
use crate::snapshot::{
    ClusterSnapshot, CycleId, DeclaredBounds, GenerationState, MetricsSnapshot, PodSamples,
    PodView, Readiness, ResolvedTarget, Sample, TargetView, VariantView,
};
use crate::startup::StartProspect;
use crate::units::{Cost, Replicas};
use crate::{learn, plan};
use wva_base::moment::{Moment, Since, WallTime};

/// Wall-clock time of the start of every test world.
pub(crate) const START: i64 = 1_800_000_000_000;

/// KV share under which a model lacks spare capacity.
pub(crate) const HIGH: f64 = 0.75;
/// KV share under which it neither grows nor shrinks, as long as it is small.
pub(crate) const EVEN: f64 = 0.65;
/// KV share under which it can do with less.
pub(crate) const LOW: f64 = 0.1;

pub(crate) fn settings() -> DynamicSettings {
    let limit = Duration::from_mins(10);
    DynamicSettings {
        interval: Duration::from_secs(30),
        freshness: FreshnessBands::default(),
        transition_limits: TransitionLimits { pending: limit, unapplied: limit, silent: limit },
        ..DynamicSettings::default()
    }
}

/// The moment `seconds` after the start of an hour-old process.
pub(crate) fn at(seconds: u64) -> Moment {
    Moment {
        monotonic: Duration::from_secs(3_600 + seconds),
        wall: WallTime(START + i64::try_from(seconds).unwrap() * 1_000),
    }
}

/// The key of a variant in `ns`.
pub(crate) fn key(name: &str) -> VariantKey {
    VariantKey::new("ns", name)
}

/// Its series, read as the count that is wanted.
pub(crate) fn published(variant: &str) -> Published {
    Published {
        variant: Some(variant.into()),
        is_unclear: false,
        namespace: Some("ns".into()),
        aim: Aim::Replicas,
        absence: Absence::Error,
    }
}

/// The scaler `s`, which works and goes from 0 to 20.
pub(crate) fn scaler(kind: ScalerKind, inputs: Vec<Input>) -> Scaler {
    let min_field = match kind {
        ScalerKind::HorizontalPodAutoscaler => "minReplicas",
        ScalerKind::ScaledObject => "minReplicaCount",
    };
    Scaler {
        kind,
        name: "s".into(),
        made_for: None,
        min: Replicas::ZERO,
        min_field,
        max: Replicas(20),
        tolerance: Tolerance { up: 0.0, down: 0.0 },
        inputs,
        activity: ScalerActivity::Working,
    }
}

/// A variant whose replicas are all there.
pub(crate) fn candidate(
    role: ServingRole,
    cost: &str,
    count: u32,
    declared: &DeclaredBounds,
) -> Candidate {
    Candidate {
        role,
        cost: Cost::parse(cost).unwrap(),
        count: Replicas(count),
        standing: Replicas(count),
        overdue: Replicas::ZERO,
        late: Replicas::ZERO,
        gated: Replicas::ZERO,
        prospect: StartProspect::Open,
        bounds: Bounds::effective(declared, ZeroPolicy::Enabled),
    }
}

/// One pod and its samples: value and age in seconds.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: Arc<str>,
    pub(crate) readiness: Readiness,
    pub(crate) created: WallTime,
    pub(crate) ready_since: Option<WallTime>,
    pub(crate) kv: Option<(f64, u64)>,
    pub(crate) queue: Option<(f64, u64)>,
    /// Whether the pod mirror holds it.
    pub(crate) mirrored: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) view: VariantView,
    pub(crate) pods: Vec<Pod>,
}

impl Variant {
    /// A variant of model `m` in `ns`: no replicas, nothing published.
    pub(crate) fn new(name: &str) -> Self {
        let target = TargetView::Resolved(ResolvedTarget {
            key: TargetKey::new("ns", TargetKind::Deployment, name),
            current: Replicas::ZERO,
            surge: Replicas::ZERO,
            ready: Replicas::ZERO,
            generation: GenerationState::Observed,
        });
        Self {
            view: VariantView {
                accelerator: Accelerator::Named("H100".into()),
                ..VariantView::new(key(name), ModelKey::new("ns", "m"), target)
            },
            pods: Vec::new(),
        }
    }

    pub(crate) fn model(mut self, model: &str) -> Self {
        self.view.model = ModelKey::new("ns", model);
        self
    }

    pub(crate) fn cost(mut self, cost: &str) -> Self {
        self.view.cost = Cost::parse(cost).unwrap();
        self
    }

    pub(crate) fn bounds(mut self, min: Option<u32>, max: Option<u32>) -> Self {
        self.view.bounds = DeclaredBounds { min: min.map(Replicas), max: max.map(Replicas) };
        self
    }

    pub(crate) fn desired(mut self, desired: Option<u32>) -> Self {
        self.view.desired = desired.map(Replicas);
        self
    }

    pub(crate) fn pending_since(mut self, since: Moment) -> Self {
        self.view.pending_since = Some(Since::at(since));
        self
    }

    pub(crate) fn unapplied_since(mut self, since: Moment) -> Self {
        self.view.unapplied_since = Some(Since::at(since));
        self
    }

    pub(crate) fn target(mut self, target: TargetView) -> Self {
        self.view.target = target;
        self
    }

    pub(crate) fn counts(mut self, current: u32, ready: u32) -> Self {
        self.set_counts(current, ready);
        self
    }

    /// That many replicas, all ready, each reporting this load.
    pub(crate) fn replicas(self, count: u32, kv: f64, queue: f64) -> Self {
        let loads = vec![(kv, queue); usize::try_from(count).unwrap()];
        self.loads(&loads)
    }

    pub(crate) fn loads(mut self, loads: &[(f64, f64)]) -> Self {
        let count = u32::try_from(loads.len()).unwrap();
        self.set_counts(count, count);
        self.pods = (1..).zip(loads).map(|(n, load)| self.pod(n, *load)).collect();
        self
    }

    /// Adds a replica that is not ready.
    pub(crate) fn loading(mut self, created: WallTime) -> Self {
        let scale = self.scale();
        let (current, ready) = (scale.current.0 + 1, scale.ready.0);
        self.set_counts(current, ready);
        let mut pod = self.pod(current, (0.0, 0.0));
        pod.readiness = Readiness::NotReady;
        pod.created = created;
        (pod.kv, pod.queue) = (None, None);
        self.pods.push(pod);
        self
    }

    pub(crate) fn scale(&self) -> &ResolvedTarget {
        self.view.target.resolved().unwrap()
    }

    fn pod(&self, number: u32, (kv, queue): (f64, f64)) -> Pod {
        Pod {
            name: format!("{}-{number}", self.view.key.name).into(),
            readiness: Readiness::Ready,
            created: WallTime(START),
            ready_since: None,
            kv: Some((kv, 0)),
            queue: Some((queue, 0)),
            mirrored: true,
        }
    }

    pub(crate) fn set_counts(&mut self, current: u32, ready: u32) {
        if let TargetView::Resolved(target) = &mut self.view.target {
            target.current = Replicas(current);
            target.ready = Replicas(ready);
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) variants: Vec<Variant>,
    pub(crate) failed: Vec<SignalName>,
}

impl World {
    pub(crate) fn of(variants: impl IntoIterator<Item = Variant>) -> Self {
        Self { variants: variants.into_iter().collect(), failed: Vec::new() }
    }

    /// The snapshot of a collection that ended now.
    pub(crate) fn snapshot(&self, now: Moment) -> ClusterSnapshot {
        let mut metrics = MetricsSnapshot::empty(Some(now));
        for signal in &self.failed {
            metrics.failures.insert(*signal, "connection refused".into());
        }
        let mut variants = BTreeMap::new();
        for variant in &self.variants {
            let mut view = variant.view.clone();
            let mut pods: Vec<PodView> = Vec::new();
            for pod in &variant.pods {
                if pod.mirrored {
                    pods.push(PodView {
                        name: Arc::clone(&pod.name),
                        readiness: pod.readiness,
                        created: pod.created,
                        ready_since: pod.ready_since,
                        node: None,
                    });
                }
                if pod.kv.is_some() || pod.queue.is_some() {
                    metrics.models.entry(view.model.clone()).or_default().insert(
                        Arc::clone(&pod.name),
                        PodSamples {
                            kv_usage: pod.kv.map(sample),
                            queue_length: pod.queue.map(sample),
                            ..PodSamples::default()
                        },
                    );
                }
            }
            pods.sort();
            view.pods = pods.into();
            variants.insert(view.key.clone(), Arc::new(view));
        }
        ClusterSnapshot {
            cycle: CycleId(1),
            variants,
            metrics: Arc::new(metrics),
            direct: Arc::default(),
            gpus: None,
        }
    }

    pub(crate) fn plan(&self, now: Moment) -> Plan {
        self.plan_after(&Learned::default(), now).1
    }

    /// Learns and plans.
    pub(crate) fn plan_after(&self, learned: &Learned, now: Moment) -> (Learned, Plan) {
        let snapshot = self.snapshot(now);
        let learned = learn(&snapshot, learned, &settings(), now);
        let plan = plan(&snapshot, &learned, &settings(), 1, now);
        (learned, plan)
    }
}

fn sample((value, age): (f64, u64)) -> Sample {
    Sample { value, age: Duration::from_secs(age) }
}

/// Targets by variant name; those that publish nothing are left out.
pub(crate) fn targets(plan: &Plan) -> BTreeMap<String, u32> {
    plan.decisions
        .values()
        .filter_map(|decision| {
            decision.target.map(|target| (decision.key.name.to_string(), target.0))
        })
        .collect()
}

/// The decisive reason of one variant of `ns`.
pub(crate) fn reason(plan: &Plan, name: &str) -> String {
    plan.decisions[&key(name)].reason()
}

#[track_caller]
pub(crate) fn expect(plan: &Plan, expected: &[(&str, u32)]) {
    let expected: BTreeMap<String, u32> =
        expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    assert_eq!(targets(plan), expected);
}

/// A wall-clock time so many seconds after the start.
pub(crate) fn created(seconds: i64) -> WallTime {
    WallTime(START + seconds * 1_000)
}
