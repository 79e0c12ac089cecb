//! One planning cycle at four sizes, ten pods per variant. Budget: 10 000 variants under 100 ms.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wva::policy::actuation::Scalers;
use wva::policy::key::{ModelKey, TargetKey, TargetKind, VariantKey};
use wva::policy::learned::Learned;
use wva::policy::moment::{Moment, WallTime};
use wva::policy::signal::FreshnessBands;
use wva::policy::snapshot::{
    Accelerator, ClusterSnapshot, CycleId, DeclaredBounds, GenerationState, MetricsSnapshot,
    PodSamples, PodView, Readiness, ReplicaTemplate, ResolvedTarget, Sample, TargetView,
    VariantView,
};
use wva::policy::units::{Cost, Replicas};
use wva::policy::{check_plan, learn, plan};
use wva::settings::{DynamicSettings, TransitionLimits};

const PODS: u32 = 10;
const VARIANTS_PER_MODEL: u32 = 3;
const NOW: Moment = Moment {
    monotonic: Duration::from_hours(1),
    wall: WallTime(1_800_000_000_000),
};

fn settings() -> DynamicSettings {
    let limit = Duration::from_mins(10);
    DynamicSettings {
        interval: Duration::from_secs(30),
        freshness: FreshnessBands::default(),
        transition_limits: TransitionLimits {
            pending: limit,
            unapplied: limit,
            silent: limit,
        },
        ..DynamicSettings::default()
    }
}

fn view(number: u32, pods: Vec<PodView>) -> VariantView {
    let name = format!("llama-70b-variant-{number}");
    let model = format!("meta/llama-70b-{}", number / VARIANTS_PER_MODEL);
    VariantView {
        target: TargetView::Resolved(ResolvedTarget {
            key: TargetKey::new("inference", TargetKind::Deployment, name.as_str()),
            current: Replicas(PODS),
            ready: Replicas(PODS),
            generation: GenerationState::Observed,
        }),
        generation: 1,
        key: VariantKey::new("inference", name),
        model: ModelKey::new("inference", model),
        cost: Cost::DEFAULT,
        accelerator: Accelerator::Named("H100".into()),
        bounds: DeclaredBounds::default(),
        desired: Some(Replicas(PODS)),
        pods: pods.into(),
        pending_since: None,
        unapplied_since: None,
        notes: Arc::from([]),
        scalers: Scalers::Unknown,
        template: ReplicaTemplate::default(),
    }
}

/// A fleet of which a third of the models grows, a third shrinks and a third is in balance.
fn snapshot(variants: u32) -> ClusterSnapshot {
    let mut metrics = MetricsSnapshot {
        collected: Some(NOW),
        models: BTreeMap::new(),
        routers: BTreeMap::new(),
        failures: BTreeMap::new(),
        sources: BTreeMap::new(),
    };
    let mut views = BTreeMap::new();
    for number in 0..variants {
        let kv = match (number / VARIANTS_PER_MODEL) % 3 {
            0 => 0.78,
            1 => 0.30,
            _ => 0.69,
        };
        let sample = |value| {
            Some(Sample {
                value,
                age: Duration::from_secs(5),
            })
        };
        let pods: Vec<PodView> = (0..PODS)
            .map(|pod| PodView {
                name: format!("llama-70b-variant-{number}-7d4b9c-{pod}").into(),
                readiness: Readiness::Ready,
                created: NOW.wall,
                ready_since: None,
                node: None,
            })
            .collect();
        let samples = pods.iter().map(|pod| {
            let samples = PodSamples {
                kv_usage: sample(kv),
                queue_length: sample(1.0),
                ..PodSamples::default()
            };
            (Arc::clone(&pod.name), samples)
        });
        let samples: Vec<_> = samples.collect();
        let view = view(number, pods);
        metrics
            .models
            .entry(view.model.clone())
            .or_default()
            .extend(samples);
        views.insert(view.key.clone(), Arc::new(view));
    }
    ClusterSnapshot {
        cycle: CycleId(1),
        variants: views,
        metrics: Arc::new(metrics),
        gpus: None,
    }
}

fn cycle(criterion: &mut Criterion) {
    let settings = settings();
    let mut group = criterion.benchmark_group("cycle");
    group.sample_size(20);
    for variants in [10, 100, 1_000, 10_000] {
        let snapshot = snapshot(variants);
        let learned = learn(&snapshot, &Learned::default(), &settings, NOW);
        let made = plan(&snapshot, &learned, &settings, 1, NOW);
        group.throughput(Throughput::Elements(u64::from(variants)));
        group.bench_function(BenchmarkId::new("plan", variants), |bencher| {
            bencher.iter(|| plan(black_box(&snapshot), &learned, &settings, 1, NOW));
        });
        group.bench_function(BenchmarkId::new("learn", variants), |bencher| {
            bencher.iter(|| learn(black_box(&snapshot), &learned, &settings, NOW));
        });
        group.bench_function(BenchmarkId::new("check_plan", variants), |bencher| {
            bencher.iter(|| check_plan(black_box(&snapshot), &settings, &made));
        });
    }
    group.finish();
}

criterion_group!(benches, cycle);
criterion_main!(benches);
