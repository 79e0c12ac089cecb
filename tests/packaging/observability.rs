//! Alerts, dashboard, and every other expression that is shipped.

use std::collections::BTreeSet;

use serde_json::Value;
use wva::metrics::Metrics;

use super::{text, yaml};

fn alerts() -> Vec<Value> {
    let object = yaml("config/prometheus/alerts.yaml");
    let groups = object["spec"]["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    rules.cloned().collect()
}

#[test]
fn every_alert_says_what_to_do_and_is_tested() {
    let tests = yaml("tests/alerts.yaml").to_string();
    let page = text("docs/operations.md");
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        for field in ["/labels/severity", "/annotations/summary", "/annotations/description"] {
            assert!(alert.pointer(field).is_some(), "{name}{field}");
        }
        assert!(tests.contains(&format!("\"alertname\":\"{name}\"")), "{name} has no test");
        assert!(page.contains(&format!("`{name}`")), "{name} is not in docs/operations.md");
    }
}

/// Every expression that is shipped, with where it stands.
fn expressions() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = alerts()
        .iter()
        .map(|alert| (alert["alert"].to_string(), alert["expr"].as_str().unwrap().to_owned()))
        .collect();
    let dashboard: Value = serde_json::from_str(&text("config/grafana/dashboard.json")).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap().to_owned();
            found.push((panel["title"].to_string(), expression));
        }
    }
    for file in [
        "config/samples/scalers/scaledobject.yaml",
        "config/samples/scalers/hpa.yaml",
        "config/samples/prometheus-adapter-values.yaml",
        "config/samples/prometheus-adapter-values-ocp.yaml",
        "config/external-metrics/hpa.yaml",
    ] {
        let code = text(file);
        let code: Vec<&str> =
            code.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        found.push((file.to_owned(), code.join("\n")));
    }
    found
}

fn series(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let words = words.filter(|word| {
        ["wva_", "vllm:", "sglang:", "process_"].iter().any(|prefix| word.starts_with(prefix))
    });
    words.map(|word| word.trim_end_matches(':').to_owned()).collect()
}

#[test]
fn every_series_that_is_named_is_exposed_or_documented() {
    let metrics = Metrics::new(None).unwrap();
    let of_process = text("docs/metrics.md");
    let of_engines = text("docs/integrations/prometheus.md");
    let mut exposed = BTreeSet::new();
    for family in metrics.families() {
        exposed.insert(family.name.clone());
        if family.kind == "histogram" {
            exposed
                .extend(["_bucket", "_sum", "_count"].map(|part| format!("{}{part}", family.name)));
        }
    }
    let mut named = 0;
    for (place, expression) in expressions() {
        for series in series(&expression) {
            let is_foreign = match series.split_once(':') {
                Some((_, name)) => of_engines.contains(&format!("`{name}`")),
                None => {
                    series.starts_with("process_") && of_process.contains(&format!("`{series}`"))
                }
            };
            assert!(exposed.contains(&series) || is_foreign, "{place}: no page exposes {series}");
            named += 1;
        }
    }
    assert!(named > 70, "only {named}");
}

#[test]
fn the_dashboard_shows_cost_against_latency_objectives() {
    let dashboard: Value = serde_json::from_str(&text("config/grafana/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let row = panels.skip_while(|panel| panel["title"] != "Cost against SLO");
    let panels = row.skip(1).take_while(|panel| panel["type"] != "row");
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let named = targets.flat_map(|target| series(target["expr"].as_str().unwrap()));
    let expected = [
        "sglang:inter_token_latency_seconds_count",
        "sglang:inter_token_latency_seconds_sum",
        "sglang:time_per_output_token_seconds_count",
        "sglang:time_per_output_token_seconds_sum",
        "sglang:time_to_first_token_seconds_count",
        "sglang:time_to_first_token_seconds_sum",
        "vllm:inter_token_latency_seconds_count",
        "vllm:inter_token_latency_seconds_sum",
        "vllm:time_per_output_token_seconds_count",
        "vllm:time_per_output_token_seconds_sum",
        "vllm:time_to_first_token_seconds_count",
        "vllm:time_to_first_token_seconds_sum",
        "wva_current_replicas",
        "wva_model_latency_objective_seconds",
        "wva_variant_cost",
    ];
    assert_eq!(named.collect::<BTreeSet<_>>(), expected.map(str::to_owned).into());
}

/// The sample is the one that the cluster tests have a real HPA controller follow.
#[test]
fn both_samples_of_an_hpa_are_one() {
    let sample = yaml("config/samples/scalers/hpa.yaml");
    let followed = yaml("config/external-metrics/hpa.yaml");
    assert!(sample["spec"].is_object());
    assert_eq!(sample["spec"], followed["spec"]);
}
