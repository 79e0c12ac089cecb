//! PodAutoscalers of a document: the objects, their targets and what their sources report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SnapshotDocument;
use super::read::Reader;
use super::reading::{DocumentReading, ReadingState};
use super::scalar::{self, Span};
use crate::key::TargetKey;
use crate::pod_autoscaler::amounts::{AMOUNTS, PodsPerReplica};
use crate::pod_autoscaler::check::{AutoscalerPolicy, ScalingStrategy};
use crate::pod_autoscaler::claims::{TargetClaim, TargetRivals};
use crate::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use crate::pod_autoscaler::status::PodAutoscalerStatus;
use crate::pod_autoscaler::storm_service::nameless_role;
use crate::pod_autoscaler::tuning::{StormServiceMode, WithoutEffect};
use crate::pod_autoscaler::{AutoscalerState, AutoscalerView, PodAutoscalerObject};
use crate::signal::{Failure, Signal};
use crate::snapshot::VariantView;
use crate::units::Replicas;
use wva_base::moment::WallTime;
use wva_base::names::{check_namespace, check_object_name};

/// A PodAutoscaler and what is known of its target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodAutoscalerDocument {
    /// The object, as `kubectl get -o yaml` prints it.
    pub object: PodAutoscalerObject,
    /// Replicas that the target states.
    pub current: u32,
    /// Pods that are measured of each replica of a StormService; of a role its RoleSets. 0: not known, and nothing is
    /// released by pods. Left out: 1 of a role or another kind, 0 of a StormService that is scaled as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_per_replica: Option<PodsPerReplica>,
    /// Pods of the target, without those that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<AutoscaledPodDocument>,
    /// What each entry of `spec.metricsSources` reports, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceDocument>,
    /// Requests that wait in the routers of its model. Left out: no router is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<DocumentReading>,
    /// What was remembered after the last decision, as `wva plan --explain --format json` writes it. Its times are
    /// by the clock of `time.uptime`. Left out: what the status of the object holds, as after a restart, and nothing
    /// is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub state: Option<Value>,
}

/// A pod of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AutoscaledPodDocument {
    /// Its name.
    #[serde(deserialize_with = "scalar::name")]
    pub name: Arc<str>,
    /// What it does. Left out: `ready`.
    #[serde(default)]
    pub state: AutoscaledPodState,
    /// How long it has been ready. Left out: as long as the process runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for: Option<Span>,
}

/// What a pod of the target does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AutoscaledPodState {
    /// It serves.
    #[default]
    Ready,
    /// It does not serve yet.
    Pending,
    /// It waits behind a scheduling gate.
    Gated,
    /// It finishes its requests and is gone then.
    Draining,
    /// It moves its shards and serves again.
    Resharding,
}

/// What one metric source reports: a value of each pod, or one total.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SourceDocument {
    /// By pod, of types pod, resource and custom. A pod that is left out has no sample. Ages count from the
    /// collection.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pods: BTreeMap<Arc<str>, DocumentReading>,
    /// The total, of type external.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<DocumentReading>,
}

impl PodAutoscalerDocument {
    /// Writes down what a decision is made from. `lag` is the time since the collection of the document, which counts on
    /// top of every age.
    pub fn of(
        object: PodAutoscalerObject,
        view: &AutoscalerView,
        state: &AutoscalerState,
        lag: Duration,
    ) -> Self {
        let written = |signal: Signal| DocumentReading::of(signal, lag);
        let pods = view.pods.iter().map(|(name, pod)| {
            let (state, ready_for) = match pod {
                AutoscaledPod::Ready { ready_for } => (AutoscaledPodState::Ready, Some(*ready_for)),
                AutoscaledPod::Pending => (AutoscaledPodState::Pending, None),
                AutoscaledPod::Gated => (AutoscaledPodState::Gated, None),
                AutoscaledPod::Draining => (AutoscaledPodState::Draining, None),
                AutoscaledPod::Resharding => (AutoscaledPodState::Resharding, None),
            };
            AutoscaledPodDocument { name: Arc::clone(name), state, ready_for: ready_for.map(Span) }
        });
        let sources = view.readings.iter().map(|reading| match reading {
            SourceReading::Pods(pods) => SourceDocument {
                pods: (pods.iter())
                    .map(|(name, signal)| (Arc::clone(name), written(*signal)))
                    .collect(),
                total: None,
            },
            SourceReading::Total(signal) => {
                SourceDocument { pods: BTreeMap::new(), total: Some(written(*signal)) }
            }
        });
        let has_roles = object.spec.scale_target_ref.has_roles();
        Self {
            current: view.current.0,
            pods_per_replica: has_roles.then_some(view.pods_per_replica),
            pods: pods.collect(),
            sources: sources.collect(),
            held: view.held.map(written),
            state: serde_json::to_value(state).ok(),
            object,
        }
    }
}

/// One decision that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoscalerSituation {
    /// The object, checked.
    pub policy: AutoscalerPolicy,
    /// What it scales.
    pub target: Option<TargetKey>,
    /// What is seen of it.
    pub view: AutoscalerView,
    /// What is remembered.
    pub state: AutoscalerState,
    /// Other objects of the document on its target.
    pub rivals: TargetRivals,
}

/// Pods of one replica where the document does not state them.
fn presumed(policy: &AutoscalerPolicy) -> Result<PodsPerReplica, String> {
    let target = &policy.target;
    if !target.is_storm_service() {
        return Ok(PodsPerReplica::ONE);
    }
    let is_pooled = policy.tuning.storm_service == StormServiceMode::Pooled;
    match target.role.as_deref().filter(|_| is_pooled) {
        Some("") => Err(format!(
            "{}; where spec.mode of the service is Replica, write podsPerReplica",
            nameless_role(&target.name)
        )),
        Some(_) => Ok(PodsPerReplica::ONE),
        None => Ok(PodsPerReplica(0)),
    }
}

impl AutoscalerSituation {
    fn claim(&self) -> TargetClaim {
        let created = self.policy.metadata.creation_timestamp;
        let created = created.map_or(0, Timestamp::as_millisecond);
        // A document leaves spec.mode of the service out, so that the annotation counts.
        let mode = self.policy.tuning.storm_service;
        TargetClaim::of_autoscaler(&self.policy, mode, WallTime(created))
    }
}

fn find_rivals(situations: &mut [AutoscalerSituation]) {
    let mut claims: BTreeMap<Option<TargetKey>, Vec<TargetClaim>> = BTreeMap::new();
    for one in &*situations {
        let of_target = claims.entry(one.target.clone()).or_default();
        of_target.push(one.claim());
    }
    for one in situations {
        let others = claims.get(&one.target).map(Vec::as_slice);
        one.rivals = TargetRivals::of(&one.claim(), others.unwrap_or_default());
    }
}

impl Reader {
    pub(super) fn autoscalers(
        &mut self,
        document: &SnapshotDocument,
        views: &[VariantView],
    ) -> Vec<AutoscalerSituation> {
        let mut of_variants = BTreeMap::new();
        for (index, view) in views.iter().enumerate() {
            if let Some(own) = view.target.resolved() {
                of_variants.entry(&own.key).or_insert(index);
            }
        }
        let mut names: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        let mut found = Vec::new();
        for (index, one) in document.pod_autoscalers.iter().enumerate() {
            let path = format!("podAutoscalers[{index}]");
            let metadata = &one.object.metadata;
            let namesakes = names.entry((&*metadata.namespace, &*metadata.name)).or_default();
            for other in &*namesakes {
                let why = format!("podAutoscalers[{other}] has this name, too; give it another");
                self.fault(format!("{path}.object.metadata.name"), why);
            }
            namesakes.push(index);
            // A variant scales whole targets, so a role of one is the target, too.
            let target = one.object.spec.scale_target_ref.key(&metadata.namespace);
            if let Some(index) = target.and_then(|key| of_variants.get(&key)) {
                let why = format!(
                    "variants[{index}] scales it, too; leave one of them out, or write state: contested there"
                );
                self.fault(format!("{path}.object.spec.scaleTargetRef"), why);
            }
            found.extend(self.autoscaler(&path, one));
        }
        find_rivals(&mut found);
        found
    }

    fn autoscaler(
        &mut self,
        path: &str,
        document: &PodAutoscalerDocument,
    ) -> Option<AutoscalerSituation> {
        let metadata = &document.object.metadata;
        let names = [
            ("namespace", check_namespace(&metadata.namespace)),
            ("name", check_object_name(&metadata.name)),
        ];
        for (field, outcome) in names {
            if let Err(error) = outcome {
                let path = format!("{path}.object.metadata.{field}");
                self.fault(path, format!("{error}; write a valid name"));
            }
        }
        let name = format!("{}/{}", metadata.namespace, metadata.name);
        self.check_count(format!("{path}.current"), Some(document.current), &name);
        let pods = self.autoscaled_pods(path, &document.pods);
        let state = self.autoscaler_state(path, document);
        let policy = match document.object.check() {
            Ok(policy) => policy,
            Err(violations) => {
                for violation in violations.iter() {
                    self.fault(
                        format!("{path}.object.{}", violation.path),
                        format!("{} ({name})", violation.why),
                    );
                }
                for fault in violations.faults() {
                    let (field, why) = match fault {
                        WithoutEffect::Annotation { .. } => {
                            ("metadata.annotations", fault.to_string())
                        }
                        WithoutEffect::Field { path, why } => {
                            (path.as_str(), format!("has no effect: {why}; remove it"))
                        }
                        WithoutEffect::Rounded { path, why } => (path.as_str(), why.clone()),
                    };
                    self.fault(format!("{path}.object.{field}"), format!("{why} ({name})"));
                }
                return None;
            }
        };
        let readings = self.source_readings(path, &policy, &document.sources, &pods);
        let held = document.held;
        let held = held.map(|held| self.signal(&format!("{path}.held"), held));
        let stated = document.pods_per_replica;
        if stated.is_some() && !policy.target.is_storm_service() {
            let why =
                "it counts for a StormService only, whose replicas have several pods; remove it";
            self.fault(format!("{path}.podsPerReplica"), why.to_owned());
        }
        let pods_per_replica = stated.map_or_else(|| presumed(&policy), Ok);
        let pods_per_replica = pods_per_replica.unwrap_or_else(|why| {
            let path = format!("{path}.object.spec.subTargetSelector.roleName");
            self.fault(path, why);
            PodsPerReplica(0)
        });
        Some(AutoscalerSituation {
            policy,
            target: (document.object.spec.scale_target_ref).key(&metadata.namespace),
            view: AutoscalerView {
                current: Replicas(document.current),
                pods_per_replica,
                pods,
                readings,
                held,
            },
            state,
            rivals: TargetRivals::Yielding(Vec::new()),
        })
    }

    fn autoscaled_pods(
        &mut self,
        path: &str,
        documents: &[AutoscaledPodDocument],
    ) -> BTreeMap<Arc<str>, AutoscaledPod> {
        let mut pods = BTreeMap::new();
        for (index, document) in documents.iter().enumerate() {
            let path = format!("{path}.pods[{index}]");
            let ready_for = document.ready_for.map(|span| span.0);
            let pod = match document.state {
                AutoscaledPodState::Ready => {
                    AutoscaledPod::Ready { ready_for: ready_for.unwrap_or(self.now.monotonic) }
                }
                AutoscaledPodState::Pending => AutoscaledPod::Pending,
                AutoscaledPodState::Gated => AutoscaledPod::Gated,
                AutoscaledPodState::Draining => AutoscaledPod::Draining,
                AutoscaledPodState::Resharding => AutoscaledPod::Resharding,
            };
            if document.state != AutoscaledPodState::Ready && ready_for.is_some() {
                let why = "a pod that is not ready has been so for no time; drop it";
                self.fault(format!("{path}.readyFor"), why);
            }
            if pods.insert(Arc::clone(&document.name), pod).is_some() {
                let why = format!("{:?} stands twice; give each pod its own name", document.name);
                self.fault(format!("{path}.name"), why);
            }
        }
        pods
    }

    fn autoscaler_state(
        &mut self,
        path: &str,
        document: &PodAutoscalerDocument,
    ) -> AutoscalerState {
        let Some(written) = &document.state else {
            let status = document.object.status.as_ref();
            let status = status.map(PodAutoscalerStatus::read);
            return AutoscalerState::restored(&status.unwrap_or_default());
        };
        let path = &format!("{path}.state");
        self.check_moments(path, written);
        let state: AutoscalerState =
            serde_path_to_error::deserialize(written).unwrap_or_else(|error| {
                let field = error.path().to_string();
                let why = format!("{field}: {}; copy it from where it was written", error.inner());
                self.fault(path, why);
                AutoscalerState::default()
            });
        for (name, window) in &state.windows {
            if let Some((slot, why)) = window.fault(self.now) {
                let path = format!("{path}.windows.{name}.slots.{slot}");
                self.fault(path, format!("{why}; copy it from where it was written"));
            }
        }
        state
    }

    fn source_readings(
        &mut self,
        path: &str,
        policy: &AutoscalerPolicy,
        documents: &[SourceDocument],
        pods: &BTreeMap<Arc<str>, AutoscaledPod>,
    ) -> Vec<SourceReading> {
        let (sources, written) = (policy.sources.len(), documents.len());
        let is_measured = policy.strategy != ScalingStrategy::Hpa;
        if written > sources || (is_measured && written < sources) {
            let why = format!(
                "{written} are written for {sources} entries of spec.metricsSources; write one for each, {{}} for one \
                 that reports nothing"
            );
            self.fault(format!("{path}.sources"), why);
        }
        let known: BTreeSet<&Arc<str>> = pods.keys().collect();
        let pairs = policy.sources.iter().zip(documents).enumerate();
        let mut readings = Vec::new();
        for (index, (source, document)) in pairs {
            let path = format!("{path}.sources[{index}]");
            let misplaced = match (source.is_total(), document) {
                (true, document) if !document.pods.is_empty() => Some(("pods", "total")),
                (false, document) if document.total.is_some() => Some(("total", "pods")),
                _ => None,
            };
            if let Some((found, needed)) = misplaced {
                let why = format!("{source} does not report it; write {needed}");
                self.fault(format!("{path}.{found}"), why);
            }
            for name in document.pods.keys().filter(|name| !known.contains(name)) {
                let why = "the target has no pod of this name; add it to pods, or drop it";
                self.fault(format!("{path}.pods.{name}"), why);
            }
            readings.push(if source.is_total() {
                let path = format!("{path}.total");
                let total = document.total.map(|reading| self.signal(&path, reading));
                SourceReading::Total(total.unwrap_or_else(|| Failure::Absent.into()))
            } else {
                let values = document.pods.iter().map(|(name, reading)| {
                    let path = format!("{path}.pods.{name}");
                    (Arc::clone(name), self.signal(&path, *reading))
                });
                SourceReading::Pods(values.collect())
            });
        }
        readings
    }

    /// A reading as a signal. A read that failed without a cause is one that could not be made.
    fn signal(&mut self, path: &str, reading: DocumentReading) -> Signal {
        let lag: Duration = self.lag;
        match reading.sample(&self.bands, lag) {
            Ok(Some(sample)) if reading.why.is_none() && !AMOUNTS.contains(&sample.value) => {
                self.fault(path, format!("{:?} is no amount; write 0 to 1e100", sample.value));
                Failure::Invalid.into()
            }
            Ok(Some(sample)) => {
                let age = sample.age.saturating_add(lag);
                self.bands.judge(sample.value, age, AMOUNTS)
            }
            Ok(None) => match (reading.state, reading.why) {
                (Some(ReadingState::Failed), None) => Failure::QueryFailed.into(),
                _ => Failure::Absent.into(),
            },
            Err(why) => {
                self.fault(path, why);
                Failure::Invalid.into()
            }
        }
    }
}
