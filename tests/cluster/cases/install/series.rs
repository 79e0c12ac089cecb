//! Every series and label that rules, dashboard, adapter rule and scalers name, looked for on the page of
//! a controller at work.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use wva::metrics::Metrics;

use super::SOON;
use super::observability::{groups, read_yaml, rules};
use crate::harness::controller::Controller;
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::shipping::{find, name_of};
use crate::harness::suite::Cx;
use crate::harness::tools::repository;
use crate::harness::wait::eventually;

/// Series that are there only when something happens which does not happen here: that one, and what. Their
/// labels are those that the controller registers.
const ELSEWHERE: [(&str, &str); 6] = wva_base::cases! {
    ("wva_errors_total", "a request of the controller is refused"),
    ("wva_events_dropped_total", "more events than the API server takes"),
    ("wva_invariant_violations_total", "a plan breaks a postcondition"),
    ("wva_metrics_collection_errors_total", "a query fails"),
    ("wva_model_latency_objective_seconds", "an analyzer holds latency objectives"),
    ("wva_pod_mapping_miss_total", "a pod with metrics belongs to no variant"),
};

/// What the scrape adds to the labels of a page.
const OF_THE_TARGET: [&str; 7] =
    ["container", "endpoint", "instance", "job", "namespace", "pod", "service"];

/// Names and labels in selectors, with where it is written.
#[derive(Default)]
struct Named {
    series: BTreeMap<String, BTreeSet<String>>,
}

impl Named {
    /// Takes the series of an expression: each with the labels that it is selected by, with those by
    /// which it is grouped, and with those by which sides are matched.
    fn expression(&mut self, text: &str) {
        let lists = |opening: &str| {
            let parts = text.split(opening).skip(1);
            let parts = parts.filter_map(|part| part.split_once(')'));
            let lists = parts.map(|(list, after)| {
                let labels = list.split(',').map(|label| label.trim().to_owned());
                (labels.collect::<BTreeSet<_>>(), after)
            });
            lists.collect::<Vec<_>>()
        };
        for (labels, after) in [lists(" by ("), lists(" by(")].concat() {
            self.selected(parenthesized(after), &labels);
        }
        let matched = lists(" on (").into_iter().flat_map(|(labels, _)| labels);
        self.selected(text, &matched.collect());
    }

    /// Takes every series in a text, with these labels besides its own.
    fn selected(&mut self, text: &str, besides: &BTreeSet<String>) {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let mut rest = text;
        while let Some(start) =
            ["wva_", "process_"].iter().filter_map(|prefix| rest.find(prefix)).min()
        {
            let (_, from) = rest.split_at(start);
            let end = from.find(|letter| !is_name(letter)).unwrap_or(from.len());
            let (name, after) = from.split_at(end);
            let labels = self.series.entry(name.to_owned()).or_default();
            labels.extend(besides.iter().cloned());
            let selector = after.strip_prefix('{').and_then(|after| after.split('}').next());
            for matcher in selector.unwrap_or_default().split(',') {
                let end = matcher.find(['=', '!']).unwrap_or(0);
                let (label, _) = matcher.split_at(end);
                labels.extend((!label.is_empty()).then(|| label.trim().to_owned()));
            }
            rest = after;
        }
    }

    fn label(&mut self, series: &str, label: &str) {
        let labels = self.series.entry(series.to_owned()).or_default();
        labels.insert(label.to_owned());
    }
}

/// What stands between the first parenthesis of a text and the one that closes it.
fn parenthesized(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ')' && depth == 0
    });
    text.split_at(end.unwrap_or(text.len())).0
}

fn dashboard(named: &mut Named) -> Result {
    let page = read_yaml(&repository().join("config/grafana/dashboard.json"))?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for panel in list(&page["panels"]) {
        for target in list(&panel["targets"]) {
            named.expression(target["expr"].as_str().unwrap_or_default());
        }
    }
    for variable in list(&page["templating"]["list"]) {
        let query = variable["query"]["query"].as_str().unwrap_or_default();
        let inside = query.strip_prefix("label_values(");
        let inside = inside.and_then(|query| query.strip_suffix(')'));
        if let Some((series, label)) = inside.and_then(|query| query.rsplit_once(", ")) {
            named.expression(series);
            let name = series.split('{').next().unwrap_or_default();
            named.label(name, label);
        }
    }
    Ok(())
}

/// The adapter's rule, and the scalers among samples and rendered objects.
fn scalers(named: &mut Named, rendered: &[Value]) -> Result {
    let samples = repository().join("config/samples");
    for file in ["prometheus-adapter-values.yaml", "prometheus-adapter-values-ocp.yaml"] {
        let values = read_yaml(&samples.join(file))?;
        let rule = &values["rules"]["external"][0];
        for field in ["seriesQuery", "metricsQuery"] {
            named.expression(rule[field].as_str().unwrap_or_default());
        }
        for label in rule["resources"]["overrides"].as_object().into_iter().flatten() {
            named.label("wva_desired_replicas", label.0);
        }
    }
    let mut objects = rendered.to_vec();
    for file in ["scalers/hpa.yaml", "scalers/scaledobject.yaml"] {
        objects.extend(manifest::read(&samples.join(file))?);
    }
    for object in objects {
        let metric = &object["spec"]["metrics"][0]["external"]["metric"];
        if let Some(name) = metric["name"].as_str() {
            for label in metric["selector"]["matchLabels"].as_object().into_iter().flatten() {
                named.label(name, label.0);
            }
        }
        let query = &object["spec"]["triggers"][0]["metadata"]["query"];
        named.expression(query.as_str().unwrap_or_default());
    }
    Ok(())
}

/// Makes happen what some series are about: a setting that cannot change is edited, an entry is wrong,
/// and nothing follows the sample any more.
async fn provoke(cx: &Cx, objects: &[Value], release: &str) -> Result {
    let config_maps: Api<ConfigMap> = Api::namespaced(cx.world.client.clone(), release);
    for (ending, data) in [
        ("-variantautoscaling-config", json!({ "LOG_FORMAT": "text" })),
        ("-saturation-scaling-config", json!({ "broken": "model_id: m\nkvCacheThreshold: 7\n" })),
    ] {
        let name = name_of(find(objects, "ConfigMap", ending)?);
        let patch = Patch::Merge(json!({ "data": data }));
        config_maps.patch(name, &PatchParams::default(), &patch).await?;
    }
    let scaler = name_of(find(objects, "ScaledObject", "-scaler")?);
    let scalers = cx.namespace.dynamic("keda.sh/v1alpha1", "ScaledObject").await?;
    scalers.delete(scaler, &DeleteParams::default()).await?;
    Ok(())
}

/// Labels of a page, as Prometheus stores them with those of the target.
fn stored(labels: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let labels = labels.into_iter().map(|label| {
        let is_taken = OF_THE_TARGET.contains(&label.as_str());
        if is_taken { format!("exported_{label}") } else { label }
    });
    labels.chain(OF_THE_TARGET.map(str::to_owned)).collect()
}

/// The labels of each series of a page, and of those that are rare.
async fn exposed(controller: &Controller) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let metrics = Metrics::new(None).map_err(|error| Fault::new(error.to_string()))?;
    for (name, why) in ELSEWHERE {
        let mut families = metrics.families().iter();
        let family = families.find(|family| family.name == name);
        let family =
            family.ok_or_else(|| Fault::new(format!("{name} ({why}) is not registered")))?;
        // This controller has an instance, which every series of it carries.
        let labels = family.labels.iter().cloned();
        let labels = labels.chain(["controller_instance".to_owned()]);
        found.insert(family.name.clone(), stored(labels));
    }
    for one in controller.series().await? {
        let labels = found.entry(one.name).or_default();
        labels.extend(OF_THE_TARGET.map(str::to_owned));
        for label in one.labels.into_keys() {
            let is_taken = OF_THE_TARGET.contains(&label.as_str());
            labels.insert(if is_taken { format!("exported_{label}") } else { label });
        }
    }
    Ok(found)
}

/// `controller` has scaled its sample, and has an instance.
pub(super) async fn are_exposed(
    cx: &Cx,
    controller: &Controller,
    objects: &[Value],
    release: &str,
) -> Result {
    let mut named = Named::default();
    for rule in rules(&mut groups()?) {
        named.expression(rule["expr"].as_str().unwrap_or_default());
    }
    dashboard(&mut named)?;
    scalers(&mut named, objects)?;
    assert!(named.series.len() > 35, "only {}", named.series.len());
    provoke(cx, objects, release).await?;
    eventually("every series that is named is there", SOON, async || {
        let exposed = exposed(controller).await?;
        let mut missing = Vec::new();
        for (series, labels) in &named.series {
            match exposed.get(series) {
                None => missing.push(series.clone()),
                Some(found) => {
                    let unknown = labels.difference(found);
                    missing.extend(unknown.map(|label| format!("{series}{{{label}}}")));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(Fault::new(missing.join(", ")))
    })
    .await
}
