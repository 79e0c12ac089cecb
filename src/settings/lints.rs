//! What is accepted and does not act, for lack of something else.

use std::collections::BTreeSet;

use super::dynamic::DynamicSettings;
use super::problem::{EntryPlace, Warning};
use super::service_class::ANY_MODEL;
use crate::policy::key::ModelKey;
use wva_base::text::shortened;

/// What acts only together with something that is not set.
pub(super) fn ineffective_settings(settings: &DynamicSettings) -> Vec<Warning> {
    let mut told = Vec::new();
    let mut advise = |place, text: &str| told.push(lint(place, text.to_owned()));
    let rescaling = settings.saturation.rescaling();
    if !settings.limits_growth() {
        for place in rescaling {
            advise(
                place,
                "enableRescale: nothing limits growth, so no budget is shared; write enableLimiter: \
                 true in the global entry `default`, or remove it",
            );
        }
        if let Some(place) = settings.saturation.limiting() {
            advise(
                place,
                "limiters: nothing limits growth, so they do not act; write enableLimiter: true \
                 beside them, or remove them",
            );
        }
    } else if !settings.sizes_models() {
        for place in rescaling {
            advise(
                place,
                "enableRescale: every model is planned by percentages, which say no size to share by; \
                 write analyzerName: saturation in `default`, or remove it",
            );
        }
    }
    if !settings.asks_queueing_model() {
        for place in settings.queueing_model.entries() {
            advise(
                place,
                "the queueing model is not asked, so this does not act; write a global entry \
                 `default`, or remove it",
            );
        }
        for (place, _) in settings.service_classes.entries() {
            advise(
                place,
                "the queueing model is not asked, so no latency target acts; write an entry \
                 `default` of the global queueing-model ConfigMap, or remove it",
            );
        }
    }
    for (place, classes) in settings.service_classes.entries() {
        for class in classes.iter().filter(|class| class.targets.is_empty()) {
            let name = shortened(&class.name);
            let text = format!(
                "class {name:?} names no model, so it has no target; list models under data, or \
                 remove it"
            );
            told.push(lint(place.clone(), text));
        }
    }
    told
}

/// What is said of models that nobody serves. A model may be on its way, so that this is no mistake.
pub(super) fn unused_entries(
    settings: &DynamicSettings,
    served: &BTreeSet<ModelKey>,
) -> Vec<Warning> {
    let entries = [
        settings.saturation.unused_entries(served),
        settings.scale_to_zero.unused_entries(served),
        settings.queueing_model.unused_entries(served),
    ];
    let entries = entries.into_iter().flatten().map(|(place, model)| {
        let text = match model {
            Some(model) => {
                let model = shortened(&model);
                format!("no variant serves model {model:?}; correct its name, or remove the entry")
            }
            None => "no variant is in this namespace; correct its name, or remove it".to_owned(),
        };
        lint(place, text)
    });
    let names: BTreeSet<&str> = served.iter().map(|key| &*key.model).collect();
    let classes = settings
        .service_classes
        .entries()
        .flat_map(|(place, classes)| {
            let rows = classes.iter().flat_map(|class| {
                let models = class.targets.keys();
                models.map(move |model| (&class.name, model))
            });
            let unused_entries =
                rows.filter(|(_, model)| *model != ANY_MODEL && !names.contains(model.as_str()));
            unused_entries.map(move |(class, model)| (place.clone(), class, model))
        });
    let classes = classes.map(|(place, class, model)| {
        let (class, model) = (shortened(class), shortened(model));
        let text = format!(
            "class {class:?}: no variant serves model {model:?}; correct its name, or remove the row"
        );
        lint(place, text)
    });
    entries.chain(classes).collect()
}

fn lint(place: EntryPlace, text: String) -> Warning {
    Warning::EntryAdvice { place, text }
}
