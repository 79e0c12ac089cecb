//! `docs/metrics.md`.

use super::{check, code, row};
use crate::metrics::Metrics;

const INTRODUCTION: &str = "\
# Metrics

<!-- Made from the series in src/metrics. Do not edit: run the tests with UPDATE=1. -->

Served on `/metrics` (`METRICS_BIND_ADDRESS`). With `CONTROLLER_INSTANCE` set, every series carries it as
`controller_instance`. The leader alone shows series with `variant_name` or `model`, and GPUs. Where a scrape job sets its
own `namespace`, as the usual operators do, the label `namespace` of a series becomes `exported_namespace`, which alerts,
dashboard and scalers use.

Names in `_total` are counters, in `_duration_seconds` histograms, the others gauges. Of the process there are
`process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds`, `process_max_fds`,
`process_virtual_memory_bytes`, `process_start_time_seconds` and `process_threads`. [Prometheus](integrations/prometheus.md#series)
lists what is read from engines and routers.

| Series | Labels | Meaning |
|---|---|---|
";

/// What the introduction makes of a name.
fn kind_by_name(name: &str) -> &'static str {
    if name.ends_with("_total") {
        "counter"
    } else if name.ends_with("_duration_seconds") {
        "histogram"
    } else {
        "gauge"
    }
}

fn page() -> String {
    let metrics = Metrics::new(None).unwrap();
    let mut families = metrics.families().to_vec();
    families.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = INTRODUCTION.to_owned();
    for family in families {
        assert_eq!(family.kind, kind_by_name(&family.name), "{}", family.name);
        let labels: Vec<String> = family.labels.iter().map(|label| code(label)).collect();
        text.push_str(&row(&[code(&family.name), labels.join(", "), family.help]));
    }
    text
}

#[test]
fn the_page_in_the_repository_is_the_one_made_from_the_series() {
    check("docs/metrics.md", &page());
}
