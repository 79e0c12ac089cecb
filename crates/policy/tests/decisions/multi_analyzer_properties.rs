//! What holds for every fleet, however its models are decided on.

use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;

use super::losses::{SIGNALS, age, lose};
use super::{decide, settings};
use wva_policy::bounds::{Bounds, ZeroPolicy};
use wva_policy::capacity::ServingRole;
use wva_policy::check_plan;
use wva_policy::document::{
    DocumentReading, ModelDocument, PodDocument, RouterDocument, SignalsDocument, Situation,
    SnapshotDocument, Span,
};
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;
use wva_policy::snapshot::{DeclaredBounds, VariantView};
use wva_policy::units::Replicas;

/// Every way to decide, alone and together.
const SETTINGS: [&str; 17] = [
    "",
    "saturation: {default: {analyzerName: saturation}}",
    "saturation: {default: {analyzerName: saturation, enableLimiter: true}}",
    "saturation: {default: {analyzerName: slo}}",
    "saturation: {default: {analyzerName: slo, enableLimiter: true, enableRescale: true, limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 6}}]}, one: {modelId: n, namespace: ns, priority: 3}}",
    "saturation: {default: {analyzers: [{name: saturation}, {name: slo}]}}",
    "saturation: {default: {analyzers: [{name: saturation}, {name: queueing-model, score: 2}, {name: throughput}]}}",
    "queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}",
    "EXPERIMENTAL_PROACTIVE_MODEL: true",
    "EXPERIMENTAL_PROACTIVE_MODEL: true\nsaturation: {default: {analyzerName: saturation}}",
    "WVA_LIMITED_MODE: true\nscaleToZero: {default: {enable_scale_to_zero: true, retention_period: 1m}}",
    "saturation: {default: {analyzers: [{name: throughput}]}}",
    "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}], enableLimiter: true, enableRescale: true}, one: {modelId: n, namespace: ns, priority: 3}}",
    "saturation: {default: {analyzerName: saturation, enableLimiter: true, enableRescale: true, limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 6}}]}}",
    "queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}\nsaturation: {default: {analyzers: [{name: saturation}, {name: queueing-model}]}}",
    "EXPERIMENTAL_PROACTIVE_MODEL: true\nqueueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}",
    "queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}\nsaturation: {default: {enableLimiter: true, enableRescale: true, limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 6}}]}}",
];

/// Uptime at the first look, and the time to the next.
const START: Duration = Duration::from_hours(2);
const CYCLE: Duration = Duration::from_secs(30);

#[expect(clippy::unnecessary_wraps, reason = "the fields take it so")]
fn reading(value: f64) -> Option<DocumentReading> {
    Some(DocumentReading { value: Some(value), ..DocumentReading::default() })
}

fn signals() -> impl Strategy<Value = SignalsDocument> {
    let share = prop::sample::select(vec![0.0, 0.05, 0.3, 0.6, 0.8, 1.0]);
    let queue = prop::sample::select(vec![0.0, 1.0, 6.0, 30.0]);
    let output = prop::sample::select(vec![0.0, 60.0, 400.0]);
    let rate = prop::sample::select(vec![0.0, 0.2, 4.0]);
    let any = (share, queue, output, rate);
    prop_oneof![3 => any, 1 => Just((0.0, 0.0, 60.0, 0.0))].prop_map(
        |(share, queue, output, rate)| SignalsDocument {
            kv_usage: reading(share),
            queue_length: reading(queue),
            running: reading(if share > 0.0 { 3.0 } else { 0.0 }),
            kv_capacity: reading(16_000.0),
            input_tokens: reading(200.0),
            output_tokens: reading(output),
            prefix_hit_rate: reading(0.2),
            time_to_first_token: reading(0.045),
            inter_token_latency: reading(0.006 + 0.073 * share),
            arrival_rate: reading(rate),
            completion_rate: reading(rate),
            generation_rate: reading(rate * output),
            kv_usage_now: reading(share),
            ..SignalsDocument::default()
        },
    )
}

#[derive(Debug, Clone)]
struct Given {
    role: ServingRole,
    model: &'static str,
    bounds: (Option<u32>, Option<u32>),
    desired: Option<u32>,
    loading: u32,
    pods: Vec<SignalsDocument>,
}

fn given() -> impl Strategy<Value = Given> {
    let role = prop_oneof![
        3 => Just(ServingRole::Both),
        1 => Just(ServingRole::Prefill),
        1 => Just(ServingRole::Decode),
    ];
    (
        role,
        prop::sample::select(vec!["m", "n"]),
        (prop::option::of(0..3_u32), prop::option::of(2..9_u32)),
        prop::option::of(0..6_u32),
        prop_oneof![4 => Just(0_u32), 1 => 1..3_u32],
        prop::collection::vec(signals(), 0..4),
    )
        .prop_map(|(role, model, bounds, desired, loading, pods)| Given {
            role,
            model,
            bounds,
            desired,
            loading,
            pods,
        })
}

pub(super) fn fleet() -> impl Strategy<Value = SnapshotDocument> {
    // Requests of a queue, and the bytes of each where it has any.
    let bytes = prop::option::of(prop::sample::select(vec![0.0, 450.0, 200_000.0]));
    let queue = prop::option::of((prop::sample::select(vec![0.0, 2.0, 60.0]), bytes));
    let arrivals = prop::option::of(prop::sample::select(vec![0.0, 0.4, 12.0]));
    let router = (queue, arrivals);
    let gpus = prop::option::of((0..20_u32, 0..12_u32));
    (prop::collection::vec(given(), 1..5), router, gpus).prop_map(
        |(variants, (queue, arrivals), gpus)| {
            let mut text = "version: 1\nvariants:\n".to_owned();
            for (number, given) in variants.iter().enumerate() {
                let ready = given.pods.len();
                let current = ready + usize::try_from(given.loading).unwrap();
                let cost = 10 * (1 + number % 3);
                writeln!(
                text,
                "- {{namespace: ns, name: v{number}, model: {}, cost: {cost}, accelerator: H100, \
                 target: {{current: {current}, ready: {ready}}}}}",
                given.model
            )
            .unwrap_or_default();
            }
            if let Some((total, used)) = gpus {
                writeln!(text, "inventory: {{types: {{H100: {{total: {total}, used: {used}}}}}}}")
                    .unwrap_or_default();
            }
            let mut document = SnapshotDocument::parse(&text).unwrap();
            for (variant, given) in document.variants.iter_mut().zip(variants) {
                variant.role = given.role;
                variant.desired = given.desired;
                variant.bounds = DeclaredBounds {
                    min: given.bounds.0.map(Replicas),
                    max: given.bounds.1.map(Replicas),
                };
                variant.pods = given
                    .pods
                    .into_iter()
                    .enumerate()
                    .map(|(number, signals)| PodDocument {
                        name: format!("{}-{number}", variant.name).into(),
                        ready: true,
                        gated: false,
                        age: None,
                        ready_for: None,
                        node: None,
                        signals,
                    })
                    .collect();
            }
            let served = document.variants.iter().any(|variant| &*variant.model == "m");
            if served && (queue.is_some() || arrivals.is_some()) {
                document.models.push(ModelDocument {
                    namespace: "ns".into(),
                    model: "m".into(),
                    router: Some(RouterDocument {
                        queue_requests: queue.and_then(|(requests, _)| reading(requests)),
                        queue_bytes: queue.and_then(|(requests, bytes)| reading(requests * bytes?)),
                        arrival_rate: arrivals.and_then(reading),
                    }),
                    direct_queue: None,
                });
            }
            document
        },
    )
}

/// The document so many cycles later.
pub(super) fn at(document: &SnapshotDocument, cycle: u32, settings: &DynamicSettings) -> Situation {
    let mut document = document.clone();
    document.time.uptime = Some(Span(START + CYCLE * cycle));
    document.situation(&settings.freshness).unwrap()
}

pub(super) fn bounds_of(view: &VariantView, settings: &DynamicSettings) -> Bounds {
    let policy = ZeroPolicy::from(settings.may_go_to_zero(&view.model));
    Bounds::effective(&view.bounds, policy)
}

/// What a variant has or was granted before.
pub(super) fn standing(view: &VariantView) -> Replicas {
    let current = view.target.resolved().map_or(Replicas::ZERO, |target| target.current);
    view.base().unwrap_or(current).max(current)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_sound_repeatable_and_without_order(document in fleet(), which in 0..SETTINGS.len()) {
        let settings = settings(SETTINGS[which]);
        let situation = at(&document, 0, &settings);
        let (learned, made) = decide(&situation, &Learned::default(), &settings);
        prop_assert_eq!(check_plan(&situation.snapshot, &settings, &made), Ok(()));
        let (again, same) = decide(&situation, &learned, &settings);
        prop_assert_eq!(&again, &learned);
        prop_assert_eq!(&same, &made);

        let written = SnapshotDocument::of(&situation.snapshot, &learned, situation.now);
        let text = serde_json::to_string(&written).unwrap();
        let read = SnapshotDocument::parse(&text).unwrap();
        let read = read.situation(&settings.freshness).unwrap();
        let (kept, repeated) = decide(&read, read.learned.as_ref().unwrap(), &settings);
        prop_assert_eq!(&kept, &learned);
        prop_assert_eq!(&repeated, &made);

        let mut turned = document.clone();
        turned.variants.reverse();
        turned.models.reverse();
        for variant in &mut turned.variants {
            variant.pods.reverse();
        }
        let (known, plan) = decide(&at(&turned, 0, &settings), &Learned::default(), &settings);
        prop_assert_eq!(&known, &learned);
        prop_assert_eq!(plan, made);

        // By then its queues stand.
        let later = at(&document, 4, &settings);
        let (_, made) = decide(&later, &known, &settings);
        prop_assert_eq!(check_plan(&later.snapshot, &settings, &made), Ok(()));
    }

    #[test]
    fn missing_input_never_lowers_a_target(
        document in fleet(),
        losses in losses(),
        router in 0..10_u32,
        which in 0..SETTINGS.len(),
        later in prop::bool::ANY,
    ) {
        let settings = settings(SETTINGS[which]);
        let (mut known, _) = decide(&at(&document, 0, &settings), &Learned::default(), &settings);
        // Queues stand from the fourth look on.
        let last = if later { 4 } else { 1 };
        for cycle in 1..last {
            (known, _) = decide(&at(&document, cycle, &settings), &known, &settings);
        }
        nothing_is_lowered(&document, &losses, router, &settings, (&known, last))?;
    }

    /// A sample of a router that is too old to shrink on may still grow, as one of a replica may.
    #[test]
    fn an_old_word_of_the_router_lowers_nothing(
        document in fleet(),
        is_rate in prop::bool::ANY,
        which in prop::sample::select(vec![1_usize, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 14, 16]),
    ) {
        let settings = settings(SETTINGS[which]);
        let mut older = document.clone();
        let sampled = older.models.first_mut().and_then(|model| model.router.as_mut());
        let Some(sampled) = sampled else { return Ok(()) };
        let reading = if is_rate { &mut sampled.arrival_rate } else { &mut sampled.queue_requests };
        // Who reads it, may not shrink; only throughput looks at the rate.
        let is_read = reading.is_some() && (!is_rate || SETTINGS[which].contains("throughput"));
        age(reading);
        let (known, _) = decide(&at(&document, 0, &settings), &Learned::default(), &settings);
        let situation = at(&older, 1, &settings);
        let (_, made) = decide(&situation, &known, &settings);
        for (key, decision) in &made.decisions {
            let view = &situation.snapshot.variants[key];
            let Some(base) = view.base().filter(|_| is_read && &*view.model.model == "m") else {
                continue;
            };
            let kept = bounds_of(view, &settings).clamp(base).0;
            prop_assert!(decision.target >= Some(kept), "{}: {:#?}", key, decision.steps);
        }
    }

    #[test]
    fn a_constant_load_is_met_and_then_nothing_moves(
        tokens in 0.0..60_000.0_f64,
        replicas in 1..6_usize,
        costs in prop::collection::vec(1..5_u32, 1..3),
        waiting in prop::bool::ANY,
    ) {
        let settings = settings(SETTINGS[1]);
        let mut counts = vec![replicas; costs.len()];
        let mut learned = Learned::default();
        let mut history = Vec::new();
        for cycle in 0..30 {
            let document = engine(&costs, &counts, tokens, waiting);
            let situation = at(&document, cycle, &settings);
            let (next, made) = decide(&situation, &learned, &settings);
            learned = next;
            for (count, decision) in counts.iter_mut().zip(made.decisions.values()) {
                *count = usize::try_from(decision.target.unwrap().0).unwrap();
            }
            history.push(counts.clone());
        }
        let end = history.split_off(12);
        prop_assert!(end.iter().all(|counts| *counts == end[0]), "{:?} then {:?}", history, end);
        let total: usize = end[0].iter().sum();
        let held = f64::from(u32::try_from(total).unwrap()) * 12_800.0;
        prop_assert!(tokens <= held, "{} on {:?}", tokens, end[0]);
    }

    /// Replicas that are full while a queue grows: a model grows within ten cycles, however it is decided on.
    #[test]
    fn a_growing_backlog_makes_a_model_grow(
        replicas in 1..4_usize,
        more in 5.0..60.0_f64,
        share in 0.85..1.0_f64,
        output in prop::sample::select(vec![60.0, 400.0]),
        which in 0..SETTINGS.len(),
    ) {
        let settings = settings(SETTINGS[which]);
        let mut learned = Learned::default();
        let mut said: Vec<String> = Vec::new();
        for cycle in 0..10 {
            let document = overloaded(replicas, more * f64::from(cycle), share, output);
            let situation = at(&document, cycle, &settings);
            let (next, made) = decide(&situation, &learned, &settings);
            learned = next;
            let decision = made.decisions.values().next().unwrap();
            if decision.target > Some(Replicas(u32::try_from(replicas).unwrap())) {
                return Ok(());
            }
            said = decision.steps.iter().map(|step| step.why.to_string()).collect();
        }
        prop_assert!(false, "{}: {:#?}", SETTINGS[which], said);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 6 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    /// A process that has just started does not know which voter had a result.
    #[test]
    fn missing_input_lowers_no_target_at_a_first_look(
        document in fleet(),
        losses in losses(),
        router in 0..10_u32,
        which in 0..SETTINGS.len(),
    ) {
        let settings = settings(SETTINGS[which]);
        nothing_is_lowered(&document, &losses, router, &settings, (&Learned::default(), 1))?;
    }
}

fn losses() -> impl Strategy<Value = Vec<(Option<usize>, usize)>> {
    prop::collection::vec((prop::option::of(0..12_usize), 0..2 * SIGNALS), 1..4)
}

/// Compares what is decided in a cycle after `known` with and without the losses.
fn nothing_is_lowered(
    document: &SnapshotDocument,
    losses: &[(Option<usize>, usize)],
    router: u32,
    settings: &DynamicSettings,
    (known, cycle): (&Learned, u32),
) -> Result<(), TestCaseError> {
    let whole = at(document, cycle, settings);
    let (_, informed) = decide(&whole, known, settings);
    let mut poorer = document.clone();
    for (pod, signal) in losses {
        lose(&mut poorer, *pod, *signal);
    }
    let sampled = poorer.models.first_mut();
    if let Some(sampled) = sampled.and_then(|model| model.router.as_mut()) {
        match router {
            0 => sampled.queue_requests = None,
            1 => sampled.arrival_rate = None,
            2 => *sampled = RouterDocument::default(),
            3 => sampled.queue_bytes = None,
            4 => age(&mut sampled.queue_requests),
            5 => age(&mut sampled.arrival_rate),
            _ => {}
        }
    }
    let (_, blind) = decide(&at(&poorer, cycle, settings), known, settings);
    for (key, decision) in &blind.decisions {
        let view = &whole.snapshot.variants[key];
        let Some(base) = view.base() else { continue };
        let kept = bounds_of(view, settings).clamp(base).0;
        let least = informed.decisions[key].target.min(Some(kept));
        prop_assert!(
            decision.target >= least,
            "{}: {:?} < {:?}: {:#?}\ninformed {:#?}",
            key,
            decision.target,
            least,
            decision.steps,
            informed.decisions[key].steps
        );
    }
    Ok(())
}

/// A small reference engine: requests of 100 tokens spread evenly; what does not fit waits.
fn engine(costs: &[u32], counts: &[usize], tokens: f64, waiting: bool) -> SnapshotDocument {
    let total: usize = counts.iter().sum();
    let each = tokens / f64::from(u32::try_from(total.max(1)).unwrap());
    let usage = (each / 16_000.0).min(1.0);
    let queue = if waiting { ((each - 16_000.0) / 100.0).max(0.0).floor() } else { 0.0 };
    let mut text = "version: 1\nvariants:\n".to_owned();
    for (number, (cost, count)) in costs.iter().zip(counts).enumerate() {
        writeln!(text,
            "- {{namespace: ns, name: v{number}, model: m, cost: {cost}, target: {{current: {count}}}}}"
        ).unwrap_or_default();
    }
    let mut document = SnapshotDocument::parse(&text).unwrap();
    for (variant, count) in document.variants.iter_mut().zip(counts) {
        variant.pods = (0..*count)
            .map(|number| PodDocument {
                name: format!("{}-{number}", variant.name).into(),
                ready: true,
                gated: false,
                age: None,
                ready_for: None,
                node: None,
                signals: SignalsDocument {
                    kv_usage: reading(usage),
                    queue_length: reading(queue),
                    kv_capacity: reading(16_000.0),
                    input_tokens: reading(100.0),
                    output_tokens: reading(0.0),
                    ..SignalsDocument::default()
                },
            })
            .collect();
    }
    document
}

/// Full replicas of one variant that complete a third of the requests that arrive; the rest waits, in the router and
/// in them.
fn overloaded(replicas: usize, waiting: f64, share: f64, output: f64) -> SnapshotDocument {
    let text = format!(
        "version: 1\nvariants:\n- {{namespace: ns, name: v, model: m, accelerator: H100, bounds: {{max: 8}}, \
         target: {{current: {replicas}}}}}\ninventory: {{types: {{H100: {{total: 20, used: {replicas}}}}}}}\n"
    );
    let mut document = SnapshotDocument::parse(&text).unwrap();
    let signals = SignalsDocument {
        kv_usage: reading(share),
        kv_usage_now: reading(share),
        queue_length: reading(8.0),
        running: reading(24.0),
        kv_capacity: reading(16_000.0),
        input_tokens: reading(200.0),
        output_tokens: reading(output),
        prefix_hit_rate: reading(0.0),
        time_to_first_token: reading(2.0),
        inter_token_latency: reading(0.06),
        arrival_rate: reading(2.0),
        completion_rate: reading(2.0),
        generation_rate: reading(2.0 * output),
        ..SignalsDocument::default()
    };
    let pod = |number: usize| PodDocument {
        name: format!("v-{number}").into(),
        ready: true,
        gated: false,
        age: None,
        ready_for: None,
        node: None,
        signals: signals.clone(),
    };
    document.variants[0].pods = (0..replicas).map(pod).collect();
    let arrivals = 6.0 * f64::from(u32::try_from(replicas).unwrap());
    document.models.push(ModelDocument {
        namespace: "ns".into(),
        model: "m".into(),
        router: Some(RouterDocument {
            queue_requests: reading(waiting),
            queue_bytes: None,
            arrival_rate: reading(arrivals),
        }),
        direct_queue: None,
    });
    document
}
