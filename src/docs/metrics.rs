//! `docs/metrics.md`.

use super::{check, code, row};
use crate::metrics::Metrics;

const INTRODUCTION: &str = "\
# Metrics

<!-- Made from the series in src/metrics. Do not edit: run the tests with UPDATE=1. -->

Served on `/metrics` (`METRICS_BIND_ADDRESS`). With `CONTROLLER_INSTANCE` set, every series carries it as
`controller_instance`. What carries `variant_name` or `model`, and the GPUs, is shown by the replica that
leads alone. A scrape job that sets its own `namespace`, as the usual operators do, turns the label `namespace` of a series into
`exported_namespace`: alerts, dashboard and scalers use that name.

The process itself is described by `process_cpu_seconds_total`, `process_resident_memory_bytes`,
`process_open_fds`, `process_max_fds`, `process_virtual_memory_bytes`, `process_start_time_seconds` and
`process_threads`.

| Series | Type | Labels | Meaning |
|---|---|---|---|
";

const ENGINES: &str = "
## Read from engines

The dashboard and the decisions read these of the model servers, by the label `model_name`:
`vllm:kv_cache_usage_perc`, `vllm:num_requests_waiting`, `vllm:num_requests_running`,
`vllm:request_success_total`. Means of latencies are from the first of these pairs that has series:
`vllm:time_to_first_token_seconds_sum` over `vllm:time_to_first_token_seconds_count`,
`vllm:inter_token_latency_seconds_sum` over `vllm:inter_token_latency_seconds_count`,
`vllm:time_per_output_token_seconds_sum` over `vllm:time_per_output_token_seconds_count`,
`sglang:time_to_first_token_seconds_sum` over `sglang:time_to_first_token_seconds_count`,
`sglang:inter_token_latency_seconds_sum` over `sglang:inter_token_latency_seconds_count`,
`sglang:time_per_output_token_seconds_sum` over `sglang:time_per_output_token_seconds_count`.
Which name supplied a signal is shown by `wva_metrics_source_pods`.
";

fn page() -> String {
    let metrics = Metrics::new(None).unwrap();
    let mut families = metrics.families().to_vec();
    families.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = INTRODUCTION.to_owned();
    for family in families {
        let labels: Vec<String> = family.labels.iter().map(|label| code(label)).collect();
        text.push_str(&row(&[
            code(&family.name),
            family.kind.to_owned(),
            labels.join(", "),
            family.help,
        ]));
    }
    text.push_str(ENGINES);
    text
}

#[test]
fn the_page_in_the_repository_is_the_one_made_from_the_series() {
    check("docs/metrics.md", &page());
}
