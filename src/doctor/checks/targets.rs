//! Scale targets and their pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::arguments::{loaded_by, of_engines};
use super::autoscalers::unserved_kind;
use super::clocks;
use super::scalers::scalers;
use super::variants::{models, settings_of};
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::project::scaler::PAUSED_REPLICAS;
use crate::doctor::facts::{Facts, LiveKind, Reading};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName, condition, text};
use crate::doctor::probe::PrometheusProbe;
use crate::policy::key::{ModelKey, TargetKey, TargetKind};
use crate::policy::object::TargetReference;
use wva_base::text::counted;

/// How long a pod may wait for a node before that is worth a word, in seconds.
const START_GRACE: f64 = 30.0;
/// Reasons of containers that do not mend themselves.
const STUCK: [&str; 6] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
];
/// Programs that write `/scale` for a scaler.
const SCALERS: [&str; 4] =
    ["kube-controller-manager", "keda", "wva", "workload-variant-autoscaler"];
/// Words in names of models without a size that say how the same weights are stored.
const FORMS: [&str; 9] =
    ["hf", "gguf", "awq", "gptq", "bnb", "quantized", "dynamic", "static", "block"];
/// Words that say it with a number of bits; `#` is the number.
const SIZED_FORMS: [&str; 8] = ["int#", "fp#", "bf#", "nvfp#", "mxfp#", "w#a#", "#bit", "q#"];

checks! {
    Variants "targets exist" missing:
        Cluster Kind(VariantAutoscaling) Kind(Deployment) Kind(StatefulSet) Kind(LeaderWorkerSet);
    Variants "kinds of targets are known" kinds: Kind(VariantAutoscaling);
    Variants "every target has one variant" contested: Kind(VariantAutoscaling);
    Variants "models have names of their own" names:
        Kind(VariantAutoscaling) Kind(Deployment) Kind(StatefulSet) Kind(LeaderWorkerSet);
    Variants "only the scaler writes replicas" writers: Cluster Kind(VariantAutoscaling) Kind(Deployment);
    Variants "no target is at zero by hand" zero: Cluster Controllers Kind(VariantAutoscaling) Kind(Deployment);
    Variants "pods start" pods: Cluster Kind(VariantAutoscaling) Kind(Deployment) Kind(Pod);
    Variants "analyzers have their signals" throughput: Installed Kind(VariantAutoscaling) Series(RouterPicks);
}

pub(super) fn target_key(variant: &LiveObject) -> Option<TargetKey> {
    let spec = variant.read::<VariantAutoscaling>().ok()?.spec;
    let reference = TargetReference {
        api_version: spec.scale_target_ref.api_version.map(Arc::from),
        kind: Arc::from(spec.scale_target_ref.kind),
        name: Arc::from(spec.scale_target_ref.name),
    };
    reference.resolve(&Arc::from(variant.namespace()))
}

pub(in crate::doctor) fn live_kind(kind: &TargetKind) -> Option<LiveKind> {
    match kind {
        TargetKind::Deployment => Some(LiveKind::Deployment),
        TargetKind::StatefulSet => Some(LiveKind::StatefulSet),
        TargetKind::LeaderWorkerSet => Some(LiveKind::LeaderWorkerSet),
        TargetKind::Other(_) => None,
    }
}

/// The target of a variant, where it was read.
pub(super) fn target<'a>(facts: &'a Facts, variant: &LiveObject) -> Option<&'a LiveObject> {
    of_key(facts, &target_key(variant)?)
}

/// The target of a key, where it was read.
pub(super) fn of_key<'a>(facts: &'a Facts, key: &TargetKey) -> Option<&'a LiveObject> {
    facts.find(live_kind(&key.kind)?, &key.namespace, &key.name)
}

/// The targets that were read, each with its objects: several manifests may hold one.
pub(super) type ReadTargets<'a> = BTreeMap<TargetKey, Vec<&'a LiveObject>>;

pub(super) fn read_targets(facts: &Facts) -> ReadTargets<'_> {
    let kinds = [TargetKind::Deployment, TargetKind::StatefulSet, TargetKind::LeaderWorkerSet];
    let mut found = ReadTargets::new();
    for kind in kinds {
        for object in live_kind(&kind).map_or(&[][..], |kind| facts.all(kind)) {
            let key = TargetKey::new(object.namespace(), kind.clone(), object.name());
            found.entry(key).or_default().push(object);
        }
    }
    found
}

/// The target of a variant among those that were read.
pub(super) fn target_among<'a>(
    targets: &ReadTargets<'a>,
    variant: &LiveObject,
) -> Option<&'a LiveObject> {
    targets.get(&target_key(variant)?)?.first().copied()
}

/// The templates of the pods of a target: of groups first that of the leader.
pub(super) fn templates(target: &LiveObject) -> impl Iterator<Item = &Value> {
    let paths = [
        "/spec/template",
        "/spec/leaderWorkerTemplate/leaderTemplate",
        "/spec/leaderWorkerTemplate/workerTemplate",
    ];
    paths.into_iter().filter_map(|path| target.0.pointer(path))
}

/// The pods of a target that are not on their way out.
pub(super) fn pods_of<'a>(facts: &'a Facts, target: &LiveObject) -> Vec<&'a LiveObject> {
    let labels: Vec<(&str, &str)> = if target.kind() == "LeaderWorkerSet" {
        vec![("leaderworkerset.sigs.k8s.io/name", target.name())]
    } else {
        let labels = target.0.pointer("/spec/selector/matchLabels");
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        labels.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
    };
    if labels.is_empty() {
        return Vec::new();
    }
    let own = facts.all(LiveKind::Pod).iter().filter(|pod| {
        let matches = |(name, value): &(&str, &str)| pod.label(name) == Some(*value);
        let has_ended = matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
        pod.namespace() == target.namespace()
            && labels.iter().all(matches)
            && !pod.is_leaving()
            && !has_ended
    });
    own.collect()
}

/// The cause of a finding about a target that does not exist.
pub(super) fn missing_target(facts: &Facts, key: &TargetKey) -> Option<String> {
    let read = facts.objects.get(&live_kind(&key.kind)?);
    let is_read = matches!(read, Some(Reading::Known(_) | Reading::Absent));
    (is_read && of_key(facts, key).is_none()).then(|| format!("there is no {key}"))
}

fn missing(facts: &Facts) -> Vec<Finding> {
    let found = facts.variants().filter_map(|variant| {
        let cause = missing_target(facts, &target_key(variant)?)?;
        Some(FindingCode::TargetMissing.at(variant.title(), cause))
    });
    found.collect()
}

fn kinds(facts: &Facts) -> Vec<Finding> {
    let found = facts.variants().filter_map(|variant| {
        let cause = unknown_kind(variant)?;
        Some(FindingCode::TargetKindUnknown.at(variant.title(), cause))
    });
    found.collect()
}

/// Why a variant names no kind that can be scaled.
pub(super) fn unknown_kind(variant: &LiveObject) -> Option<String> {
    variant.read::<VariantAutoscaling>().ok()?;
    let kind = variant.text("/spec/scaleTargetRef/kind");
    let version = variant.text("/spec/scaleTargetRef/apiVersion");
    let Some(key) = target_key(variant) else {
        let why = format!("kind {kind:?} with apiVersion {version:?} names no resource");
        return Some(why);
    };
    // Of the kinds that are known by their group any version is taken.
    let is_other = matches!(key.kind, TargetKind::Other(_));
    let why = unserved_kind(version, &key.kind.to_string()).filter(|_| is_other)?;
    Some(format!("spec.scaleTargetRef.apiVersion: {why}"))
}

/// The variants that name each target.
pub(in crate::doctor) fn claimed(facts: &Facts) -> BTreeMap<TargetKey, Vec<&LiveObject>> {
    let mut claims: BTreeMap<TargetKey, Vec<&LiveObject>> = BTreeMap::new();
    for variant in facts.all(LiveKind::VariantAutoscaling) {
        if let Some(key) = target_key(variant).filter(|_| !variant.is_leaving()) {
            claims.entry(key).or_default().push(variant);
        }
    }
    claims
}

fn contested(facts: &Facts) -> Vec<Finding> {
    let found = claimed(facts).into_iter().filter_map(|(key, variants)| {
        let first = variants.first()?;
        // Manifests may have one object more than once.
        let mut others = variants.iter().rev();
        let last = others.find(|one| !one.title().is_of_same(&first.title()))?;
        let cause = format!("{} names {key} too; keep one of both", first.title());
        Some(FindingCode::TargetContested.at(last.title(), cause))
    });
    found.collect()
}

fn names(facts: &Facts) -> Vec<Finding> {
    let targets = read_targets(facts);
    let found = models(facts).into_iter().filter_map(|(model, variants)| {
        let run = variants.iter().filter_map(|variant| {
            let target = target_among(&targets, variant)?;
            Some((*variant, of_engines(target, loaded_by)?))
        });
        let run: Vec<(&LiveObject, Vec<&str>)> = run.collect();
        let (_, first) = run.first()?;
        let is_shared = |other: &[&str]| {
            let mut others = other.iter();
            others.any(|other| first.iter().any(|one| are_alike(one, other)))
        };
        let (variant, other) = run.iter().find(|(_, other)| !is_shared(other))?;
        let cause = format!(
            "variants with modelID {} run {} and {}",
            model.model,
            first.join(", "),
            other.join(", ")
        );
        Some(FindingCode::OneNameTwoModels.at(variant.title(), cause))
    });
    found.collect()
}

/// Whether a word of a name says how weights are stored.
fn is_form(word: &str) -> bool {
    let mut sized = String::new();
    for letter in word.chars() {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !sized.ends_with('#') {
            sized.push(letter);
        }
    }
    FORMS.contains(&word) || SIZED_FORMS.contains(&sized.as_str())
}

/// Whether a word of a name is its number of parameters, as in `8b` and `8x7b`.
fn is_size(word: &str) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let number = word.strip_suffix('b');
    number.is_some_and(|number| number.starts_with(is_digit) && number.ends_with(is_digit))
}

/// Whether two names may be of one model: copies and quantized forms keep its name, with words before or behind it. Of
/// names with a size, no word behind it counts: forms have ever new ones.
fn are_alike(one: &str, other: &str) -> bool {
    let base = |path: &str| {
        let name = path.trim_end_matches('/').rsplit('/').next();
        let name = name.unwrap_or_default().to_lowercase();
        let words = name.split(|letter: char| !letter.is_alphanumeric());
        let words: Vec<&str> = words.collect();
        let size = words.iter().position(|word| is_size(word));
        let words = words.iter().take(size.map_or(words.len(), |at| at + 1));
        let words = words.filter(|word| !is_form(word));
        words.copied().collect::<String>()
    };
    let (one, other) = (base(one), base(other));
    one.contains(&other) || other.contains(&one)
}

/// Managers that own the field of replicas: name, operation, subresource.
fn replica_owners(target: &LiveObject) -> impl Iterator<Item = (&str, &str, &str)> {
    let fields = target.list("/metadata/managedFields").iter();
    let own = fields.filter(|field| field.pointer("/fieldsV1/f:spec/f:replicas").is_some());
    own.map(|field| {
        (text(field, "/manager"), text(field, "/operation"), text(field, "/subresource"))
    })
}

fn writers(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for target in facts.variants().filter_map(|variant| target(facts, variant)) {
        let owners = target.list("/metadata/ownerReferences").iter();
        let parent = owners
            .filter(|owner| owner.pointer("/controller") == Some(&Value::Bool(true)))
            .map(|owner| format!("{} {}", text(owner, "/kind"), text(owner, "/name")))
            .next();
        for (manager, operation, subresource) in replica_owners(target) {
            let is_scaler = SCALERS.iter().any(|known| manager.starts_with(known));
            match &parent {
                Some(parent) if subresource.is_empty() && !is_scaler => {
                    let cause = format!("{manager} writes spec.replicas for {parent}");
                    found.push(FindingCode::ParentOwnsReplicas.at(target.title(), cause));
                }
                _ if !is_scaler && (subresource == "scale" || operation == "Apply") => {
                    let cause = format!("spec.replicas belongs to {manager} ({operation})");
                    found.push(FindingCode::TwoWritersOfScale.at(target.title(), cause));
                }
                _ => {}
            }
        }
    }
    found
}

/// Whether a variant may go to zero by its bounds and by the settings of its controller.
pub(super) fn may_go_to_zero(facts: &Facts, variant: &LiveObject) -> bool {
    let minimum = variant.number("/spec/minReplicas");
    if minimum.is_some_and(|minimum| minimum > 0) {
        return false;
    }
    let model = ModelKey::new(variant.namespace(), variant.text("/spec/modelID"));
    let mut settings = settings_of(facts, variant);
    settings.any(|one| one.dynamic.may_go_to_zero(&model))
}

fn zero(facts: &Facts) -> Vec<Finding> {
    // KEDA put it there and holds it, which is a finding of its own.
    let scalers = scalers(facts).into_iter();
    let paused = scalers.filter(|one| one.object.annotation(PAUSED_REPLICAS) == Some("0"));
    let paused: BTreeSet<TargetKey> = paused.filter_map(|one| one.kept.target.clone()).collect();
    let found = facts.variants().filter_map(|variant| {
        let target = target(facts, variant)?;
        if target_key(variant).is_some_and(|key| paused.contains(&key)) {
            return None;
        }
        let is_zero = target.number("/spec/replicas") == Some(0);
        let is_decided = variant.number("/status/desiredOptimizedAlloc/numReplicas") == Some(0);
        if !is_zero || is_decided || may_go_to_zero(facts, variant) {
            return None;
        }
        let cause = "spec.replicas is 0, which the controller did not decide, and scale to zero is off for the model";
        Some(FindingCode::AtZeroByHand.at(target.title(), cause))
    });
    found.collect()
}

fn pods(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for target in facts.variants().filter_map(|variant| target(facts, variant)) {
        let mut stuck = Vec::new();
        let mut gated = Vec::new();
        for pod in pods_of(facts, target) {
            if !pod.list("/spec/schedulingGates").is_empty() {
                gated.push(pod);
            } else if let Some(why) = obstacle(pod, facts.now) {
                stuck.push((pod, why));
            }
        }
        let refused = condition(&target.0, "ReplicaFailure");
        if let Some(refused) = refused.filter(|one| text(one, "/status") == "True") {
            let (reason, message) = (text(refused, "/reason"), text(refused, "/message"));
            let cause = format!("{reason}: {message}");
            found.push(FindingCode::PodsRefused.at(target.title(), cause));
        }
        if let Some((pod, why)) = stuck.first() {
            let cause = format!("{}, like {}: {why}", counted(stuck.len(), "pod"), pod.name());
            let finding = FindingCode::PodsDoNotStart.at(target.title(), cause);
            found.push(finding.with(pod.name()));
        }
        if let Some(pod) = gated.first() {
            let gate = pod.list("/spec/schedulingGates").first();
            let gate = gate.map_or("", |gate| text(gate, "/name"));
            let cause =
                format!("{}, like {}: held by {gate}", counted(gated.len(), "pod"), pod.name());
            let finding = FindingCode::PodsGated.at(target.title(), cause);
            found.push(finding.with(pod.name()));
        }
    }
    found
}

/// Why a pod does not start.
fn obstacle(pod: &LiveObject, now: f64) -> Option<String> {
    let statuses = pod.list("/status/initContainerStatuses").iter();
    let mut statuses = statuses.chain(pod.list("/status/containerStatuses"));
    let waiting = statuses.find_map(|status| {
        let waiting = status.pointer("/state/waiting")?;
        let reason = text(waiting, "/reason");
        STUCK.contains(&reason).then(|| format!("{reason}: {}", text(waiting, "/message")))
    });
    if waiting.is_some() {
        return waiting;
    }
    let created = clocks::seconds(pod.text("/metadata/creationTimestamp")).unwrap_or(0.0);
    let unscheduled = condition(&pod.0, "PodScheduled");
    let unscheduled = unscheduled.filter(|one| text(one, "/reason") == "Unschedulable")?;
    let message = text(unscheduled, "/message");
    (now - created > START_GRACE).then(|| format!("Unschedulable: {message}"))
}

fn throughput(facts: &Facts) -> Vec<Finding> {
    let picks = facts.series(PrometheusProbe::RouterPicks);
    let mut found = Vec::new();
    for (model, variants) in models(facts) {
        let has_router = picks.iter().any(|one| one.label("namespace") == &*model.namespace);
        if has_router {
            continue;
        }
        let settings = variants.iter().flat_map(|one| settings_of(facts, one));
        for generation in settings {
            let policy = generation.dynamic.saturation.policy(&model);
            let mut enabled = policy.analyzers.iter().filter(|analyzer| analyzer.enabled);
            let is_alone = enabled.next().is_some_and(|only| only.kind == "throughput")
                && enabled.next().is_none();
            if !is_alone {
                continue;
            }
            let cause = format!(
                "the entry of {} selects throughput alone, and Prometheus has no router series of the namespace",
                model.model
            );
            let statics = &generation.statics;
            let map = ObjectName::new(
                "ConfigMap",
                &statics.scope.system_namespace,
                &statics.config_maps.saturation,
            );
            found.push(FindingCode::ThroughputWithoutRouter.at(map, cause));
        }
    }
    found
}
