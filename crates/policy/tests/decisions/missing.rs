//! Signals that are not there, in situations where guessing would lower a target.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;

use super::{settings, situation, words};
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;
use wva_policy::samples::{PodSamples, Sample};

const TO_ZERO: &str = "scaleToZero: {default: {enable_scale_to_zero: true, retention_period: 10m}}";
const TOKENS: &str = "saturation: {default: {analyzerName: saturation}}";

/// Targets in the order of names, and the steps of each in words.
fn decide(text: &str, settings: &DynamicSettings) -> Vec<(u32, String)> {
    let situation = situation(text, settings);
    let before = situation.learned.clone().unwrap_or_default();
    words(&super::decide(&situation, &before, settings).1)
}

/// A model on one replica that was last in use 660 seconds ago.
fn unused(signals: &str, router: &str, failures: &str) -> String {
    format!(
        "version: 1
collection: {{failures: {{{failures}}}}}
variants:
- namespace: s
  name: a
  model: m
  bounds: {{min: 0}}
  desired: 1
  target: {{current: 1}}
  pods: [{{name: p, age: 2h, signals: {{queueLength: 0, running: 0, {signals}}}}}]
models: [{{namespace: s, model: m, router: {{queueRequests: 0, {router}}}}}]
learned: {{version: 2, activity: {{s/m: {{monotonic: {{secs: 85740, nanos: 0}}, wall: 0}}}}}}
"
    )
}

fn target(signals: &str, router: &str, failures: &str, with: &str) -> (u32, String) {
    let text = unused(signals, router, failures);
    decide(&text, &settings(with)).remove(0)
}

const QUIET: &str = "kvUsage: 0, completionRate: 0, generationRate: 0";

#[test]
fn a_model_without_use_for_its_retention_goes_to_zero() {
    let idle = [
        QUIET,
        // A cache of prefixes that stays.
        "kvUsage: 0.3, completionRate: 0, generationRate: 0",
        // Counters that appear with the first request, of engines that had none.
        "kvUsage: 0",
        "kvUsage: 0, generationRate: 0",
        "kvUsage: 0, completionRate: 0",
    ];
    for signals in idle {
        for with in [TO_ZERO.to_owned(), format!("{TO_ZERO}\n{TOKENS}")] {
            let (count, said) = target(signals, "arrivalRate: 0", "", &with);
            assert_eq!(count, 0, "{signals} {with}: {said}");
            let (count, said) = target(signals, "", "", &with);
            assert_eq!(count, 0, "{signals} {with}, not routed: {said}");
        }
    }
}

#[test]
fn an_unknown_sign_of_use_is_no_zero() {
    assert_eq!(target(QUIET, "", "", TO_ZERO).0, 0, "it is not in use");
    let unknown = wva_base::cases! {
        ("kvUsage: 0.3, generationRate: 0", "", ""),
        ("kvUsage: 0, generationRate: 0, timeToFirstToken: 0.05", "", ""),
        ("kvUsage: 0, completionRate: 0, interTokenLatency: 0.01", "", ""),
        ("kvUsage: 0.3, completionRate: {state: failed, why: absent}, generationRate: 0", "", ""),
        ("kvUsage: 0, completionRate: {value: 0, age: 90s}, generationRate: 0", "", ""),
        ("kvUsage: 0, completionRate: {value: 5, age: 90s}, generationRate: 0", "", ""),
        ("kvUsage: 0, generationRate: 0", "", "completionRate: '503'"),
        ("kvUsage: 0, completionRate: 0", "", "generationRate: '503'"),
        ("kvUsage: 0", "", "timeToFirstToken: '503'"),
        (QUIET, "", "routerArrivalRate: '503'"),
        (QUIET, "", "arrivalRate: '503'"),
        // What an earlier collection left is no news where the query failed.
        (QUIET, "", "running: '503'"),
        (QUIET, "", "completionRate: '503'"),
        (QUIET, "", "generationRate: '503'"),
        ("kvUsage: 0, completionRate: 0, generationRate: 0, arrivalRate: 0", "", "arrivalRate: '503'"),
        (QUIET, "arrivalRate: 0", "routerArrivalRate: '503'"),
        (QUIET, "arrivalRate: {value: 0, age: 90s}", ""),
    };
    for (signals, router, failures) in unknown {
        let case = format!("{signals} {router} {failures}");
        assert_eq!(target(signals, router, failures, TO_ZERO).0, 1, "{case}");
        // By percentages alone, what keeps a model is no news.
        let with = format!("{TO_ZERO}\n{TOKENS}");
        let (count, said) = target(signals, router, failures, &with);
        assert_eq!(count, 1, "{case}: {said}");
        let is_said = said.contains("load-unknown");
        assert!(is_said, "{case}: {said}");
    }
}

#[test]
fn every_sign_of_use_keeps_a_model() {
    assert_eq!(target(QUIET, "", "", TO_ZERO).0, 0, "it is not in use");
    let used = [
        ("kvUsage: 0, completionRate: 5, generationRate: 0", ""),
        ("kvUsage: 0, completionRate: 0, generationRate: 250", ""),
        ("kvUsage: 0, generationRate: 250", ""),
        ("kvUsage: 0, completionRate: 0, generationRate: 0, arrivalRate: 5", ""),
        ("kvUsage: 0, generationRate: 0, arrivalRate: 5", ""),
        (QUIET, "arrivalRate: 5"),
    ];
    let failed = "arrivalRate: '503', routerArrivalRate: '503', running: '503'";
    for ((signals, router), failures) in used.iter().flat_map(|one| [(one, ""), (one, failed)]) {
        let found = target(signals, router, failures, TO_ZERO);
        let case = format!("{signals} {router} {failures}: {found:?}");
        assert_eq!(found.0, 1, "{case}");
        assert!(!found.1.contains("load-unknown"), "{case}");
    }
}

/// Replicas by the share of their cache in use, its size where they say it, and mean answers.
fn fleet(replicas: &[(f64, Option<f64>, Option<f64>)]) -> String {
    let count = replicas.len();
    let mut text = format!(
        "version: 1
time: {{uptime: 1h}}
variants:
- namespace: s
  name: v
  model: m
  bounds: {{min: 1, max: 9}}
  desired: {count}
  target: {{current: {count}}}
  containers: [{{image: vllm, args: ['--max-num-seqs=64']}}]
  pods:
"
    );
    for (number, (usage, size, output)) in replicas.iter().enumerate() {
        let size = size.map(|size| format!("kvCapacity: {size}, "));
        let output = output.map(|output| format!("outputTokens: {output}, "));
        let (size, output) = (size.unwrap_or_default(), output.unwrap_or_default());
        writeln!(
            text,
            "  - {{name: p{number}, age: 2h, signals: {{kvUsage: {usage}, {size}{output}\
             queueLength: 0, inputTokens: 1000, running: 3}}}}"
        )
        .unwrap();
    }
    text
}

#[test]
fn replicas_that_do_not_say_the_size_of_their_cache_release_nothing() {
    let settings = settings(TOKENS);
    let replica = |usage, is_stated: bool| (usage, is_stated.then_some(500_000.0), Some(50.0));
    let small = |usage, reported: &[bool]| {
        let all: Vec<_> = reported.iter().map(|reported| replica(usage, *reported)).collect();
        decide(&fleet(&all), &settings).remove(0)
    };
    assert_eq!(small(0.001, &[true; 6]).0, 1, "an idle fleet shrinks");
    assert_eq!(small(0.1, &[true; 6]).0, 6, "a loaded one does not");
    let reported = [true, true, false, false, false, false];
    assert_eq!(small(0.1, &reported).0, 6);
    assert_eq!(small(0.001, &reported).0, 6, "its size is only assumed");
    assert_eq!(small(0.06, &[true; 2]).0, 2);
    assert_eq!(small(0.06, &[true, false]).0, 2);
}

#[test]
fn a_size_that_arguments_state_sizes_a_fleet_as_a_reported_one_does() {
    let settings = settings(TOKENS);
    let full = fleet(&[(1.0, None, Some(50.0))]);
    let (count, said) = decide(&full, &settings).remove(0);
    assert_eq!(count, 1);
    assert!(said.contains("missing: kv_capacity of p0"), "{said}");
    for (image, args) in [
        ("vllm", "--num-gpu-blocks-override=1000, --block-size=50"),
        ("sglang", "--max-total-tokens=50000"),
    ] {
        let stated = full.replace("image: vllm", &format!("image: {image}"));
        let stated = stated.replace("'--max-num-seqs=64'", args);
        // 50000 in use of 40000 usable: 50000 / 0.85 - 40000 are missing.
        let (count, said) = decide(&stated, &settings).remove(0);
        assert_eq!(count, 2, "{said}");
        assert!(!said.contains("kv_capacity"), "{said}");
        let idle = stated.replace("kvUsage: 1,", "kvUsage: 0.01,");
        assert_ne!(idle, stated);
        let idle = idle.replace("current: 1", "current: 2").replace("desired: 1", "desired: 2");
        let both = idle.clone() + &idle.lines().last().unwrap().replace("p0", "p1");
        assert_eq!(decide(&both, &settings).remove(0).0, 1, "and is known to be free");
    }
}

/// Two ranks that report and a replica that does not were taken for two replicas.
#[test]
fn a_silent_replica_next_to_one_with_ranks_releases_nothing() {
    let settings = settings(TOKENS);
    let rank =
        "{kvUsage: 0.001, queueLength: 0, kvCapacity: 16000, inputTokens: 100, outputTokens: 50}";
    let pod = |name: &str, ranks: &[&str]| {
        let ranks: Vec<_> = ranks.iter().map(|name| format!("{name}: {rank}")).collect();
        let signals = format!("kvUsage: 0.001, queueLength: 0, ranks: {{{}}}", ranks.join(", "));
        format!("{{name: {name}, age: 2h, signals: {{{signals}}}}}")
    };
    let silent = "{name: b, age: 2h}".to_owned();
    let decided = |other: &str| {
        let text = format!(
            "version: 1\nvariants:\n- {{namespace: ns, name: v, model: m, desired: 2, target: {{current: 2}}, \
             pods: [{}, {other}]}}\n",
            pod("a", &["r0", "r1"])
        );
        decide(&text, &settings).remove(0)
    };
    let (count, said) = decided(&pod("b", &["r0", "r1"]));
    assert_eq!(count, 1, "{said}");
    for other in [silent, pod("b", &["r0"])] {
        let (count, said) = decided(&other);
        assert_eq!(count, 2, "{other}: {said}");
        let unseen = "saturation has no sample of 1 of 2 ready replicas of v";
        assert!(said.contains(unseen), "{other}: {said}");
    }
}

fn zero(sample: Option<Sample>) -> Option<Sample> {
    sample.map(|sample| Sample { value: 0.0, ..sample })
}

/// A latency of zero comes from counters, never from a document.
#[test]
fn a_latency_of_zero_is_none_and_releases_nothing() {
    let settings = settings(
        "queueingModel: {default: {}, m: {model_id: m, namespace: s, targetTTFT: 500, targetITL: 24}}",
    );
    let text = fleet(&[(0.1, Some(500_000.0), Some(128.0)); 3]).replace(
        "running: 3",
        "arrivalRate: 0.2, timeToFirstToken: 0.045, interTokenLatency: 0.008",
    );
    let decide = |change: fn(&mut PodSamples)| {
        let mut situation = situation(&text, &settings);
        let metrics = Arc::make_mut(&mut situation.snapshot.metrics);
        let pods = metrics.models.values_mut();
        change(pods.flat_map(BTreeMap::values_mut).next().unwrap());
        let (_, made) = super::decide(&situation, &Learned::default(), &settings);
        made.decisions.values().next().unwrap().target.unwrap().0
    };
    assert_eq!(decide(|_| {}), 1);
    assert_eq!(decide(|pod| pod.inter_token_latency = None), 3);
    assert_eq!(decide(|pod| pod.inter_token_latency = zero(pod.inter_token_latency)), 3);
    assert_eq!(decide(|pod| pod.time_to_first_token = zero(pod.time_to_first_token)), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// At the first look, when nothing is known of what was measured before.
    #[test]
    fn a_lost_size_of_a_cache_never_lowers_a_target(
        replicas in prop::collection::vec(
            (0.0..1.0_f64, 1_000.0..500_000.0_f64, prop::option::of(1.0..900.0_f64), any::<bool>()),
            1..7,
        ),
    ) {
        let settings = settings(TOKENS);
        let size = |is_stated: bool, size: f64| is_stated.then_some(size.floor());
        let whole: Vec<_> = replicas.iter().map(|(usage, cache, output, _)| (*usage, size(true, *cache), *output)).collect();
        let poorer: Vec<_> = replicas.iter().map(|(usage, cache, output, reported)| (*usage, size(*reported, *cache), *output)).collect();
        let standing = u32::try_from(replicas.len()).unwrap();
        let (informed, _) = decide(&fleet(&whole), &settings).remove(0);
        let (blind, said) = decide(&fleet(&poorer), &settings).remove(0);
        prop_assert!(blind >= informed.min(standing), "{blind} < {informed}: {said}");
    }

    /// Whatever a replica that is or was used says, one sign less sends no model to zero that they
    /// all together keep.
    #[test]
    fn a_lost_sign_of_use_sends_no_model_to_zero(
        usage in prop::sample::select(vec![0.0, 0.3]),
        is_timed in any::<bool>(),
        rates in (0..3_u32, 0..3_u32, 0..3_u32),
        lost in 0..2_usize,
        how in 0..3_usize,
    ) {
        let (completions, tokens, arrivals) = rates;
        // Who has neither a cache in use nor a latency may never have served.
        let is_timed = is_timed || usage == 0.0;
        let timed = if is_timed { "timeToFirstToken: 0.05, " } else { "" };
        let say = |lost: Option<usize>| {
            let names = ["completionRate", "generationRate"];
            let mut signals = format!("kvUsage: {usage}, {timed}arrivalRate: {arrivals}");
            for (number, (name, rate)) in names.iter().zip([completions, tokens]).enumerate() {
                match (lost == Some(number), how) {
                    (false, _) => write!(signals, ", {name}: {rate}").unwrap(),
                    (true, 0) => write!(signals, ", {name}: {{value: {rate}, age: 90s}}").unwrap(),
                    (true, _) => {}
                }
            }
            let failed = lost.filter(|_| how == 1).and_then(|lost| names.get(lost));
            let failed = failed.map(|name| format!("{name}: '503'")).unwrap_or_default();
            target(&signals, "", &failed, TO_ZERO).0
        };
        let informed = say(None);
        prop_assert_eq!(informed, u32::from(completions + tokens + arrivals > 0));
        prop_assert!(say(Some(lost)) == 1);
    }
}
