//! Variants that claim one target or one name: none of them is scaled.

use std::collections::BTreeMap;

use super::scalers::{ReadScaler, scalers};
use super::targets::claimed;
use super::variants::may_be_handled;
use crate::api::MANAGED_ANNOTATION;
use crate::cluster::project::scaler::ScalerObject;
use crate::doctor::facts::{Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::LiveObject;
use crate::policy::key::TargetKey;
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
    for one in &all {
        let is_namesake = |other: &&&LiveObject| {
            (other.namespace(), other.name()) == (one.namespace(), one.name())
                && !other.title().is_of_same(&one.title())
        };
        let is_known = found.iter().any(|known| known.object == one.title());
        if let Some(other) = all.iter().find(is_namesake).filter(|_| !is_known) {
            let cause = format!(
                "{} is a variant of the same name; keep one of both",
                other.title()
            );
            found.push(contested(one, cause));
        }
    }
    found
}

fn is_variant(object: &LiveObject) -> bool {
    object.kind() == LiveKind::VariantAutoscaling.as_str()
}

fn contested(object: &LiveObject, cause: String) -> Finding {
    // Without the annotation its trigger still declares it.
    let is_annotated = object.annotation(MANAGED_ANNOTATION).is_some();
    let finding = FindingCode::TargetContested.at(object.title(), cause);
    finding.with(if is_annotated || is_variant(object) {
        ""
    } else {
        "false"
    })
}
