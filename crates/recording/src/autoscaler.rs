//! One decision about a `PodAutoscaler`: what it was made from, and what was decided.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cycle::hex_digest;
use wva_base::moment::{Moment, WallTime};
use wva_policy::key::ObjectKey;
use wva_policy::pod_autoscaler::amounts::PodsPerReplica;
use wva_policy::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use wva_policy::pod_autoscaler::{
    AutoscalerDecision, AutoscalerState, AutoscalerStep, AutoscalerView, GeneratedHpa,
    PodAutoscalerObject,
};
use wva_policy::signal::Signal;
use wva_policy::units::Replicas;

/// Letters of a digest. One is kept of each decision, and no one forges it.
const DIGEST: usize = 16;

/// Part of the keys of annotations that decide something.
const ANNOTATIONS: &str = "autoscaling.aibrix.ai/";

/// Everything that a decision is made from.
#[derive(Debug, Clone, Copy)]
pub struct AutoscalerInputs<'a> {
    /// When it is made.
    pub now: Moment,
    /// The object.
    pub object: &'a PodAutoscalerObject,
    /// What is seen of its target.
    pub view: &'a AutoscalerView,
    /// What was remembered before.
    pub state: &'a AutoscalerState,
}

/// One decision as it was recorded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RecordedAutoscaler {
    /// When it was made.
    pub now: Moment,
    /// The object, without what decides nothing.
    pub object: PodAutoscalerObject,
    /// What was seen of its target.
    view: RecordedView,
    /// What was remembered before.
    pub state: AutoscalerState,
    /// What was decided.
    pub decided: RecordedAutoscalerDecision,
}

/// The decision. The digest covers what is left out here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedAutoscalerDecision {
    /// Replicas before.
    pub current: Replicas,
    /// Replicas wanted.
    pub desired: Replicas,
    /// Why, in words.
    pub reason: String,
    /// Every step, where the count changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<AutoscalerStep>,
    /// A part of the SHA-256 of the decision and of what is remembered after it, as JSON.
    pub digest: String,
}

/// A view with times instead of ages, so that differences stay small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecordedView {
    current: Replicas,
    #[serde(default, skip_serializing_if = "PodsPerReplica::is_one")]
    pods_per_replica: PodsPerReplica,
    pods: BTreeMap<Arc<str>, RecordedPod>,
    readings: Vec<SourceReading>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<Signal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum RecordedPod {
    Ready { since: WallTime },
    Pending,
    Gated,
    Draining,
    Resharding,
}

impl RecordedPod {
    fn of(pod: AutoscaledPod, now: Moment) -> Self {
        match pod {
            AutoscaledPod::Ready { ready_for } => {
                Self::Ready { since: now.wall.earlier(ready_for) }
            }
            AutoscaledPod::Pending => Self::Pending,
            AutoscaledPod::Gated => Self::Gated,
            AutoscaledPod::Draining => Self::Draining,
            AutoscaledPod::Resharding => Self::Resharding,
        }
    }

    fn at(self, now: Moment) -> AutoscaledPod {
        match self {
            Self::Ready { since } => AutoscaledPod::Ready { ready_for: now.wall.since(since) },
            Self::Pending => AutoscaledPod::Pending,
            Self::Gated => AutoscaledPod::Gated,
            Self::Draining => AutoscaledPod::Draining,
            Self::Resharding => AutoscaledPod::Resharding,
        }
    }
}

impl AutoscalerInputs<'_> {
    pub(crate) fn key(&self) -> ObjectKey {
        key(self.object)
    }

    pub(crate) fn recorded(
        &self,
        decided: &RecordedAutoscalerDecision,
    ) -> Result<Value, serde_json::Error> {
        let pods = self.view.pods.iter();
        let view = RecordedView {
            current: self.view.current,
            pods_per_replica: self.view.pods_per_replica,
            pods: pods
                .map(|(name, pod)| (Arc::clone(name), RecordedPod::of(*pod, self.now)))
                .collect(),
            readings: self.view.readings.clone(),
            held: self.view.held,
        };
        let mut object = self.object.clone();
        object.status = None;
        object.metadata.labels.clear();
        let annotations = &mut object.metadata.annotations;
        annotations.retain(|key, _| key.contains(ANNOTATIONS));
        Ok(json!({
            "now": self.now,
            "object": serde_json::to_value(&object)?,
            "view": serde_json::to_value(&view)?,
            "state": serde_json::to_value(self.state)?,
            "decided": serde_json::to_value(decided)?,
        }))
    }
}

impl RecordedAutoscaler {
    /// The object that it is about.
    pub fn key(&self) -> ObjectKey {
        key(&self.object)
    }

    /// What was seen of the target.
    pub fn view(&self) -> AutoscalerView {
        let pods = self.view.pods.iter();
        AutoscalerView {
            current: self.view.current,
            pods_per_replica: self.view.pods_per_replica,
            pods: pods.map(|(name, pod)| (Arc::clone(name), pod.at(self.now))).collect(),
            readings: self.view.readings.clone(),
            held: self.view.held,
        }
    }
}

impl RecordedAutoscalerDecision {
    /// What was decided, and is remembered after it.
    ///
    /// # Errors
    /// A figure cannot be written as JSON.
    pub fn of(
        decision: &AutoscalerDecision,
        state: &AutoscalerState,
    ) -> Result<Self, serde_json::Error> {
        // The owner in the generated object holds labels that decide nothing.
        let hpa = decision.hpa.as_ref().map(GeneratedHpa::manifest);
        let mut digest = hex_digest(&json!({
            "current": decision.current,
            "desired": decision.desired,
            "algorithm": decision.algorithm.as_str(),
            "reason": decision.reason(),
            "bounds": decision.bounds,
            "nextBoundary": decision.next_boundary.map(|at| at.as_nanosecond().to_string()),
            "wouldBe": decision.would_be,
            "steps": decision.steps,
            "hpa": hpa.and_then(|hpa| hpa.get("spec").cloned()),
            "state": serde_json::to_value(state)?,
        }))?;
        digest.truncate(DIGEST);
        Ok(Self {
            current: decision.current,
            desired: decision.desired,
            reason: decision.reason(),
            steps: if decision.should_scale() { decision.steps.clone() } else { Vec::new() },
            digest,
        })
    }
}

fn key(object: &PodAutoscalerObject) -> ObjectKey {
    let metadata = &object.metadata;
    ObjectKey::new(Arc::clone(&metadata.namespace), Arc::clone(&metadata.name))
}
