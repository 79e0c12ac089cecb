//! The table of canonical metric names, with the series of each engine.

use super::metric_name::SeriesType;
use CanonicalKind::{Counter, Gauge, Histogram, Labels, Query, Ratio};

/// What a name of the table stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CanonicalKind {
    Gauge,
    /// A gauge between 0 and 1.
    Ratio,
    Counter,
    Histogram,
    /// Its value stands in labels.
    Labels,
    /// The result of a query.
    Query,
}

impl CanonicalKind {
    pub(super) fn of_series(self) -> Option<SeriesType> {
        match self {
            Self::Gauge => Some(SeriesType::Gauge),
            Self::Ratio => Some(SeriesType::Ratio),
            Self::Counter => Some(SeriesType::Counter),
            Self::Histogram => Some(SeriesType::Histogram),
            Self::Labels | Self::Query => None,
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct CanonicalMetric {
    pub(super) name: &'static str,
    pub(super) kind: CanonicalKind,
    /// By engine: vllm, sglang, trtllm, xllm.
    pub(super) series: [Option<&'static str>; 4],
}

impl CanonicalMetric {
    pub(super) fn is_query(&self) -> bool {
        self.kind == Query
    }
}

const fn metric(
    name: &'static str,
    kind: CanonicalKind,
    series: [Option<&'static str>; 4],
) -> CanonicalMetric {
    CanonicalMetric { name, kind, series }
}

/// All of them.
pub(super) const CANONICAL_METRICS: &[CanonicalMetric] = &[
    metric(
        "num_requests_running",
        Gauge,
        [
            Some("vllm:num_requests_running"),
            Some("sglang:num_running_reqs"),
            None,
            None,
        ],
    ),
    metric(
        "num_requests_waiting",
        Gauge,
        [
            Some("vllm:num_requests_waiting"),
            Some("sglang:num_queue_reqs"),
            None,
            None,
        ],
    ),
    metric(
        "num_requests_swapped",
        Gauge,
        [
            Some("vllm:num_requests_swapped"),
            Some("sglang:num_retracted_reqs"),
            None,
            None,
        ],
    ),
    metric(
        "engine_sleep_state",
        Gauge,
        [Some("vllm:engine_sleep_state"), None, None, None],
    ),
    metric(
        "gpu_cache_usage_perc",
        Ratio,
        [
            Some("vllm:gpu_cache_usage_perc"),
            Some("sglang:token_usage"),
            None,
            Some("kv_cache_utilization"),
        ],
    ),
    metric(
        "kv_cache_usage_perc",
        Ratio,
        [
            Some("vllm:kv_cache_usage_perc"),
            Some("sglang:token_usage"),
            Some("trtllm_kv_cache_utilization"),
            Some("kv_cache_utilization"),
        ],
    ),
    metric(
        "cpu_cache_usage_perc",
        Ratio,
        [Some("vllm:cpu_cache_usage_perc"), None, None, None],
    ),
    metric(
        "kv_cache_hit_rate",
        Ratio,
        [None, None, Some("trtllm_kv_cache_hit_rate"), None],
    ),
    metric(
        "engine_utilization",
        Ratio,
        [None, None, None, Some("engine_utilization")],
    ),
    metric(
        "num_prefill_prealloc_queue_reqs",
        Gauge,
        [
            None,
            Some("sglang:num_prefill_prealloc_queue_reqs"),
            None,
            None,
        ],
    ),
    metric(
        "num_decode_prealloc_queue_reqs",
        Gauge,
        [
            None,
            Some("sglang:num_decode_prealloc_queue_reqs"),
            None,
            None,
        ],
    ),
    metric(
        "avg_prompt_throughput_toks_per_s",
        Gauge,
        [
            Some("vllm:avg_prompt_throughput_toks_per_s"),
            None,
            None,
            None,
        ],
    ),
    metric(
        "avg_generation_throughput_toks_per_s",
        Gauge,
        [
            Some("vllm:avg_generation_throughput_toks_per_s"),
            Some("sglang:gen_throughput"),
            None,
            None,
        ],
    ),
    metric(
        "http_requests_total",
        Counter,
        [Some("vllm:http_requests_total"), None, None, None],
    ),
    metric(
        "num_preemptions_total",
        Counter,
        [Some("vllm:num_preemptions_total"), None, None, None],
    ),
    metric(
        "request_success_total",
        Counter,
        [
            Some("vllm:num_requests_success_total"),
            Some("sglang:num_requests_total"),
            Some("trtllm_request_success_total"),
            None,
        ],
    ),
    metric(
        "prompt_tokens_total",
        Counter,
        [Some("vllm:prompt_tokens_total"), None, None, None],
    ),
    metric(
        "generation_tokens_total",
        Counter,
        [Some("vllm:generation_tokens_total"), None, None, None],
    ),
    metric(
        "prefix_cache_queries_total",
        Counter,
        [Some("vllm:prefix_cache_queries_total"), None, None, None],
    ),
    metric(
        "prefix_cache_hits_total",
        Counter,
        [Some("vllm:prefix_cache_hits_total"), None, None, None],
    ),
    metric(
        "external_prefix_cache_queries_total",
        Counter,
        [
            Some("vllm:external_prefix_cache_queries_total"),
            None,
            None,
            None,
        ],
    ),
    metric(
        "external_prefix_cache_hits_total",
        Counter,
        [
            Some("vllm:external_prefix_cache_hits_total"),
            None,
            None,
            None,
        ],
    ),
    metric(
        "nixl_num_failed_transfers_total",
        Counter,
        [Some("vllm:nixl_num_failed_transfers"), None, None, None],
    ),
    metric(
        "nixl_num_failed_notifications_total",
        Counter,
        [Some("vllm:nixl_num_failed_notifications"), None, None, None],
    ),
    metric(
        "e2e_request_latency_seconds",
        Histogram,
        [
            Some("vllm:e2e_request_latency_seconds"),
            Some("sglang:e2e_request_latency_seconds"),
            Some("trtllm_e2e_request_latency_seconds"),
            None,
        ],
    ),
    metric(
        "request_queue_time_seconds",
        Histogram,
        [
            Some("vllm:request_queue_time_seconds"),
            None,
            Some("trtllm_request_queue_time_seconds"),
            None,
        ],
    ),
    metric(
        "request_inference_time_seconds",
        Histogram,
        [
            Some("vllm:request_inference_time_seconds"),
            None,
            None,
            None,
        ],
    ),
    metric(
        "per_stage_req_latency_seconds",
        Histogram,
        [
            None,
            Some("sglang:per_stage_req_latency_seconds"),
            None,
            None,
        ],
    ),
    metric(
        "http_request_duration_seconds",
        Histogram,
        [Some("http_request_duration_seconds"), None, None, None],
    ),
    metric(
        "http_request_duration_highr_seconds",
        Histogram,
        [
            Some("http_request_duration_highr_seconds"),
            None,
            None,
            None,
        ],
    ),
    metric(
        "request_prompt_tokens",
        Histogram,
        [Some("vllm:request_prompt_tokens"), None, None, None],
    ),
    metric(
        "request_generation_tokens",
        Histogram,
        [Some("vllm:request_generation_tokens"), None, None, None],
    ),
    metric(
        "request_max_num_generation_tokens",
        Histogram,
        [
            Some("vllm:request_max_num_generation_tokens"),
            None,
            None,
            None,
        ],
    ),
    metric(
        "iteration_tokens_total",
        Histogram,
        [Some("vllm:iteration_tokens_total"), None, None, None],
    ),
    metric(
        "time_to_first_token_seconds",
        Histogram,
        [
            Some("vllm:time_to_first_token_seconds"),
            Some("sglang:time_to_first_token_seconds"),
            Some("trtllm_time_to_first_token_seconds"),
            None,
        ],
    ),
    metric(
        "time_per_output_token_seconds",
        Histogram,
        [
            Some("vllm:time_per_output_token_seconds"),
            Some("sglang:inter_token_latency_seconds"),
            Some("trtllm_time_per_output_token_seconds"),
            None,
        ],
    ),
    metric(
        "inter_token_latency_seconds",
        Histogram,
        [
            Some("vllm:inter_token_latency_seconds"),
            Some("sglang:inter_token_latency_seconds"),
            Some("trtllm_time_per_output_token_seconds"),
            None,
        ],
    ),
    metric(
        "request_decode_time_seconds",
        Histogram,
        [Some("vllm:request_decode_time_seconds"), None, None, None],
    ),
    metric(
        "request_prefill_time_seconds",
        Histogram,
        [Some("vllm:request_prefill_time_seconds"), None, None, None],
    ),
    metric(
        "request_time_per_output_token_seconds",
        Histogram,
        [
            Some("vllm:request_time_per_output_token_seconds"),
            None,
            None,
            None,
        ],
    ),
    metric(
        "nixl_xfer_time_seconds",
        Histogram,
        [Some("vllm:nixl_xfer_time_seconds"), None, None, None],
    ),
    metric(
        "nixl_post_time_seconds",
        Histogram,
        [Some("vllm:nixl_post_time_seconds"), None, None, None],
    ),
    metric(
        "nixl_bytes_transferred",
        Histogram,
        [Some("vllm:nixl_bytes_transferred"), None, None, None],
    ),
    metric(
        "nixl_num_descriptors",
        Histogram,
        [Some("vllm:nixl_num_descriptors"), None, None, None],
    ),
    metric(
        "max_lora",
        Labels,
        [Some("vllm:lora_requests_info"), None, None, None],
    ),
    metric(
        "running_lora_adapters",
        Labels,
        [Some("vllm:lora_requests_info"), None, None, None],
    ),
    metric(
        "waiting_lora_adapters",
        Labels,
        [Some("vllm:lora_requests_info"), None, None, None],
    ),
    metric("drain_rate_1m", Query, [None, None, None, None]),
    metric("p95_ttft_5m", Query, [None, None, None, None]),
    metric("p95_ttft_5m_pod", Query, [None, None, None, None]),
    metric("avg_ttft_5m_pod", Query, [None, None, None, None]),
    metric("p95_tpot_5m_pod", Query, [None, None, None, None]),
    metric("avg_tpot_pod_5m", Query, [None, None, None, None]),
    metric("avg_prompt_toks_per_req", Query, [None, None, None, None]),
    metric(
        "avg_generation_toks_per_req",
        Query,
        [None, None, None, None],
    ),
    metric("avg_e2e_latency_pod", Query, [None, None, None, None]),
    metric("avg_requests_per_min_pod", Query, [None, None, None, None]),
    metric(
        "avg_prompt_throughput_toks_per_min_pod",
        Query,
        [None, None, None, None],
    ),
    metric(
        "avg_generation_throughput_toks_per_min_pod",
        Query,
        [None, None, None, None],
    ),
];
