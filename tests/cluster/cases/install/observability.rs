//! Alerts and dashboard, as Prometheus understands them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::RELEASE;
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::shipping::{Shipping, find, set};
use crate::harness::suite::Cx;
use crate::harness::tools::repository;

/// The rule groups that are shipped.
pub(super) fn groups() -> Result<Value> {
    let file = repository().join("config/prometheus/alerts.yaml");
    let object = manifest::read(&file)?.into_iter().next();
    let object = object.ok_or_else(|| Fault::new("no rules"))?;
    Ok(json!({ "groups": object["spec"]["groups"] }))
}

pub(super) fn rules(groups: &mut Value) -> impl Iterator<Item = &mut Value> {
    let groups = groups["groups"].as_array_mut().into_iter().flatten();
    groups.flat_map(|group| group["rules"].as_array_mut().into_iter().flatten())
}

pub(super) fn read_yaml(file: &Path) -> Result<Value> {
    Ok(serde_yaml::from_str(&fs::read_to_string(file)?)?)
}

/// The rules are well formed, texts included, and each unit test of them holds.
pub(super) async fn alerts_do_as_their_tests_say(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let promtool = cx.world.site.tools.program("promtool")?;
    let mut shipped = groups()?;
    let whole = cx.world.site.write("rules.yaml", &shipped.to_string())?;
    let check = ["check", "rules", &whole.display().to_string()].map(str::to_owned);
    let ended = shipping.try_run(&promtool, &check, &[]).await?;
    assert!(ended.well, "{}", ended.text);

    // The tests are about when, not about wording.
    let mut names = Vec::new();
    for rule in rules(&mut shipped) {
        names.push(rule["alert"].clone());
        rule["annotations"] = json!({});
    }
    let rules = cx.world.site.write("rules-alone.yaml", &shipped.to_string())?;
    let mut tests = read_yaml(&repository().join("tests/alerts.yaml"))?;
    tests["rule_files"] = json!([rules.display().to_string()]);
    for test in tests["tests"].as_array_mut().into_iter().flatten() {
        if test["alert_rule_test"] == json!(["ALL_SILENT"]) {
            let silent = names
                .iter()
                .map(|name| json!({ "eval_time": "55m", "alertname": name, "exp_alerts": [] }));
            test["alert_rule_test"] = silent.collect();
        }
    }
    let tests = cx.world.site.write("rule-tests.yaml", &tests.to_string())?;
    let run = ["test", "rules", &tests.display().to_string()].map(str::to_owned);
    let ended = shipping.try_run(&promtool, &run, &[]).await?;
    assert!(ended.well, "{}", ended.text);
    Ok(())
}

/// Alerts, dashboard, the adapter's rule and the queries of ScaledObjects: a real Prometheus takes
/// each of them.
pub(super) async fn every_expression_is_understood(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let mut found: Vec<String> = Vec::new();
    let mut take = |value: &Value| found.extend(value.as_str().map(str::to_owned));
    rules(&mut groups()?).for_each(|rule| take(&rule["expr"]));
    let dashboard = read_yaml(&repository().join("config/grafana/dashboard.json"))?;
    for panel in dashboard["panels"].as_array().into_iter().flatten() {
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.for_each(|target| take(&target["expr"]));
    }
    for file in ["prometheus-adapter-values.yaml", "prometheus-adapter-values-ocp.yaml"] {
        let values = read_yaml(&repository().join("config/samples").join(file))?;
        for rule in values["rules"]["external"].as_array().into_iter().flatten() {
            take(&rule["seriesQuery"]);
            take(&rule["metricsQuery"]);
        }
    }
    let values = set(&[("keda.enabled", "true"), ("wva.controllerInstance", "blue")]);
    let chart = shipping.template(RELEASE, "default", &values).await?;
    let sample = shipping.kustomize("samples/scalers").await?;
    for objects in [&chart, &sample] {
        let scaled = find(objects, "ScaledObject", "")?;
        take(&scaled["spec"]["triggers"][0]["metadata"]["query"]);
    }
    assert!(found.len() > 60, "only {} expressions", found.len());
    for expression in found {
        let expression = expression
            .replace("<<.LabelMatchers>>", "variant_name=\"llama\"")
            .replace("$namespace", ".*")
            .replace("$variant", ".*");
        cx.world.prometheus.query(&expression).await?;
    }
    Ok(())
}
