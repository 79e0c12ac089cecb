//! The HorizontalPodAutoscaler of the strategy `HPA`, as data.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::amounts::{StepRate, TargetValue};
use super::check::{AutoscalerPolicy, ScaledObject};
use super::object::{API_VERSION, AutoscalerMetadata, KIND};
use super::schedule::ReplicaBounds;
use super::source::{MetricSource, SourceKind};
use crate::rounding::{ceil, floor};

/// Bytes of the unit that targets of memory are written in.
const MEBIBYTE: f64 = 1_048_576.0;

/// The API server keeps no larger quantity: it stores another text for one, which would be written again and again.
const LARGEST_QUANTITY: f64 = 9e18;

const LARGEST: u32 = i32::MAX.unsigned_abs();

const PERIOD_SECONDS: u32 = 60;

/// An entry of `spec.metrics`: what the generated object compares with the target of a source.
fn metric(source: &MetricSource) -> Value {
    let MetricSource { kind, metric: name, target } = source;
    let average = |value: String| json!({"type": "AverageValue", "averageValue": value});
    let percent = whole_percent(*target);
    match kind {
        SourceKind::Cpu => json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent},
        }}),
        SourceKind::Memory => json!({"type": "Resource", "resource": {
            "name": "memory", "target": average(mebibytes(*target)),
        }}),
        SourceKind::Pod { .. } | SourceKind::Custom => json!({"type": "Pods", "pods": {
            "metric": {"name": name}, "target": average(decimal(thousandths(*target))),
        }}),
        SourceKind::External | SourceKind::Service { .. } => {
            json!({"type": "External", "external": {
                "metric": {"name": name}, "target": average(decimal(thousandths(*target))),
            }})
        }
    }
}

/// A number with the precision of a quantity: thousandths, and never zero.
fn thousandths(target: TargetValue) -> f64 {
    let amount = (target.get() * 1000.0).round();
    amount.clamp(1.0, LARGEST_QUANTITY * 1000.0)
}

/// What a generated object compares instead of a target, and in which steps, where both differ by more than a tenth.
pub(super) fn rounded(kind: &SourceKind, target: TargetValue) -> Option<(f64, &'static str)> {
    let (kept, grain) = match kind {
        SourceKind::Cpu => (f64::from(whole_percent(target)), "whole percents"),
        SourceKind::Memory => (bytes(target) / MEBIBYTE, "whole bytes up to 9e18"),
        _ => (thousandths(target) / 1000.0, "whole thousandths up to 9e18"),
    };
    let written = target.get();
    ((kept - written).abs() > written / 10.0).then_some((kept, grain))
}

fn whole_percent(target: TargetValue) -> u32 {
    ceil(target.get()).min(LARGEST)
}

fn bytes(target: TargetValue) -> f64 {
    let bytes = (target.get() * MEBIBYTE).round();
    bytes.clamp(1.0, LARGEST_QUANTITY)
}

/// Thousandths in the canonical form, which the API server stores: the largest unit without a fraction.
fn decimal(thousandths: f64) -> String {
    let mut amount = thousandths.min(LARGEST_QUANTITY * 1000.0);
    let mut unit = "m";
    for larger in ["", "k", "M", "G", "T", "P", "E"] {
        if amount % 1000.0 > 0.0 {
            break;
        }
        amount /= 1000.0;
        unit = larger;
    }
    format!("{amount:.0}{unit}")
}

fn mebibytes(target: TargetValue) -> String {
    let mut amount = target.get();
    if amount.fract() > 0.0 || amount * MEBIBYTE > LARGEST_QUANTITY {
        return decimal(bytes(target) * 1000.0);
    }
    let mut unit = "Mi";
    for larger in ["Gi", "Ti", "Pi", "Ei"] {
        if amount % 1024.0 > 0.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    format!("{amount:.0}{unit}")
}

/// How fast a direction may go: `percent` a minute, or not at all.
fn pace(window: Duration, percent: Option<u32>, select: &str) -> Value {
    let window = window.as_secs();
    match percent {
        None => json!({"stabilizationWindowSeconds": window, "selectPolicy": "Disabled"}),
        Some(percent) => json!({
            "stabilizationWindowSeconds": window,
            "selectPolicy": select,
            "policies": [{"type": "Percent", "value": percent, "periodSeconds": PERIOD_SECONDS}],
        }),
    }
}

/// A rate of 1 means no step at all, which a policy of zero percent cannot say.
fn percent(rate: StepRate, share: f64) -> Option<u32> {
    (rate.get() > 1.0).then(|| floor(share * 100.0).clamp(1, LARGEST))
}

/// The generated object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedHpa {
    /// Names, labels and annotations of its owner.
    pub owner: AutoscalerMetadata,
    /// Its name.
    pub name: Arc<str>,
    /// Its `spec`.
    pub spec: Value,
}

impl GeneratedHpa {
    /// Builds it.
    pub fn of(policy: &AutoscalerPolicy, bounds: ReplicaBounds) -> Self {
        let tuning = &policy.tuning;
        let (up, down) = (tuning.scale_up_rate, tuning.scale_down_rate);
        let growth = percent(up, up.get() - 1.0);
        let release = percent(down, 1.0 - 1.0 / down.get());
        let ScaledObject { api_version, kind, name, .. } = &policy.target;
        // The API server stores no empty version, and the object would never be what it should.
        let api_version = Some(api_version).filter(|version| !version.is_empty());
        let mut reference = serde_json::Map::new();
        reference.extend(api_version.map(|version| ("apiVersion".to_owned(), json!(version))));
        reference.insert("kind".to_owned(), json!(kind));
        reference.insert("name".to_owned(), json!(name));
        Self {
            owner: policy.metadata.clone(),
            name: format!("{}-hpa", policy.metadata.name).into(),
            spec: json!({
                "scaleTargetRef": reference,
                "minReplicas": bounds.min,
                "maxReplicas": bounds.max,
                "metrics": policy.sources.iter().map(metric).collect::<Vec<_>>(),
                "behavior": {
                    "scaleUp": pace(tuning.scale_up_window, growth, "Max"),
                    "scaleDown": pace(tuning.scale_down_window, release, "Min"),
                },
            }),
        }
    }

    /// As a manifest of `autoscaling/v2`.
    pub fn manifest(&self) -> Value {
        let AutoscalerMetadata { namespace, name, uid, labels, annotations, .. } = &self.owner;
        json!({
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {
                "name": self.name,
                "namespace": namespace,
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [{
                    "apiVersion": API_VERSION,
                    "kind": KIND,
                    "name": name,
                    "uid": uid,
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": self.spec,
        })
    }
}
