//! VariantAutoscalings: whether a controller takes them, and what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;

use super::{Check, Need};
use crate::api::variant_autoscaling::{DEFAULT_VARIANT_COST, VariantAutoscaling};
use crate::api::{EXCLUDE_ANNOTATION, INSTANCE_LABEL};
use crate::cluster::project::{Interner, Projected as _};
use crate::doctor::facts::{ControllerFacts, FactSource, Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode, FindingGroup};
use crate::doctor::object::{LiveObject, ObjectName, text};
use crate::policy::filter::{Admission, WatchScope};
use crate::policy::key::ModelKey;

pub(super) const CHECKS: &[Check] = &[
    Check {
        group: FindingGroup::Variants,
        title: "objects can be read",
        needs: &[Need::Kind(LiveKind::VariantAutoscaling)],
        run: shapes,
    },
    Check {
        group: FindingGroup::Variants,
        title: "every variant has a controller",
        needs: &[
            Need::Cluster,
            Need::Controllers,
            Need::Kind(LiveKind::VariantAutoscaling),
            Need::Kind(LiveKind::Namespace),
        ],
        run: owners,
    },
    Check {
        group: FindingGroup::Variants,
        title: "the controller reports no obstacle",
        needs: &[Need::Cluster, Need::Kind(LiveKind::VariantAutoscaling)],
        run: conditions,
    },
    Check {
        group: FindingGroup::Variants,
        title: "costs differ between variants",
        needs: &[Need::Kind(LiveKind::VariantAutoscaling)],
        run: costs,
    },
];

fn shapes(facts: &Facts) -> Vec<Finding> {
    let variants = facts.variants().filter_map(|object| {
        let error = object.read::<VariantAutoscaling>().err()?;
        Some(FindingCode::VariantMalformed.at(object.title(), error.to_string()))
    });
    let files = facts.unreadable.iter().map(|(file, why)| {
        FindingCode::VariantMalformed.at(ObjectName::new("File", "", file), why)
    });
    variants.chain(files).collect()
}

/// What a controller makes of an object; `None` where its settings are not known.
fn admission(
    facts: &Facts,
    controller: &ControllerFacts,
    object: &LiveObject,
) -> Option<Admission> {
    let settings = &controller.generation()?.statics.scope;
    let shared = |text: &Option<String>| text.as_deref().map(Arc::from);
    let scope = WatchScope {
        system_namespace: Arc::from(&*settings.system_namespace),
        watch_namespace: shared(&settings.watch_namespace),
        instance: shared(&settings.controller_instance),
    };
    let namespace = facts.find(LiveKind::Namespace, "", object.namespace());
    let namespace = namespace.and_then(|object| {
        let read: PartialObjectMeta<Namespace> = object.read().ok()?;
        Some(read.project(&mut Interner::default()))
    });
    let label = object.label(INSTANCE_LABEL);
    Some(scope.admits(object.namespace(), label, namespace.as_ref()))
}

/// Whether a controller takes an object; also where its settings are not known.
pub(super) fn is_handled(facts: &Facts, object: &LiveObject) -> bool {
    let mut admissions = facts
        .controllers()
        .iter()
        .map(|one| admission(facts, one, object));
    admissions.any(|one| matches!(one, None | Some(Admission::Ours)))
}

fn owners(facts: &Facts) -> Vec<Finding> {
    let controllers = facts.controllers();
    let mut found = Vec::new();
    // That there is none is a finding of its own.
    for object in facts.variants().filter(|_| !controllers.is_empty()) {
        if is_handled(facts, object) {
            continue;
        }
        let judged = controllers
            .iter()
            .filter_map(|one| Some((one, admission(facts, one, object)?)));
        let refused: Vec<(&ControllerFacts, Admission)> = judged.collect();
        let by = |wanted| refused.iter().find(|(_, admission)| *admission == wanted);
        // The controller that lacks the least.
        let finding = if let Some((one, _)) = by(Admission::ForeignInstance) {
            let label = object.label(INSTANCE_LABEL).unwrap_or_default();
            let wanted = one.instance().unwrap_or_default();
            let cause = format!(
                "its label {INSTANCE_LABEL} is {label:?}, and the controller's instance is {wanted:?}"
            );
            let finding = FindingCode::ForeignInstance.at(object.title(), cause);
            finding.with(wanted)
        } else if by(Admission::Excluded).is_some() {
            let cause = format!("the namespace is annotated {EXCLUDE_ANNOTATION}=true");
            FindingCode::NamespaceExcluded.at(object.title(), cause)
        } else {
            let watched: BTreeSet<&str> =
                controllers.iter().filter_map(|one| one.watched()).collect();
            let watched: Vec<&str> = watched.into_iter().collect();
            let cause = format!("only {} is watched", watched.join(", "));
            FindingCode::NamespaceNotWatched.at(object.title(), cause)
        };
        found.push(finding);
    }
    found
}

/// Conditions whose causes other checks do not find. `Ready` repeats the others.
fn conditions(facts: &Facts) -> Vec<Finding> {
    let reported = ["OptimizationReady", "ControllerConflict", "Ready"];
    let mut found = Vec::new();
    for object in facts.variants() {
        let conditions = object.list("/status/conditions").iter();
        let bad = conditions.filter(|one| {
            let kind = text(one, "/type");
            let is_bad = match kind {
                "ControllerConflict" => text(one, "/status") == "True",
                "Ready" => text(one, "/reason") == "VariantQuarantined",
                _ => text(one, "/status") == "False",
            };
            let is_known_otherwise = text(one, "/reason") == "SafetyNetActivated";
            reported.contains(&kind) && is_bad && !is_known_otherwise
        });
        found.extend(bad.map(|one| {
            let cause = format!(
                "{} is {} ({}): {}",
                text(one, "/type"),
                text(one, "/status"),
                text(one, "/reason"),
                text(one, "/message")
            );
            FindingCode::NotApplied.at(object.title(), cause)
        }));
    }
    found
}

/// The variants of each model.
pub(super) fn models(facts: &Facts) -> BTreeMap<ModelKey, Vec<&LiveObject>> {
    let mut models: BTreeMap<ModelKey, Vec<&LiveObject>> = BTreeMap::new();
    let all = facts.all(LiveKind::VariantAutoscaling).iter();
    for object in all.filter(|object| !object.is_leaving()) {
        let key = ModelKey::new(object.namespace(), object.text("/spec/modelID"));
        models.entry(key).or_default().push(object);
    }
    models
}

fn costs(facts: &Facts) -> Vec<Finding> {
    let cost = |object: &LiveObject| match object.text("/spec/variantCost") {
        "" => DEFAULT_VARIANT_COST.to_owned(),
        stated => stated.to_owned(),
    };
    let found = models(facts).into_iter().filter_map(|(model, variants)| {
        let [first, _, ..] = variants.as_slice() else {
            return None;
        };
        // Two files of one namespace may be alternatives.
        if facts.source == FactSource::Files {
            return None;
        }
        let price = cost(first);
        if variants.iter().any(|one| cost(one) != price) {
            return None;
        }
        let cause = format!(
            "{} variants of {} cost {price}",
            variants.len(),
            model.model
        );
        Some(FindingCode::CostsEqual.at(first.title(), cause))
    });
    found.collect()
}
