//! Targets of PodAutoscalers, as processes write them.

use std::time::Duration;

use serde_json::Value;

use super::Checker;
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::autoscalers::{ScaleWritten, history, written};
use crate::chaos::check::claims::Sent;
use crate::workloads::object::Object;
use crate::world::{AUTOSCALERS, Scenario};

const DEPLOYMENTS: &str = "deployments.apps";
const PODS: &str = "pods.";

/// A Deployment with the limits of its PodAutoscaler.
#[derive(Debug, Clone)]
pub(super) struct AutoscaledTarget {
    namespace: &'static str,
    name: &'static str,
    bounds: (u32, u32),
    window: Duration,
}

impl AutoscaledTarget {
    pub(super) fn of(scenario: &Scenario) -> Vec<Self> {
        let autoscaled = scenario.autoscaled.iter();
        let targets = autoscaled.flat_map(|one| {
            let window = Duration::from_secs(one.windows.0.into());
            one.model
                .variants
                .iter()
                .map(move |variant| (variant, window))
        });
        targets
            .map(|(variant, window)| Self {
                namespace: scenario.namespace,
                name: variant.name,
                bounds: variant.bounds,
                window,
            })
            .collect()
    }
}

impl Checker {
    pub(super) fn scales(&self, place: usize, sent: &Sent<'_>) -> Vec<InvariantViolation> {
        let Some(path) = sent.path.strip_suffix("/scale") else {
            return Vec::new();
        };
        let now = self.0.clock.now();
        let bench = self.bench();
        let mut targets = bench.autoscaled.iter();
        let target = targets.find(|target| {
            let rest = path.strip_suffix(target.name);
            rest.is_some_and(|rest| rest.ends_with("/deployments/"))
        });
        let (Some(target), Some(process)) = (target, bench.seats.get(&place)) else {
            return Vec::new();
        };
        let body: Value = serde_json::from_slice(sent.body).unwrap_or_default();
        let insider = &self.0.insider;
        let stored = insider.get(DEPLOYMENTS, target.namespace, target.name);
        let count = |object: Option<&Value>| {
            let count = object.and_then(|object| object.pointer("/spec/replicas"));
            let count = count.and_then(Value::as_u64).unwrap_or_default();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let pods = insider.list(PODS).into_iter().map(Object);
        let own = pods.filter(|pod| pod.label("app") == Some(target.name));
        let reads = own.filter_map(|pod| process.reads.last(pod.text("/status/podIP")));
        let since = |at: Duration| now.monotonic.saturating_sub(at);
        let scale = ScaleWritten {
            name: target.name,
            from: count(stored.as_deref()),
            to: count(Some(&body)),
            bounds: target.bounds,
            window: target.window,
            leads_for: process.leads_since().map(since),
            read_ago: reads.max().map(since),
        };
        written(place, &scale)
    }

    /// Looks at what is stored of PodAutoscalers.
    pub(super) fn histories(&self) -> Vec<InvariantViolation> {
        let stored = self.0.insider.list(AUTOSCALERS).into_iter().map(Object);
        let length = |one: &Object| {
            let history = one.at("/status/scalingHistory").as_array();
            history.map_or(0, Vec::len)
        };
        stored
            .filter_map(|one| history(one.name(), length(&one)))
            .collect()
    }
}
