//! What variants name and models have by that: tiers of policy, and service classes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::key::ModelKey;
use super::params::{CLASS_LABEL, DynamicSettings, SaturationEntry, ScopedEntries};
use super::plan::Plan;
use super::snapshot::{ClusterSnapshot, VariantView};
use wva_base::text::shortened;

/// The settings of a fleet: every model has the tier that the first of its variants by name names. One that does not
/// exist counts as none.
pub fn tiered<'a>(
    settings: &'a DynamicSettings,
    snapshot: &ClusterSnapshot,
) -> Cow<'a, DynamicSettings> {
    let mut tiers = BTreeMap::new();
    for (model, named) in named_tiers(snapshot.variants.values().map(|view| &**view)) {
        let mut acting = named.into_iter();
        if let Some((_, tier)) = acting.find(|(view, tier)| exists(settings, view, tier)) {
            tiers.insert(model.clone(), Arc::from(tier));
        }
    }
    if tiers.is_empty() {
        return Cow::Borrowed(settings);
    }
    let mut settings = settings.clone();
    settings.saturation.tiers = tiers;
    Cow::Owned(settings)
}

/// The variants of each model that name a tier, by name.
pub fn named_tiers<'a>(
    views: impl Iterator<Item = &'a VariantView>,
) -> BTreeMap<&'a ModelKey, Vec<(&'a VariantView, &'a str)>> {
    named(views, |view| view.policy.scaling_policy.as_deref())
}

/// The variants of each model that name something, by name.
fn named<'a>(
    views: impl Iterator<Item = &'a VariantView>,
    name: impl Fn(&'a VariantView) -> Option<&'a str>,
) -> BTreeMap<&'a ModelKey, Vec<(&'a VariantView, &'a str)>> {
    let mut models: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for view in views {
        if let Some(name) = name(view) {
            models.entry(&view.model).or_default().push((view, name));
        }
    }
    models
}

/// Why a tier does not act as a variant says that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierFault<'a, V> {
    /// No entry has its name.
    Missing,
    /// This variant of the model names another one.
    Contradicted(&'a V, &'a str),
}

/// The variants whose tier has a fault, of those of one model that name one.
pub fn tier_faults<'a, V>(
    named: &'a [(V, &'a str)],
    exists: impl Fn(&V, &str) -> bool,
) -> Vec<(&'a V, &'a str, TierFault<'a, V>)> {
    let fault = |variant: &V, tier: &str| {
        if !exists(variant, tier) {
            return Some(TierFault::Missing);
        }
        let mut others = named.iter();
        let other = others.find(|(other, theirs)| *theirs != tier && exists(other, theirs));
        other.map(|(other, theirs)| TierFault::Contradicted(other, theirs))
    };
    let faults = named.iter();
    let faults = faults.filter_map(|(variant, tier)| Some((variant, *tier, fault(variant, tier)?)));
    faults.collect()
}

/// Tiers that no variant names, each with its namespace unless it is global. An entry whose `modelId` was forgotten
/// is one.
pub fn unnamed_tiers<'a>(
    entries: &'a ScopedEntries<SaturationEntry>,
    named: &BTreeSet<&str>,
) -> Vec<(Option<&'a Arc<str>>, &'a str)> {
    let tiers = entries.models_named().into_iter();
    let tiers = tiers.filter_map(|entry| Some((entry.scope, entry.tier?)));
    tiers.filter(|(_, tier)| !named.contains(tier)).collect()
}

fn exists(settings: &DynamicSettings, view: &VariantView, tier: &str) -> bool {
    let entries = &settings.saturation.entries;
    entries.has_tier(&view.key.namespace, tier)
}

/// Notes at decisions which of the tiers that their objects name do not act. `settings` are those of the fleet.
pub(super) fn note(plan: &mut Plan, snapshot: &ClusterSnapshot, settings: &DynamicSettings) {
    for (model, named) in named_tiers(snapshot.variants.values().map(|view| &**view)) {
        for (view, tier, fault) in tier_faults(&named, |view, tier| exists(settings, view, tier)) {
            let own = shortened(tier);
            let acts = settings.saturation.tiers.get(model);
            let note = match fault {
                TierFault::Missing => format!(
                    "scalingPolicy {own:?} names no tier, and what applies without one acts; add an entry {own:?} \
                     without modelId to the saturation ConfigMap, or correct the name"
                ),
                TierFault::Contradicted(other, theirs) => format!(
                    "scalingPolicy {own:?} and {:?} of {} differ for one model, and {:?} acts; name one tier in both",
                    shortened(theirs),
                    other.key,
                    acts.map_or(tier, |acts| &**acts)
                ),
            };
            if let Some(decision) = plan.decisions.get_mut(&view.key) {
                decision.notes.push(note);
            }
        }
    }
}

/// Notes at decisions which of the service classes that their objects name do not act, where latency targets do.
pub(super) fn note_classes<'a>(
    plan: &mut Plan,
    snapshot: &'a ClusterSnapshot,
    settings: &'a DynamicSettings,
) {
    if !settings.acts_on_targets() {
        return;
    }
    let classes = &settings.service_classes;
    let has_targets =
        |view: &VariantView, class: &str| classes.of_class(&view.model.model, class).is_some();
    let label = |view: &'a VariantView| {
        let label = view.template.service_class.as_deref()?;
        Some(classes.named(label).map_or(label, |class| &*class.name))
    };
    for named in named(snapshot.variants.values().map(|view| &**view), label).into_values() {
        let acts = named.iter().find(|(view, class)| has_targets(view, class));
        for (view, class, fault) in tier_faults(&named, |view, class| has_targets(view, class)) {
            let own = shortened(class);
            let note = match fault {
                TierFault::Missing => format!(
                    "{CLASS_LABEL} {own:?} is no class with targets for this model, and what applies without one acts; \
                     add the model to that class, or correct the label"
                ),
                TierFault::Contradicted(other, theirs) => format!(
                    "{CLASS_LABEL} {own:?} and {:?} of {} differ for one model, and {:?} acts; name one class in both",
                    shortened(theirs),
                    other.key,
                    shortened(acts.map_or(class, |(_, acts)| acts))
                ),
            };
            if let Some(decision) = plan.decisions.get_mut(&view.key) {
                decision.notes.push(note);
            }
        }
    }
}
