//! What is accepted and does not act, for lack of something else.

use std::collections::BTreeSet;

use super::entries;
use super::problem::{EntryPlace, Warning};
use super::purpose::Purpose;
use super::saturation::FleetTypes;
use super::{queueing_model, saturation, service_class};
use wva_base::text::shortened;
use wva_policy::key::ModelKey;
use wva_policy::params::{ANY_MODEL, DynamicSettings};

/// What acts only together with something that is not set.
pub(super) fn ineffective_settings(settings: &DynamicSettings) -> Vec<Warning> {
    let mut notes = Vec::new();
    let mut advise = |place: EntryPlace, text: &str| notes.push(Warning::advice(&place, text));
    let is_limited = settings.limits_growth();
    let unshared = if !is_limited {
        "enableRescale: nothing limits growth, so no budget is shared; write enableLimiter: \
         true in the global entry `default`, or remove it"
    } else if settings.proactive_model {
        "enableRescale: EXPERIMENTAL_PROACTIVE_MODEL selects hybrid mode, which shares no \
         budget; write false there, or remove it"
    } else {
        "enableRescale: every model is planned by percentages, which say no size to share by; \
         write analyzerName: saturation in `default`, or remove it"
    };
    if !is_limited || settings.proactive_model || !settings.sizes_models() {
        for place in saturation::rescaling(&settings.saturation) {
            advise(place, unshared);
        }
    }
    if let Some(place) = saturation::limiting(&settings.saturation).filter(|_| !is_limited) {
        advise(
            place,
            "limiters: nothing limits growth, so they do not act; write enableLimiter: true \
             with them, or remove them",
        );
    }
    if !settings.acts_on_targets() {
        for place in queueing_model::entries(&settings.queueing_model) {
            advise(
                place,
                "the queueing model is not asked, so this does not act; write a global entry \
                 `default`, or remove it",
            );
        }
        for (place, _) in service_class::entries(&settings.service_classes) {
            advise(
                place,
                "the queueing model is not asked, so no latency target acts; write an entry \
                 `default` of the global queueing-model ConfigMap, or remove it",
            );
        }
    }
    for (place, classes) in service_class::entries(&settings.service_classes) {
        for class in classes.iter().filter(|class| class.targets.is_empty()) {
            let name = shortened(&class.name);
            let text = format!(
                "class {name:?} names no model, so it has no target; list models under data, or \
                 remove it"
            );
            notes.push(Warning::advice(&place, &text));
        }
    }
    notes.extend(unasked_analyzers(settings));
    let unread = saturation::unread_fields(settings).into_iter();
    notes.extend(unread.map(|(place, text)| Warning::advice(&place, &text)));
    notes
}

fn unasked_analyzers(settings: &DynamicSettings) -> Vec<Warning> {
    if !settings.proactive_model {
        return Vec::new();
    }
    let text = "analyzerName and analyzers: EXPERIMENTAL_PROACTIVE_MODEL selects saturation and the queueing model, so \
                that slo and throughput are not asked; write false there, or remove both";
    let places = saturation::selecting(&settings.saturation).into_iter();
    places.map(|place| Warning::advice(&place, text)).collect()
}

/// Notes on entries of models without variants, and on tiers that no variant names. A model may be on its way, so
/// that this is no mistake. `settings` are those of the fleet.
pub fn unused_entries(settings: &DynamicSettings, served: &BTreeSet<ModelKey>) -> Vec<Warning> {
    let entries = [
        entries::unused_entries(&settings.saturation.entries, Purpose::Saturation, served),
        entries::unused_entries(&settings.scale_to_zero.entries, Purpose::ScaleToZero, served),
        entries::unused_entries(&settings.queueing_model.entries, Purpose::QueueingModel, served),
    ];
    let entries = entries.into_iter().flatten().map(|(place, model)| {
        let text = match model {
            Some(model) => {
                let elsewhere = served.iter().filter(|key| *key.model == *model);
                let elsewhere: Vec<String> =
                    elsewhere.map(|key| shortened(&key.namespace)).collect();
                let model = shortened(&model);
                if elsewhere.is_empty() {
                    format!("no variant serves model {model:?}; correct its name, or remove the entry")
                } else {
                    format!(
                        "model {model:?} is served in namespace {} alone; correct the namespace, or remove the entry",
                        elsewhere.join(", ")
                    )
                }
            }
            None => "no variant is in this namespace; correct its name, or remove it".to_owned(),
        };
        Warning::advice(&place, &text)
    });
    let names: BTreeSet<&str> = served.iter().map(|key| &*key.model).collect();
    let classes = service_class::entries(&settings.service_classes).flat_map(|(place, classes)| {
        let rows = classes.iter().flat_map(|class| {
            let models = class.targets.keys();
            models.map(move |model| (&class.name, model))
        });
        let unused =
            rows.filter(|(_, model)| *model != ANY_MODEL && !names.contains(model.as_str()));
        unused.map(move |(class, model)| {
            let (class, model) = (shortened(class), shortened(model));
            let text = format!(
                "class {class:?}: no variant serves model {model:?}; correct its name, or remove the row"
            );
            Warning::advice(&place, &text)
        })
    });
    let acting: BTreeSet<&str> = (settings.saturation.tiers.values()).map(|tier| &**tier).collect();
    let tiers = saturation::tiers(&settings.saturation);
    let tiers = tiers.filter(|place| !acting.contains(&*place.entry)).map(|place| {
        let text = "no variant names it as scalingPolicy; name it there, write the modelId of its model, or remove it";
        Warning::advice(&place, text)
    });
    entries.chain(classes).chain(tiers).collect()
}

/// Notes on quotas and exceptions that concern no variant of a fleet, where growth is limited by them.
pub fn unused_quotas(settings: &DynamicSettings, fleet: &FleetTypes<'_>) -> Vec<Warning> {
    let place = saturation::limiting(&settings.saturation);
    let Some(place) = place.filter(|_| settings.limits_growth()) else {
        return Vec::new();
    };
    let limiters = settings.saturation.limiters().unwrap_or_default();
    let notes = limiters.iter().enumerate().flat_map(|(index, limiter)| {
        let places = saturation::without_variants(limiter, fleet).into_iter();
        places.map(move |text| format!("limiters[{index}].{text}"))
    });
    notes.map(|text| Warning::advice(&place, &text)).collect()
}
