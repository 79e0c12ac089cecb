//! Tests of the decisions of a `PodAutoscaler`.

mod aibrix_samples;
mod as_aibrix_counts;
mod asleep;
mod checks;
mod claims;
mod conditions;
mod demands;
mod document;
mod events;
mod forecasts;
mod gaps;
mod over_time;
mod properties;
mod schedules;
mod side_by_side;
mod statuses;
mod storm_services;
mod unread;
mod unread_fields;
mod vectors;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::amounts::PodsPerReplica;
use super::check::AutoscalerPolicy;
use super::decide::{AutoscalerDecision, AutoscalerView, decide};
use super::demand::{AutoscaledPod, SourceReading};
use super::object::PodAutoscalerObject;
use super::state::AutoscalerState;
use crate::signal::Signal;
use crate::units::Replicas;
use wva_base::moment::{Moment, WallTime};

/// A valid object whose spec has some fields replaced.
fn object(name: &str, spec: &str, annotations: &[(&str, &str)]) -> PodAutoscalerObject {
    let base = "
        scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
        minReplicas: 1
        maxReplicas: 10
        scalingStrategy: KPA
        metricsSources:
        - {metricSourceType: pod, protocolType: http, port: '8000', path: /metrics, targetMetric: load, targetValue: '10'}
    ";
    let mut fields: serde_yaml::Mapping = serde_yaml::from_str(base).unwrap();
    let changed: Option<serde_yaml::Mapping> = serde_yaml::from_str(spec).unwrap();
    fields.extend(changed.unwrap_or_default());
    let annotations = annotations.iter();
    PodAutoscalerObject {
        api_version: None,
        kind: None,
        metadata: super::object::AutoscalerMetadata {
            namespace: "default".into(),
            name: name.into(),
            creation_timestamp: None,
            uid: Some("u-1".into()),
            labels: [("app.kubernetes.io/name".into(), "aibrix".into())].into(),
            annotations: annotations
                .map(|(key, value)| (Arc::from(*key), Arc::from(*value)))
                .collect(),
        },
        spec: serde_yaml::from_value(fields.into()).unwrap(),
        skipped: super::object::SkippedFields::default(),
        status: None,
    }
}

fn policy(spec: &str, annotations: &[(&str, &str)]) -> AutoscalerPolicy {
    let policy = partly_read(spec, annotations);
    assert_eq!(policy.faults, []);
    policy
}

/// As [`policy`], of an object that may have parts without effect.
fn partly_read(spec: &str, annotations: &[(&str, &str)]) -> AutoscalerPolicy {
    let annotations: Vec<(String, &str)> = annotations
        .iter()
        .map(|(key, value)| (format!("autoscaling.aibrix.ai/{key}"), *value))
        .collect();
    let annotations: Vec<(&str, &str)> =
        annotations.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    object("pa", spec, &annotations).check().unwrap()
}

fn at(seconds: u64) -> Moment {
    Moment {
        monotonic: Duration::from_secs(seconds),
        wall: WallTime(i64::try_from(seconds).unwrap() * 1000),
    }
}

fn signal(value: f64) -> Signal {
    let age = Duration::ZERO;
    if value > 0.0 { Signal::Known { value, age } } else { Signal::KnownZero { age } }
}

fn name(number: usize) -> Arc<str> {
    format!("p{number:03}").into()
}

const READY: AutoscaledPod = AutoscaledPod::Ready { ready_for: Duration::from_hours(1) };

/// A view of ready pods, each with a value by source.
fn view(current: u32, values: &[Vec<f64>]) -> AutoscalerView {
    let most = values.iter().map(Vec::len).max().unwrap_or(0);
    AutoscalerView {
        current: Replicas(current),
        pods_per_replica: PodsPerReplica::ONE,
        held: None,
        pods: (0..most).map(|number| (name(number), READY)).collect(),
        readings: values
            .iter()
            .map(|values| {
                let values = values.iter().enumerate();
                let named = values.map(|(number, value)| (name(number), signal(*value)));
                SourceReading::Pods(named.collect::<BTreeMap<_, _>>())
            })
            .collect(),
    }
}

struct Loop {
    policy: AutoscalerPolicy,
    state: AutoscalerState,
    seconds: u64,
    current: u32,
}

impl Loop {
    fn new(policy: AutoscalerPolicy, current: u32) -> Self {
        Self { policy, state: AutoscalerState::default(), seconds: 100_000, current }
    }

    fn decide(&mut self, view: &AutoscalerView) -> AutoscalerDecision {
        let (decision, state) = decide(&self.policy, view, &self.state, at(self.seconds));
        self.state = state;
        self.seconds += 10;
        self.current = decision.desired.0;
        decision
    }

    /// Decides once with a total that all pods share evenly.
    fn share(&mut self, total: f64) -> AutoscalerDecision {
        let current = self.current;
        let each = total / f64::from(current.max(1));
        let pods = usize::try_from(current).unwrap();
        self.decide(&view(current, &[vec![each; pods]]))
    }

    fn run(&mut self, seconds: u64, total: f64) -> Vec<u32> {
        let cycles = 0..seconds / 10;
        cycles.map(|_| self.share(total).desired.0).collect()
    }
}

fn codes(decision: &AutoscalerDecision) -> Vec<String> {
    let steps = decision.steps.iter();
    let codes = steps.map(|step| serde_json::to_value(&step.why).unwrap()["code"].clone());
    codes.map(|code| code.as_str().unwrap().to_owned()).collect()
}
