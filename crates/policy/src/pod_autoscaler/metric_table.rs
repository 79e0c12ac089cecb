//! The table of canonical metric names, with the series of each engine.

use super::metric_name::SeriesType;
use CanonicalKind::{Counter, Gauge, Histogram, Labels, Query, Ratio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CanonicalKind {
    Gauge,
    /// A gauge between 0 and 1.
    Ratio,
    Counter,
    Histogram,
    Labels,
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

#[derive(Debug, Clone, Copy)]
pub(super) struct CanonicalMetric {
    pub(super) name: &'static str,
    pub(super) kind: CanonicalKind,
    /// By engine: vllm, sglang, trtllm, xllm. Of several names that versions of an engine give it, a page has the first
    /// that it shows.
    pub(super) series: [&'static [&'static str]; 4],
}

impl CanonicalMetric {
    pub(super) fn is_query(&self) -> bool {
        self.kind == Query
    }
}

const fn metric(
    name: &'static str,
    kind: CanonicalKind,
    series: [&'static [&'static str]; 4],
) -> CanonicalMetric {
    CanonicalMetric { name, kind, series }
}

pub(super) const CANONICAL_METRICS: &[CanonicalMetric] = &[
    metric(
        "num_requests_running",
        Gauge,
        [
            &["vllm:num_requests_running"],
            &["sglang:num_running_reqs"],
            &[],
            &[],
        ],
    ),
    metric(
        "num_requests_waiting",
        Gauge,
        [
            &["vllm:num_requests_waiting"],
            &["sglang:num_queue_reqs"],
            &[],
            &[],
        ],
    ),
    metric(
        "num_requests_swapped",
        Gauge,
        [
            &["vllm:num_requests_swapped"],
            &["sglang:num_retracted_reqs"],
            &[],
            &[],
        ],
    ),
    metric(
        "engine_sleep_state",
        Gauge,
        [&["vllm:engine_sleep_state"], &[], &[], &[]],
    ),
    metric(
        "gpu_cache_usage_perc",
        Ratio,
        [
            &["vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"],
            &["sglang:token_usage"],
            &[],
            &["kv_cache_utilization"],
        ],
    ),
    metric(
        "kv_cache_usage_perc",
        Ratio,
        [
            &["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
            &["sglang:token_usage"],
            &["trtllm_kv_cache_utilization"],
            &["kv_cache_utilization"],
        ],
    ),
    metric(
        "cpu_cache_usage_perc",
        Ratio,
        [&["vllm:cpu_cache_usage_perc"], &[], &[], &[]],
    ),
    metric(
        "kv_cache_hit_rate",
        Ratio,
        [&[], &[], &["trtllm_kv_cache_hit_rate"], &[]],
    ),
    metric(
        "engine_utilization",
        Ratio,
        [&[], &[], &[], &["engine_utilization"]],
    ),
    metric(
        "num_prefill_prealloc_queue_reqs",
        Gauge,
        [&[], &["sglang:num_prefill_prealloc_queue_reqs"], &[], &[]],
    ),
    metric(
        "num_decode_prealloc_queue_reqs",
        Gauge,
        [&[], &["sglang:num_decode_prealloc_queue_reqs"], &[], &[]],
    ),
    metric(
        "avg_prompt_throughput_toks_per_s",
        Gauge,
        [&["vllm:avg_prompt_throughput_toks_per_s"], &[], &[], &[]],
    ),
    metric(
        "avg_generation_throughput_toks_per_s",
        Gauge,
        [
            &["vllm:avg_generation_throughput_toks_per_s"],
            &["sglang:gen_throughput"],
            &[],
            &[],
        ],
    ),
    metric(
        "http_requests_total",
        Counter,
        [&["vllm:http_requests_total"], &[], &[], &[]],
    ),
    metric(
        "num_preemptions_total",
        Counter,
        [&["vllm:num_preemptions_total"], &[], &[], &[]],
    ),
    metric(
        "request_success_total",
        Counter,
        [
            &[
                "vllm:num_requests_success_total",
                "vllm:request_success_total",
            ],
            &["sglang:num_requests_total"],
            &["trtllm_request_success_total"],
            &[],
        ],
    ),
    metric(
        "prompt_tokens_total",
        Counter,
        [&["vllm:prompt_tokens_total"], &[], &[], &[]],
    ),
    metric(
        "generation_tokens_total",
        Counter,
        [&["vllm:generation_tokens_total"], &[], &[], &[]],
    ),
    metric(
        "prefix_cache_queries_total",
        Counter,
        [&["vllm:prefix_cache_queries_total"], &[], &[], &[]],
    ),
    metric(
        "prefix_cache_hits_total",
        Counter,
        [&["vllm:prefix_cache_hits_total"], &[], &[], &[]],
    ),
    metric(
        "external_prefix_cache_queries_total",
        Counter,
        [&["vllm:external_prefix_cache_queries_total"], &[], &[], &[]],
    ),
    metric(
        "external_prefix_cache_hits_total",
        Counter,
        [&["vllm:external_prefix_cache_hits_total"], &[], &[], &[]],
    ),
    metric(
        "nixl_num_failed_transfers_total",
        Counter,
        [&["vllm:nixl_num_failed_transfers"], &[], &[], &[]],
    ),
    metric(
        "nixl_num_failed_notifications_total",
        Counter,
        [&["vllm:nixl_num_failed_notifications"], &[], &[], &[]],
    ),
    metric(
        "e2e_request_latency_seconds",
        Histogram,
        [
            &["vllm:e2e_request_latency_seconds"],
            &["sglang:e2e_request_latency_seconds"],
            &["trtllm_e2e_request_latency_seconds"],
            &[],
        ],
    ),
    metric(
        "request_queue_time_seconds",
        Histogram,
        [
            &["vllm:request_queue_time_seconds"],
            &[],
            &["trtllm_request_queue_time_seconds"],
            &[],
        ],
    ),
    metric(
        "request_inference_time_seconds",
        Histogram,
        [&["vllm:request_inference_time_seconds"], &[], &[], &[]],
    ),
    metric(
        "per_stage_req_latency_seconds",
        Histogram,
        [&[], &["sglang:per_stage_req_latency_seconds"], &[], &[]],
    ),
    metric(
        "http_request_duration_seconds",
        Histogram,
        [&["http_request_duration_seconds"], &[], &[], &[]],
    ),
    metric(
        "http_request_duration_highr_seconds",
        Histogram,
        [&["http_request_duration_highr_seconds"], &[], &[], &[]],
    ),
    metric(
        "request_prompt_tokens",
        Histogram,
        [&["vllm:request_prompt_tokens"], &[], &[], &[]],
    ),
    metric(
        "request_generation_tokens",
        Histogram,
        [&["vllm:request_generation_tokens"], &[], &[], &[]],
    ),
    metric(
        "request_max_num_generation_tokens",
        Histogram,
        [&["vllm:request_max_num_generation_tokens"], &[], &[], &[]],
    ),
    metric(
        "iteration_tokens_total",
        Histogram,
        [&["vllm:iteration_tokens_total"], &[], &[], &[]],
    ),
    metric(
        "time_to_first_token_seconds",
        Histogram,
        [
            &["vllm:time_to_first_token_seconds"],
            &["sglang:time_to_first_token_seconds"],
            &["trtllm_time_to_first_token_seconds"],
            &[],
        ],
    ),
    metric(
        "time_per_output_token_seconds",
        Histogram,
        [
            &["vllm:time_per_output_token_seconds"],
            &["sglang:inter_token_latency_seconds"],
            &["trtllm_time_per_output_token_seconds"],
            &[],
        ],
    ),
    metric(
        "inter_token_latency_seconds",
        Histogram,
        [
            &["vllm:inter_token_latency_seconds"],
            &["sglang:inter_token_latency_seconds"],
            &["trtllm_time_per_output_token_seconds"],
            &[],
        ],
    ),
    metric(
        "request_decode_time_seconds",
        Histogram,
        [&["vllm:request_decode_time_seconds"], &[], &[], &[]],
    ),
    metric(
        "request_prefill_time_seconds",
        Histogram,
        [&["vllm:request_prefill_time_seconds"], &[], &[], &[]],
    ),
    metric(
        "request_time_per_output_token_seconds",
        Histogram,
        [
            &["vllm:request_time_per_output_token_seconds"],
            &[],
            &[],
            &[],
        ],
    ),
    metric(
        "nixl_xfer_time_seconds",
        Histogram,
        [&["vllm:nixl_xfer_time_seconds"], &[], &[], &[]],
    ),
    metric(
        "nixl_post_time_seconds",
        Histogram,
        [&["vllm:nixl_post_time_seconds"], &[], &[], &[]],
    ),
    metric(
        "nixl_bytes_transferred",
        Histogram,
        [&["vllm:nixl_bytes_transferred"], &[], &[], &[]],
    ),
    metric(
        "nixl_num_descriptors",
        Histogram,
        [&["vllm:nixl_num_descriptors"], &[], &[], &[]],
    ),
    metric(
        "max_lora",
        Labels,
        [&["vllm:lora_requests_info"], &[], &[], &[]],
    ),
    metric(
        "running_lora_adapters",
        Labels,
        [&["vllm:lora_requests_info"], &[], &[], &[]],
    ),
    metric(
        "waiting_lora_adapters",
        Labels,
        [&["vllm:lora_requests_info"], &[], &[], &[]],
    ),
    metric("drain_rate_1m", Query, [&[], &[], &[], &[]]),
    metric("p95_ttft_5m", Query, [&[], &[], &[], &[]]),
    metric("p95_ttft_5m_pod", Query, [&[], &[], &[], &[]]),
    metric("avg_ttft_5m_pod", Query, [&[], &[], &[], &[]]),
    metric("p95_tpot_5m_pod", Query, [&[], &[], &[], &[]]),
    metric("avg_tpot_pod_5m", Query, [&[], &[], &[], &[]]),
    metric("avg_prompt_toks_per_req", Query, [&[], &[], &[], &[]]),
    metric("avg_generation_toks_per_req", Query, [&[], &[], &[], &[]]),
    metric("avg_e2e_latency_pod", Query, [&[], &[], &[], &[]]),
    metric("avg_requests_per_min_pod", Query, [&[], &[], &[], &[]]),
    metric(
        "avg_prompt_throughput_toks_per_min_pod",
        Query,
        [&[], &[], &[], &[]],
    ),
    metric(
        "avg_generation_throughput_toks_per_min_pod",
        Query,
        [&[], &[], &[], &[]],
    ),
];
