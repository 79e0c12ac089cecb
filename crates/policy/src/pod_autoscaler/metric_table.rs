//! The table of canonical metric names, with the series of each engine.

/// What the values of a series mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesType {
    /// An amount: the sum over label sets counts.
    Gauge,
    /// A share between 0 and 1: the mean over label sets counts, as their sum would exceed 1.
    Ratio,
    /// Grows: its rate per second counts.
    Counter,
    /// Observations in buckets.
    Histogram,
    /// Observations with their sum and count.
    Summary,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CanonicalMetric {
    pub(super) name: &'static str,
    /// What its values mean; `None` where no page shows any.
    pub(super) kind: Option<SeriesType>,
    /// By engine: vllm, sglang, trtllm, xllm. Of several names that versions of an engine give it, a page has the first
    /// that it shows.
    pub(super) series: [&'static [&'static str]; 4],
}

impl CanonicalMetric {
    /// Whether it is the result of a Prometheus query: no engine has a series for it.
    pub(super) fn is_query(&self) -> bool {
        self.series.into_iter().all(<[_]>::is_empty)
    }

    /// Whether it is a series of this name on the page of some engine.
    pub(super) fn shows(&self, name: &str) -> bool {
        self.series.iter().any(|names| names.contains(&name))
    }
}

/// Rows of name and kind, then the series of vllm, sglang, trtllm and xllm. `Labels` have no value of their own.
macro_rules! metrics {
    (@kind Labels) => { None };
    (@kind Query) => { None };
    (@kind $kind:ident) => { Some(SeriesType::$kind) };
    ($($name:literal $kind:ident $vllm:tt $sglang:tt $trtllm:tt $xllm:tt;)*) => {
        pub(super) const CANONICAL_METRICS: &[CanonicalMetric] = &[$(CanonicalMetric {
            name: $name,
            kind: metrics!(@kind $kind),
            series: [&$vllm, &$sglang, &$trtllm, &$xllm],
        }),*];
    };
}

metrics! {
    "num_requests_running" Gauge ["vllm:num_requests_running"] ["sglang:num_running_reqs"] [] [];
    "num_requests_waiting" Gauge ["vllm:num_requests_waiting"] ["sglang:num_queue_reqs"] [] [];
    "num_requests_swapped" Gauge ["vllm:num_requests_swapped"] ["sglang:num_retracted_reqs"] [] [];
    "engine_sleep_state" Gauge ["vllm:engine_sleep_state"] [] [] [];
    "gpu_cache_usage_perc" Ratio
        ["vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"] ["sglang:token_usage"] [] ["kv_cache_utilization"];
    "kv_cache_usage_perc" Ratio
        ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"] ["sglang:token_usage"]
        ["trtllm_kv_cache_utilization"] ["kv_cache_utilization"];
    "cpu_cache_usage_perc" Ratio ["vllm:cpu_cache_usage_perc"] [] [] [];
    "kv_cache_hit_rate" Ratio [] [] ["trtllm_kv_cache_hit_rate"] [];
    "engine_utilization" Ratio [] [] [] ["engine_utilization"];
    "num_prefill_prealloc_queue_reqs" Gauge [] ["sglang:num_prefill_prealloc_queue_reqs"] [] [];
    "num_decode_prealloc_queue_reqs" Gauge [] ["sglang:num_decode_prealloc_queue_reqs"] [] [];
    "avg_prompt_throughput_toks_per_s" Gauge ["vllm:avg_prompt_throughput_toks_per_s"] [] [] [];
    "avg_generation_throughput_toks_per_s" Gauge
        ["vllm:avg_generation_throughput_toks_per_s"] ["sglang:gen_throughput"] [] [];
    "http_requests_total" Counter ["vllm:http_requests_total"] [] [] [];
    "num_preemptions_total" Counter ["vllm:num_preemptions_total"] [] [] [];
    "request_success_total" Counter
        ["vllm:num_requests_success_total", "vllm:request_success_total"] ["sglang:num_requests_total"]
        ["trtllm_request_success_total"] [];
    "prompt_tokens_total" Counter ["vllm:prompt_tokens_total"] [] [] [];
    "generation_tokens_total" Counter ["vllm:generation_tokens_total"] [] [] [];
    "prefix_cache_queries_total" Counter ["vllm:prefix_cache_queries_total"] [] [] [];
    "prefix_cache_hits_total" Counter ["vllm:prefix_cache_hits_total"] [] [] [];
    "external_prefix_cache_queries_total" Counter ["vllm:external_prefix_cache_queries_total"] [] [] [];
    "external_prefix_cache_hits_total" Counter ["vllm:external_prefix_cache_hits_total"] [] [] [];
    "nixl_num_failed_transfers_total" Counter ["vllm:nixl_num_failed_transfers"] [] [] [];
    "nixl_num_failed_notifications_total" Counter ["vllm:nixl_num_failed_notifications"] [] [] [];
    "e2e_request_latency_seconds" Histogram
        ["vllm:e2e_request_latency_seconds"] ["sglang:e2e_request_latency_seconds"]
        ["trtllm_e2e_request_latency_seconds"] [];
    "request_queue_time_seconds" Histogram
        ["vllm:request_queue_time_seconds"] [] ["trtllm_request_queue_time_seconds"] [];
    "request_inference_time_seconds" Histogram ["vllm:request_inference_time_seconds"] [] [] [];
    "per_stage_req_latency_seconds" Histogram [] ["sglang:per_stage_req_latency_seconds"] [] [];
    "http_request_duration_seconds" Histogram ["http_request_duration_seconds"] [] [] [];
    "http_request_duration_highr_seconds" Histogram ["http_request_duration_highr_seconds"] [] [] [];
    "request_prompt_tokens" Histogram ["vllm:request_prompt_tokens"] [] [] [];
    "request_generation_tokens" Histogram ["vllm:request_generation_tokens"] [] [] [];
    "request_max_num_generation_tokens" Histogram ["vllm:request_max_num_generation_tokens"] [] [] [];
    "iteration_tokens_total" Histogram ["vllm:iteration_tokens_total"] [] [] [];
    "time_to_first_token_seconds" Histogram
        ["vllm:time_to_first_token_seconds"] ["sglang:time_to_first_token_seconds"]
        ["trtllm_time_to_first_token_seconds"] [];
    "time_per_output_token_seconds" Histogram
        ["vllm:time_per_output_token_seconds"] ["sglang:inter_token_latency_seconds"]
        ["trtllm_time_per_output_token_seconds"] [];
    "inter_token_latency_seconds" Histogram
        ["vllm:inter_token_latency_seconds"] ["sglang:inter_token_latency_seconds"]
        ["trtllm_time_per_output_token_seconds"] [];
    "request_decode_time_seconds" Histogram ["vllm:request_decode_time_seconds"] [] [] [];
    "request_prefill_time_seconds" Histogram ["vllm:request_prefill_time_seconds"] [] [] [];
    "request_time_per_output_token_seconds" Histogram ["vllm:request_time_per_output_token_seconds"] [] [] [];
    "nixl_xfer_time_seconds" Histogram ["vllm:nixl_xfer_time_seconds"] [] [] [];
    "nixl_post_time_seconds" Histogram ["vllm:nixl_post_time_seconds"] [] [] [];
    "nixl_bytes_transferred" Histogram ["vllm:nixl_bytes_transferred"] [] [] [];
    "nixl_num_descriptors" Histogram ["vllm:nixl_num_descriptors"] [] [] [];
    "max_lora" Labels ["vllm:lora_requests_info"] [] [] [];
    "running_lora_adapters" Labels ["vllm:lora_requests_info"] [] [] [];
    "waiting_lora_adapters" Labels ["vllm:lora_requests_info"] [] [] [];
    "drain_rate_1m" Query [] [] [] [];
    "p95_ttft_5m" Query [] [] [] [];
    "p95_ttft_5m_pod" Query [] [] [] [];
    "avg_ttft_5m_pod" Query [] [] [] [];
    "p95_tpot_5m_pod" Query [] [] [] [];
    "avg_tpot_pod_5m" Query [] [] [] [];
    "avg_prompt_toks_per_req" Query [] [] [] [];
    "avg_generation_toks_per_req" Query [] [] [] [];
    "avg_e2e_latency_pod" Query [] [] [] [];
    "avg_requests_per_min_pod" Query [] [] [] [];
    "avg_prompt_throughput_toks_per_min_pod" Query [] [] [] [];
    "avg_generation_throughput_toks_per_min_pod" Query [] [] [] [];
}
