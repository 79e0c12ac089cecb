//! Variants: whether a controller takes them, and what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;

use super::targets::{ReadTargets, read_targets, target_among, templates};
use crate::api::variant_autoscaling::{DEFAULT_VARIANT_COST, VariantAutoscaling};
use crate::api::{EXCLUDE_ANNOTATION, INSTANCE_LABEL};
use crate::cluster::event::REPORTING_CONTROLLER;
use crate::cluster::project::{Interner, Projected as _};
use crate::doctor::facts::{ControllerFacts, FactSource, Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName, text};
use crate::policy::filter::{Admission, WatchScope};
use crate::policy::key::{ModelKey, ObjectKey};
use crate::policy::pod_autoscaler::object::unreadable;
use crate::policy::pod_template::ROLE_LABEL;
use crate::policy::{self, TierFault, tier_faults};
use crate::settings::generation::Generation;
use crate::settings::purpose::Purpose;

checks! {
    Variants "objects can be read" shapes: Kind(VariantAutoscaling);
    Variants "every variant has a controller" owners: Cluster Installed Kind(VariantAutoscaling) Kind(Namespace);
    Variants "namespaces of the manifests are not excluded" excluded:
        Manifests Kind(VariantAutoscaling) Kind(Namespace);
    Variants "the controller reports no obstacle" conditions: Cluster Kind(VariantAutoscaling);
    Variants "the controller reports no obstacle on scalers" events: Cluster Kind(Event);
    Variants "costs differ between variants" costs: Kind(VariantAutoscaling) Kind(Deployment);
    Variants "tiers of policy exist" tiers:
        Controllers Kind(VariantAutoscaling) Kind(ScaledObject) Kind(HorizontalPodAutoscaler);
}

fn shapes(facts: &Facts) -> Vec<Finding> {
    let is_judged = |object: &LiveObject| {
        let mut malformed = facts.malformed.iter();
        let title = object.title();
        facts.ambiguous.contains(&title) || malformed.any(|(known, _)| *known == title)
    };
    let variants = facts.variants().filter(|one| !is_judged(one)).flat_map(|object| {
        let fields = unreadable::<VariantAutoscaling>(object.0.clone()).into_iter();
        fields.map(move |why| FindingCode::VariantMalformed.at(object.title(), why))
    });
    let files = facts.unreadable.iter().map(|(file, why)| {
        let object =
            ObjectName { file: Some(Arc::from(&**file)), ..ObjectName::new("File", "", file) };
        FindingCode::VariantMalformed.at(object, why)
    });
    let refused = facts.malformed.iter();
    let refused =
        refused.map(|(object, why)| FindingCode::VariantMalformed.at(object.clone(), why));
    variants.chain(files).chain(refused).collect()
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
    let takers = facts.controllers().iter().filter(|one| one.takes(object));
    let mut admissions = takers.map(|one| admission(facts, one, object));
    admissions.any(|one| matches!(one, None | Some(Admission::Ours)))
}

/// Whether a controller takes an object, or may: without a controller that is not known.
pub(super) fn may_be_handled(facts: &Facts, object: &LiveObject) -> bool {
    facts.controllers().is_empty() || is_handled(facts, object)
}

/// The settings of the controllers that take an object.
pub(super) fn settings_of<'a>(
    facts: &'a Facts,
    object: &'a LiveObject,
) -> impl Iterator<Item = &'a Generation> {
    let own = facts
        .controllers()
        .iter()
        .filter(|one| one.takes(object))
        .filter(|one| admission(facts, one, object) == Some(Admission::Ours));
    own.filter_map(ControllerFacts::generation)
}

fn owners(facts: &Facts) -> Vec<Finding> {
    let controllers = facts.controllers();
    let mut found = Vec::new();
    // One with a status has the controller of AIBrix.
    let autoscalers = facts.all(LiveKind::PodAutoscaler).iter();
    let autoscalers = autoscalers
        .filter(|one| facts.variant.is_none() && one.list("/status/conditions").is_empty());
    let objects = facts.variants().chain(autoscalers);
    // That there is no controller is a finding of its own.
    for object in objects.filter(|_| !controllers.is_empty()) {
        if is_handled(facts, object) {
            continue;
        }
        let judged = controllers
            .iter()
            .filter(|one| one.takes(object))
            .filter_map(|one| Some((one, admission(facts, one, object)?)));
        let refused: Vec<(&ControllerFacts, Admission)> = judged.collect();
        let by = |wanted| refused.iter().find(|(_, admission)| *admission == wanted);
        // Where only one namespace was searched, a controller elsewhere may take the object.
        let is_unsearched = facts.searched.is_some() && by(Admission::Excluded).is_none();
        if is_unsearched {
            continue;
        }
        // The controller that lacks the least.
        let foreign = by(Admission::ForeignInstance).filter(|_| facts.searched.is_none());
        let finding = if let Some((one, _)) = foreign {
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
            let place = controllers.first().map_or("", |one| &*one.key.namespace);
            let finding = FindingCode::NamespaceNotWatched.at(object.title(), cause);
            finding.with(place)
        };
        found.push(finding);
    }
    found
}

/// Namespaces of manifests that are excluded, with a variant. Files may hold alternatives of a namespace.
fn excluded(facts: &Facts) -> Vec<Finding> {
    let found = facts.variants().filter_map(|variant| {
        let place = variant.namespace();
        let mut controllers = facts.controllers().iter();
        // The exclusion does not hold for the one namespace that a controller watches.
        if controllers.any(|one| one.watched() == Some(place)) {
            return None;
        }
        let is_excluded = |one: &&LiveObject| one.annotation(EXCLUDE_ANNOTATION) == Some("true");
        let all = facts.all(LiveKind::Namespace).iter();
        let mut all = all.filter(|one| one.name() == place);
        let namespace = all.next().filter(is_excluded)?;
        let cause =
            format!("it is annotated {EXCLUDE_ANNOTATION}=true, and {} is in it", variant.title());
        all.all(|one| is_excluded(&one))
            .then(|| FindingCode::NamespaceExcluded.at(namespace.title(), cause))
    });
    found.collect()
}

/// Conditions whose causes other checks do not find. `Ready` repeats the others. What an object says
/// that every controller leaves alone is of the past: [`owners`] has its finding.
fn conditions(facts: &Facts) -> Vec<Finding> {
    let reported = ["OptimizationReady", "ControllerConflict", "Ready"];
    let unowned: BTreeSet<ObjectName> = owners(facts).into_iter().map(|one| one.object).collect();
    let mut found = Vec::new();
    for object in facts.variants() {
        if unowned.contains(&object.title()) {
            continue;
        }
        let conditions = object.list("/status/conditions").iter();
        let bad = conditions.filter(|one| {
            let kind = text(one, "/type");
            let is_bad = match kind {
                "ControllerConflict" => text(one, "/status") == "True",
                "Ready" => text(one, "/reason") == "VariantQuarantined",
                _ => text(one, "/status") == "False",
            };
            let causes_elsewhere = ["SafetyNetActivated", "SkippedProcessing"];
            let is_known_otherwise = causes_elsewhere.contains(&text(one, "/reason"));
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

/// A scaler has no conditions of ours: `ControllerConflict` is an event, with its type as the action, when it begins to
/// fail and when it recovers. The last one counts. Other checks find the causes of the others.
fn events(facts: &Facts) -> Vec<Finding> {
    let declared =
        facts.variants().filter(|one| one.kind() != LiveKind::VariantAutoscaling.as_str());
    let found = declared.filter_map(|object| {
        let ours = facts.all(LiveKind::Event).iter().filter(|event| {
            event.text("/reportingController") == REPORTING_CONTROLLER
                && event.text("/regarding/uid") == object.text("/metadata/uid")
                && event.text("/regarding/kind") == object.kind()
                && event.text("/regarding/name") == object.name()
                && event.text("/regarding/namespace") == object.namespace()
                && event.text("/action") == "ControllerConflict"
        });
        let last = ours.max_by_key(|event| said_at(event))?;
        let (reason, note) = (last.text("/reason"), last.text("/note"));
        let cause = format!("ControllerConflict ({reason}): {note}");
        (last.text("/type") == "Warning").then(|| FindingCode::NotApplied.at(object.title(), cause))
    });
    found.collect()
}

/// Times of the API server in one form are in the order of their texts.
fn said_at(event: &LiveObject) -> &str {
    match event.text("/series/lastObservedTime") {
        "" => event.text("/eventTime"),
        last => last,
    }
}

pub(super) fn models(facts: &Facts) -> BTreeMap<ModelKey, Vec<&LiveObject>> {
    let mut models: BTreeMap<ModelKey, Vec<&LiveObject>> = BTreeMap::new();
    for object in facts.every_variant() {
        let key = ModelKey::new(object.namespace(), object.text("/spec/modelID"));
        models.entry(key).or_default().push(object);
    }
    models
}

/// Tiers that scalers name and that do not act.
fn tiers(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for (model, variants) in models(facts) {
        let exists = |variant: &LiveObject, tier: &str| {
            let mut settings = settings_of(facts, variant);
            settings.all(|one| {
                let entries = &one.dynamic.saturation.entries;
                entries.has_tier(&model.namespace, tier)
            })
        };
        let named: Vec<(&LiveObject, &str)> = (variants.into_iter())
            .map(|variant| (variant, variant.text("/spec/scalingPolicy")))
            .filter(|(_, tier)| !tier.is_empty())
            .collect();
        for (variant, tier, fault) in tier_faults(&named, |variant, tier| exists(variant, tier)) {
            let cause = match fault {
                TierFault::Missing => format!(
                    "scalingPolicy={tier:?} names no entry without modelId of the saturation ConfigMap; add it, or \
                     correct the name"
                ),
                TierFault::Contradicted(other, theirs) => format!(
                    "scalingPolicy={tier:?} and {theirs:?} of {} are of one model; name one tier in both",
                    other.title()
                ),
            };
            found.push(FindingCode::TierWithoutEffect.at(variant.title(), cause));
        }
    }
    // A part of the variants does not show that none of the others names a tier.
    if !facts.is_narrowed {
        found.extend(tiers_without_variant(facts));
    }
    found
}

/// Tiers that no variant names. An entry whose `modelId` was forgotten is one.
fn tiers_without_variant(facts: &Facts) -> Vec<Finding> {
    let named: BTreeSet<&str> =
        facts.every_variant().map(|variant| variant.text("/spec/scalingPolicy")).collect();
    let mut found = BTreeMap::new();
    for (map, tier) in (facts.generations()).flat_map(|one| unnamed_tiers(one, &named)) {
        let object = ObjectName::new("ConfigMap", &*map.namespace, &*map.name);
        let cause = format!(
            "entry {tier:?} has no modelId, so it is a tier, and no variant names it as scalingPolicy; write the \
             modelId of its model, name it there, or remove it"
        );
        found.insert((object.clone(), tier), FindingCode::TierWithoutEffect.at(object, cause));
    }
    found.into_values().collect()
}

/// The tiers of a controller that no variant names, each with its ConfigMap.
pub(in crate::doctor) fn unnamed_tiers<'a>(
    generation: &'a Generation,
    named: &BTreeSet<&str>,
) -> impl Iterator<Item = (ObjectKey, &'a str)> {
    let statics = &generation.statics;
    let map = statics.config_maps.current(Purpose::Saturation);
    let tiers = policy::unnamed_tiers(&generation.dynamic.saturation.entries, named).into_iter();
    tiers.map(move |(namespace, tier)| {
        let global = statics.scope.system_namespace.as_str();
        (ObjectKey::new(namespace.map_or(global, |one| one), map), tier)
    })
}

/// The cost of a variant; `None` where it is no number.
fn cost(variant: &LiveObject) -> Option<f64> {
    let stated = match variant.text("/spec/variantCost") {
        "" => DEFAULT_VARIANT_COST,
        stated => stated,
    };
    stated.trim().parse().ok()
}

/// What the pods of a variant do, where they share their work with those of another.
fn role<'a>(targets: &ReadTargets<'a>, variant: &LiveObject) -> &'a str {
    let templates = target_among(targets, variant).into_iter().flat_map(templates);
    let mut labels = templates.filter_map(|template| template.pointer("/metadata/labels"));
    let role = labels.find_map(|labels| labels.get(ROLE_LABEL)?.as_str());
    role.unwrap_or_default()
}

/// Variants that share work. Files may hold alternatives.
fn variant_group<'a>(
    targets: &ReadTargets<'a>,
    variant: &'a LiveObject,
) -> (Option<&'a Arc<str>>, &'a str) {
    (variant.file(), role(targets, variant))
}

/// The groups of at least two variants that all cost the same, each with its cost.
pub(in crate::doctor) fn equal_costs<G: Ord, C: PartialEq, V>(
    variants: impl Iterator<Item = (G, C, V)>,
) -> Vec<(C, Vec<V>)> {
    let mut groups: BTreeMap<G, Vec<(C, V)>> = BTreeMap::new();
    for (group, cost, variant) in variants {
        groups.entry(group).or_default().push((cost, variant));
    }
    let equal = groups.into_values().filter_map(|group| {
        let is_equal = group.windows(2).all(|pair| match pair {
            [(one, _), (other, _)] => one == other,
            _ => true,
        });
        let is_choice = group.len() > 1 && is_equal;
        let (mut costs, variants): (Vec<C>, Vec<V>) = group.into_iter().unzip();
        costs.pop().filter(|_| is_choice).map(|cost| (cost, variants))
    });
    equal.collect()
}

fn costs(facts: &Facts) -> Vec<Finding> {
    let targets = read_targets(facts);
    let mut found = Vec::new();
    for (model, mut variants) in models(facts) {
        // Manifests may have one object more than once.
        variants.sort_by_key(|one| one.title());
        variants.dedup_by_key(|one| one.title());
        // What the pods of a target that no manifest has do is not known.
        let has_role = |one: &&LiveObject| {
            facts.source == FactSource::Cluster || target_among(&targets, one).is_some()
        };
        let priced = variants
            .into_iter()
            .filter(has_role)
            .map(|variant| (variant_group(&targets, variant), cost(variant), variant));
        for (price, variants) in equal_costs(priced) {
            if let (Some(price), Some(first)) = (price, variants.first()) {
                let count = variants.len();
                let cause = format!("{count} variants of {} cost {price}", model.model);
                found.push(FindingCode::CostsEqual.at(first.title(), cause));
            }
        }
    }
    found
}
