//! The values of external metrics: what the status of each variant says, and where it says nothing,
//! an error. An HPA holds its scale at an error; a made-up zero would shrink it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::super::visibility::NotVisible;
use super::GROUP_VERSION;
use crate::api::condition::time;
use crate::policy::accelerator::Accelerator;
use crate::policy::key::VariantKey;
use crate::policy::params::LabelSelector;
use crate::policy::series::{CURRENT, DESIRED, RATIO};
use crate::policy::units::Replicas;
use wva_base::moment::WallTime;

/// The label with the name of the variant.
pub(super) const VARIANT: &str = "variant_name";

wva_base::named! {
    listed
    /// In the order of discovery.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum ExternalMetric {
        Desired = DESIRED,
        Current = CURRENT,
        Ratio = RATIO,
    }
}

impl ExternalMetric {
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.as_str() == name)
    }

    fn value(self, counts: &VariantCounts) -> Option<String> {
        let desired = counts.desired.map(|Replicas(count)| u64::from(count));
        let current = counts.current.map(|Replicas(count)| u64::from(count));
        match self {
            Self::Desired => desired.map(|count| count.to_string()),
            Self::Current => current.map(|count| count.to_string()),
            Self::Ratio => {
                // By the rule of the gauge, in thousandths: a quantity holds no more.
                let (desired, current) = (desired? * 1000, current?.max(1));
                Some(format!("{}m", (desired + current / 2) / current))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VariantCounts {
    pub(super) key: VariantKey,
    pub(super) accelerator: Accelerator,
    /// The count in its status; `None` if nothing was ever decided.
    pub(super) desired: Option<Replicas>,
    /// The replicas of its target; `None` while that is not known.
    pub(super) current: Option<Replicas>,
    /// Why it is not known whether these are the present ones.
    pub(super) unseen: Option<NotVisible>,
}

/// A value that is asked for and not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unknown {
    #[error(transparent)]
    Blind(#[from] NotVisible),
    #[error("{metric} of VariantAutoscaling {variant} is not known: {why}")]
    Undecided { metric: &'static str, variant: VariantKey, why: &'static str },
}

/// Labels of one value. Those of the gauge, and `exported_namespace`, which is what `namespace` of
/// the gauge becomes when Prometheus scrapes it: selectors for either match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Labels<'a> {
    variant_name: &'a str,
    namespace: &'a str,
    exported_namespace: &'a str,
    accelerator_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_instance: Option<&'a str>,
}

impl<'a> Labels<'a> {
    fn of(counts: &'a VariantCounts, instance: Option<&'a str>) -> Self {
        Self {
            variant_name: &counts.key.name,
            namespace: &counts.key.namespace,
            exported_namespace: &counts.key.namespace,
            accelerator_type: counts.accelerator.label(),
            controller_instance: instance,
        }
    }

    fn get(&self, label: &str) -> Option<&'a str> {
        match label {
            VARIANT => Some(self.variant_name),
            "namespace" => Some(self.namespace),
            "exported_namespace" => Some(self.exported_namespace),
            "accelerator_type" => Some(self.accelerator_type),
            "controller_instance" => self.controller_instance,
            _ => None,
        }
    }
}

/// The list of values of those variants that the selector picks.
///
/// # Errors
/// When one of them has no value: a sum without it would be too small.
pub(super) fn list(
    metric: ExternalMetric,
    all_counts: &[VariantCounts],
    selector: &LabelSelector,
    instance: Option<&Arc<str>>,
    at: WallTime,
) -> Result<Value, Unknown> {
    let mut items = Vec::new();
    for counts in all_counts {
        let labels = Labels::of(counts, instance.map(|instance| &**instance));
        if !selector.matches(|label| labels.get(label)) {
            continue;
        }
        if let Some(unseen) = &counts.unseen {
            return Err(unseen.clone().into());
        }
        let value = metric.value(counts).ok_or_else(|| Unknown::Undecided {
            metric: metric.as_str(),
            variant: counts.key.clone(),
            why: if counts.desired.is_none() {
                "its status holds no decision yet"
            } else {
                "its scale target is not seen"
            },
        })?;
        items.push(json!({
            "metricName": metric.as_str(),
            "metricLabels": labels,
            "timestamp": time(at),
            "value": value,
        }));
    }
    Ok(json!({
        "kind": "ExternalMetricValueList",
        "apiVersion": GROUP_VERSION,
        "metadata": {},
        "items": items,
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::super::visibility::visible;
    use super::{ExternalMetric, Unknown, VariantCounts, list};
    use crate::cluster::mirror::MirrorWriter;
    use crate::policy::accelerator::Accelerator;
    use crate::policy::key::VariantKey;
    use crate::policy::params::LabelSelector;
    use crate::policy::units::Replicas;
    use wva_base::moment::WallTime;
    use wva_supervise::Clock;

    fn counts(name: &str, desired: Option<u32>, current: Option<u32>) -> VariantCounts {
        VariantCounts {
            key: VariantKey::new("team-a", name),
            accelerator: Accelerator::Named(Arc::from("H100")),
            desired: desired.map(Replicas),
            current: current.map(Replicas),
            unseen: None,
        }
    }

    #[test]
    fn what_is_not_seen_is_an_error_for_who_selects_it() {
        let never = MirrorWriter::<()>::default();
        let clock = Clock::real();
        let mut hidden = counts("b", Some(2), None);
        hidden.unseen = visible("ScaledObjects", &never.reader(), clock.now()).err();
        let all_counts = [counts("a", Some(1), None), hidden];
        let found = |selector| values(ExternalMetric::Desired, &all_counts, selector);
        assert!(found("variant_name=a").is_ok());
        for selector in ["variant_name=b", ""] {
            assert!(matches!(found(selector), Err(Unknown::Blind(_))));
        }
    }

    fn values(
        metric: ExternalMetric,
        all_counts: &[VariantCounts],
        selector: &str,
    ) -> Result<Vec<(String, String)>, Unknown> {
        let selector = LabelSelector::parse(selector).unwrap();
        let instance = Arc::from("blue");
        let list = list(metric, all_counts, &selector, Some(&instance), WallTime(0))?;
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let items = list["items"].as_array().unwrap().iter();
        Ok(items
            .map(|item| (text(&item["metricLabels"]["variant_name"]), text(&item["value"])))
            .collect())
    }

    #[test]
    fn an_item_has_the_labels_that_selectors_for_the_adapter_use() {
        let all_counts = [counts("llama", Some(3), Some(1))];
        let selector = LabelSelector::parse("variant_name=llama").unwrap();
        let at = WallTime(1_000);
        let mut labels = json!({
            "variant_name": "llama", "namespace": "team-a", "exported_namespace": "team-a",
            "accelerator_type": "H100",
        });
        let plain = list(ExternalMetric::Desired, &all_counts, &selector, None, at).unwrap();
        let item = json!({
            "metricName": "wva_desired_replicas", "metricLabels": labels,
            "timestamp": "1970-01-01T00:00:01Z", "value": "3",
        });
        assert_eq!(
            plain,
            json!({
                "kind": "ExternalMetricValueList",
                "apiVersion": "external.metrics.k8s.io/v1beta1",
                "metadata": {}, "items": [item],
            })
        );
        let instance = Arc::from("blue");
        let named =
            list(ExternalMetric::Desired, &all_counts, &selector, Some(&instance), at).unwrap();
        labels["controller_instance"] = json!("blue");
        assert_eq!(named["items"][0]["metricLabels"], labels);
    }

    #[test]
    fn a_selector_picks_by_every_label() {
        let all_counts = [counts("a", Some(1), None), counts("b", Some(2), None)];
        let one = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let both = [one("a", "1"), one("b", "2")].concat();
        for (selector, wanted) in [
            ("", both.clone()),
            ("variant_name=a", one("a", "1")),
            ("variant_name=b,exported_namespace=team-a", one("b", "2")),
            ("namespace=team-a,controller_instance=blue,accelerator_type in (H100,L40S)", both),
            ("variant_name!=a", one("b", "2")),
            ("exported_namespace=team-b", vec![]),
            ("controller_instance=green", vec![]),
            ("pod", vec![]),
            ("!pod,variant_name=a", one("a", "1")),
        ] {
            let found = values(ExternalMetric::Desired, &all_counts, selector).unwrap();
            assert_eq!(found, wanted, "{selector}");
        }
    }

    #[test]
    fn what_is_not_known_is_an_error_and_a_decided_zero_is_zero() {
        for (metric, desired, current, wanted) in [
            (ExternalMetric::Desired, Some(0), None, Some("0")),
            (ExternalMetric::Desired, None, Some(2), None),
            (ExternalMetric::Current, None, Some(2), Some("2")),
            (ExternalMetric::Current, Some(2), None, None),
            (ExternalMetric::Ratio, Some(3), Some(2), Some("1500m")),
            (ExternalMetric::Ratio, Some(2), Some(3), Some("667m")),
            (ExternalMetric::Ratio, Some(3), Some(0), Some("3000m")),
            (ExternalMetric::Ratio, Some(3), None, None),
        ] {
            let all_counts = [counts("a", Some(5), Some(5)), counts("b", desired, current)];
            let found = values(metric, &all_counts, "variant_name=b").ok();
            let found = found.map(|items| items[0].1.clone());
            assert_eq!(found.as_deref(), wanted, "{metric:?} {desired:?} {current:?}");
            // One that is not requested does no harm; a list that would need it fails as a whole.
            assert!(values(metric, &all_counts, "variant_name=a").is_ok());
            assert_eq!(values(metric, &all_counts, "").is_ok(), wanted.is_some());
        }
        let error = values(ExternalMetric::Desired, &[counts("b", None, None)], "").unwrap_err();
        assert_eq!(
            error.to_string(),
            "wva_desired_replicas of VariantAutoscaling team-a/b is not known: its status holds \
             no decision yet"
        );
    }
}
