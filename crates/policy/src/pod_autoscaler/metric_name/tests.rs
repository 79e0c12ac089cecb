//! Names of metrics, by engine.

use std::collections::BTreeMap;

use super::*;
use crate::pod_autoscaler::page_value::{FamilySample, FamilySamples, SamplePart, shown_family};

fn series(metric: &str, engine: Option<&str>) -> Result<(Arc<str>, Option<SeriesType>), String> {
    let found = PageMetric::of_pod(metric, engine).map_err(|error| error.to_string())?;
    Ok((found.series, found.kind))
}

/// Name, engine (`-` is none, or an empty label), series, and the type of the series.
const CANONICAL: &str = "
num_requests_running - vllm:num_requests_running Gauge
num_requests_waiting sglang sglang:num_queue_reqs Gauge
kv_cache_usage_perc trtllm trtllm_kv_cache_utilization Ratio
gpu_cache_usage_perc xllm kv_cache_utilization Ratio
request_success_total vllm vllm:num_requests_success_total Counter
nixl_num_failed_transfers_total - vllm:nixl_num_failed_transfers Counter
iteration_tokens_total - vllm:iteration_tokens_total Histogram
http_request_duration_seconds - http_request_duration_seconds Histogram
per_stage_req_latency_seconds sglang sglang:per_stage_req_latency_seconds Histogram
time_per_output_token_seconds sglang sglang:inter_token_latency_seconds Histogram
inter_token_latency_seconds trtllm trtllm_time_per_output_token_seconds Histogram
";

#[test]
fn canonical_names_stand_for_the_series_of_the_engine() {
    for row in CANONICAL.trim().lines() {
        let columns: Vec<&str> = row.split(' ').collect();
        let [name, engine, expected, kind] = columns[..] else {
            panic!("{row}");
        };
        let engines = match engine {
            "-" => vec![None, Some("")],
            _ => vec![Some(engine)],
        };
        for engine in engines {
            let (found, known) = series(name, engine).unwrap();
            let known = known.map(|known| format!("{known:?}"));
            assert_eq!((&*found, known.as_deref()), (expected, Some(kind)), "{name}");
        }
    }
}

#[test]
fn other_names_are_those_of_series() {
    let known = |kind| Some(kind);
    for (name, expected, kind) in wva_base::cases! {
        ("vllm:num_requests_running", "vllm:num_requests_running", known(SeriesType::Gauge)),
        ("vllm:kv_cache_usage_perc", "vllm:kv_cache_usage_perc", known(SeriesType::Ratio)),
        ("vllm:prompt_tokens_total", "vllm:prompt_tokens_total", known(SeriesType::Counter)),
        ("vllm:lora_requests_info", "vllm:lora_requests_info", None),
        ("my_queue", "my_queue", None),
    } {
        // No engine is needed for them.
        for engine in [None, Some("sglang"), Some("other")] {
            assert_eq!(series(name, engine), Ok((expected.into(), kind)), "{name}");
        }
    }
    let service = PageMetric::of_service("num_requests_running").unwrap();
    assert_eq!((&*service.series, service.kind), ("num_requests_running", None));
    assert!(PageMetric::of_service("a{b=\"c\"}").is_err());
    assert!(PageMetric::of_service("vllm:num_requests_running").is_ok());
    assert!(PageMetric::of_service("vllm:num_requests_running:p95").is_err());
    assert!(PageMetric::of_service("vllm:time_to_first_token_seconds:p95").is_ok());
}

#[test]
fn a_statistic_follows_the_name() {
    for (text, name, statistic) in wva_base::cases! {
        ("my_seconds", "my_seconds", None),
        ("my_seconds:p50", "my_seconds", Some(HistogramStatistic::Percentile(50))),
        ("my_seconds:p90", "my_seconds", Some(HistogramStatistic::Percentile(90))),
        ("vllm:x:p95", "vllm:x", Some(HistogramStatistic::Percentile(95))),
        ("time_to_first_token_seconds:p99", "vllm:time_to_first_token_seconds",
         Some(HistogramStatistic::Percentile(99))),
        ("my_seconds:mean", "my_seconds", Some(HistogramStatistic::Mean)),
        // A name may have colons, and these are no statistics.
        ("vllm:p42", "vllm:p42", None),
        ("vllm:P90", "vllm:P90", None),
    } {
        let found = PageMetric::of_pod(text, None).unwrap();
        assert_eq!((&*found.series, found.statistic), (name, statistic), "{text}");
    }
}

#[test]
fn what_names_nothing_is_refused_with_name_engine_and_remedy() {
    for (name, engine, parts) in wva_base::cases! {
        ("p95_ttft_5m", None, ["p95_ttft_5m", "vllm", "source of type external"]),
        ("max_lora", Some("sglang"), ["max_lora", "sglang", "name a gauge"]),
        ("kv_cache_hit_rate", None, ["kv_cache_hit_rate", "vllm", "pods of trtllm"]),
        ("num_requests_running", Some("tgi"), ["num_requests_running", "tgi", "set the label"]),
        ("num_requests_running:p90", None, ["num_requests_running", "vllm", "remove :p90"]),
        ("num_requests_running:p42", None, ["num_requests_running", "vllm", "remove :p42"]),
        ("vllm:num_requests_running:p95", None, ["vllm:num_requests_running", "vllm", "remove :p95"]),
        ("time_to_first_token_seconds:p42", None, ["time_to_first_token_seconds", "\"p42\"", "write p50, p90"]),
        ("vllm:time_to_first_token_seconds:P95", None, ["vllm:time_to_first_token_seconds", "\"P95\"", "or mean"]),
        ("a b", Some("sglang"), ["a b", "sglang", "write letters"]),
        ("", None, ["\"\"", "vllm", "write letters"]),
    } {
        let error = series(name, engine).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}

#[test]
fn every_name_of_the_table_stands_there_once() {
    let names: std::collections::BTreeSet<_> =
        CANONICAL_METRICS.iter().map(|one| one.name).collect();
    assert_eq!((names.len(), CANONICAL_METRICS.len()), (59, 59));
}

#[test]
fn a_series_is_read_by_the_name_that_the_version_of_the_engine_gives_it() {
    let shows = |name: &str| {
        let mut family = FamilySamples::default();
        let sample = FamilySample { part: SamplePart::Value, bound: 0.0, value: 0.5 };
        family.samples.insert(name.into(), sample);
        family
    };
    for (metric, first, second) in wva_base::cases! {
        ("kv_cache_usage_perc", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ("gpu_cache_usage_perc", "vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"),
        ("request_success_total", "vllm:num_requests_success_total", "vllm:request_success_total"),
    } {
        let named = PageMetric::of_pod(metric, None).unwrap();
        assert_eq!(named.names().collect::<Vec<_>>(), [first, second]);
        let page = |names: &[&str]| -> BTreeMap<Arc<str>, FamilySamples> {
            let mut page: BTreeMap<_, _> =
                named.names().map(|name| (Arc::from(name), FamilySamples::default())).collect();
            page.extend(names.iter().map(|name| (Arc::from(*name), shows(name))));
            page
        };
        assert_eq!(shown_family(&named, &page(&[])), None);
        for (names, expected) in
            [(&[first][..], first), (&[second], second), (&[first, second], first)]
        {
            let page = page(names);
            assert_eq!(shown_family(&named, &page), Some(&shows(expected)));
        }
        // The name of a series stands for itself.
        let raw = PageMetric::of_pod(second, None).unwrap();
        assert_eq!(raw.names().collect::<Vec<_>>(), [second]);
        assert_eq!(raw.kind, named.kind);
    }
}
