//! What an autoscaler object demands.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscaler, MetricSpec, MetricTarget,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::rules::{Policy, ScalingDirection, ScalingRules, Select, Size, TOLERANCE};
use crate::milli::Milli;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExternalMetricTarget {
    AverageValue(Milli),
    /// So much in total; replicas change in proportion.
    Value(Milli),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExternalMetricSpec {
    pub(crate) name: String,
    pub(crate) selector: LabelSelector,
    pub(crate) target: ExternalMetricTarget,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Behavior {
    pub(crate) up: ScalingRules,
    pub(crate) down: ScalingRules,
}

/// What one autoscaler demands.
#[derive(Debug, Clone, PartialEq)]
pub struct HpaSpec {
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) metrics: Vec<ExternalMetricSpec>,
    /// Rules, if it names any: other ones hold if not.
    pub(crate) behavior: Option<Behavior>,
}

impl HpaSpec {
    /// Reads an object. Errors where a metric is not external or a target is no positive quantity.
    pub fn read(object: &HorizontalPodAutoscaler) -> Result<Self, String> {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let spec = object.spec.clone().unwrap_or_default();
        let metrics = spec.metrics.iter().flatten();
        let metrics = metrics
            .enumerate()
            .map(|(at, metric)| self::metric(name, at, metric))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            min: spec.min_replicas.map_or(1, count),
            max: count(spec.max_replicas),
            metrics,
            behavior: spec.behavior.map(|behavior| Behavior {
                up: rules(ScalingDirection::Up, behavior.scale_up.as_ref()),
                down: rules(ScalingDirection::Down, behavior.scale_down.as_ref()),
            }),
        })
    }
}

fn metric(name: &str, at: usize, spec: &MetricSpec) -> Result<ExternalMetricSpec, String> {
    let unusable = |field: &str, value: &str, remedy: &str| {
        let field = format!("spec.metrics[{at}].{field}");
        format!("HorizontalPodAutoscaler {name}: {field} is {value:?}; {remedy}")
    };
    let external =
        spec.external.as_ref().ok_or_else(|| unusable("type", &spec.type_, "use External"))?;
    let (field, text) = match &external.target {
        MetricTarget { average_value: Some(value), .. } => ("averageValue", &value.0),
        MetricTarget { value: Some(value), .. } => ("value", &value.0),
        target => {
            let remedy = "give value or averageValue";
            return Err(unusable("external.target", &target.type_, remedy));
        }
    };
    let value = Milli::parse(text).filter(|value| value.0 > 0).ok_or_else(|| {
        let remedy = "give a positive quantity like 1 or 500m";
        unusable(&format!("external.target.{field}"), text, remedy)
    })?;
    Ok(ExternalMetricSpec {
        name: external.metric.name.clone(),
        selector: external.metric.selector.clone().unwrap_or_default(),
        target: match field {
            "averageValue" => ExternalMetricTarget::AverageValue(value),
            _ => ExternalMetricTarget::Value(value),
        },
    })
}

fn rules(direction: ScalingDirection, given: Option<&HPAScalingRules>) -> ScalingRules {
    let standard = ScalingRules::standard(direction);
    let Some(given) = given else {
        return standard;
    };
    let seconds = |seconds: i32| Duration::from_secs(u64::from(count(seconds)));
    let policies: Vec<_> = given
        .policies
        .iter()
        .flatten()
        .map(|policy| Policy {
            size: match &*policy.type_ {
                "Percent" => Size::Percent(count(policy.value)),
                _ => Size::Pods(count(policy.value)),
            },
            period: seconds(policy.period_seconds),
        })
        .collect();
    let tolerance = given.tolerance.as_ref();
    ScalingRules {
        window: given.stabilization_window_seconds.map_or(standard.window, seconds),
        select: match given.select_policy.as_deref() {
            Some("Min") => Select::Min,
            Some("Disabled") => Select::Disabled,
            _ => Select::Max,
        },
        policies: if policies.is_empty() { standard.policies } else { policies },
        tolerance: tolerance
            .and_then(|text| Milli::parse(&text.0))
            .map_or(TOLERANCE, |share| share.real() / 1e3),
    }
}

/// A count that the API keeps from being negative.
fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
