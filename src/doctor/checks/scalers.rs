//! HorizontalPodAutoscalers and ScaledObjects, as the controller judges them, and what it does not judge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};
use serde_path_to_error::deserialize;

use super::annotations::{misspelt, unclear_switch};
use super::behavior::{fallbacks, windows};
use super::cluster::external_metrics;
use super::disputes::{CountReaders, claims, declaring, disputed, follow_rival, of_two_namespaces};
use super::prometheus::lacks_count;
use super::queries::{answers, texts};
use super::targets::{claimed, may_go_to_zero, missing_target, target_key, unknown_kind};
use crate::api::MANAGED_ANNOTATION;
use crate::api::scaled_object::{ScaledObject, Trigger};
use crate::api::variant_autoscaling::{DEFAULT_VARIANT_COST, VariantAutoscaling};
use crate::cluster::project::scaler::{EXTERNAL_VARIANT, ScalerObject, is_external, refused_idle};
use crate::cluster::project::{Interner, Projected as _};
use crate::doctor::facts::{FactSource, Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode, UnscaledTarget};
use crate::doctor::object::{LiveObject, MisshapenField, ObjectName, condition, text};
use crate::policy::actuation::{ActuationObstacle, judge};
use crate::policy::condition::ConditionReason;
use crate::policy::key::{ObjectKey, TargetKey, VariantKey};
use crate::policy::object::TargetReference;
use crate::policy::scaler::{Input, Published, Scaler, ScalerKind};
use crate::policy::snapshot::DeclaredBounds;
use crate::policy::units::Replicas;
use crate::policy::variant;
use crate::serve::external_scaler::refused;

checks! {
    Scalers "scalers can be read" shapes: Kind(VariantAutoscaling) Kind(HorizontalPodAutoscaler) Kind(ScaledObject);
    Scalers "a scaler follows every variant" followed:
        Cluster Kind(VariantAutoscaling) Kind(HorizontalPodAutoscaler) Kind(ScaledObject);
    Scalers "scalers of the manifests follow their variants" followed:
        Manifests Kind(VariantAutoscaling) Kind(HorizontalPodAutoscaler) Kind(ScaledObject);
    Scalers "scalers of counts follow them at once" windows:
        Kind(VariantAutoscaling) Kind(HorizontalPodAutoscaler) Kind(ScaledObject);
    Scalers "fallbacks keep replicas" fallbacks: Kind(ScaledObject);
    Scalers "scalers have their rights" rights: Cluster ScalerRights;
}

fn rights(facts: &Facts) -> Vec<Finding> {
    let rights = facts.scaler_rights.known().map_or(&[][..], Vec::as_slice);
    let missing = rights.iter().filter(|right| !right.is_granted);
    let found = missing.map(|right| {
        let cause = format!("its scaler {} may not {}", right.account, right.right);
        FindingCode::ScalerRightMissing.at(right.object.clone(), cause).with(right.account.as_str())
    });
    found.collect()
}

pub(in crate::doctor) fn scaled_target(object: &LiveObject) -> Option<TargetKey> {
    let reference = TargetReference {
        api_version: (object.0.pointer("/spec/scaleTargetRef/apiVersion"))
            .and_then(|version| version.as_str())
            .map(Arc::from),
        kind: match object.text("/spec/scaleTargetRef/kind") {
            "" => Arc::from(LiveKind::Deployment.as_str()),
            kind => Arc::from(kind),
        },
        name: Arc::from(object.text("/spec/scaleTargetRef/name")),
    };
    reference.resolve(&Arc::from(object.namespace()))
}

/// The VariantAutoscalings that name each target.
pub(super) type Claimed<'a> = BTreeMap<TargetKey, Vec<&'a LiveObject>>;

fn is_claimed(kept: &ScalerObject, claimed: &Claimed<'_>) -> bool {
    (kept.target.as_ref()).is_some_and(|key| claimed.contains_key(key))
}

/// A scaler with the object that it was read from.
#[derive(Debug)]
pub(super) struct ReadScaler<'a> {
    pub(super) object: &'a LiveObject,
    pub(super) kept: ScalerObject,
}

impl ReadScaler<'_> {
    /// The first count that it reads.
    pub(super) fn published(&self) -> Option<&Published> {
        let mut inputs = self.kept.scaler.inputs.iter();
        inputs.find_map(|input| match input {
            Input::Published(published) => Some(published),
            Input::ExternalScaler { .. } | Input::Other => None,
        })
    }

    /// Whether it reads a count of ours, from anywhere. An address of an external scaler shows that only on the target
    /// of a variant.
    pub(super) fn reads_count(&self, claimed: &Claimed<'_>) -> bool {
        let is_named = |input: &Input| match input {
            Input::Published(_) => true,
            Input::ExternalScaler { variant, .. } => variant.is_some(),
            Input::Other => false,
        };
        let is_named = self.kept.scaler.inputs.iter().any(is_named) || self.kept.declared.is_some();
        self.kept.reads_count() && (is_named || is_claimed(&self.kept, claimed))
    }
}

pub(super) fn read(object: &LiveObject) -> Result<ScalerObject, MisshapenField> {
    read_scaler(object.kind(), &object.0)
}

/// A scaler of a kind, as it is stored.
pub(crate) fn read_scaler(kind: &str, object: &Value) -> Result<ScalerObject, MisshapenField> {
    let texts = &mut Interner::default();
    if kind == ScalerKind::ScaledObject.as_str() {
        Ok(deserialize::<_, ScaledObject>(object)?.project(texts))
    } else {
        Ok(deserialize::<_, HorizontalPodAutoscaler>(object)?.project(texts))
    }
}

fn objects(facts: &Facts) -> impl Iterator<Item = &LiveObject> {
    let kinds = [LiveKind::HorizontalPodAutoscaler, LiveKind::ScaledObject];
    let all = kinds.into_iter().flat_map(|kind| facts.all(kind));
    all.filter(|object| !object.is_leaving())
}

/// Every scaler that can be read.
pub(super) fn scalers(facts: &Facts) -> Vec<ReadScaler<'_>> {
    let read = objects(facts).filter_map(|object| {
        let kept = read(object).ok()?;
        Some(ReadScaler { object, kept })
    });
    read.collect()
}

fn shapes(facts: &Facts) -> Vec<Finding> {
    let takes_annotations = facts.takes_annotations();
    let claimed = claimed(facts);
    let found = objects(facts).flat_map(|object| {
        let faults = match read(object) {
            Err(error) => vec![error.to_string()],
            Ok(kept) => {
                let is_copy = kept.scaler.made_for.is_some() || kept.generated.is_some();
                let is_switch = takes_annotations && !is_copy;
                let declared = (kept.declared.as_ref()).filter(|_| takes_annotations);
                let malformed = declared.and_then(|record| variant::read(&record.object).err());
                let malformed = malformed.map(|why| why.to_string());
                let malformed = malformed.or_else(|| unclear_switch(object, is_switch));
                let is_variant = declared.is_some() || malformed.is_some();
                let mut faults: Vec<String> = malformed.into_iter().collect();
                faults.extend(misspelt(object, is_variant, is_switch));
                // What is malformed names keys of its triggers.
                if faults.is_empty() {
                    faults.extend(refused_trigger(object, &kept, &claimed));
                    let [idle, min] = ["/spec/idleReplicaCount", "/spec/minReplicaCount"]
                        .map(|field| object.number(field));
                    let is_followed = ReadScaler { object, kept }.reads_count(&claimed);
                    faults.extend(refused_idle(idle, min).filter(|_| is_followed));
                }
                faults
            }
        };
        let faults = faults.into_iter();
        faults.map(move |why| FindingCode::VariantMalformed.at(object.title(), why))
    });
    found.chain(disputed(facts)).chain(ignored(facts)).collect()
}

/// Scalers that would be variants if a controller took them. What its trigger alone declares may be scaled by a
/// VariantAutoscaling all the same.
fn ignored(facts: &Facts) -> Vec<Finding> {
    if facts.takes_annotations() {
        return Vec::new();
    }
    let declaring = scalers(facts).into_iter();
    let claimed = claimed(facts);
    let declaring = declaring.filter(|one| {
        let is_annotated = || one.object.annotation(MANAGED_ANNOTATION).is_some();
        one.kept.declared.is_some() && (is_annotated() || !is_claimed(&one.kept, &claimed))
    });
    let found = declaring.map(|one| {
        let cause = "it declares a variant, and no controller has ANNOTATED_SCALERS_ENABLED=true";
        let controllers = facts.controllers();
        let place = controllers.first().map_or("", |one| &*one.key.namespace);
        let finding = FindingCode::AnnotationsNotTaken.at(one.object.title(), cause);
        finding.with(place)
    });
    found.collect()
}

/// Why the external scaler refuses a trigger of a ScaledObject, if it does. Of a variant that reads no count otherwise,
/// every external trigger is to be one of ours; on the target of a VariantAutoscaling until KEDA has other metrics of it.
fn refused_trigger(
    object: &LiveObject,
    kept: &ScalerObject,
    claimed: &Claimed<'_>,
) -> Option<String> {
    if kept.is_excluded {
        return None;
    }
    let is_unasked = object.list("/status/externalMetricNames").is_empty();
    let is_of_variant = kept.declared.is_some() || (is_unasked && is_claimed(kept, claimed));
    let is_needed = is_of_variant && !kept.reads_count();
    object.list("/spec/triggers").iter().find_map(|value| {
        let trigger: Trigger = serde_json::from_value(value.clone()).ok()?;
        let key = ObjectKey::new(object.namespace(), object.name());
        is_external(&trigger).then(|| refused(key, &trigger.metadata, is_needed))?
    })
}

/// The variants that scalers declare, without those that are malformed.
pub(in crate::doctor) fn declared(facts: &Facts) -> Vec<LiveObject> {
    let scalers = scalers(facts).into_iter();
    let read = scalers.filter_map(|ReadScaler { object, kept }| {
        let record = kept.declared?;
        let spec = variant::read(&record.object).ok()?;
        let cost = spec.cost.as_deref().unwrap_or(DEFAULT_VARIANT_COST);
        let count = record.object.stored.desired;
        let form = json!({
            "kind": object.kind(), "metadata": object.0.get("metadata"),
            "spec": {
                "modelID": &*spec.model_id, "scaleTargetRef": object.0.pointer("/spec/scaleTargetRef"),
                "variantCost": cost, "minReplicas": spec.min, "maxReplicas": spec.max,
                "scalingPolicy": spec.policy.scaling_policy.as_deref(),
            },
            "status": count.map(|count| json!({ "desiredOptimizedAlloc": { "numReplicas": count.0 } })),
        });
        Some(LiveObject::new(form).in_file(object.file().cloned()))
    });
    read.collect()
}

fn bounds(variant: &LiveObject) -> DeclaredBounds {
    let spec = variant.read::<VariantAutoscaling>().map(|object| object.spec);
    let (min, max) = spec.map_or((None, None), |spec| (spec.min_replicas, spec.max_replicas));
    DeclaredBounds { min: min.map(Replicas::from_count), max: max.map(Replicas::from_count) }
}

fn followed(facts: &Facts) -> Vec<Finding> {
    let all = scalers(facts);
    let of_objects = claimed(facts);
    let claimed = [&of_objects, &claims(facts, &declaring(facts))];
    let misread = answers(facts).into_iter().chain(texts(facts));
    let misread: Vec<ObjectName> = misread.map(|one| one.object).collect();
    let is_unserved = !external_metrics(facts).is_empty();
    let mut found = of_two_namespaces(facts, &all);
    let readers = CountReaders::new(facts, &all);
    let scaling = by_target(&all);
    for variant in facts.variants() {
        // A reference to no kind has a finding of its own.
        let target = target_key(variant).filter(|_| unknown_kind(variant).is_none());
        let Some(target) = target else {
            continue;
        };
        let is_contested =
            (claimed.iter()).filter_map(|all| all.get(&target)).any(|all| all.len() > 1);
        // Nothing of it is followed before it exists and has one variant.
        let is_unfit = || is_contested || missing_target(facts, &target).is_some();
        if facts.source == FactSource::Cluster && is_unfit() {
            continue;
        }
        let own = scaling.get(&target).cloned().unwrap_or_default();
        let is_direct = is_scaled_directly(&variant.0);
        if own.is_empty()
            && !is_direct
            && let Some(reader) = readers.scaling_another(variant, &target)
        {
            found.push(reader);
            continue;
        }
        // Files may hold alternatives, and the scaler may be elsewhere.
        if facts.source == FactSource::Files {
            let is_variant = |one: &&ReadScaler<'_>| one.object.title() == variant.title();
            let is_scaler = own.iter().any(is_variant);
            let rivals = of_objects.get(&target).map_or(&[][..], Vec::as_slice);
            for own in &of_one_file(&own) {
                let is_other = is_scaler && !own.iter().any(is_variant);
                let mut judged = judged(variant, own);
                judged.retain(|one| !is_other && !is_refused(own, one, &of_objects));
                // That is said of both variants.
                judged.retain(|one| !is_contested || one.code != FindingCode::SeveralScalers);
                let is_rivals = follow_rival(variant, rivals, own);
                judged.retain(|one| !is_rivals || one.code != FindingCode::CountNotRead);
                found.extend(judged);
            }
        } else {
            // A scaler that gets no count fails because of that, which has a finding of its own.
            let is_explained = lacks_count(facts, variant)
                || own.iter().any(|one| misread.contains(&one.object.title()));
            let mut judged = judged(variant, &own);
            judged.retain(|one| !is_explained || one.code != FindingCode::ScalerFails);
            judged.retain(|one| !is_unserved || !one.cause.contains("(FailedGetExternalMetric"));
            judged.retain(|one| !is_refused(&own, one, &of_objects));
            // Where zero is forbidden, another check says that the target is there.
            let is_new = may_go_to_zero(facts, variant);
            judged.retain(|one| is_new || one.code != FindingCode::AtZeroByHand);
            judged.retain(|one| !is_direct || one.code != FindingCode::NoScaler);
            let rests = is_new || variant.number("/spec/minReplicas") == Some(0);
            found.extend(judged.into_iter().map(|one| {
                let is_unscaled = one.code == FindingCode::NoScaler;
                let target = is_unscaled.then(|| unscaled(variant, rests)).flatten();
                Finding { target, ..one }
            }));
        }
    }
    found
}

fn by_target<'a>(all: &'a [ReadScaler<'a>]) -> BTreeMap<&'a TargetKey, Vec<&'a ReadScaler<'a>>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for one in all {
        if let Some(target) = &one.kept.target {
            found.entry(target).or_default().push(one);
        }
    }
    found
}

/// The target that a scaler of a variant names.
fn unscaled(variant: &LiveObject, rests: bool) -> Option<UnscaledTarget> {
    let spec = variant.read::<VariantAutoscaling>().ok()?.spec;
    let reference = spec.scale_target_ref;
    let stated = reference.api_version.filter(|stated| !stated.is_empty());
    let api_version = stated.unwrap_or_else(|| match &*reference.kind {
        "LeaderWorkerSet" => "leaderworkerset.x-k8s.io/v1".to_owned(),
        _ => "apps/v1".to_owned(),
    });
    Some(UnscaledTarget { api_version, kind: reference.kind, name: reference.name, rests })
}

/// Whether the controller says that it scales the target itself.
pub(crate) fn is_scaled_directly(variant: &Value) -> bool {
    condition(variant, "ActuationReady")
        .is_some_and(|one| text(one, "/reason") == ConditionReason::ScaledDirectly.as_str())
}

/// Scalers that stand in one file. Of two with one name only one can exist.
fn of_one_file<'a>(all: &[&'a ReadScaler<'a>]) -> Vec<Vec<&'a ReadScaler<'a>>> {
    let mut groups: Vec<Vec<&ReadScaler<'_>>> = Vec::new();
    for one in all {
        let title = one.object.title();
        let is_near = |other: &&ReadScaler<'_>| {
            let other = other.object.title();
            other != title && other.file == title.file
        };
        match groups.iter_mut().find(|group| group.iter().all(is_near)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Whether a scaler reads no count because a key of its trigger is refused, which is a finding of its own.
fn is_refused(scalers: &[&ReadScaler<'_>], finding: &Finding, claimed: &Claimed<'_>) -> bool {
    let mut scalers = scalers.iter();
    finding.code == FindingCode::CountNotRead
        && scalers.any(|one| refused_trigger(one.object, &one.kept, claimed).is_some())
}

/// The findings of the controller's own judge about one variant.
pub(super) fn judged(variant: &LiveObject, scalers: &[&ReadScaler<'_>]) -> Vec<Finding> {
    let key = VariantKey::new(variant.namespace(), variant.name());
    let mut own: Vec<Scaler> = scalers.iter().map(|one| one.kept.scaler.clone()).collect();
    if variant.namespace().is_empty() {
        own.iter_mut().for_each(forget_namespace);
    }
    let desired = variant.number("/status/desiredOptimizedAlloc/numReplicas");
    let desired = desired.and_then(|count| i32::try_from(count).ok());
    let desired = desired.map(Replicas::from_count);
    let obstacles = judge(&own, &key, bounds(variant), desired);
    let scaler = scalers.first().map(|one| one.object);
    let found = obstacles.into_iter().map(|obstacle| {
        let code = obstacle_code(&obstacle);
        let is_of_variant = matches!(
            obstacle,
            ActuationObstacle::NoScaler | ActuationObstacle::SeveralScalers { .. }
        );
        let object = scaler.filter(|_| !is_of_variant).unwrap_or(variant);
        let paused = scalers.first().and_then(|one| one.kept.target.as_ref());
        let paused = paused.filter(|_| code == FindingCode::AtZeroByHand);
        let title = paused.map_or_else(
            || object.title(),
            |key| ObjectName::new(key.kind.to_string(), &*key.namespace, &*key.name),
        );
        let named = scalers.iter().find_map(|one| other_variant(&one.kept));
        let named = named.filter(|_| code == FindingCode::CountNotRead);
        let text = named.map_or_else(
            || obstacle.text(&key),
            |named| {
                format!(
                    "its trigger reads the count of {named:?}; set {EXTERNAL_VARIANT} to {:?}, or remove it",
                    &*key.name
                )
            },
        );
        code.at(title, text)
    });
    found.collect()
}

/// The variant that a trigger of the external scaler names.
fn other_variant(kept: &ScalerObject) -> Option<&str> {
    let mut inputs = kept.scaler.inputs.iter();
    inputs.find_map(|input| match input {
        Input::ExternalScaler { variant, .. } => variant.as_deref(),
        Input::Published(_) | Input::Other => None,
    })
}

/// A manifest without a namespace goes wherever it is applied.
fn forget_namespace(scaler: &mut Scaler) {
    for input in &mut scaler.inputs {
        if let Input::Published(published) = input {
            published.namespace = None;
        }
    }
}

pub(in crate::doctor) const fn obstacle_code(obstacle: &ActuationObstacle) -> FindingCode {
    match obstacle {
        ActuationObstacle::NoScaler => FindingCode::NoScaler,
        ActuationObstacle::SeveralScalers { .. } => FindingCode::SeveralScalers,
        ActuationObstacle::NotRead { .. } => FindingCode::CountNotRead,
        ActuationObstacle::WrongAim { .. } => FindingCode::WrongTarget,
        ActuationObstacle::Paused { .. } | ActuationObstacle::GrowthPaused { .. } => {
            FindingCode::ScalerPaused
        }
        ActuationObstacle::AtZeroByHand { .. } => FindingCode::AtZeroByHand,
        ActuationObstacle::Failing { .. } => FindingCode::ScalerFails,
        ActuationObstacle::Minimum { .. } => FindingCode::ScalerMinimum,
        ActuationObstacle::Maximum { .. } => FindingCode::ScalerMaximum,
        ActuationObstacle::Tolerance { .. } => FindingCode::ScalerTolerance,
        ActuationObstacle::NullIsZero { .. } => FindingCode::NullCountsAsZero,
    }
}

/// What is wrong with scalers of manifests whose variant is elsewhere.
pub(super) fn unattached(facts: &Facts, all: &[ReadScaler<'_>]) -> Vec<Finding> {
    if facts.source != FactSource::Files {
        return Vec::new();
    }
    let targets: BTreeSet<TargetKey> = facts.every_variant().filter_map(target_key).collect();
    let mut found = Vec::new();
    for one in all {
        let is_judged = one.kept.target.as_ref().is_some_and(|key| targets.contains(key));
        let Some(published) = one.published().filter(|_| !is_judged) else {
            continue;
        };
        let none = || Arc::from("");
        let key = VariantKey {
            namespace: published.namespace.clone().unwrap_or_else(none),
            name: published.variant.clone().unwrap_or_else(none),
        };
        let bounds = DeclaredBounds { min: None, max: None };
        let obstacles = judge(std::slice::from_ref(&one.kept.scaler), &key, bounds, None);
        found.extend(
            obstacles.iter().map(|obstacle| {
                obstacle_code(obstacle).at(one.object.title(), obstacle.text(&key))
            }),
        );
    }
    found
}
