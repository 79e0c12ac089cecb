//! Model servers and routers, as Prometheus sees them.

use std::collections::BTreeSet;

use super::arguments::{is_unfilled, served};
use super::clocks;
use super::prometheus::server;
use super::targets::{may_go_to_zero, pods_of, read_targets, target, target_key, templates};
use crate::doctor::facts::{Facts, LiveKind, SeriesFact};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName, condition, text};
use crate::doctor::probe::PrometheusProbe;
use wva_base::duration::parse_duration;
use wva_base::text::counted;

/// Within this time a ready pod is found and scraped, in seconds.
const FIRST_SCRAPE: f64 = 60.0;

checks! {
    Engines "engines are scraped, under the names of their models" variants:
        Kind(VariantAutoscaling) Kind(Deployment) Kind(Pod) Series(Targets) Series(Pods) Series(Running)
        Series(EngineSeries);
    Engines "variants name what the manifests of their targets serve" named:
        Manifests Kind(VariantAutoscaling) Kind(Deployment) Kind(StatefulSet) Kind(LeaderWorkerSet);
    Engines "series of engines name their pods" labels: Series(Running);
    Engines "running requests belong to pods that exist" dead_pods:
        Cluster Kind(VariantAutoscaling) Kind(Pod) Series(Pods) Series(Running);
    Engines "routers have queues" flow_control: Kind(VariantAutoscaling) Series(RouterPicks) Series(RouterQueues);
    Engines "models at zero can be woken" wake:
        Cluster Installed Kind(VariantAutoscaling) Kind(Deployment) Kind(InferencePool) Kind(AlphaInferencePool);
    Engines "held requests outlive a start" expiry:
        Installed Kind(VariantAutoscaling) Kind(ConfigMap) Series(Starts);
}

/// Whether a pod has been ready for so long that it has been scraped.
fn is_settled(pod: &LiveObject, now: f64) -> bool {
    condition(&pod.0, "Ready").is_some_and(|one| {
        let since = clocks::seconds(text(one, "/lastTransitionTime"));
        text(one, "/status") == "True" && since.is_none_or(|since| now - since > FIRST_SCRAPE)
    })
}

/// The series of one of the pods.
fn of_pods<'a>(
    series: &'a [SeriesFact],
    namespace: &str,
    pods: &[&LiveObject],
) -> Vec<&'a SeriesFact> {
    let is_own = |one: &&SeriesFact| {
        one.label("namespace") == namespace && pods.iter().any(|pod| pod.name() == one.pod())
    };
    series.iter().filter(is_own).collect()
}

/// The first thing that is wrong with the metrics of each variant.
fn variants(facts: &Facts) -> Vec<Finding> {
    // An empty Prometheus is a finding of its own.
    if facts.series(PrometheusProbe::Targets).is_empty() {
        return Vec::new();
    }
    let running = facts.series(PrometheusProbe::Running);
    // So are series without labels: nothing can be said of single variants then.
    if running.iter().any(is_unlabelled) {
        return Vec::new();
    }
    let found = facts.variants().filter_map(|variant| {
        let target = target(facts, variant)?;
        let mut pods = pods_of(facts, target);
        let namespace = variant.namespace();
        // What they serve is known as soon as one of them is scraped.
        let series = of_pods(running, namespace, &pods);
        if !series.is_empty() {
            let names: BTreeSet<&str> = series.iter().map(|one| one.label("model_name")).collect();
            return other_name(variant, "its pods serve", &names);
        }
        pods.retain(|pod| is_settled(pod, facts.now));
        let pod = pods.first()?.name();
        let scraped = of_pods(facts.series(PrometheusProbe::Pods), namespace, &pods);
        let other = of_pods(facts.series(PrometheusProbe::EngineSeries), namespace, &pods);
        let ready = counted(pods.len(), "ready pod");
        let finding = if !other.is_empty() {
            let cause = format!(
                "{ready}, like {pod}: series of an engine, and none is the number of running requests of vLLM or SGLang"
            );
            FindingCode::UnknownGeneration.at(variant.title(), cause)
        } else if scraped.is_empty() {
            let cause = format!("{ready}, like {pod}: no target of Prometheus");
            FindingCode::EngineNotScraped.at(variant.title(), cause)
        } else if scraped.iter().all(|one| one.value < 1.0) {
            let cause = format!("{ready}, like {pod}: targets whose `up` is 0");
            FindingCode::EngineScrapeFails.at(variant.title(), cause)
        } else {
            let cause = format!(
                "{ready}, like {pod}: scraped, and the page has no series of vLLM or SGLang"
            );
            FindingCode::UnknownGeneration.at(variant.title(), cause)
        };
        Some(finding.with(pod))
    });
    found.collect()
}

/// The last part of a path, in small letters.
fn bare(model: &str) -> String {
    let last = model.trim_end_matches('/').rsplit('/').next();
    last.unwrap_or_default().to_lowercase()
}

/// The code of a model whose pods serve under these names only, and the name that is meant.
pub(in crate::doctor) fn spelling_code<'a>(
    model: &str,
    mut names: impl Iterator<Item = &'a str> + Clone,
) -> (FindingCode, &'a str) {
    match names.clone().find(|name| bare(name) == bare(model)) {
        Some(near) => (FindingCode::ModelNameSpelledOtherwise, near),
        None => (FindingCode::ModelNameDiffers, names.next().unwrap_or_default()),
    }
}

/// A model that is not among these names.
fn other_name(variant: &LiveObject, said: &str, names: &BTreeSet<&str>) -> Option<Finding> {
    let model = variant.text("/spec/modelID");
    if names.is_empty() || names.contains(model) {
        return None;
    }
    let list: Vec<&str> = names.iter().copied().collect();
    let cause = format!("modelID is {model:?}, and {said} {:?}", list.join(", "));
    let (code, value) = spelling_code(model, list.iter().copied());
    Some(code.at(variant.title(), cause).with(value))
}

/// The variants whose targets serve under other names. Of a target that stands in several files each has to differ.
fn named(facts: &Facts) -> Vec<Finding> {
    // A modelID of a template is not filled in yet.
    let variants = facts.variants();
    let variants = variants.filter(|one| !is_unfilled(one.text("/spec/modelID")));
    let targets = read_targets(facts);
    let found = variants.filter_map(|variant| {
        let key = target_key(variant)?;
        let own = targets.get(&key)?.iter().copied();
        let names: Vec<Vec<&str>> = own.map(served).collect::<Option<_>>()?;
        let names: BTreeSet<&str> = names.into_iter().flatten().collect();
        other_name(variant, &format!("the arguments of {key} say"), &names)
    });
    found.collect()
}

fn is_unlabelled(series: &SeriesFact) -> bool {
    series.pod().is_empty() || series.label("namespace").is_empty()
}

fn labels(facts: &Facts) -> Vec<Finding> {
    let series = facts.series(PrometheusProbe::Running).iter();
    let unlabelled: Vec<&SeriesFact> = series.filter(|one| is_unlabelled(one)).collect();
    let found = unlabelled.first().map(|first| {
        let missing = if first.pod().is_empty() { "pod" } else { "namespace" };
        let cause = format!(
            "{} series of running requests without label {missing}, like that of model {:?}",
            unlabelled.len(),
            first.label("model_name")
        );
        FindingCode::LabelsMissing.at(server(facts), cause)
    });
    found.into_iter().collect()
}

fn namespaces(facts: &Facts) -> BTreeSet<&str> {
    facts.variants().map(LiveObject::namespace).collect()
}

fn dead_pods(facts: &Facts) -> Vec<Finding> {
    let running = facts.series(PrometheusProbe::Running);
    // The series of a target that was removed last for about two scrapes more.
    let is_target = |namespace: &str, pod: &str| {
        let mut targets = facts.series(PrometheusProbe::Pods).iter();
        targets.any(|one| one.label("namespace") == namespace && one.pod() == pod)
    };
    let found = namespaces(facts).into_iter().filter_map(|namespace| {
        let dead = running.iter().filter(|one| {
            one.label("namespace") == namespace
                && one.value > 0.0
                && !one.pod().is_empty()
                && facts.find(LiveKind::Pod, namespace, one.pod()).is_none()
                && !is_target(namespace, one.pod())
        });
        let dead: Vec<&SeriesFact> = dead.collect();
        let first = dead.first()?;
        let cause = format!(
            "{} that no longer exist, like {} with {:.0} running requests",
            counted(dead.len(), "pod"),
            first.pod(),
            first.value
        );
        let object = ObjectName::new("Namespace", namespace, namespace);
        Some(FindingCode::SeriesOfDeadPods.at(object, cause))
    });
    found.collect()
}

fn flow_control(facts: &Facts) -> Vec<Finding> {
    let has = |probe, namespace: &str| {
        let mut series = facts.series(probe).iter();
        series.any(|one| one.label("namespace") == namespace)
    };
    let without = namespaces(facts).into_iter().filter(|namespace| {
        has(PrometheusProbe::RouterPicks, namespace)
            && !has(PrometheusProbe::RouterQueues, namespace)
    });
    let found = without.map(|namespace| {
        let cause = "its router places requests, and has no series of a flow control queue";
        FindingCode::FlowControlOff.at(ObjectName::new("Namespace", namespace, namespace), cause)
    });
    found.collect()
}

fn is_pooled(facts: &Facts, target: &LiveObject) -> bool {
    let kinds = [LiveKind::InferencePool, LiveKind::AlphaInferencePool];
    let pools = kinds.into_iter().flat_map(|kind| facts.all(kind));
    let mut pools = pools.filter(|pool| pool.namespace() == target.namespace());
    pools.any(|pool| {
        // Its groups differ in the form of the selector.
        let forms = ["/spec/selector/matchLabels", "/spec/selector"];
        let mut forms = forms.iter().filter_map(|form| pool.0.pointer(form));
        let labels = forms.find_map(serde_json::Value::as_object);
        // Of a group the leader serves.
        let own = templates(target).next();
        let own = own.and_then(|template| template.pointer("/metadata/labels"));
        labels.is_some_and(|labels| {
            labels.iter().all(|(name, value)| own.and_then(|own| own.get(name)) == Some(value))
        })
    })
}

fn wake(facts: &Facts) -> Vec<Finding> {
    let found = facts.variants().filter_map(|variant| {
        let target = target(facts, variant)?;
        let is_lonely = may_go_to_zero(facts, variant) && !is_pooled(facts, target);
        let cause = "scale to zero is enabled for its model, and no InferencePool selects the labels of its pods";
        is_lonely.then(|| FindingCode::NoWakeSignal.at(variant.title(), cause))
    });
    found.collect()
}

/// The shortest time that a router of the namespace holds a request, where a ConfigMap states it.
fn time_to_live(facts: &Facts, namespace: &str) -> Option<(std::time::Duration, String)> {
    let maps = facts.all(LiveKind::ConfigMap).iter();
    let maps = maps.filter(|map| map.namespace() == namespace);
    let stated = maps.flat_map(|map| {
        let data = map.0.pointer("/data").and_then(serde_json::Value::as_object);
        let texts = data.into_iter().flat_map(|data| data.values());
        let lines = texts.filter_map(serde_json::Value::as_str).flat_map(str::lines);
        lines.filter_map(move |line| {
            let (_, value) = line.split_once("defaultRequestTTL:")?;
            let value = value.trim().trim_matches(['"', '\'']);
            Some((parse_duration(value).ok()?, map.name().to_owned()))
        })
    });
    stated.filter(|(length, _)| !length.is_zero()).min()
}

fn expiry(facts: &Facts) -> Vec<Finding> {
    let starts = facts.series(PrometheusProbe::Starts);
    let found = facts.variants().filter_map(|variant| {
        let namespace = variant.namespace();
        let is_own = |one: &&SeriesFact| {
            [one.label("exported_namespace"), one.label("namespace")].contains(&namespace)
                && one.label("variant_name") == variant.name()
        };
        let start = starts.iter().find(is_own)?.value;
        let (limit, map) = time_to_live(facts, namespace)?;
        if limit.as_secs_f64() >= start || !may_go_to_zero(facts, variant) {
            return None;
        }
        let cause = format!(
            "ConfigMap {map} sets defaultRequestTTL {:.0} s, and a start of {} takes {start:.0} s",
            limit.as_secs_f64(),
            variant.name()
        );
        let object = ObjectName::new("ConfigMap", namespace, map);
        Some(FindingCode::RequestsExpireFirst.at(object, cause))
    });
    found.collect()
}
