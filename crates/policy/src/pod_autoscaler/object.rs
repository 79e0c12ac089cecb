//! A `PodAutoscaler` of `autoscaling.aibrix.ai/v1alpha1` as it is written: nothing is judged yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::schedule::ReplicaBounds;
use crate::key::{TargetKey, TargetKind};
use crate::units::Replicas;
use wva_base::text::bounded;
use wva_base::yaml::plain_words;

/// Group and version of the object.
pub const API_VERSION: &str = "autoscaling.aibrix.ai/v1alpha1";

/// Kind of the object.
pub const KIND: &str = "PodAutoscaler";

/// Group and version of AIBrix's kinds of target.
pub(super) const ORCHESTRATION: &str = "orchestration.aibrix.ai/v1alpha1";

/// The kind of target with roles.
pub(super) const STORM_SERVICE: &str = "StormService";

/// A manifest, as `kubectl get -o yaml` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodAutoscalerObject {
    /// `autoscaling.aibrix.ai/v1alpha1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Arc<str>>,
    /// `PodAutoscaler`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Arc<str>>,
    /// Name, namespace, labels and annotations; other metadata decides nothing.
    pub metadata: AutoscalerMetadata,
    /// What is asked for.
    pub spec: PodAutoscalerSpec,
    /// What was left out in reading.
    #[serde(skip)]
    pub skipped: SkippedFields,
    /// The status. It decides who put a target at zero there, where nothing else is remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// Fields of either sort that are left out at most; an object with more is refused.
const MOST_SKIPPED: usize = 32;

/// Letters of the description of one field, which may quote a value of any length.
const MOST_LETTERS: usize = 500;

/// What reading leaves out of an object, so that all else of it is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedFields {
    /// Paths of fields that this kind does not have.
    pub unknown: Vec<String>,
    /// Fields with values of another form, each of which refuses the object.
    pub unreadable: Vec<UnreadableField>,
}

impl SkippedFields {
    /// Whether what is said of a path may only be due to a field that was left out.
    pub(super) fn explains(&self, path: &str) -> bool {
        let mut fields = self.unreadable.iter();
        fields.any(|field| is_within(path, &field.path) || is_within(&field.path, path))
    }
}

/// A field whose value has another form than that of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableField {
    /// Its path; empty where it is the whole value.
    pub path: String,
    /// Its value, and what to write instead.
    pub why: String,
}

impl UnreadableField {
    fn of(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        let path = error.path().to_string();
        let range = match path.rsplit('.').next() {
            Some("minReplicas") => Some("0 to 2147483647"),
            Some("maxReplicas") => Some("1 to 2147483647"),
            Some("observeWindowSeconds" | "panicWindowSeconds" | "horizonSeconds") => {
                Some("1 to 3600")
            }
            _ => None,
        };
        let text = plain_words(&error.inner().to_string());
        let why = match range {
            None if is_unquoted(&text) => format!("{text}; write it in quotes"),
            None => bounded(&text, MOST_LETTERS),
            // The remedy repeats what was expected.
            Some(range) => {
                let found = text.strip_suffix(", expected a whole number");
                let found = bounded(found.unwrap_or(&text), MOST_LETTERS);
                format!("{found}; write a whole number from {range}")
            }
        };
        Self { why, path: if path == "." { String::new() } else { path } }
    }
}

wva_base::display_of! { UnreadableField:
    Self { path, why } if path.is_empty() => "{why}";
    Self { path, why } => "{path}: {why}";
}

/// Whether a text without its quotes, which YAML reads as a number or a word of its own, is what is wrong.
fn is_unquoted(error: &str) -> bool {
    let found = error.strip_prefix("invalid type: ");
    let found = found.and_then(|rest| rest.strip_suffix(", expected a string"));
    let kinds = ["integer", "floating point", "boolean"];
    found.is_some_and(|found| kinds.iter().any(|kind| found.starts_with(kind)))
}

/// Whether a path is another one or lies below it. Everything lies below the empty path.
fn is_within(path: &str, other: &str) -> bool {
    let rest = path.strip_prefix(other);
    other.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Reads a value as a server stores it. Fields that this kind does not have are left out: a definition of another
/// version keeps them, and they are no reason to stop scaling. Fields of another form are left out to name all that is
/// wrong at once.
///
/// # Errors
/// The fields of another form, where the rest cannot be read without them.
pub fn read_known<T: DeserializeOwned>(
    mut value: Value,
) -> Result<(T, SkippedFields), Vec<UnreadableField>> {
    let mut skipped = SkippedFields::default();
    loop {
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(read) => return Ok((read, skipped)),
            Err(error) => error,
        };
        let SkippedFields { unknown, unreadable } = &mut skipped;
        let is_unknown = error.inner().to_string().starts_with("unknown field");
        let is_full = unknown.len().max(unreadable.len()) == MOST_SKIPPED;
        let is_removed = !is_full && remove(&mut value, error.path());
        if is_unknown && is_removed {
            unknown.push(error.path().to_string());
            continue;
        }
        let field = UnreadableField::of(&error);
        // What a field that was left out is missing from is named by that field.
        let mut known = unreadable.iter();
        if !known.any(|known| is_within(&known.path, &field.path)) {
            unreadable.push(field);
        }
        if !is_removed {
            return Err(skipped.unreadable);
        }
    }
}

/// The fields of a value that have another form than a type reads, each with its path.
pub fn unreadable<T: DeserializeOwned>(value: Value) -> Vec<String> {
    let fields = match read_known::<T>(value) {
        Ok((_, skipped)) => skipped.unreadable,
        Err(unreadable) => unreadable,
    };
    fields.iter().map(ToString::to_string).collect()
}

/// Removes what cannot be read: the field at a path, or of a list the element, which becomes an empty object, so that
/// the others keep their places. Where that is no element either, the list goes.
fn remove(value: &mut Value, path: &Path) -> bool {
    let mut steps: Vec<&Segment> = path.iter().collect();
    while let Some(last) = steps.pop() {
        let parent = steps.iter().try_fold(&mut *value, |at, step| match step {
            Segment::Map { key } => at.get_mut(key),
            Segment::Seq { index } => at.get_mut(index),
            _ => None,
        });
        match (last, parent) {
            (Segment::Map { key }, Some(Value::Object(fields))) => {
                return fields.remove(key).is_some();
            }
            (Segment::Seq { index }, Some(Value::Array(items))) => {
                let item = items.get_mut(*index).filter(|item| !item.is_object());
                if let Some(item) = item {
                    *item = Value::Object(serde_json::Map::new());
                    return true;
                }
            }
            _ => return false,
        }
    }
    false
}

/// The metadata that decides something or is copied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerMetadata {
    /// Namespace of the object, its target and its pods.
    pub namespace: Arc<str>,
    /// Name of the object.
    pub name: Arc<str>,
    /// When it was created. Of several objects on one target the oldest scales it. Left out: before all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub creation_timestamp: Option<Timestamp>,
    /// Identity of the object, for the owner reference of a generated object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Arc<str>>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Annotations; those below `autoscaling.aibrix.ai/` tune the strategies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<Arc<str>, Arc<str>>,
}

/// `spec`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodAutoscalerSpec {
    /// What to scale.
    #[serde(default, deserialize_with = "or_default")]
    pub scale_target_ref: ScaleTargetReference,
    /// A role inside a StormService.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_target_selector: Option<SubTargetSelector>,
    /// Fewest replicas. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Most replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
    /// Bounds at certain times. The first entry in force wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedules: Option<Vec<ScheduleSpec>>,
    /// What to measure. The source that needs most replicas wins.
    #[serde(default, deserialize_with = "or_default")]
    pub metrics_sources: Vec<MetricSourceSpec>,
    /// Seconds of the long (stable) window. Left out: 180.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observe_window_seconds: Option<i64>,
    /// Seconds of the short (panic) window. Left out: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic_window_seconds: Option<i64>,
    /// `HPA`, `KPA` or `APA`.
    #[serde(default, deserialize_with = "or_default")]
    pub scaling_strategy: Arc<str>,
    /// A forecast of demand, for KPA and APA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predictive: Option<PredictiveSpec>,
}

impl PodAutoscalerSpec {
    /// The bounds as they are written, with the defaults of what is left out.
    pub fn base_bounds(&self) -> ReplicaBounds {
        ReplicaBounds {
            min: self.min_replicas.map_or(Replicas::ONE, Replicas::from_count),
            max: Replicas::from_count(self.max_replicas.unwrap_or(0)),
        }
    }
}

/// `spec.predictive`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PredictiveSpec {
    /// `Preview` or `Auto`. Left out: `Preview`.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "or_default")]
    pub mode: Arc<str>,
    /// How far ahead, in seconds. Left out: 120.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon_seconds: Option<i64>,
}

/// Reads null as left out, so that the checks name it together with all else that is wrong.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// `spec.scaleTargetRef`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ScaleTargetReference {
    /// Group and version of its kind.
    #[serde(deserialize_with = "or_default")]
    pub api_version: Arc<str>,
    /// Its kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: Arc<str>,
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: Arc<str>,
    /// Its namespace: that of the object, empty, or left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Arc<str>>,
    /// Decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<Arc<str>>,
    /// Decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<Arc<str>>,
    /// Decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Arc<str>>,
}

impl ScaleTargetReference {
    /// The object of this namespace that it names, if it names one.
    pub fn key(&self, namespace: &Arc<str>) -> Option<TargetKey> {
        let (group, _) = self.api_version.split_once('/').unwrap_or_default();
        let kind = TargetKind::of(&Arc::from(group), &self.kind);
        let name = Some(&self.name).filter(|name| !name.is_empty())?;
        Some(TargetKey::new(Arc::clone(namespace), kind, Arc::clone(name)))
    }

    /// Whether it names a StormService, the kind whose roles have counts of their own.
    pub fn has_roles(&self) -> bool {
        (&*self.api_version, &*self.kind) == (ORCHESTRATION, STORM_SERVICE)
    }

    /// The field that keeps a role from being scaled, and the remedy.
    pub(super) fn has_no_roles(&self) -> (&'static str, String) {
        let Self { api_version, kind, .. } = self;
        if &**kind == STORM_SERVICE {
            let why = format!("{api_version:?} has no {kind}; write apiVersion {ORCHESTRATION}");
            ("spec.scaleTargetRef.apiVersion", why)
        } else {
            let why = format!("a {kind} has no roles; remove it");
            ("spec.subTargetSelector.roleName", why)
        }
    }
}

/// `spec.subTargetSelector`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SubTargetSelector {
    /// The role.
    #[serde(deserialize_with = "or_default")]
    pub role_name: Arc<str>,
}

/// One entry of `spec.schedules`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ScheduleSpec {
    /// Its name, unique in the list.
    #[serde(deserialize_with = "or_default")]
    pub name: Arc<str>,
    /// IANA time zone, the same in all entries. Left out: UTC.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "or_default")]
    pub timezone: Arc<str>,
    /// `Mon` to `Sun`. Left out: every day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days_of_week: Option<Vec<Arc<str>>>,
    /// `HH:MM`, inclusive.
    #[serde(deserialize_with = "or_default")]
    pub start_time: Arc<str>,
    /// `HH:MM`, exclusive, of the same day.
    #[serde(deserialize_with = "or_default")]
    pub end_time: Arc<str>,
    /// Replaces `spec.minReplicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Replaces `spec.maxReplicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
}

/// One entry of `spec.metricsSources`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MetricSourceSpec {
    /// `pod`, `resource`, `custom`, `external`, or its deprecated alias `domain`.
    #[serde(deserialize_with = "or_default")]
    pub metric_source_type: Arc<str>,
    /// `http` or `https`.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "or_default")]
    pub protocol_type: Arc<str>,
    /// `host:port` of an external service.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "or_default")]
    pub endpoint: Arc<str>,
    /// HTTP path of the metrics page.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "or_default")]
    pub path: Arc<str>,
    /// Port of the pods.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "or_default")]
    pub port: Arc<str>,
    /// Name of the metric.
    #[serde(deserialize_with = "or_default")]
    pub target_metric: Arc<str>,
    /// What one replica is to carry, as a decimal number.
    #[serde(deserialize_with = "or_default")]
    pub target_value: Arc<str>,
}
