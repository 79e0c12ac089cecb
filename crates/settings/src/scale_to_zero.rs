//! Which models may go to zero, and how long they must have been idle.

use std::time::Duration;

use serde::Deserialize;

use super::entries::{DocumentVerdict, Entry, EntryKind, read_scoped};
use super::problem::Diagnostics;
use super::purpose::Purpose;
use super::sources::PolicySources;
use wva_base::duration::{format_duration, parse_duration};
use wva_base::text::shortened;
use wva_base::yaml::DocumentField;
use wva_policy::params::{ScaleToZeroEntry, ScaleToZeroLayers};

/// Idle time beyond which an entry is probably mistaken.
const LONG_RETENTION: Duration = Duration::from_hours(24);

/// Fields of an entry.
pub const FIELDS: &[DocumentField] = &[
    DocumentField::named("model_id").also(&["modelId", "modelID"]),
    DocumentField::named("namespace"),
    DocumentField::named("enable_scale_to_zero"),
    DocumentField::named("retention_period"),
];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ScaleToZeroDocument {
    #[serde(alias = "modelId", alias = "modelID")]
    model_id: Option<String>,
    namespace: Option<String>,
    enable_scale_to_zero: Option<bool>,
    retention_period: Option<String>,
}

impl Entry for ScaleToZeroEntry {
    type Document = ScaleToZeroDocument;
    const PURPOSE: Purpose = Purpose::ScaleToZero;
    const FIELDS: &'static [DocumentField] = FIELDS;

    fn identity(document: &ScaleToZeroDocument) -> (Option<&str>, Option<&str>) {
        (document.model_id.as_deref(), document.namespace.as_deref())
    }

    /// A retention that is none leaves the rest of the entry in force.
    fn judge(document: ScaleToZeroDocument, _kind: EntryKind) -> DocumentVerdict<Self> {
        let enabled = document.enable_scale_to_zero;
        let retention = document.retention_period.as_deref().map(retention);
        match retention.transpose() {
            Ok(retention) => DocumentVerdict::Whole(Self { enabled, retention }),
            Err(fault) => {
                let entry = Self { enabled, retention: None };
                DocumentVerdict::Partly(entry, vec![fault])
            }
        }
    }

    fn lints(&self) -> Vec<String> {
        (self.retention.iter())
            .filter(|retention| **retention > LONG_RETENTION)
            .map(|retention| {
                let shown = format_duration(*retention);
                format!(
                    "retention_period {shown} keeps an idle model for more than a day: check \
                         its unit, like 10m"
                )
            })
            .collect()
    }

    fn complete(&mut self, previous: &Self) {
        self.retention = previous.retention;
    }
}

fn retention(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(length) if length.is_zero() => Err(format!(
            "retention_period must be positive, got {}: write for example 10m",
            format_duration(length)
        )),
        Ok(length) => Ok(length),
        Err(error) => Err(format!(
            "retention_period {:?} is not a positive duration: {error}; write for example 10m",
            shortened(text)
        )),
    }
}

/// Reads every scale-to-zero ConfigMap; `otherwise` applies where no entry states anything. What
/// is refused keeps its content of `previous`.
pub fn read(
    sources: &PolicySources,
    otherwise: bool,
    previous: Option<&ScaleToZeroLayers>,
    diagnostics: &mut Diagnostics,
) -> ScaleToZeroLayers {
    ScaleToZeroLayers {
        entries: read_scoped(sources, previous.map(|layers| &layers.entries), diagnostics),
        otherwise,
    }
}
