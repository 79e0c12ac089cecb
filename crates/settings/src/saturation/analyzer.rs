//! Which analyzers take part, and with what weight.

use super::document::AnalyzerDocument;
use super::entry::weight_fault;
use crate::entries::EntryKind;
use wva_policy::params::{AnalyzerSettings, StatedBand};

pub(super) fn judge_analyzer(
    document: AnalyzerDocument,
    inherited: StatedBand,
    kind_of_entry: EntryKind,
    faults: &mut Vec<String>,
) -> AnalyzerSettings {
    let parameters = document.parameters.unwrap_or_default();
    let name = document.name.unwrap_or_default();
    let kind = document.kind.unwrap_or_else(|| name.clone());
    let label = if name.is_empty() { &kind } else { &name };
    if label.is_empty() {
        faults.push("analyzers: a name is required: write name: saturation".to_owned());
    }
    let settings = AnalyzerSettings {
        enabled: document.enabled.or(parameters.enabled).unwrap_or(true),
        score: document.score.or(parameters.score).unwrap_or(1.0),
        scale_up_threshold: document.scale_up_threshold.or(parameters.scale_up_threshold),
        scale_down_boundary: document.scale_down_boundary.or(parameters.scale_down_boundary),
        kind: kind.clone(),
    };
    if let Some(fault) = weight_fault("score", settings.score) {
        faults.push(format!("analyzer {label:?}: {fault}"));
    }
    let stated = StatedBand::from(&settings).over(inherited);
    let fault = match kind_of_entry {
        EntryKind::Default => stated.completed(settings.analysis()).fault(),
        EntryKind::Model | EntryKind::Tier => stated.fault(),
    };
    faults.extend(fault.map(|fault| format!("analyzer {label:?}: {fault}")));
    settings
}
