//! Service classes: latency targets per model, by class, in order of priority.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::entries::{read_document, refuse};
use super::problem::{Diagnostics, EntryPlace, FallbackApplied, Warning};
use super::purpose::Purpose;
use super::queueing_model::{targets, too_short};
use super::sources::Data;
use wva_base::text::shortened;
use wva_base::yaml::DocumentField;
use wva_policy::params::{LatencyTargets, ServiceClass, ServiceClasses};

/// The one key of the older layout.
const FLAT_KEY: &str = "serviceClasses";

/// Fields of an entry; of each item in the older layout.
pub const FIELDS: &[DocumentField] = &[
    DocumentField::named("name"),
    DocumentField::named("priority"),
    DocumentField::named("data").holds(TARGET_FIELDS),
    DocumentField::named("model"),
    DocumentField::named("slo-tpot").also(&["slo-itl"]),
    DocumentField::named("slo-ttft").also(&["slo-ttw"]),
];

const TARGET_FIELDS: &[DocumentField] = &[
    DocumentField::named("model"),
    DocumentField::named("slo-tpot").also(&["slo-itl"]),
    DocumentField::named("slo-ttft").also(&["slo-ttw"]),
];

/// A class as written: with a list of models, or (older) one model per item.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct ClassDocument {
    name: Option<String>,
    priority: Option<u32>,
    data: Option<Vec<TargetDocument>>,
    model: Option<String>,
    #[serde(alias = "slo-itl")]
    slo_tpot: Option<f64>,
    #[serde(alias = "slo-ttw")]
    slo_ttft: Option<f64>,
}

/// Targets of one model, in milliseconds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct TargetDocument {
    model: Option<String>,
    #[serde(alias = "slo-itl")]
    slo_tpot: Option<f64>,
    #[serde(alias = "slo-ttw")]
    slo_ttft: Option<f64>,
}

/// Reads the ConfigMap. What is refused keeps its content of `previous`.
pub fn read(
    data: Option<&Data>,
    previous: Option<&ServiceClasses>,
    diagnostics: &mut Diagnostics,
) -> ServiceClasses {
    let mut classes = ServiceClasses::default();
    for (key, text) in data.into_iter().flatten() {
        let place = EntryPlace::new(Purpose::ServiceClasses, None, key);
        match read_entry(key, text, &classes, &place, diagnostics) {
            Ok(read) => {
                mention_short(&place, &read, diagnostics);
                classes.entries.insert(key.clone(), read);
            }
            Err(faults) => {
                let kept = previous.and_then(|classes| classes.entries.get(key));
                let instead = kept.map_or(FallbackApplied::Below, |_| FallbackApplied::Previous);
                refuse(place, faults, instead, diagnostics);
                if let Some(kept) = kept {
                    classes.entries.insert(key.clone(), kept.clone());
                }
            }
        }
    }
    classes
}

pub(super) fn entries(
    classes: &ServiceClasses,
) -> impl Iterator<Item = (EntryPlace, &[ServiceClass])> {
    classes.entries.iter().map(|(key, read)| {
        let place = EntryPlace::new(Purpose::ServiceClasses, None, key);
        (place, read.as_slice())
    })
}

fn read_entry(
    key: &str,
    text: &str,
    before: &ServiceClasses,
    place: &EntryPlace,
    diagnostics: &mut Diagnostics,
) -> Result<Vec<ServiceClass>, Vec<String>> {
    let documents: Vec<ClassDocument> = if key == FLAT_KEY {
        read_document(text, FIELDS, place, diagnostics).map_err(|(faults, _)| faults)?
    } else {
        let document = read_document(text, FIELDS, place, diagnostics);
        vec![document.map_err(|(faults, _)| faults)?]
    };
    let mut faults = Vec::new();
    let mut classes: BTreeMap<String, ServiceClass> = BTreeMap::new();
    for document in documents {
        judge(document, &mut classes, &mut faults);
    }
    for name in classes.keys() {
        if let Some(other) = before.named(name) {
            faults.push(format!(
                "class {:?} stands in an earlier entry as well: rename or remove one of them",
                other.name
            ));
        }
    }
    if faults.is_empty() { Ok(classes.into_values().collect()) } else { Err(faults) }
}

/// Most targets of one entry that are named as too short.
const MAX_SHORT: usize = 8;

fn mention_short(place: &EntryPlace, classes: &[ServiceClass], diagnostics: &mut Diagnostics) {
    let rows = classes.iter().flat_map(|class| {
        let targets = class.targets.iter();
        targets.map(move |(model, targets)| (&class.name, model, targets))
    });
    let texts = rows.flat_map(|(class, model, targets)| {
        let place = format!("class {:?}, model {:?}", shortened(class), shortened(model));
        let texts = too_short(targets, ["slo-ttft", "slo-tpot"]).into_iter();
        texts.map(move |text| format!("{place}: {text}"))
    });
    let notices = texts.take(MAX_SHORT);
    (diagnostics.notices).extend(notices.map(|text| Warning::advice(place, &text)));
}

/// Adds one document to the classes of its entry; items of the older layout share a class.
fn judge(
    document: ClassDocument,
    classes: &mut BTreeMap<String, ServiceClass>,
    faults: &mut Vec<String>,
) {
    let Some(name) = document.name.filter(|name| !name.is_empty()) else {
        faults.push("a class needs a name: write one like name: premium".to_owned());
        return;
    };
    let Some(priority) = document.priority else {
        faults.push(format!("class {name:?} needs a priority like 1"));
        return;
    };
    let mut rows = document.data.unwrap_or_default();
    if document.model.is_some() {
        rows.push(TargetDocument {
            model: document.model,
            slo_tpot: document.slo_tpot,
            slo_ttft: document.slo_ttft,
        });
    }
    let class = classes.entry(name.clone()).or_insert_with(|| ServiceClass {
        name: name.clone(),
        priority,
        targets: BTreeMap::new(),
    });
    if class.priority != priority {
        faults.push(format!(
            "class {name:?} has priority {} and priority {priority}: write one and the same",
            class.priority
        ));
    }
    for row in rows {
        match judge_row(&name, row) {
            Ok((model, targets)) if !class.targets.contains_key(&model) => {
                class.targets.insert(model, targets);
            }
            Ok((model, _)) => faults.push(format!(
                "class {name:?} names model {model:?} twice: remove one of the rows"
            )),
            Err(row_faults) => faults.extend(row_faults),
        }
    }
}

fn judge_row(class: &str, row: TargetDocument) -> Result<(String, LatencyTargets), Vec<String>> {
    let Some(model) = row.model.filter(|model| !model.is_empty()) else {
        return Err(vec![format!(
            "class {class:?}: a row names no model: write model: <the model's ID>"
        )]);
    };
    let mut faults = Vec::new();
    let read = targets(("slo-ttft", row.slo_ttft), ("slo-tpot", row.slo_tpot), &mut faults);
    if let Some(targets) = read {
        return Ok((model, targets));
    }
    if faults.is_empty() {
        faults.push("slo-ttft and slo-tpot must be positive".to_owned());
    }
    let model = shortened(&model);
    let place = format!("class {class:?}, model {model:?}");
    Err(faults.into_iter().map(|fault| format!("{place}: {fault}")).collect())
}

#[cfg(test)]
mod tests;
