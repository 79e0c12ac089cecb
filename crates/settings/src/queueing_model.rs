//! Settings of the queueing-model analyzer: whether it is used, and for which latencies it sizes.

use std::time::Duration;

use serde::Deserialize;

use super::entries::{DocumentVerdict, Entry, EntryKind, place, read_scoped};
use super::problem::{Diagnostics, EntryPlace};
use super::purpose::Purpose;
use super::sources::PolicySources;
use wva_base::text::decimal;
use wva_base::yaml::DocumentField;
use wva_policy::params::{LatencyTargets, QueueingModelEntry, QueueingModelLayers};

/// Longest latency target, in milliseconds: one day.
const MAX_MILLIS: f64 = 86_400_000.0;

/// Fields of an entry.
pub const FIELDS: &[DocumentField] = &[
    DocumentField::named("model_id").also(&["modelId", "modelID"]),
    DocumentField::named("namespace"),
    DocumentField::named("sloMultiplier"),
    DocumentField::named("tuningEnabled"),
    DocumentField::named("targetTTFT"),
    DocumentField::named("targetITL"),
];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct QueueingModelDocument {
    #[serde(rename = "model_id", alias = "modelId", alias = "modelID")]
    model_id: Option<String>,
    namespace: Option<String>,
    slo_multiplier: Option<f64>,
    tuning_enabled: Option<bool>,
    #[serde(rename = "targetTTFT")]
    target_ttft: Option<f64>,
    #[serde(rename = "targetITL")]
    target_itl: Option<f64>,
}

impl Entry for QueueingModelEntry {
    type Document = QueueingModelDocument;
    const PURPOSE: Purpose = Purpose::QueueingModel;
    const FIELDS: &'static [DocumentField] = FIELDS;

    fn identity(document: &QueueingModelDocument) -> (Option<&str>, Option<&str>) {
        (document.model_id.as_deref(), document.namespace.as_deref())
    }

    fn identity_fault(document: &QueueingModelDocument) -> Option<&'static str> {
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        (given(&document.model_id) != given(&document.namespace))
            .then_some("per-model overrides must have both model_id and namespace")
    }

    fn judge(document: QueueingModelDocument, kind: EntryKind) -> DocumentVerdict<Self> {
        let mut faults = Vec::new();
        // Zero is documented as "not set".
        let slo_multiplier = document.slo_multiplier.filter(|factor| *factor != 0.0);
        if let Some(factor) = slo_multiplier.filter(|factor| *factor <= 1.0) {
            faults.push(format!(
                "sloMultiplier must be > 1.0, got {}: write a factor like 3.0",
                decimal(factor, 2)
            ));
        }
        let targets = targets(
            ("targetTTFT", document.target_ttft),
            ("targetITL", document.target_itl),
            &mut faults,
        );
        if !faults.is_empty() {
            return DocumentVerdict::Refused(faults);
        }
        let entry = Self {
            slo_multiplier,
            tuning: document.tuning_enabled,
            targets: targets.filter(|_| kind == EntryKind::Model),
        };
        if kind == EntryKind::Default && targets.is_some() {
            let fault = "targetTTFT and targetITL count in an entry for one model only; move them";
            return DocumentVerdict::Partly(entry, vec![fault.to_owned()]);
        }
        DocumentVerdict::Whole(entry)
    }

    fn lints(&self) -> Vec<String> {
        let targets = self.targets.iter();
        let texts = targets.flat_map(|targets| too_short(targets, ["targetTTFT", "targetITL"]));
        texts.collect()
    }
}

/// Shortest latency target that is plausible: no engine takes less for a token.
const LEAST_TARGET: Duration = Duration::from_millis(1);

/// Targets that are too short for milliseconds: they were meant as seconds. Both names are
/// those of the fields, the one of the first token first.
pub(super) fn too_short(targets: &LatencyTargets, names: [&str; 2]) -> Vec<String> {
    let targets = [targets.time_to_first_token, targets.inter_token_latency];
    let short = (names.into_iter().zip(targets)).filter(|(_, target)| *target < LEAST_TARGET);
    let texts = short.map(|(name, target)| {
        let millionths = f64::from(target.subsec_nanos());
        let (stated, meant) = (millionths / 1e6, millionths / 1e3);
        format!(
            "{name} of {stated} ms is shorter than any engine takes for one token; targets are in \
                 milliseconds, write {meant} for {stated} s"
        )
    });
    texts.collect()
}

/// Both targets or none, in milliseconds; zero counts as none.
pub(super) fn targets(
    (first_name, first_given): (&str, Option<f64>),
    (second_name, second_given): (&str, Option<f64>),
    faults: &mut Vec<String>,
) -> Option<LatencyTargets> {
    let mut read = |name: &str, millis: Option<f64>| {
        let millis = millis.unwrap_or(0.0);
        if !(0.0..=MAX_MILLIS).contains(&millis) {
            faults.push(format!(
                "{name} must be >= 0 and at most {MAX_MILLIS} ms, got {}: write milliseconds like \
                 500, or 0 in both for no target",
                decimal(millis, 1)
            ));
            return None;
        }
        Some(Duration::try_from_secs_f64(millis / 1000.0).unwrap_or_default())
    };
    let (first, second) = (read(first_name, first_given)?, read(second_name, second_given)?);
    if first.is_zero() != second.is_zero() {
        let stated = |name, target: Duration, stated: Option<f64>| {
            (target.is_zero() && stated.is_some()).then(|| format!("{name} is 0"))
        };
        let zero = stated(first_name, first, first_given);
        let zero = zero.or_else(|| stated(second_name, second, second_given));
        let remedy = zero.map_or_else(
            || "write the missing one".to_owned(),
            |zero| format!("{zero}, which is no target: write milliseconds, or remove both"),
        );
        faults.push(format!(
            "{first_name} and {second_name} must be set together, or neither: {remedy}"
        ));
        return None;
    }
    (!first.is_zero())
        .then_some(LatencyTargets { time_to_first_token: first, inter_token_latency: second })
}

/// Reads every queueing-model ConfigMap. What is refused keeps its content of `previous`.
pub fn read(
    sources: &PolicySources,
    previous: Option<&QueueingModelLayers>,
    diagnostics: &mut Diagnostics,
) -> QueueingModelLayers {
    QueueingModelLayers {
        entries: read_scoped(sources, previous.map(|layers| &layers.entries), diagnostics),
    }
}

pub(super) fn entries(layers: &QueueingModelLayers) -> Vec<EntryPlace> {
    let named = layers.entries.models_named().into_iter();
    named.map(|named| place(&named, Purpose::QueueingModel)).collect()
}
