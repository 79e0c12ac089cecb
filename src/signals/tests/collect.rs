//! Whole collections against a Prometheus of a few lines.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::Deserialize;

use super::stub::Stub;
use super::vectors::load;
use crate::policy::key::ModelKey;
use crate::policy::params::RequiredSignals;
use crate::policy::signal::{FreshnessBands, SignalName};
use crate::policy::snapshot::{PodSamples, Sample};
use crate::signals::promql::Namespace;
use crate::signals::query::{QueryName, QueryScope};
use crate::signals::{Collection, CollectionSettings, Evaluated, Ignored, QueryError, collect};
use wva_base::moment::{Moment, WallTime};

/// When every query of these tests is evaluated.
pub(super) const NOW: f64 = 1_760_000_000.5;
/// Time of the newest raw sample, unless a test says otherwise: 10 s before.
const THEN: f64 = NOW - 10.0;

const KV: &str = "vllm:kv_cache_usage_perc";
const OLD_KV: &str = "vllm:gpu_cache_usage_perc";
const QUEUE: &str = "vllm:num_requests_waiting";

const KV_USAGE: [QueryName; 2] = [QueryName::KvUsage, QueryName::KvUsageAge];
const QUEUE_LENGTH: [QueryName; 2] = [QueryName::QueueLength, QueryName::QueueLengthAge];

pub(super) fn settings() -> CollectionSettings {
    CollectionSettings {
        required_signals: RequiredSignals::Saturation,
        freshness: FreshnessBands::default(),
        namespace: None,
        deadline: Duration::from_secs(10),
        max_samples: None,
    }
}

pub(super) fn run(stub: &Stub, settings: &CollectionSettings) -> Collection {
    run_with(stub, settings, |_| Duration::ZERO)
}

fn run_with(
    stub: &Stub,
    settings: &CollectionSettings,
    repeated_for: impl FnOnce(&Evaluated) -> Duration,
) -> Collection {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(collect(
        stub,
        settings,
        repeated_for,
    ))
}

pub(super) fn moment() -> Moment {
    Moment { monotonic: Duration::from_secs(7), wall: WallTime(8) }
}

/// The pods of model `m`.
fn pods(collection: &Collection) -> BTreeMap<String, PodSamples> {
    let snapshot = collection.clone().into_snapshot(moment());
    assert_eq!(snapshot.collected, Some(moment()));
    let pods = snapshot.models.get(&ModelKey::new("ns", "m"));
    pods.into_iter().flatten().map(|(pod, samples)| (pod.to_string(), samples.clone())).collect()
}

pub(super) fn sample(value: f64, seconds: f64) -> Sample {
    let age = Duration::from_secs_f64(seconds);
    Sample { value, age }
}

#[derive(Deserialize)]
struct Records {
    cases: Vec<RecordCase>,
}

#[derive(Deserialize)]
struct RecordCase {
    id: String,
    not_applicable: Option<String>,
    #[serde(default)]
    kv: Vec<RawSample>,
    #[serde(default)]
    kv_error: bool,
    #[serde(default)]
    queue: Vec<RawSample>,
    /// Mean tokens of a prompt.
    #[serde(default)]
    prompts: Vec<RawSample>,
    #[serde(default)]
    prompts_error: bool,
    #[serde(default)]
    caches: Vec<RawCache>,
    #[serde(default)]
    pods: BTreeMap<String, ExpectedPod>,
    #[serde(default)]
    failed: Vec<String>,
    #[serde(default)]
    ignored: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct RawSample {
    pod: Option<String>,
    pod_name: Option<String>,
    value: f64,
}

#[derive(Deserialize)]
struct RawCache {
    pod: String,
    blocks: String,
    block_size: String,
}

#[derive(Deserialize)]
struct ExpectedPod {
    kv: Option<f64>,
    queue: Option<f64>,
}

impl RecordCase {
    fn stub(&self) -> Stub {
        let mut stub = Stub::new();
        for ([value, age], source, samples) in
            [(KV_USAGE, KV, &self.kv), (QUEUE_LENGTH, QUEUE, &self.queue)]
        {
            for raw in samples {
                let mut labels = vec![("namespace", "ns"), ("model_name", "m"), ("source", source)];
                labels.extend(raw.pod.as_deref().map(|pod| ("pod", pod)));
                labels.extend(raw.pod_name.as_deref().map(|pod| ("pod_name", pod)));
                stub.push(value, &labels, raw.value);
                stub.push(age, &labels, THEN);
            }
        }
        for raw in &self.prompts {
            let pod = raw.pod.as_deref().unwrap();
            for (part, number) in [("sum", raw.value), ("count", 1.0)] {
                let source = format!("vllm:request_prompt_tokens_{part}");
                stub.sample(QueryName::RequestSizes, &source, pod, number);
            }
        }
        for cache in &self.caches {
            let labels = [
                ("namespace", "ns"),
                ("pod", &*cache.pod),
                ("num_gpu_blocks", &*cache.blocks),
                ("block_size", &*cache.block_size),
                ("source", "vllm:cache_config_info"),
            ];
            stub.push(QueryName::KvCapacity, &labels, 1.0);
        }
        if self.prompts_error {
            stub.fail(QueryName::RequestSizes, timeout());
        }
        if self.kv_error {
            stub.fail(QueryName::KvUsage, timeout());
        }
        stub
    }
}

pub(super) fn timeout() -> QueryError {
    QueryError::Timeout(Duration::from_secs(10))
}

#[test]
fn records_are_as_expected() {
    for case in load::<Records>("records.yaml").cases {
        if case.not_applicable.is_some() {
            continue;
        }
        let id = &case.id;
        let everything =
            CollectionSettings { required_signals: RequiredSignals::Everything, ..settings() };
        let collection = run(&case.stub(), &everything);
        let expected: BTreeMap<_, _> = case
            .pods
            .iter()
            .map(|(pod, expected)| {
                let samples = PodSamples {
                    kv_usage: expected.kv.map(|value| sample(value, 10.0)),
                    queue_length: expected.queue.map(|value| sample(value, 10.0)),
                    ..PodSamples::default()
                };
                (pod.clone(), samples)
            })
            .collect();
        assert_eq!(pods(&collection), expected, "{id}");
        let ignored = collection.report.ignored.iter();
        let ignored: BTreeMap<_, _> =
            ignored.map(|(reason, count)| (reason.as_str().to_owned(), *count)).collect();
        assert_eq!(ignored, case.ignored, "{id}");
        let failures = collection.into_snapshot(moment()).failures;
        let failed: Vec<_> = failures.keys().map(|signal| signal.as_str()).collect();
        assert_eq!(failed, case.failed, "{id}");
    }
}

#[test]
fn every_signal_is_asked_for_once_and_reported_in_order() {
    let mut stub = Stub::new();
    stub.reading(QUEUE_LENGTH, QUEUE, "p", 1.0, THEN);
    stub.result(QueryName::QueueLength).warn("partial".to_owned());
    stub.fail(QueryName::KvUsageAge, timeout());
    let collection = run(&stub, &settings());
    let asked = stub.asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    let report: Vec<_> = collection
        .report
        .queries
        .iter()
        .map(|query| {
            let outcome = query.outcome.as_ref().map_err(QueryError::reason);
            (query.query, outcome.copied(), query.warnings.clone())
        })
        .collect();
    let none = Vec::<String>::new;
    assert_eq!(
        report,
        [
            (QueryName::KvUsage, Ok(0), none()),
            (QueryName::KvUsageAge, Err("timeout"), none()),
            (QueryName::QueueLength, Ok(1), vec!["partial".to_owned()]),
            (QueryName::QueueLengthAge, Ok(1), none()),
        ]
    );
}

#[test]
fn either_query_fails_its_signal_and_no_other() {
    for query in KV_USAGE {
        let mut stub = Stub::new();
        stub.reading(KV_USAGE, KV, "p", 0.5, THEN);
        stub.reading(QUEUE_LENGTH, QUEUE, "p", 3.0, THEN);
        let before = run(&stub, &settings());
        assert!(before.into_snapshot(moment()).failures.is_empty());

        stub.fail(query, timeout());
        let after = run(&stub, &settings());
        let expected = PodSamples {
            kv_usage: None,
            queue_length: Some(sample(3.0, 10.0)),
            ..PodSamples::default()
        };
        assert_eq!(pods(&after), BTreeMap::from([("p".to_owned(), expected)]));
        let snapshot = after.into_snapshot(moment());
        let why = &snapshot.failures[&SignalName::KvUsage];
        assert_eq!(snapshot.failures.len(), 1);
        assert!(why.starts_with(&format!("{} query: Prometheus did not", query.as_str())), "{why}");
        assert!(!snapshot.sources.contains_key(&SignalName::KvUsage));
    }
}

#[test]
fn each_pod_gets_its_best_source_and_the_choice_is_counted() {
    let kv = SignalName::KvUsage;
    let mut stub = Stub::new();
    // Both names are fresh: the first of the table, whatever the values.
    stub.reading(KV_USAGE, OLD_KV, "both", 0.2, NOW - 1.0);
    stub.reading(KV_USAGE, KV, "both", 0.1, NOW - 30.0);
    // Only the old name.
    stub.reading(KV_USAGE, OLD_KV, "old", 0.3, THEN);
    // The new name is stale, the old one is not: the engine went back a release.
    stub.reading(KV_USAGE, KV, "back", 0.4, NOW - 90.0);
    stub.reading(KV_USAGE, OLD_KV, "back", 0.5, THEN);
    // Held beats gone; a number beats none.
    stub.reading(KV_USAGE, KV, "gone", 0.6, NOW - 301.0);
    stub.reading(KV_USAGE, OLD_KV, "gone", 0.7, NOW - 200.0);
    stub.reading(KV_USAGE, KV, "broken", f64::INFINITY, THEN);
    // Nothing usable is kept, so that the decision can say why.
    stub.reading(KV_USAGE, KV, "dead", 0.8, NOW - 400.0);
    let collection = run(&stub, &settings());
    let read: BTreeMap<_, _> = pods(&collection)
        .into_iter()
        .filter_map(|(pod, samples)| Some((pod, samples.kv_usage?)))
        .collect();
    let expected = [
        ("back", sample(0.5, 10.0)),
        ("both", sample(0.1, 30.0)),
        ("broken", sample(f64::INFINITY, 10.0)),
        ("dead", sample(0.8, 400.0)),
        ("gone", sample(0.7, 200.0)),
        ("old", sample(0.3, 10.0)),
    ];
    assert_eq!(read, BTreeMap::from(expected.map(|(pod, sample)| (pod.to_owned(), sample))));
    let sources = &collection.into_snapshot(moment()).sources[&kv];
    let sources: Vec<_> = sources.iter().map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(sources, [(OLD_KV, 3), (KV, 1)]);
}

#[test]
fn samples_that_do_not_say_what_they_are_of_are_counted() {
    let long = "m".repeat(1025);
    let good = [("namespace", "ns"), ("model_name", "m"), ("pod", "p"), ("source", KV)];
    let mut stub = Stub::new();
    let values = stub.result(QueryName::KvUsage);
    for (label, bad) in [
        ("namespace", ""),
        ("namespace", "ns\"} or up{"),
        ("model_name", ""),
        ("model_name", &*long),
        ("pod", ""),
        ("pod", "../p"),
        ("source", ""),
        ("source", "up"),
        ("source", QUEUE),
    ] {
        let labels = good.map(|(name, text)| (name, if name == label { bad } else { text }));
        values.push(labels, NOW, 0.5);
    }
    // It says everything, and nothing says how old it is.
    values.push(good, NOW, 0.5);
    let collection = run(&stub, &settings());
    assert_eq!(pods(&collection), BTreeMap::new());
    assert!(collection.clone().into_snapshot(moment()).models.is_empty());
    let expected = [
        (Ignored::Namespace, 2),
        (Ignored::Model, 2),
        (Ignored::Pod, 2),
        (Ignored::Source, 3),
        (Ignored::NoAge, 1),
    ];
    assert_eq!(collection.report.ignored, BTreeMap::from(expected));
}

#[test]
fn of_two_samples_of_one_pod_the_higher_and_the_newer_count() {
    for turned in [false, true] {
        let mut stub = Stub::new();
        let mut readings = [(0.2, NOW - 40.0), (0.6, NOW - 20.0), (f64::NAN, NOW - 30.0)];
        if turned {
            readings.reverse();
        }
        for (value, time) in readings {
            stub.reading(KV_USAGE, KV, "p", value, time);
        }
        let collection = run(&stub, &settings());
        assert_eq!(pods(&collection)["p"].kv_usage, Some(sample(0.6, 20.0)));
        let expected = BTreeMap::from([(Ignored::Duplicate, 2)]);
        assert_eq!(collection.report.ignored, expected);
    }
}

/// A cache in front of Prometheus answers with what it has kept, of which everything says that it is new.
#[test]
fn a_repeated_answer_is_older_by_so_much() {
    let mut stub = Stub::new();
    stub.reading(KV_USAGE, KV, "p", 0.5, THEN);
    stub.reading(QUEUE_LENGTH, QUEUE, "p", 3.0, THEN);
    let collected = |repeated: u64| {
        let collection = run_with(&stub, &settings(), |evaluated| {
            let queries = [KV_USAGE, QUEUE_LENGTH].concat();
            let expected: Evaluated = queries.into_iter().map(|query| (query, NOW)).collect();
            assert_eq!(*evaluated, expected);
            Duration::from_secs(repeated)
        });
        assert_eq!(collection.report.repeated.as_secs(), repeated);
        let pod = pods(&collection).remove("p").unwrap();
        (pod.kv_usage, pod.queue_length)
    };
    let sampled = |age| (Some(sample(0.5, age)), Some(sample(3.0, age)));
    assert_eq!(collected(0), sampled(10.0));
    assert_eq!(collected(90), sampled(100.0));
}

#[test]
fn pods_of_one_name_in_other_namespaces_and_models_are_kept_apart() {
    let mut stub = Stub::new();
    for (namespace, model, value) in [("a", "m", 0.1), ("b", "m", 0.2), ("a", "n", 0.3)] {
        let labels = [("namespace", namespace), ("model_name", model), ("pod_name", "p")];
        let labels = labels.into_iter().chain([("source", KV)]);
        stub.result(QueryName::KvUsage).push(labels.clone(), NOW, value);
        stub.result(QueryName::KvUsageAge).push(labels, NOW, THEN);
    }
    let snapshot = run(&stub, &settings()).into_snapshot(moment());
    let read: Vec<_> = snapshot
        .models
        .iter()
        .map(|(model, pods)| (model.to_string(), pods["p"].kv_usage))
        .collect();
    assert_eq!(
        read,
        [
            ("m|a".to_owned(), Some(sample(0.1, 10.0))),
            ("n|a".to_owned(), Some(sample(0.3, 10.0))),
            ("m|b".to_owned(), Some(sample(0.2, 10.0))),
        ]
    );
}

#[test]
fn an_age_is_never_negative() {
    let mut stub = Stub::new();
    stub.reading(KV_USAGE, KV, "p", 0.5, NOW + 0.001);
    assert_eq!(pods(&run(&stub, &settings()))["p"].kv_usage, Some(sample(0.5, 0.0)));
}

#[test]
fn a_time_that_is_no_number_is_no_age() {
    for time in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e300] {
        let mut stub = Stub::new();
        stub.reading(KV_USAGE, KV, "p", 0.5, time);
        let collection = run(&stub, &settings());
        assert_eq!(pods(&collection), BTreeMap::new(), "{time}");
        let expected = BTreeMap::from([(Ignored::NoAge, 1)]);
        assert_eq!(collection.report.ignored, expected, "{time}");
    }
}

#[test]
fn ages_are_whole_milliseconds() {
    let mut stub = Stub::new();
    stub.reading(KV_USAGE, KV, "p", 0.5, NOW - 0.615);
    let age = pods(&run(&stub, &settings()))["p"].kv_usage.unwrap().age;
    assert_eq!(age, Duration::from_millis(615));
}

#[test]
fn too_many_samples_fail_the_signals_that_do_not_fit() {
    let mut stub = Stub::new();
    for pod in ["p", "q"] {
        stub.reading(KV_USAGE, KV, pod, 0.5, THEN);
        stub.reading(QUEUE_LENGTH, QUEUE, pod, 1.0, THEN);
    }
    let failures = |limit| {
        let settings = CollectionSettings { max_samples: NonZeroU64::new(limit), ..settings() };
        run(&stub, &settings).into_snapshot(moment()).failures
    };
    assert!(failures(0).is_empty(), "0 is no bound");
    assert!(failures(8).is_empty());
    let failed = failures(7);
    let why = &failed[&SignalName::QueueLength];
    assert_eq!(failed.len(), 1);
    assert!(
        why.contains("more than 7 samples would be held; raise PROMETHEUS_METRICS_CACHE_MAX_SIZE"),
        "{why}"
    );
    assert_eq!(failures(3).len(), 2);
}

#[test]
fn one_namespace_is_asked_for_where_one_is_watched() {
    let namespace = Namespace::parse("team-a").unwrap();
    let mut stub = Stub::new();
    stub.scope = QueryScope::new(&FreshnessBands::default(), Some(namespace.clone()));
    stub.reading(KV_USAGE, KV, "p", 0.5, THEN);
    let settings = CollectionSettings { namespace: Some(namespace), ..settings() };
    assert_eq!(pods(&run(&stub, &settings)).len(), 1);
}
