//! What a snapshot and its settings say together and cannot both mean.

use std::collections::{BTreeMap, BTreeSet};

use crate::policy::bounds::{Bounds, ZeroPolicy};
use crate::policy::document::{DocumentError, DocumentFault, SnapshotDocument, understated_use};
use crate::policy::key::ModelKey;
use crate::policy::params::DynamicSettings;
use crate::policy::snapshot::{ClusterSnapshot, DeclaredBounds};
use crate::settings::saturation::FleetTypes;
use wva_base::text::shortened;

/// Bounds that contradict each other under the settings in force.
pub(super) fn contradictions(
    document: &SnapshotDocument,
    settings: &DynamicSettings,
) -> Vec<DocumentFault> {
    bounds(document, settings, |_| true)
}

/// Adds bounds that contradict each other by themselves to what keeps a snapshot from being read. The others need its
/// tiers.
pub(super) fn with_bounds(
    error: DocumentError,
    document: &SnapshotDocument,
    settings: &DynamicSettings,
) -> DocumentError {
    match error {
        DocumentError::Faults(mut faults) => {
            faults.extend(bounds(document, settings, |stated| {
                let both = stated.min.zip(stated.max);
                both.is_some_and(|(min, max)| min > max)
            }));
            DocumentError::Faults(faults)
        }
        other => other,
    }
}

fn bounds(
    document: &SnapshotDocument,
    settings: &DynamicSettings,
    is_asked: impl Fn(&DeclaredBounds) -> bool,
) -> Vec<DocumentFault> {
    let mut faults = Vec::new();
    let variants = document.variants.iter().enumerate();
    for (index, variant) in variants.filter(|(_, variant)| is_asked(&variant.bounds)) {
        let model = ModelKey::new(&*variant.namespace, &*variant.model);
        let policy = ZeroPolicy::from(settings.may_go_to_zero(&model));
        let bounds = Bounds::effective(&variant.bounds, policy);
        if let Some(max) = bounds.max.filter(|max| bounds.min > *max) {
            let (min, source) = (bounds.min, bounds.source);
            faults.push(DocumentFault {
                path: format!("variants[{index}].bounds"),
                why: format!(
                    "max {max} is below the minimum of {min} ({source}); raise max, write min, or let \
                     the model go to zero"
                ),
            });
        }
    }
    faults
}

/// How many notes of one kind are listed.
const LISTED: usize = 8;

/// Entries of the settings for models that no variant serves.
pub(super) fn unused_entries(
    document: &SnapshotDocument,
    settings: &DynamicSettings,
) -> Vec<String> {
    let models = document.variants.iter();
    let served =
        models.map(|variant| ModelKey::new(&*variant.namespace, &*variant.model)).collect();
    let notices = crate::settings::unused_entries(settings, &served);
    let mut listed: Vec<String> = notices.iter().take(LISTED).map(ToString::to_string).collect();
    match notices.len().saturating_sub(LISTED) {
        0 => {}
        more => listed.push(format!("and {more} more entries for models that no variant serves")),
    }
    listed
}

/// Quotas of the settings that concern no variant.
pub(super) fn unused_quotas(
    document: &SnapshotDocument,
    settings: &DynamicSettings,
) -> Vec<String> {
    let mut fleet: FleetTypes<'_> = BTreeMap::new();
    for variant in &document.variants {
        let types = fleet.entry(&*variant.namespace).or_default();
        types.extend(variant.accelerator.as_deref());
    }
    let notices = crate::settings::unused_quotas(settings, &fleet);
    notices.iter().take(LISTED).map(ToString::to_string).collect()
}

/// Sums of GPUs that cannot hold what the variants already run, where growth counts by them.
pub(super) fn understated(snapshot: &ClusterSnapshot, settings: &DynamicSettings) -> Vec<String> {
    let types = understated_use(snapshot).into_iter();
    let types = types.filter(|_| settings.wants_nodes());
    let notes = types.take(LISTED).map(|(name, used, held)| {
        let name = shortened(&name);
        format!(
            "inventory.types.{name}.used: {used} is less than the {held} GPUs that ready replicas hold, so that \
             counts may exceed {name}; write at least {held}, or leave it out, which counts them"
        )
    });
    notes.collect()
}

/// Classes that variants name and that are not defined, where their targets would act.
pub(super) fn classless(document: &SnapshotDocument, settings: &DynamicSettings) -> Vec<String> {
    if !settings.acts_on_targets() {
        return Vec::new();
    }
    let classes = &settings.service_classes;
    let known: Vec<&str> = classes.all().map(|class| &*class.name).collect();
    let or = if known.is_empty() {
        String::new()
    } else {
        format!(", or write one of {}", known.join(", "))
    };
    let named: BTreeSet<&str> = (document.variants.iter())
        .filter_map(|variant| variant.service_class.as_deref())
        .filter(|class| classes.named(class).is_none())
        .collect();
    let listed = named.iter().take(LISTED).map(|class| {
        format!(
            "serviceClass {class:?} is not defined, so it has no targets; define it in serviceClasses of the settings{or}"
        )
    });
    listed.collect()
}
