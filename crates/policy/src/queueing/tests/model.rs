//! One model: learned, sized and assessed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::capacity::ServingRole;
use crate::key::{ModelKey, VariantKey};
use crate::params::{ANALYZER_NAME, LatencyTargets, QueueingModelPolicy};
use crate::queueing::assess::{
    QueueingModelFigures, QueueingModelInput, QueueingReplicaInput, QueueingVariantInput, Unsized,
    assess,
};
use crate::queueing::learned::LearnedParameters;
use crate::queueing::quantity::{Millis, RequestRate};
use crate::queueing::service::Workload;
use crate::queueing::targets::{TargetSource, inferred, model_targets};
use crate::units::Replicas;
use crate::zero::ModelActivity;

const POLICY: QueueingModelPolicy =
    QueueingModelPolicy { slo_multiplier: 3.0, tuning: true, targets: None };

fn key(model: &str) -> ModelKey {
    ModelKey::new("default", model)
}

fn variant() -> VariantKey {
    VariantKey::new("default", "v")
}

fn replica(rate: f64) -> QueueingReplicaInput {
    QueueingReplicaInput {
        rate: Some(RequestRate(rate)),
        input_tokens: Some(512.0),
        output_tokens: Some(128.0),
        time_to_first_token: Some(Millis(45.0)),
        inter_token_latency: Some(Millis(8.0)),
    }
}

fn model(rates: &[f64]) -> QueueingModelInput {
    let replicas = rates
        .iter()
        .enumerate()
        .map(|(index, rate)| (format!("pod-{index}").into(), replica(*rate)));
    let input = QueueingVariantInput {
        ready: Replicas(u32::try_from(rates.len()).unwrap()),
        batch: Some(64),
        replicas: replicas.collect(),
        ..QueueingVariantInput::default()
    };
    QueueingModelInput {
        activity: ModelActivity::Unknown,
        policy: POLICY,
        class_targets: None,
        variants: BTreeMap::from([(variant(), input)]),
    }
}

fn learned(input: &QueueingModelInput) -> LearnedParameters {
    LearnedParameters::default().learn(&BTreeMap::from([(key("llama"), input.clone())]))
}

fn demand(
    input: &QueueingModelInput,
    learned: &LearnedParameters,
) -> (Option<f64>, QueueingModelFigures) {
    let (assessment, figures) = assess(&key("llama"), input, learned);
    (assessment.demand.get(&ServingRole::Both).copied(), figures)
}

fn latency_targets(first: u64, step: u64) -> LatencyTargets {
    LatencyTargets {
        time_to_first_token: Duration::from_millis(first),
        inter_token_latency: Duration::from_millis(step),
    }
}

/// QMC-13.
#[test]
fn the_analyzer_has_its_published_name() {
    let (assessment, _) = assess(&key("llama"), &model(&[]), &LearnedParameters::default());
    let name = serde_json::to_string(&assessment.analyzer).unwrap();
    assert_eq!(name, format!("{ANALYZER_NAME:?}"));
    assert_eq!(ANALYZER_NAME, "queueing-model");
}

/// QMC-27, QMC-29, QMC-31, QMC-35.
#[test]
fn parameters_are_kept_by_model_and_forgotten_with_it() {
    let models = BTreeMap::from([(key("llama"), model(&[4.0])), (key("other"), model(&[]))]);
    let learned = LearnedParameters::default().learn(&models);
    assert!(learned.get(&key("llama"), &variant()).is_some());
    assert_eq!(learned.get(&key("other"), &variant()), None);
    assert_eq!(learned.get(&key("unknown"), &variant()), None);
    assert_eq!(String::from(key("llama")), "default/llama");

    let silent = BTreeMap::from([(key("llama"), model(&[]))]);
    assert_eq!(learned.learn(&silent), learned);
    let gone = BTreeMap::from([(key("other"), model(&[4.0]))]);
    let learned = learned.learn(&gone);
    assert_eq!(learned.get(&key("llama"), &variant()), None);
    assert!(learned.get(&key("other"), &variant()).is_some());
    assert_eq!(learned, LearnedParameters::default().learn(&gone));
    assert_eq!(
        learned.learn(&BTreeMap::<_, QueueingModelInput>::new()),
        LearnedParameters::default()
    );
}

#[test]
fn the_first_parameters_stay_while_tuning_is_off() {
    let mut off = model(&[4.0]);
    let known = learned(&off);
    let again = |off: QueueingModelInput| known.learn(&BTreeMap::from([(key("llama"), off)]));
    assert_ne!(again(off.clone()), known);
    off.policy.tuning = false;
    assert_eq!(learned(&off), known);
    assert_eq!(again(off), known);
}

/// QMC-23 among them.
#[test]
fn targets_come_from_the_first_source_that_has_any() {
    let work = Workload { input_tokens: 100.0, output_tokens: 10.0 };
    let of = |alpha: f64, gamma: f64| (super::answers::parameters([alpha, 0.01, gamma]), work);
    let parameters = vec![of(1.0, 0.01), of(2.0, 0.001)];
    let stated = QueueingModelPolicy { targets: Some(latency_targets(500, 50)), ..POLICY };
    let class = Some(latency_targets(400, 40));
    let observed = Some(inferred(&parameters[0].0, work, 1.0));
    let source = |policy, class, learned: &[_], observed| {
        model_targets(policy, class, learned.to_vec(), observed)
    };
    for (found, wanted, first, step) in wva_base::cases! {
        (source(&stated, class, &parameters, observed), TargetSource::Explicit, 500.0, 50.0),
        (source(&POLICY, class, &parameters, observed), TargetSource::ServiceClass, 400.0, 40.0),
        // 3·2 + .011·100 against 3·1 + .02·100; 3·2 + .01 + .001·105.5 against 3·1 + .01 + .01·105.5.
        (source(&POLICY, None, &parameters, observed), TargetSource::Learned, 7.1, 6.1155),
        (source(&POLICY, None, &[], observed), TargetSource::Observed, 4.5, 3.0975),
    } {
        let found = found.unwrap();
        assert_eq!(found.source, wanted);
        let latencies = found.latencies;
        assert!((latencies.time_to_first_token.0 - first).abs() < 1e-9, "{found:?}");
        assert!((latencies.inter_token_latency.0 - step).abs() < 1e-9, "{found:?}");
    }
    assert_eq!(source(&POLICY, None, &[], None), None);
}

#[test]
fn a_model_whose_load_grows_asks_for_more_and_pending_replicas_count() {
    let known = learned(&model(&[1.0]));
    let (calm, figures) = demand(&model(&[0.25, 0.25]), &known);
    assert_eq!(calm, Some(0.5));
    let own = &figures.variants[&variant()];
    let supply = own.supply.unwrap();
    assert_eq!(own.sizing.unwrap().performance.throughput, supply.per_replica);
    assert!(figures.spare.0 > 0.0 && supply.needed <= Replicas(2));

    let heavy = supply.per_replica.0 * 1.4;
    let mut input = model(&[heavy, heavy]);
    let (asked, figures) = demand(&input, &known);
    assert_eq!(asked, Some(2.0 * heavy));
    assert!(figures.required.0 > 0.0);
    assert_eq!(figures.variants[&variant()].supply.unwrap().needed, Replicas(3));
    input.variants.get_mut(&variant()).unwrap().pending = Replicas(1);
    let (_, figures) = demand(&input, &known);
    assert_eq!((figures.required.0.to_bits(), figures.spare.0.to_bits()), (0, 0));
}

#[test]
fn an_unknown_load_is_no_reason_to_shrink() {
    let known = learned(&model(&[4.0]));
    let mut input = model(&[1.0, 1.0]);
    assert_eq!(demand(&input, &known).0, Some(2.0));
    let replicas = &mut input.variants.get_mut(&variant()).unwrap().replicas;
    replicas.values_mut().last().unwrap().rate = None;
    let (none, figures) = demand(&input, &known);
    assert_eq!(none, None);
    assert_eq!(figures.variants[&variant()].unknown, Replicas(1));
    // What is known alone is too much.
    let replicas = &mut input.variants.get_mut(&variant()).unwrap().replicas;
    replicas.values_mut().next().unwrap().rate = Some(RequestRate(1e6));
    assert_eq!(demand(&input, &known).0, Some(1e6));
}

#[test]
fn a_known_idle_model_can_shrink() {
    let known = learned(&model(&[4.0]));
    let (asked, figures) = demand(&model(&[0.0, 0.0]), &known);
    assert_eq!(asked, Some(0.0));
    let supply = figures.variants[&variant()].supply.unwrap();
    assert_eq!(supply.needed, Replicas::ZERO);
    assert_eq!(figures.spare, supply.ready);
}

#[test]
fn what_cannot_be_sized_says_why() {
    let known = learned(&model(&[4.0]));
    let input = model(&[4.0]);
    let why = |input: &QueueingModelInput, known: &LearnedParameters| {
        let (assessment, figures) = assess(&key("llama"), input, known);
        assert!(assessment.variants.is_empty() && assessment.demand.is_empty());
        figures.variants[&variant()].unsized_because.clone().unwrap()
    };
    assert_eq!(why(&input, &LearnedParameters::default()), Unsized::NothingLearned);
    let mut prefill = input.clone();
    prefill.variants.get_mut(&variant()).unwrap().role = ServingRole::Prefill;
    assert_eq!(why(&prefill, &known), Unsized::PartOfRequests);
    let mut strict = input;
    strict.policy.targets = Some(latency_targets(1, 1));
    let text = why(&strict, &known).to_string();
    assert!(text.contains("target time to first token of 1.000 ms is below"), "{text}");
}

#[test]
fn a_replica_does_what_it_was_seen_to_do_within_the_targets_while_the_estimate_is_refused() {
    let stated = QueueingModelPolicy { targets: Some(latency_targets(150, 80)), ..POLICY };
    let seen = |first_token: f64, between: f64, rate: f64| {
        let mut seen = model(&[rate, rate]);
        seen.policy = stated;
        for input in seen.variants.values_mut() {
            for replica in input.replicas.values_mut() {
                replica.time_to_first_token = Some(Millis(first_token));
                replica.inter_token_latency = Some(Millis(between));
            }
        }
        seen
    };
    let calm = seen(45.0, 8.0, 1.0);
    let round =
        |known: &LearnedParameters| known.learn(&BTreeMap::from([(key("llama"), calm.clone())]));
    let known = (0..20).fold(learned(&calm), |known, _| round(&known));
    let per_replica = |seen: &QueueingModelInput, known: &LearnedParameters| {
        let (_, figures) = assess(&key("llama"), seen, known);
        let own = &figures.variants[&variant()];
        (own.refused_rounds, own.supply.unwrap().per_replica.0)
    };
    let (refused, estimated) = per_replica(&calm, &known);
    assert_eq!(refused, Some(0));
    // Twice as much as it should do, and not late.
    let rate = 2.0 * estimated;
    let busy = seen(60.0, 9.0, rate);
    let next = known.learn(&BTreeMap::from([(key("llama"), busy.clone())]));
    assert_eq!(per_replica(&busy, &next), (Some(1), rate));
    // Beyond the targets it shows nothing.
    let late = seen(300.0, 9.0, rate);
    let next = known.learn(&BTreeMap::from([(key("llama"), late.clone())]));
    assert_eq!(per_replica(&late, &next), (Some(1), estimated));
}
