//! One planning cycle at four sizes, ten pods per variant, by every way to decide. Budget at 10 000
//! variants: 100 ms by percentages, 250 ms with every analyzer.

#![allow(
    clippy::expect_used,
    reason = "a bench whose input is wrong must end, not measure something else"
)]

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wva_base::moment::{Moment, WallTime};
use wva_policy::accelerator::Accelerator;
use wva_policy::engine_args::ContainerCommand;
use wva_policy::key::{ModelKey, TargetKey, TargetKind, VariantKey};
use wva_policy::learned::Learned;
use wva_policy::params::{DynamicSettings, TransitionLimits};
use wva_policy::plan::Action;
use wva_policy::queueing::{ReplicaModel, ReplicaRoom, RequestRate, ServiceParameters, Workload};
use wva_policy::signal::FreshnessBands;
use wva_policy::snapshot::{
    ClusterSnapshot, CycleId, GenerationState, MetricsSnapshot, PodSamples, PodView, Readiness,
    ReplicaTemplate, ResolvedTarget, Sample, TargetView, VariantView,
};
use wva_policy::units::{Gpus, Replicas};
use wva_policy::{check_plan, learn, plan};
use wva_settings::bundle::read_bundle;

/// Ways to decide, by the settings that choose them. `GPUS` is a twentieth more than are held, of which
/// the third of the models that grows wants more.
const APPROACHES: [(&str, &str); 7] = [
    // Without an hour of needs nothing is released: a lower threshold lets a third grow.
    (
        "slo",
        "saturation: {default: {analyzerName: slo, scaleUpThreshold: 0.6, scaleDownBoundary: 0.45}}",
    ),
    ("tokens", "saturation: {default: {analyzerName: saturation}}"),
    ("queueing", "queueingModel: {default: {}}"),
    (
        "all",
        "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}]}}\nqueueingModel: {default: {}}",
    ),
    (
        "hybrid",
        "EXPERIMENTAL_PROACTIVE_MODEL: true\nsaturation: {default: {analyzerName: saturation}}\nqueueingModel: {default: {}}",
    ),
    (
        "limited",
        "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}], enableLimiter: true, limiters: [{name: quota, type: quota, scope: cluster, quotas: {H100: GPUS}}]}}\nqueueingModel: {default: {}}",
    ),
    (
        "rescaled",
        "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}], enableLimiter: true, enableRescale: true, limiters: [{name: quota, type: quota, scope: cluster, quotas: {H100: GPUS}}]}}\nqueueingModel: {default: {}}",
    ),
];
const BATCH: u32 = 256;
const PODS: u32 = 10;
const VARIANTS_PER_MODEL: u32 = 3;
const NOW: Moment =
    Moment { monotonic: Duration::from_hours(1), wall: WallTime(1_800_000_000_000) };

fn settings(text: &str) -> DynamicSettings {
    let limit = Duration::from_mins(10);
    DynamicSettings {
        interval: Duration::from_secs(30),
        freshness: FreshnessBands::default(),
        transition_limits: TransitionLimits { pending: limit, unapplied: limit, silent: limit },
        ..read_bundle(text).expect("settings that are accepted")
    }
}

fn template() -> ReplicaTemplate {
    let args = ["--max-num-seqs=256", "--num-gpu-blocks-override=32768"];
    let container =
        ContainerCommand { args: args.map(Arc::from).to_vec(), ..ContainerCommand::default() };
    ReplicaTemplate {
        containers: vec![container].into(),
        gpus: BTreeMap::from([(Arc::from("nvidia.com/gpu"), Gpus(1))]),
        ..ReplicaTemplate::default()
    }
}

/// What every pod of a variant reports. No two variants are alike, so that nothing learned of one
/// serves another; latencies are those that the queueing model expects at the share of the highest
/// rate that `load` says.
fn signals(number: u32, load: f64) -> PodSamples {
    let sample = |value| Some(Sample { value, age: Duration::from_secs(5) });
    let spread = |step: f64| (f64::from(number) * step).fract();
    let parameters = ServiceParameters {
        alpha: 4.0 + 10.0 * spread(0.618),
        beta: 0.02 + 0.03 * spread(0.414),
        gamma: 0.000_03 + 0.000_03 * spread(0.732),
    };
    let work = Workload {
        input_tokens: 256.0 + 2000.0 * spread(0.236),
        output_tokens: 64.0 + 400.0 * spread(0.303),
    };
    let shape = ReplicaRoom { batch: BATCH, queue: 10 * BATCH };
    let model = ReplicaModel::new(parameters, work, shape).expect("a possible replica");
    let rate = RequestRate(model.range().max.0 * load);
    let performance = model.analyze(rate).expect("a possible rate");
    let seconds = |millis: f64| sample(millis / 1000.0);
    PodSamples {
        kv_usage: sample(load),
        kv_usage_now: sample(load),
        queue_length: sample(1.0),
        running: sample(performance.in_service),
        kv_capacity: sample(524_288.0),
        input_tokens: sample(work.input_tokens),
        output_tokens: sample(work.output_tokens),
        prefix_hit_rate: sample(0.2),
        time_to_first_token: seconds(performance.time_to_first_token.0),
        inter_token_latency: seconds(performance.inter_token_latency.0),
        generation_rate: sample(rate.0 * work.output_tokens),
        completion_rate: sample(rate.0),
        arrival_rate: sample(rate.0),
        ..PodSamples::default()
    }
}

fn view(number: u32, pods: Vec<PodView>) -> VariantView {
    let name = format!("llama-70b-variant-{number}");
    let model = format!("meta/llama-70b-{}", number / VARIANTS_PER_MODEL);
    let target = TargetView::Resolved(ResolvedTarget {
        key: TargetKey::new("inference", TargetKind::Deployment, name.as_str()),
        current: Replicas(PODS),
        surge: Replicas::ZERO,
        ready: Replicas(PODS),
        generation: GenerationState::Observed,
    });
    let key = VariantKey::new("inference", name);
    VariantView {
        accelerator: Accelerator::Named("H100".into()),
        desired: Some(Replicas(PODS)),
        pods: pods.into(),
        template: template(),
        ..VariantView::new(key, ModelKey::new("inference", model), target)
    }
}

/// A fleet of which a third of the models grows, a third shrinks and a third is in balance.
fn snapshot(variants: u32) -> ClusterSnapshot {
    let mut metrics = MetricsSnapshot::empty(Some(NOW));
    let mut views = BTreeMap::new();
    for number in 0..variants {
        let kv = match (number / VARIANTS_PER_MODEL) % 3 {
            0 => 0.78,
            1 => 0.30,
            _ => 0.69,
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
        let reported = signals(number, kv);
        let samples: Vec<_> =
            pods.iter().map(|pod| (Arc::clone(&pod.name), reported.clone())).collect();
        let view = view(number, pods);
        metrics.models.entry(view.model.clone()).or_default().extend(samples);
        views.insert(view.key.clone(), Arc::new(view));
    }
    ClusterSnapshot {
        cycle: CycleId(1),
        variants: views,
        metrics: Arc::new(metrics),
        direct: Arc::default(),
        gpus: None,
    }
}

fn cycle(criterion: &mut Criterion) {
    let settings = settings("");
    let mut group = criterion.benchmark_group("cycle");
    group.sample_size(20);
    for variants in [10, 100, 1_000, 10_000] {
        let given = LazyCell::new(|| {
            let snapshot = snapshot(variants);
            let learned = learn(&snapshot, &Learned::default(), &settings, NOW);
            let made = plan(&snapshot, &learned, &settings, 1, NOW);
            (snapshot, learned, made)
        });
        group.throughput(Throughput::Elements(u64::from(variants)));
        group.bench_function(BenchmarkId::new("plan", variants), |bencher| {
            let (snapshot, learned, _) = &*given;
            bencher.iter(|| plan(black_box(snapshot), learned, &settings, 1, NOW));
        });
        group.bench_function(BenchmarkId::new("learn", variants), |bencher| {
            let (snapshot, learned, _) = &*given;
            bencher.iter(|| learn(black_box(snapshot), learned, &settings, NOW));
        });
        group.bench_function(BenchmarkId::new("check_plan", variants), |bencher| {
            let (snapshot, _, made) = &*given;
            bencher.iter(|| check_plan(black_box(snapshot), &settings, made));
        });
    }
    group.finish();
}

fn approaches(criterion: &mut Criterion) {
    for (name, text) in APPROACHES {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        for variants in [100, 1_000, 10_000] {
            let gpus = variants * PODS * 21 / 20;
            let settings = settings(&text.replace("GPUS", &gpus.to_string()));
            // A filter leaves most of them out.
            let given = LazyCell::new(|| {
                let snapshot = snapshot(variants);
                let learned = learn(&snapshot, &Learned::default(), &settings, NOW);
                let made = plan(&snapshot, &learned, &settings, 1, NOW);
                let mut decisions = made.decisions.values();
                let is_changed = decisions.any(|decision| decision.action() != Action::NoChange);
                assert!(is_changed, "{name}: nothing is decided");
                (snapshot, learned)
            });
            group.throughput(Throughput::Elements(u64::from(variants)));
            group.bench_function(BenchmarkId::new("plan", variants), |bencher| {
                let (snapshot, learned) = &*given;
                bencher.iter(|| plan(black_box(snapshot), learned, &settings, 1, NOW));
            });
            group.bench_function(BenchmarkId::new("learn", variants), |bencher| {
                let (snapshot, learned) = &*given;
                bencher.iter(|| learn(black_box(snapshot), learned, &settings, NOW));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, cycle, approaches);
criterion_main!(benches);
