//! Rows of the fleet, from its objects.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::objects::FleetObjects;
use crate::cluster::project::variant::MANAGED_ANNOTATION;
use crate::doctor::checks::{autoscaler_code, is_scaled_directly};
use crate::doctor::object::{condition, list, text};
use crate::policy::pod_autoscaler::condition::{ASLEEP, CONFLICT};
use crate::policy::units::Cost;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct FleetStatus {
    /// Sorted by namespace, model and name.
    pub(super) variants: Vec<VariantRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) pod_autoscalers: Vec<PodAutoscalerRow>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplicaCounts {
    /// Replicas that exist; `None` where the target is not read.
    pub(super) current: Option<u64>,
    pub(super) ready: Option<u64>,
    /// Of these, not ready and not gated.
    pub(super) pending: Option<u64>,
    /// Of these, held by scheduling gates; `None` where pods are not read.
    pub(super) gated: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VariantRow {
    pub(super) namespace: String,
    pub(super) model: String,
    pub(super) name: String,
    /// Kind and name of the scale target.
    pub(super) target: String,
    #[serde(flatten)]
    pub(super) replicas: ReplicaCounts,
    /// The published count.
    pub(super) desired: Option<u64>,
    pub(super) scaler: Option<String>,
    /// Status of the condition `Ready`.
    pub(super) is_ready: Option<String>,
    /// Cost of all current replicas, in the unit of `variantCost`.
    pub(super) cost: Option<f64>,
    /// Age of the oldest sample of its pods; known to the controller alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal_age: Option<String>,
    /// The last decision in words.
    pub(super) decision: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodAutoscalerRow {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) target: String,
    pub(super) strategy: String,
    #[serde(flatten)]
    pub(super) replicas: ReplicaCounts,
    /// The wanted count.
    pub(super) desired: Option<u64>,
    /// The last decision in words.
    pub(super) decision: String,
    /// Whether these words are of a condition that fails now.
    #[serde(skip)]
    pub(super) is_failing: bool,
}

/// Namespace, kind and name of a scale target.
pub(in crate::cli) type TargetPlace<'a> = (&'a str, &'a str, &'a str);

#[derive(Debug)]
struct Targets<'a> {
    counts: BTreeMap<TargetPlace<'a>, ReplicaCounts>,
    scalers: BTreeMap<TargetPlace<'a>, Vec<String>>,
}

impl FleetStatus {
    pub(in crate::cli) fn of(objects: &FleetObjects) -> Self {
        let targets = Targets::of(objects);
        let claims = Claims::of(objects);
        let variants = objects.variants.iter().chain(&objects.declared);
        let mut variants: Vec<VariantRow> = variants
            .map(|object| {
                let row = variant(object, &targets);
                match claims.dispute(object) {
                    Some(decision) => {
                        VariantRow { is_ready: Some("False".to_owned()), decision, ..row }
                    }
                    None => row,
                }
            })
            .collect();
        let key = |row: &VariantRow| (row.namespace.clone(), row.model.clone(), row.name.clone());
        variants.sort_by_key(key);
        let autoscalers = objects.pod_autoscalers.iter();
        let mut pod_autoscalers: Vec<PodAutoscalerRow> =
            autoscalers.map(|object| pod_autoscaler(object, &targets)).collect();
        pod_autoscalers.sort_by_key(|row| (row.namespace.clone(), row.name.clone()));
        Self { variants, pod_autoscalers, notes: objects.notes.clone() }
    }
}

impl<'a> Targets<'a> {
    fn of(objects: &'a FleetObjects) -> Self {
        let counts = objects.workloads.iter().map(|(kind, object)| {
            let (namespace, name) = identity(object);
            let gated = objects.gated.as_deref();
            let gated = gated.map(|pods| gated_of(pods, kind, object));
            ((namespace, *kind, name), counts(object, gated))
        });
        let mut scalers: BTreeMap<TargetPlace<'a>, Vec<String>> = BTreeMap::new();
        let mut add = |object: &'a Value, kind: &str| {
            let (_, name) = identity(object);
            let found = scalers.entry(target_place(object)).or_default();
            found.push(format!("{kind}/{name}"));
        };
        for object in &objects.scaled_objects {
            add(object, "ScaledObject");
        }
        // The one that KEDA makes is part of its ScaledObject.
        for object in objects.hpas.iter().filter(|hpa| !is_of_keda(hpa)) {
            add(object, "HPA");
        }
        Self { counts: counts.collect(), scalers }
    }
}

/// What each variant that makes sense claims.
#[derive(Debug, Default)]
struct Claims<'a> {
    targets: BTreeMap<TargetPlace<'a>, Vec<&'a Value>>,
    names: BTreeMap<(&'a str, &'a str), Vec<&'a Value>>,
}

impl<'a> Claims<'a> {
    fn of(objects: &'a FleetObjects) -> Self {
        let mut claims = Self::default();
        let all = objects.variants.iter().chain(&objects.declared);
        for object in all.filter(|object| makes_sense(object)) {
            let of_target = claims.targets.entry(target_place(object));
            of_target.or_default().push(object);
            let of_name = claims.names.entry(identity(object));
            of_name.or_default().push(object);
        }
        claims
    }

    /// That another object has the name or the target of a variant, where a scaler declares one of both. Among
    /// VariantAutoscalings alone a condition says it.
    fn dispute(&self, object: &Value) -> Option<String> {
        if !makes_sense(object) {
            return None;
        }
        let is_rival = |other: &&Value| {
            let is_declared = [*other, object].into_iter().any(|one| kind(one) != VARIANT);
            let is_live = other.pointer("/metadata/deletionTimestamp").is_none();
            !std::ptr::eq(*other, object) && is_declared && is_live
        };
        let is_of_one = |other: &&Value| instance(other) == instance(object);
        // Another instance that has stored a count scales it.
        let scales = |other: &&Value| is_of_one(other) || desired(other).is_some();
        let of_target = self.targets.get(&target_place(object)).into_iter();
        let mut of_target = of_target.flatten().copied().filter(is_rival);
        let of_name = self.names.get(&identity(object)).into_iter();
        let mut of_name = of_name.flatten().copied().filter(is_rival);
        let (what, rival) = match of_target.find(scales) {
            Some(rival) => ("scale target", rival),
            None => ("variant name", of_name.find(is_of_one)?),
        };
        Some(format!(
            "{} and {} claim one {what}, and none of them scales it; delete one, or set its annotation \
             {MANAGED_ANNOTATION} to \"false\"",
            title(object),
            title(rival)
        ))
    }
}

fn instance(object: &Value) -> &str {
    text(object, "/metadata/labels/wva.llmd.ai~1controller-instance")
}

/// Kind, namespace and name.
pub(in crate::cli) fn title(object: &Value) -> String {
    let (namespace, name) = identity(object);
    format!("{} {namespace}/{name}", kind(object))
}

const VARIANT: &str = "VariantAutoscaling";

/// Items of a list state no kind.
fn kind(object: &Value) -> &str {
    match text(object, "/kind") {
        "" => VARIANT,
        kind => kind,
    }
}

/// What is malformed takes nothing from others.
fn makes_sense(object: &Value) -> bool {
    !text(object, "/spec/modelID").is_empty()
}

fn desired(object: &Value) -> Option<u64> {
    number(object, "/status/desiredOptimizedAlloc/numReplicas")
}

impl FleetObjects {
    /// The object of a name, with its target and its last decision in words.
    pub(in crate::cli) fn named<'a>(
        &'a self,
        fleet: &'a FleetStatus,
        namespace: &str,
        name: &str,
    ) -> Option<(&'a Value, &'a str, &'a str)> {
        let is_it = |object: &&Value| identity(object) == (namespace, name);
        let mut variants = self.variants.iter().chain(&self.declared);
        if let Some(object) = variants.find(is_it) {
            let mut rows = fleet.variants.iter();
            let row = rows.find(|row| row.namespace == namespace && row.name == name)?;
            return Some((object, &row.target, &row.decision));
        }
        let object = self.pod_autoscalers.iter().find(is_it)?;
        let mut rows = fleet.pod_autoscalers.iter();
        let row = rows.find(|row| row.namespace == namespace && row.name == name)?;
        Some((object, &row.target, &row.decision))
    }
}

fn is_of_keda(hpa: &Value) -> bool {
    let mut owners = list(hpa, "/metadata/ownerReferences").iter();
    owners.any(|owner| {
        text(owner, "/kind") == "ScaledObject" && text(owner, "/apiVersion").starts_with("keda.sh/")
    })
}

fn target_kind(reference: &Value) -> &str {
    match text(reference, "/kind") {
        "" => "Deployment",
        kind => kind,
    }
}

/// The scale target of an object of this project, or of a scaler.
pub(in crate::cli) fn target_place(object: &Value) -> TargetPlace<'_> {
    let reference = object.pointer("/spec/scaleTargetRef");
    let reference = reference.unwrap_or(&Value::Null);
    let (namespace, _) = identity(object);
    (namespace, target_kind(reference), text(reference, "/name"))
}

/// Namespace and name.
pub(in crate::cli) fn identity(object: &Value) -> (&str, &str) {
    (text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

fn number(object: &Value, path: &str) -> Option<u64> {
    object.pointer(path).and_then(Value::as_u64)
}

/// Replicas of a workload among these pods. The leader stands for its group.
fn gated_of(pods: &[Value], kind: &str, workload: &Value) -> u64 {
    let (namespace, name) = identity(workload);
    let selected = workload.pointer("/spec/selector/matchLabels");
    let selected = selected.and_then(Value::as_object);
    let is_own = |pod: &&Value| {
        let label = |label: &str| pod.pointer("/metadata/labels")?.get(label)?.as_str();
        let is_selected = match kind {
            "LeaderWorkerSet" => {
                label("leaderworkerset.sigs.k8s.io/name") == Some(name)
                    && label("leaderworkerset.sigs.k8s.io/worker-index") == Some("0")
            }
            _ => selected.is_some_and(|selected| {
                !selected.is_empty()
                    && (selected.iter()).all(|(name, value)| label(name) == value.as_str())
            }),
        };
        identity(pod).0 == namespace && is_selected
    };
    pods.iter().filter(is_own).map(|_| 1).sum()
}

fn counts(object: &Value, gated: Option<u64>) -> ReplicaCounts {
    let stated = number(object, "/spec/replicas").unwrap_or(1);
    let current = match number(object, "/status/replicas") {
        None | Some(0) => stated,
        Some(current) => current,
    };
    let ready = number(object, "/status/readyReplicas").unwrap_or(0);
    ReplicaCounts {
        current: Some(current),
        ready: Some(ready),
        pending: Some(current.saturating_sub(ready + gated.unwrap_or(0))),
        gated,
    }
}

fn variant(object: &Value, targets: &Targets<'_>) -> VariantRow {
    let (namespace, name) = identity(object);
    let place = target_place(object);
    let replicas = targets.counts.get(&place).copied().unwrap_or_default();
    let cost = match text(object, "/spec/variantCost") {
        "" => Some(Cost::DEFAULT),
        stated => Cost::parse(stated).ok(),
    };
    let cost = cost.zip(replicas.current).and_then(|(cost, current)| {
        let current = u32::try_from(current).ok()?;
        Some(cost.millionths() * f64::from(current) / 1e6)
    });
    VariantRow {
        namespace: namespace.to_owned(),
        model: text(object, "/spec/modelID").to_owned(),
        name: name.to_owned(),
        target: format!("{}/{}", place.1, place.2),
        replicas,
        desired: desired(object),
        scaler: (targets.scalers.get(&place).map(|found| found.join(", ")))
            .or_else(|| is_scaled_directly(object).then(|| "direct".to_owned())),
        is_ready: condition(object, "Ready").map(|found| text(found, "/status").to_owned()),
        cost,
        signal_age: None,
        decision: decision(object),
    }
}

/// The first of these conditions that does not hold.
fn failing<'a>(object: &'a Value, kinds: &[&str]) -> Option<&'a Value> {
    let mut found = kinds.iter().filter_map(|kind| condition(object, kind));
    found.find(|found| text(found, "/status") == "False")
}

/// What the conditions state about the last decision: the first that does not hold, else the decision.
fn decision(object: &Value) -> String {
    let kinds = ["TargetResolved", "MetricsAvailable", "OptimizationReady", "ActuationReady"];
    let shown = failing(object, &kinds).or_else(|| condition(object, "OptimizationReady"));
    shown.map_or_else(
        || "no controller has written a status".to_owned(),
        |shown| text(shown, "/message").to_owned(),
    )
}

fn pod_autoscaler(object: &Value, targets: &Targets<'_>) -> PodAutoscalerRow {
    let (namespace, name) = identity(object);
    let place = target_place(object);
    let mut replicas = targets.counts.get(&place).copied().unwrap_or_default();
    replicas.current = replicas.current.or_else(|| number(object, "/status/actualScale"));
    let fault = fault(object);
    let shown = fault
        .map(|fault| text(fault, "/message"))
        .or_else(|| last_scaling(object))
        .or_else(|| unfinished(object));
    PodAutoscalerRow {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        target: format!("{}/{}", place.1, place.2),
        strategy: text(object, "/spec/scalingStrategy").to_owned(),
        replicas,
        desired: number(object, "/status/desiredScale"),
        decision: shown.unwrap_or("-").to_owned(),
        is_failing: fault.is_some(),
    }
}

/// The first condition of a PodAutoscaler that is a finding of `wva doctor`. An annotation without effect keeps nothing
/// from scaling.
fn fault(object: &Value) -> Option<&Value> {
    let kinds = ["ValidSpec", CONFLICT, "AbleToScale", "MetricsAvailable", "ScalingActive", ASLEEP];
    let mut found = kinds.iter().filter_map(|kind| condition(object, kind));
    found.find(|found| {
        let [kind, status, reason] = ["/type", "/status", "/reason"].map(|path| text(found, path));
        autoscaler_code(kind, status, reason).is_some()
    })
}

/// Why a PodAutoscaler scaled last. A failure that lasts has a condition; the history keeps those that are over, too.
fn last_scaling(object: &Value) -> Option<&str> {
    let history = object.pointer("/status/scalingHistory")?.as_array()?;
    let mut newest = history.iter().rev();
    let scaled = newest.find(|entry| entry.get("success").and_then(Value::as_bool) == Some(true));
    scaled.map(|entry| text(entry, "/reason"))
}

/// What is not known or not at its count yet, without being a failure.
fn unfinished(object: &Value) -> Option<&str> {
    let metrics = condition(object, "MetricsAvailable");
    let metrics = metrics.filter(|found| text(found, "/status") != "True");
    let shown = metrics.or_else(|| failing(object, &["ScalingActive"]));
    shown.map(|shown| text(shown, "/message"))
}
