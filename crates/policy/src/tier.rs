//! Tiers: policies that variants name, and models have by that.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::key::ModelKey;
use super::params::DynamicSettings;
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
    for (view, tier) in named(snapshot).filter(|(view, tier)| exists(settings, view, tier)) {
        (tiers.entry(view.model.clone())).or_insert_with(|| Arc::clone(tier));
    }
    if tiers.is_empty() {
        return Cow::Borrowed(settings);
    }
    let mut settings = settings.clone();
    settings.saturation.tiers = tiers;
    Cow::Owned(settings)
}

fn named(snapshot: &ClusterSnapshot) -> impl Iterator<Item = (&VariantView, &Arc<str>)> {
    let views = snapshot.variants.values();
    views.filter_map(|view| Some((&**view, view.policy.scaling_policy.as_ref()?)))
}

fn exists(settings: &DynamicSettings, view: &VariantView, tier: &str) -> bool {
    let entries = &settings.saturation.entries;
    entries.has_tier(&view.key.namespace, tier)
}

/// Notes at decisions which of the tiers that their objects name do not act. `settings` are those of the fleet.
pub(super) fn note(plan: &mut Plan, snapshot: &ClusterSnapshot, settings: &DynamicSettings) {
    let mut models: BTreeMap<&ModelKey, Vec<(&VariantView, &Arc<str>)>> = BTreeMap::new();
    for (view, tier) in named(snapshot) {
        models.entry(&view.model).or_default().push((view, tier));
    }
    for (model, named) in models {
        let acts = settings.saturation.tiers.get(model);
        for (view, tier) in &named {
            let mut others = named.iter();
            let rival =
                others.find(|(other, theirs)| theirs != tier && exists(settings, other, theirs));
            let own = shortened(tier);
            let note = match (acts, rival) {
                _ if !exists(settings, view, tier) => format!(
                    "scalingPolicy {own:?} names no tier, and what applies without one acts; add an entry {own:?} \
                     without modelId to the saturation ConfigMap, or correct the name"
                ),
                (Some(acts), Some((other, theirs))) => format!(
                    "scalingPolicy {own:?} and {:?} of {} differ for one model, and {acts:?} acts; name one tier \
                     in both",
                    shortened(theirs),
                    other.key
                ),
                _ => continue,
            };
            if let Some(decision) = plan.decisions.get_mut(&view.key) {
                decision.notes.push(note);
            }
        }
    }
}
