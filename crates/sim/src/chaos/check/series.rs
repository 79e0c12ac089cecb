//! E: what is shown at `/metrics`, and what is not stored yet is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

use super::InvariantViolation;
use wva::policy::key::{ObjectKey, VariantKey};

#[derive(Debug, Default, PartialEq)]
pub(crate) struct ExposedSeries {
    pub(crate) desired: BTreeMap<VariantKey, f64>,
    pub(crate) current: BTreeMap<VariantKey, f64>,
    pub(crate) counted: BTreeMap<String, f64>,
    pub(crate) named: BTreeSet<VariantKey>,
    pub(crate) autoscalers: BTreeSet<ObjectKey>,
    pub(crate) broken: Vec<InvariantViolation>,
}

pub(crate) const SCALED_BY: [&str; 3] =
    ["wva_desired_replicas", "wva_current_replicas", "wva_desired_ratio"];

const WANTED: &str = "aibrix_autoscaler_scale_action";

/// Reads a page, before it becomes text: E3, and no variant twice.
pub(crate) fn read(families: &[MetricFamily]) -> ExposedSeries {
    let mut shown = ExposedSeries::default();
    let mut seen = BTreeSet::new();
    let mut ratios = Vec::new();
    for family in families {
        let name = family.name();
        for metric in family.get_metric() {
            let value = value(family.get_field_type(), metric);
            if !value.is_finite() || value < 0.0 {
                let labels = metric.get_label().iter();
                let labels: Vec<String> =
                    labels.map(|pair| format!("{}={:?}", pair.name(), pair.value())).collect();
                let text = format!("{name}{{{}}} {value} is no count", labels.join(","));
                shown.broken.push(InvariantViolation::new("E3", text));
            }
            if name == "wva_invariant_violations_total" {
                let number = label(metric, "invariant").unwrap_or_default();
                shown.counted.insert(number.to_owned(), value);
            }
            if name == WANTED
                && let Some(key) = autoscaler(metric)
                && let Some(key) = shown.autoscalers.replace(key)
            {
                let text = format!("{key} is shown twice in {name}");
                shown.broken.push(InvariantViolation::new("E1", text));
            }
            let Some(variant) = label(metric, "variant_name") else {
                continue;
            };
            let key = VariantKey::new(label(metric, "namespace").unwrap_or_default(), variant);
            if SCALED_BY.contains(&name) && !seen.insert((name, key.clone())) {
                let text = format!("{key} is shown twice in {name}");
                shown.broken.push(InvariantViolation::new("E1", text));
            }
            match name {
                "wva_desired_replicas" => drop(shown.desired.insert(key.clone(), value)),
                "wva_current_replicas" => drop(shown.current.insert(key.clone(), value)),
                "wva_desired_ratio" => ratios.push((key.clone(), value)),
                _ => {}
            }
            shown.named.insert(key);
        }
    }
    for (key, ratio) in ratios {
        let counts = [&shown.desired, &shown.current].map(|of| of.get(&key).copied());
        let [Some(desired), Some(current)] = counts else {
            continue;
        };
        let expected = if current > 0.0 { desired / current } else { desired };
        if ratio.total_cmp(&expected).is_ne() {
            let text = format!("{key} is shown with the ratio {ratio}, {desired} of {current}");
            shown.broken.push(InvariantViolation::new("E3", text));
        }
    }
    shown
}

/// The value of a series; of a histogram the sum, since the rest of it are whole numbers.
fn value(kind: MetricType, metric: &Metric) -> f64 {
    match kind {
        MetricType::COUNTER => metric.get_counter().get_value(),
        MetricType::GAUGE => metric.get_gauge().get_value(),
        MetricType::HISTOGRAM => metric.get_histogram().get_sample_sum(),
        // The controller has none of them.
        MetricType::SUMMARY | MetricType::UNTYPED => f64::NAN,
    }
}

fn autoscaler(metric: &Metric) -> Option<ObjectKey> {
    let namespace = label(metric, "namespace").unwrap_or_default();
    Some(ObjectKey::new(namespace, label(metric, "name")?))
}

fn label<'a>(metric: &'a Metric, name: &str) -> Option<&'a str> {
    let mut pairs = metric.get_label().iter();
    pairs.find(|pair| pair.name() == name).map(LabelPair::value).filter(|value| !value.is_empty())
}

/// E6: what is not stored yet is tried again.
#[derive(Debug, Default)]
pub(crate) struct Attempts(BTreeMap<String, Duration>);

impl Attempts {
    pub(crate) fn note(&mut self, path: &str, now: Duration) {
        if let Some(variant) = variant_of(path) {
            self.0.insert(variant, now);
        }
    }

    pub(crate) fn none_within(&self, variant: &str, time: Duration, now: Duration) -> bool {
        let last = self.0.get(variant);
        last.is_none_or(|last| now.saturating_sub(*last) > time)
    }
}

fn variant_of(path: &str) -> Option<String> {
    let (_, rest) = path.split_once("/namespaces/")?;
    let mut parts = rest.split('/');
    let namespace = parts.next()?;
    // The count of one that a scaler declares is no status.
    let place = match parts.next()? {
        "variantautoscalings" => Some("status"),
        "horizontalpodautoscalers" => None,
        _ => return None,
    };
    let name = parts.next()?;
    (parts.next() == place).then(|| format!("{namespace}/{name}"))
}
