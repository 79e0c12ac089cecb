//! Every field of a pod from the names of every engine.

use std::collections::BTreeMap;

use super::collect::{NOW, moment, run, sample, settings, timeout};
use super::stub::Stub;
use crate::policy::key::ModelKey;
use crate::policy::params::RequiredSignals;
use crate::policy::signal::SignalName;
use crate::policy::snapshot::{MetricsSnapshot, PodSamples, RankSamples, Sample};
use crate::signals::query::QueryName;
use crate::signals::{Collection, CollectionSettings, Ignored};

const KV: &str = "vllm:kv_cache_usage_perc";
pub(super) const WAITING: &str = "vllm:num_requests_waiting";
pub(super) const ATTEMPTS: &str = "llm_d_epp_scheduler_attempts_total";
pub(super) const THEN: f64 = NOW - 10.0;

fn everything() -> CollectionSettings {
    CollectionSettings { required_signals: RequiredSignals::Everything, ..settings() }
}

pub(super) fn collect(stub: &Stub) -> Collection {
    run(stub, &everything())
}

pub(super) fn snapshot(stub: &Stub) -> MetricsSnapshot {
    collect(stub).into_snapshot(moment())
}

pub(super) fn model() -> ModelKey {
    ModelKey::new("ns", "m")
}

pub(super) fn pod(snapshot: &MetricsSnapshot, pod: &str) -> PodSamples {
    let pods = snapshot.models.get(&model());
    pods.and_then(|pods| pods.get(pod)).cloned().unwrap_or_default()
}

/// A pod of which only the page's age is known.
pub(super) fn page(age: f64) -> Stub {
    let mut stub = Stub::new();
    stub.sample(QueryName::QueueLengthAge, WAITING, "p", NOW - age);
    stub
}

#[expect(clippy::unnecessary_wraps, reason = "compared with fields that may be absent")]
pub(super) fn fresh(value: f64) -> Option<Sample> {
    Some(sample(value, 10.0))
}

/// A query, the name of a series without its engine, and a number.
type Shown = (QueryName, &'static str, f64);

/// What each engine shows so that every field follows.
const ENGINES: [(&str, &[Shown]); 2] = [
    (
        "vllm:",
        &wva_base::cases! {
            (QueryName::KvUsageAge, "kv_cache_usage_perc", THEN),
            (QueryName::QueueLengthAge, "num_requests_waiting", THEN),
            (QueryName::KvUsage, "kv_cache_usage_perc", 0.5),
            (QueryName::QueueLength, "num_requests_waiting", 3.0),
            (QueryName::EngineState, "kv_cache_usage_perc", 0.25),
            (QueryName::EngineState, "num_requests_running", 7.0),
            (QueryName::RequestSizes, "request_prompt_tokens_sum", 1000.0),
            (QueryName::RequestSizes, "request_prompt_tokens_count", 2.0),
            (QueryName::RequestSizes, "request_generation_tokens_sum", 400.0),
            (QueryName::RequestSizes, "request_generation_tokens_count", 2.0),
            (QueryName::RequestSizes, "prefix_cache_hits_total", 1.0),
            (QueryName::RequestSizes, "prefix_cache_queries_total", 4.0),
            (QueryName::EngineRates, "time_to_first_token_seconds_sum", 0.3),
            (QueryName::EngineRates, "time_to_first_token_seconds_count", 2.0),
            (QueryName::EngineRates, "inter_token_latency_seconds_sum", 4.0),
            (QueryName::EngineRates, "inter_token_latency_seconds_count", 400.0),
            (QueryName::EngineRates, "generation_tokens_total", 380.0),
            (QueryName::EngineRates, "request_success_total", 2.0),
        },
    ),
    (
        "sglang:",
        &wva_base::cases! {
            (QueryName::KvUsageAge, "token_usage", THEN),
            (QueryName::QueueLengthAge, "num_queue_reqs", THEN),
            (QueryName::KvUsage, "token_usage", 0.5),
            (QueryName::QueueLength, "num_queue_reqs", 3.0),
            (QueryName::EngineState, "token_usage", 0.25),
            (QueryName::EngineState, "num_running_reqs", 7.0),
            (QueryName::EngineState, "cache_hit_rate", 0.25),
            (QueryName::KvCapacity, "kv_used_tokens", 4000.0),
            (QueryName::KvCapacity, "kv_available_tokens", 11_000.0),
            (QueryName::KvCapacity, "kv_evictable_tokens", 1000.0),
            (QueryName::RequestSizes, "prompt_tokens_total", 1000.0),
            (QueryName::RequestSizes, "generation_tokens_total", 400.0),
            (QueryName::RequestSizes, "e2e_request_latency_seconds_count", 2.0),
            (QueryName::EngineRates, "time_to_first_token_seconds_sum", 0.3),
            (QueryName::EngineRates, "time_to_first_token_seconds_count", 2.0),
            (QueryName::EngineRates, "time_per_output_token_seconds_sum", 4.0),
            (QueryName::EngineRates, "time_per_output_token_seconds_count", 400.0),
            (QueryName::EngineRates, "generation_tokens_total", 380.0),
            (QueryName::EngineRates, "e2e_request_latency_seconds_count", 2.0),
        },
    ),
];

fn shape<'a>(blocks: &'a str, size: &'a str, engine: &'a str) -> [(&'static str, &'a str); 6] {
    [
        ("namespace", "ns"),
        ("pod", "p"),
        ("engine", engine),
        ("num_gpu_blocks", blocks),
        ("block_size", size),
        ("source", "vllm:cache_config_info"),
    ]
}

pub(super) fn picked(stub: &mut Stub, target: &str, rate: f64) {
    for (query, number) in [(QueryName::RouterRates, rate), (QueryName::RouterAge, THEN)] {
        let labels = [
            ("namespace", "gateway"),
            ("exported_namespace", "ns"),
            ("target_model_name", target),
            ("endpoint_name", "p"),
            ("source", ATTEMPTS),
        ];
        stub.push(query, &labels, number);
    }
}

#[test]
fn every_field_of_a_pod_is_filled_for_every_engine_and_spelling() {
    for (engine, series) in ENGINES {
        for spelling in [engine.to_owned(), engine.replace(':', "_")] {
            let mut stub = Stub::new();
            assert_eq!(snapshot(&stub).models, BTreeMap::new(), "nothing at first");
            for (query, name, number) in series {
                stub.sample(*query, &format!("{spelling}{name}"), "p", *number);
            }
            if engine == "vllm:" {
                let source = format!("{spelling}cache_config_info");
                let mut labels = shape("1000", "16", "0");
                labels[5] = ("source", &source);
                stub.push(QueryName::KvCapacity, &labels, 1.0);
            }
            picked(&mut stub, "m", 1.5);
            let collection = collect(&stub);
            assert_eq!(collection.report.ignored, BTreeMap::new(), "{spelling}");
            let snapshot = collection.into_snapshot(moment());
            assert_eq!(snapshot.failures, BTreeMap::new(), "{spelling}");
            let expected = PodSamples {
                kv_usage: fresh(0.5),
                queue_length: fresh(3.0),
                running: fresh(7.0),
                kv_capacity: fresh(16_000.0),
                input_tokens: fresh(500.0),
                output_tokens: fresh(200.0),
                prefix_hit_rate: fresh(0.25),
                time_to_first_token: fresh(0.15),
                inter_token_latency: fresh(0.01),
                generation_rate: fresh(380.0),
                completion_rate: fresh(2.0),
                arrival_rate: fresh(1.5),
                kv_usage_now: fresh(0.25),
                ranks: BTreeMap::new(),
            };
            assert_eq!(pod(&snapshot, "p"), expected, "{spelling}");
        }
    }
}

#[test]
fn an_idle_replica_has_no_means_and_known_zero_rates() {
    let mut stub = page(10.0);
    for (query, name, number) in ENGINES[0].1 {
        let is_rate = matches!(query, QueryName::RequestSizes | QueryName::EngineRates);
        if is_rate {
            stub.sample(*query, &format!("vllm:{name}"), "p", number * 0.0);
        }
    }
    let expected = PodSamples {
        generation_rate: fresh(0.0),
        completion_rate: fresh(0.0),
        ..PodSamples::default()
    };
    assert_eq!(pod(&snapshot(&stub), "p"), expected);
}

#[test]
fn the_newest_series_of_a_page_dates_all_that_have_no_time_of_their_own() {
    let mut stub = page(90.0);
    stub.sample(QueryName::EngineRates, "vllm:generation_tokens_total", "p", 5.0);
    let rate = |stub: &Stub| pod(&snapshot(stub), "p").generation_rate;
    assert_eq!(rate(&stub), Some(sample(5.0, 90.0)));

    stub.sample(QueryName::KvUsageAge, KV, "p", NOW - 20.0);
    assert_eq!(rate(&stub), Some(sample(5.0, 20.0)));

    // Another spelling is another page, of a relabelled copy that may have ended.
    stub.sample(QueryName::KvUsageAge, "vllm_kv_cache_usage_perc", "p", NOW);
    assert_eq!(rate(&stub), Some(sample(5.0, 20.0)));
    // The share of KV cache has a time of its own.
    stub.sample(QueryName::QueueLengthAge, WAITING, "p", NOW);
    stub.sample(QueryName::EngineState, KV, "p", 0.5);
    let now = pod(&snapshot(&stub), "p").kv_usage_now;
    assert_eq!(now, Some(sample(0.5, 20.0)));
    assert_eq!(rate(&stub), Some(sample(5.0, 0.0)));
}

#[test]
fn without_any_time_of_its_page_a_sample_does_not_count() {
    let mut stub = Stub::new();
    stub.sample(QueryName::EngineRates, "vllm:generation_tokens_total", "p", 5.0);
    stub.push(QueryName::KvCapacity, &shape("1000", "16", "0"), 1.0);
    let collection = collect(&stub);
    let expected = BTreeMap::from([(Ignored::NoAge, 2)]);
    assert_eq!(collection.report.ignored, expected);
    assert_eq!(collection.into_snapshot(moment()).models, BTreeMap::new());
}

#[test]
fn a_cache_of_an_impossible_shape_does_not_count() {
    for [blocks, size] in [["1000", "0"], ["None", "16"], ["-1", "16"], ["1000", ""]] {
        let mut stub = page(10.0);
        stub.push(QueryName::KvCapacity, &shape(blocks, size, "0"), 1.0);
        let collection = collect(&stub);
        let expected = BTreeMap::from([(Ignored::Shape, 1)]);
        assert_eq!(collection.report.ignored, expected, "{blocks} x {size}");
    }
}

#[test]
fn ranks_add_and_average_and_are_distinguished() {
    let mut stub = page(10.0);
    stub.sample(QueryName::KvUsageAge, KV, "p", THEN);
    for (rank, kv, waiting, blocks, requests) in
        [("0", 0.25, 1.0, "1000", 3.0), ("1", 0.75, 4.0, "2000", 1.0)]
    {
        stub.rank(QueryName::KvUsage, KV, "p", rank, kv);
        stub.rank(QueryName::QueueLength, WAITING, "p", rank, waiting);
        stub.push(QueryName::KvCapacity, &shape(blocks, "16", rank), 1.0);
        for (name, number) in [("sum", requests * kv * 400.0), ("count", requests)] {
            let name = format!("vllm:request_prompt_tokens_{name}");
            stub.rank(QueryName::RequestSizes, &name, "p", rank, number);
        }
    }
    // The front end counts answers for all of them.
    for (name, number) in [("sum", 80.0), ("count", 4.0)] {
        let name = format!("vllm:request_generation_tokens_{name}");
        stub.sample(QueryName::RequestSizes, &name, "p", number);
    }
    let rank = |kv, waiting, capacity, input| RankSamples {
        kv_usage: fresh(kv),
        queue_length: fresh(waiting),
        kv_capacity: fresh(capacity),
        input_tokens: fresh(input),
        output_tokens: fresh(20.0),
        prefix_hit_rate: None,
    };
    let expected = PodSamples {
        kv_usage: fresh(0.5),
        queue_length: fresh(5.0),
        kv_capacity: fresh(48_000.0),
        input_tokens: fresh(150.0),
        output_tokens: fresh(20.0),
        ranks: BTreeMap::from([
            ("0".into(), rank(0.25, 1.0, 16_000.0, 100.0)),
            ("1".into(), rank(0.75, 4.0, 32_000.0, 300.0)),
        ]),
        ..PodSamples::default()
    };
    assert_eq!(pod(&snapshot(&stub), "p"), expected);
}

#[test]
fn a_page_is_dated_by_either_query_and_by_none_if_both_fail() {
    let mut stub = page(10.0);
    stub.sample(QueryName::EngineRates, "vllm:generation_tokens_total", "p", 5.0);
    stub.fail(QueryName::KvUsageAge, timeout());
    let one = snapshot(&stub);
    assert_eq!(pod(&one, "p").generation_rate, fresh(5.0));
    let failed: Vec<_> = one.failures.keys().copied().collect();
    assert_eq!(failed, [SignalName::KvUsage, SignalName::KvUsageNow]);

    stub.fail(QueryName::QueueLengthAge, timeout());
    let none = snapshot(&stub);
    assert_eq!(none.models, BTreeMap::new());
    // All but those of routers.
    assert_eq!(none.failures.len(), 13);
}
