//! Variants that claim one target or one name, and scalers of a count that scale another target.

use std::collections::{BTreeMap, BTreeSet};

use super::queries::{asked, selects_instance};
use super::scalers::{ReadScaler, judged, read, scaled_target, scalers};
use super::targets::{claimed, target_key};
use super::variants::may_be_handled;
use crate::api::MANAGED_ANNOTATION;
use crate::cluster::project::keda::selects_namespace;
use crate::cluster::project::scaler::ScalerObject;
use crate::doctor::facts::{Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName};
use crate::policy::key::TargetKey;
use crate::policy::scaler::{Input, ScalerKind};
use crate::policy::variant;

/// The variants of each target, with the scalers that declare one, as far as a controller takes them.
pub(super) fn claims<'a>(
    facts: &'a Facts,
    declared: &[ReadScaler<'a>],
) -> BTreeMap<TargetKey, Vec<&'a LiveObject>> {
    let mut claims = claimed(facts);
    // What is malformed scales nothing, and takes nothing from others.
    let is_sound = |kept: &ScalerObject| {
        let declared = kept.declared.as_ref();
        declared.is_some_and(|record| variant::read(&record.object).is_ok())
    };
    for ReadScaler { object, kept } in declared {
        if let Some(target) = kept.target.as_ref().filter(|_| is_sound(kept)) {
            claims.entry(target.clone()).or_default().push(object);
        }
    }
    for all in claims.values_mut() {
        all.retain(|one| may_be_handled(facts, one));
    }
    claims
}

/// The scalers that declare a variant, malformed or not.
pub(super) fn declaring(facts: &Facts) -> Vec<ReadScaler<'_>> {
    let mut declaring = scalers(facts);
    let takes_annotations = facts.takes_annotations();
    declaring.retain(|one| takes_annotations && one.kept.declared.is_some());
    declaring
}

/// Variants of one target of which an annotated scaler declares one at least, and variants of one name.
pub(super) fn disputed(facts: &Facts) -> Vec<Finding> {
    let declared = declaring(facts);
    let claims = claims(facts, &declared);
    let pairs = (claims.values()).flat_map(|all| all.iter().map(move |one| (one, all)));
    let of_target = pairs.filter_map(|(one, all)| {
        // Among VariantAutoscalings alone another check says it.
        let is_rival = |other: &&&LiveObject| {
            let is_declared = [one, **other].into_iter().any(|one| !is_variant(one));
            !other.title().is_of_same(&one.title()) && is_declared
        };
        let other = all.iter().find(is_rival)?;
        let cause = format!("{} names its target too; keep one of both", other.title());
        Some(contested(one, cause))
    });
    let mut found: Vec<Finding> = of_target.collect();
    let all: Vec<&LiveObject> = claims.into_values().flatten().collect();
    let mut namesakes: BTreeMap<(&str, &str), Vec<&LiveObject>> = BTreeMap::new();
    for one in all.iter().copied() {
        let key = (one.namespace(), one.name());
        namesakes.entry(key).or_default().push(one);
    }
    let known: BTreeSet<ObjectName> = found.iter().map(|one| one.object.clone()).collect();
    for one in all {
        let is_other = |other: &&&LiveObject| identity(other) != identity(one);
        let all = namesakes.get(&(one.namespace(), one.name()));
        let other = all.and_then(|all| all.iter().find(is_other));
        if let Some(other) = other.filter(|_| !known.contains(&one.title())) {
            let cause =
                format!("{} is a variant of the same name; keep one of both", other.title());
            found.push(contested(one, cause));
        }
    }
    // Scalers of other variants have no finding in any check.
    let name = facts.variant.as_ref();
    found.retain(|one| {
        let is_variant = one.object.kind == LiveKind::VariantAutoscaling.as_str();
        !is_variant || name.is_none_or(|name| *name == one.object.name)
    });
    found
}

/// The scalers of other variants than the one to look at: they are not it, and neither scale its target nor, unless they
/// are variants themselves, read its count.
pub(in crate::doctor) fn of_others(facts: &Facts) -> BTreeSet<ObjectName> {
    let Some(name) = facts.variant.as_deref() else {
        return BTreeSet::new();
    };
    let asked: BTreeSet<TargetKey> = facts.variants().filter_map(target_key).collect();
    let reads = |object: &LiveObject| {
        let kept = read(object).ok();
        kept.is_some_and(|kept| {
            kept.scaler.inputs.iter().any(|one| named_variant(one) == Some(name))
        })
    };
    let is_variant = |object: &LiveObject| {
        let managed = object.annotation(MANAGED_ANNOTATION);
        managed.is_some_and(|managed| managed != "false")
    };
    let kinds = [LiveKind::HorizontalPodAutoscaler, LiveKind::ScaledObject];
    let others = kinds.into_iter().flat_map(|kind| facts.all(kind));
    let others = others.filter(|object| {
        let scales = scaled_target(object).is_some_and(|key| asked.contains(&key));
        !scales && object.name() != name && (is_variant(object) || !reads(object))
    });
    others.map(LiveObject::title).collect()
}

/// The variant whose count an input names.
pub(crate) fn named_variant(input: &Input) -> Option<&str> {
    match input {
        Input::Published(count) => count.variant.as_deref(),
        Input::ExternalScaler { variant, .. } => variant.as_deref(),
        Input::Other => None,
    }
}

/// The variant that an object is, in whichever files: kind, namespace and name.
fn identity(object: &LiveObject) -> (&str, &str, &str) {
    (object.kind(), object.namespace(), object.name())
}

/// The scalers that read the counts of variants, by the names of the variants.
#[derive(Debug)]
pub(super) struct CountReaders<'a> {
    readers: BTreeMap<&'a str, Vec<&'a ReadScaler<'a>>>,
    /// The targets of each variant. Files may hold alternatives of it.
    targets: BTreeMap<(&'a str, &'a str, &'a str), Vec<TargetKey>>,
}

impl<'a> CountReaders<'a> {
    pub(super) fn new(facts: &'a Facts, all: &'a [ReadScaler<'a>]) -> Self {
        let mut readers: BTreeMap<&'a str, Vec<&'a ReadScaler<'a>>> = BTreeMap::new();
        for one in all {
            for name in one.kept.scaler.inputs.iter().filter_map(named_variant) {
                readers.entry(name).or_default().push(one);
            }
        }
        let mut targets: BTreeMap<_, Vec<TargetKey>> = BTreeMap::new();
        for variant in facts.every_variant() {
            let own = targets.entry(identity(variant)).or_default();
            own.extend(target_key(variant));
        }
        Self { readers, targets }
    }

    /// The scaler that reads the count of a variant and scales another target than its own. Another file may hold an
    /// alternative of the variant, with that target.
    pub(super) fn scaling_another(
        &self,
        variant: &LiveObject,
        target: &TargetKey,
    ) -> Option<Finding> {
        let (namespace, name) = (variant.namespace(), variant.name());
        let is_near = |one: &ReadScaler<'_>| one.object.namespace() == namespace;
        let is_its = |one: &ReadScaler<'_>, input: &Input| {
            let is_there = match input {
                Input::Published(count) => match count.namespace.as_deref() {
                    // A manifest without a namespace may go to that one.
                    Some(stated) if !is_near(one) => {
                        stated == namespace && !one.object.namespace().is_empty()
                    }
                    Some(stated) => namespace.is_empty() || stated == namespace,
                    None => is_near(one),
                },
                Input::ExternalScaler { .. } | Input::Other => is_near(one),
            };
            is_there && named_variant(input) == Some(name)
        };
        let targets = self.targets.get(&identity(variant))?;
        // The target of a variant elsewhere is judged with that variant.
        let is_free = |one: &ReadScaler<'_>| {
            let mut targets = self.targets.values().flatten();
            !targets.any(|target| Some(target) == one.kept.target.as_ref())
        };
        let mut readers = self.readers.get(name)?.iter();
        let one = readers.find(|one| {
            let is_made = one.kept.scaler.made_for.is_some();
            let is_own = (one.kept.target.as_ref()).is_some_and(|scaled| targets.contains(scaled));
            let mut inputs = one.kept.scaler.inputs.iter();
            !is_made
                && !is_own
                && inputs.any(|input| is_its(one, input))
                && (is_near(one) || is_free(one))
        })?;
        let none = || "no known kind".to_owned();
        let scaled = (one.kept.target.as_ref()).map_or_else(none, ToString::to_string);
        let title = variant.title();
        let target = target.to_string();
        let remedy = if scaled == target {
            " of another apiVersion; name the same one in both".to_owned()
        } else if is_near(one) {
            format!("; name {target} in its scaleTargetRef")
        } else {
            format!("; move it to namespace {namespace}, and name {target} in its scaleTargetRef")
        };
        let cause = format!("it reads the count of {title} and scales {scaled}{remedy}");
        Some(FindingCode::CountNotRead.at(one.object.title(), cause))
    }
}

/// Whether scalers follow another variant of the target, which is a finding of its own.
pub(super) fn follow_rival(
    variant: &LiveObject,
    rivals: &[&LiveObject],
    own: &[&ReadScaler<'_>],
) -> bool {
    let is_other = |one: &&&LiveObject| !one.title().is_of_same(&variant.title());
    let mut others = rivals.iter().filter(is_other);
    others.any(|other| {
        let found = judged(other, own);
        found.iter().all(|one| one.code != FindingCode::CountNotRead)
    })
}

fn is_variant(object: &LiveObject) -> bool {
    object.kind() == LiveKind::VariantAutoscaling.as_str()
}

fn contested(object: &LiveObject, cause: String) -> Finding {
    // Without the annotation its trigger still declares it.
    let is_annotated = object.annotation(MANAGED_ANNOTATION).is_some();
    let finding = FindingCode::TargetContested.at(object.title(), cause);
    finding.with(if is_annotated || is_variant(object) { "" } else { "false" })
}

/// ScaledObjects whose query reads a variant of another namespace, too. An adapter adds the namespace of a
/// HorizontalPodAutoscaler. A controller's instance that is selected may watch one namespace.
pub(super) fn of_two_namespaces(facts: &Facts, all: &[ReadScaler<'_>]) -> Vec<Finding> {
    let mut named: BTreeMap<&str, Vec<&LiveObject>> = BTreeMap::new();
    for variant in facts.every_variant() {
        named.entry(variant.name()).or_default().push(variant);
    }
    let found = all.iter().filter_map(|one| {
        let object = one.object;
        let is_asked_of_all =
            one.kept.scaler.kind == ScalerKind::ScaledObject && !selects_instance(object);
        let count = one.published().filter(|_| is_asked_of_all)?;
        let mut queries = asked(object);
        let is_selected = queries.any(|query| selects_namespace(&query));
        let name = count.variant.as_deref().filter(|_| !is_selected)?;
        let other = named.get(name)?.iter().find(|other| {
            let [own, there] = [object.namespace(), other.namespace()];
            // A manifest without a namespace may go to either.
            let is_elsewhere = own != there && !own.is_empty() && !there.is_empty();
            is_elsewhere && may_be_handled(facts, other)
        })?;
        let cause =
            format!("it reads the count of {}, too; select exported_namespace", other.title());
        Some(FindingCode::CountNotRead.at(object.title(), cause))
    });
    found.collect()
}
