//! VariantAutoscalings: whether a controller takes them, and what they say.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Need};
use crate::api::variant_autoscaling::{DEFAULT_VARIANT_COST, VariantAutoscaling};
use crate::api::{EXCLUDE_ANNOTATION, INSTANCE_LABEL};
use crate::doctor::facts::{ControllerFacts, FactSource, Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode, FindingGroup};
use crate::doctor::object::{LiveObject, ObjectName, text};
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
        title: "costs tell variants apart",
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

fn takes_instance(controller: &ControllerFacts, object: &LiveObject) -> bool {
    let instance = controller.instance();
    instance.is_none() || instance == object.label(INSTANCE_LABEL)
}

fn watches(controller: &ControllerFacts, namespace: &str) -> bool {
    controller
        .watched()
        .is_none_or(|watched| watched == namespace)
}

/// Whether a controller takes an object; also where its settings are not known.
pub(super) fn is_handled(facts: &Facts, object: &LiveObject) -> bool {
    let is_taken = |one: &ControllerFacts| {
        one.settings.is_err() || (takes_instance(one, object) && watches(one, object.namespace()))
    };
    facts.controllers().iter().any(is_taken) && !is_excluded(facts, object.namespace())
}

fn is_excluded(facts: &Facts, namespace: &str) -> bool {
    let object = facts.find(LiveKind::Namespace, "", namespace);
    object.and_then(|object| object.annotation(EXCLUDE_ANNOTATION)) == Some("true")
}

fn owners(facts: &Facts) -> Vec<Finding> {
    let controllers = facts.controllers();
    // What an unreadable one takes is not known, and that there is none is a finding of its own.
    if controllers.is_empty() || controllers.iter().any(|one| one.settings.is_err()) {
        return Vec::new();
    }
    let found = facts.variants().filter_map(|object| {
        let namespace = object.namespace();
        if is_excluded(facts, namespace) {
            let cause = format!("the namespace is annotated {EXCLUDE_ANNOTATION}=true");
            return Some(FindingCode::NamespaceExcluded.at(object.title(), cause));
        }
        let mut watching = controllers
            .iter()
            .filter(|one| watches(one, namespace))
            .peekable();
        let Some(first) = watching.peek() else {
            let watched: BTreeSet<&str> =
                controllers.iter().filter_map(|one| one.watched()).collect();
            let watched: Vec<&str> = watched.into_iter().collect();
            let cause = format!("only {} is watched", watched.join(", "));
            return Some(FindingCode::NamespaceNotWatched.at(object.title(), cause));
        };
        let wanted = first.instance().unwrap_or_default().to_owned();
        if watching.any(|one| takes_instance(one, object)) {
            return None;
        }
        let label = object.label(INSTANCE_LABEL).unwrap_or_default();
        let cause = format!(
            "its label {INSTANCE_LABEL} is {label:?}, and the controller's instance is {wanted:?}"
        );
        let finding = FindingCode::ForeignInstance.at(object.title(), cause);
        Some(finding.with(wanted))
    });
    found.collect()
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
