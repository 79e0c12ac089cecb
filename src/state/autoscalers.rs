//! What several cells say together about a `PodAutoscaler`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::Readers;
use super::mirrors::TargetLookup;
use crate::api::condition::time as wall_time;
use crate::cluster::event::Regarding;
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::policy::key::{ObjectKey, TargetKey};
use crate::policy::object::TargetObject;
use crate::policy::plan::Plan;
use crate::policy::pod_autoscaler::check::{AutoscalerPolicy, ScalingStrategy, SpecProblem};
use crate::policy::pod_autoscaler::demand::AutoscaledPod;
use crate::policy::pod_autoscaler::object::{API_VERSION, KIND};
use crate::policy::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict, MeasuredPod};
use crate::policy::pod_autoscaler::samples::{
    SampleKey, SampleSource, SampleTable, read_failures, source_readings,
};
use crate::policy::pod_autoscaler::{AutoscalerState, AutoscalerView, decide};
use crate::policy::units::Replicas;
use wva_base::moment::Moment;

/// The pods of a target.
type MeasuredPods = BTreeMap<Arc<str>, MeasuredPod>;

/// What is seen of a target: its count and its pods, or why they are not known.
type SeenTarget = Result<(Replicas, MeasuredPods), Arc<str>>;

/// The last decisions, for the debug page: the plan of variants, and beside it what PodAutoscalers decided.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decisions {
    #[serde(flatten)]
    plan: Option<Arc<Plan>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pod_autoscalers: BTreeMap<String, Value>,
}

impl Readers {
    /// The last decisions.
    pub fn decisions(&self) -> Decisions {
        let records = self.autoscalers.snapshot().into_iter();
        Decisions {
            plan: self.last_plan(),
            pod_autoscalers: records
                .map(|(key, record)| (key.to_string(), shown(&record)))
                .collect(),
        }
    }

    /// Decides on a `PodAutoscaler` by what is known now; `None` if this controller does not manage it or may not write.
    pub fn decide_autoscaler(&self, key: &ObjectKey, now: Moment) -> Option<AutoscalerRecord> {
        let stored = self.mirrors.managed_autoscaler(key)?;
        if !self.claim.may_write(now) {
            return None;
        }
        let term = self.claim.term();
        let before = self.autoscalers.get(key);
        let before = before.filter(|before| before.uid == stored.uid && before.term == term);
        let state = before
            .map(|before| before.state.clone())
            .unwrap_or_default();
        let mut record = AutoscalerRecord {
            key: key.clone(),
            uid: Arc::clone(&stored.uid),
            generation: stored.generation,
            term,
            decided: now,
            policy: None,
            target: stored.target(),
            pods: Arc::default(),
            state: AutoscalerState::default(),
            verdict: AutoscalerVerdict::Unseen {
                why: Arc::default(),
            },
            base: stored.base_bounds(),
            notes: Vec::new(),
        };
        match checked(&stored) {
            Ok(policy) => {
                self.judge(&mut record, &policy, &stored, state, now);
                record.policy = Some(policy);
            }
            Err(invalid) => record.verdict = invalid,
        }
        Some(record)
    }

    fn judge(
        &self,
        record: &mut AutoscalerRecord,
        policy: &AutoscalerPolicy,
        stored: &StoredAutoscaler,
        state: AutoscalerState,
        now: Moment,
    ) {
        let Some(target) = record.target.clone() else {
            return;
        };
        match self.mirrors.rival(policy, stored, &target) {
            Ok(None) => {}
            Ok(Some(owner)) => {
                record.verdict = AutoscalerVerdict::Conflict(owner);
                return;
            }
            Err(kind) => {
                let kind = kind.as_str();
                let why = format!(
                    "objects of kind {kind} have not been listed, and one of them may scale {target}"
                );
                record.state = state;
                record.verdict = AutoscalerVerdict::Unseen { why: why.into() };
                return;
            }
        }
        let (current, mut pods) = match self.seen_target(&target, now) {
            Ok(seen) => seen,
            // The generated object is there before its target is.
            Err(_) if policy.strategy == ScalingStrategy::Hpa => Default::default(),
            Err(why) => {
                // A memory with a gap holds releases until it is whole again.
                record.state = state;
                record.verdict = AutoscalerVerdict::Unseen { why };
                return;
            }
        };
        let tables = [self.pod_samples.load(), self.api_samples.load()];
        let tables = [&*tables[0], &*tables[1]];
        mark_resharding(policy, &mut pods, tables[0]);
        let view = AutoscalerView {
            current,
            pods: pods
                .iter()
                .map(|(name, pod)| (Arc::clone(name), pod.pod))
                .collect(),
            readings: source_readings(policy, pods.keys(), &tables, now),
        };
        record.notes = read_failures(policy, pods.keys(), &tables);
        record.pods = Arc::new(pods);
        let (decision, state) = decide(policy, &view, &state, now);
        record.state = state;
        record.verdict = AutoscalerVerdict::Decided(Box::new(decision));
    }

    fn seen_target(&self, target: &TargetKey, now: Moment) -> SeenTarget {
        let unseen = |why: &str| Err(Arc::from(format!("{target} {why}")));
        let found: Arc<TargetObject> = match self.mirrors.sight(target) {
            TargetLookup::Found(found) => found,
            TargetLookup::Missing => {
                return unseen("does not exist; create it, or correct spec.scaleTargetRef");
            }
            TargetLookup::Unheard => {
                return unseen(
                    "did not exist when the API server answered last; it is looked for again",
                );
            }
            TargetLookup::Unsynced => return unseen("has not been read yet"),
            TargetLookup::Unscalable(why) => return Err(why),
        };
        let Some(pods) = self.mirrors.measured_pods(&found, now.wall) else {
            return unseen("has pods that have not been read yet");
        };
        Ok((found.spec_replicas.unwrap_or(Replicas::ONE), pods))
    }
}

/// A ready pod whose page answers 503 moves its shards: it serves again, and is not idle.
fn mark_resharding(policy: &AutoscalerPolicy, pods: &mut MeasuredPods, samples: &SampleTable) {
    for (name, pod) in pods {
        let is_unavailable = policy.sources.iter().any(|source| {
            let key = SampleKey {
                namespace: Arc::clone(&policy.metadata.namespace),
                pod: Some(Arc::clone(name)),
                source: SampleSource::of(source),
            };
            let failure = samples
                .get(&key)
                .and_then(|reading| reading.failure.as_ref());
            failure.is_some_and(|failure| failure.is_unavailable)
        });
        if is_unavailable && matches!(pod.pod, AutoscaledPod::Ready { .. }) {
            pod.pod = AutoscaledPod::Resharding;
        }
    }
}

/// A record as the debug page shows it.
fn shown(record: &AutoscalerRecord) -> Value {
    let target = record.target.as_ref().map(ToString::to_string);
    let verdict = match &record.verdict {
        AutoscalerVerdict::Decided(decision) => {
            let steps = decision.steps.iter().map(|step| {
                json!({
                    "stage": step.stage.as_str(), "from": step.from, "to": step.to,
                    "why": step.why, "reason": step.why.to_string(),
                })
            });
            json!({
                "current": decision.current,
                "desired": decision.desired,
                "algorithm": decision.algorithm.as_str(),
                "reason": decision.reason(),
                "bounds": decision.bounds,
                "nextBoundary": decision.next_boundary.map(|at| at.to_string()),
                "steps": steps.collect::<Vec<_>>(),
                "state": record.state,
            })
        }
        AutoscalerVerdict::Invalid { why, .. } => json!({ "invalid": why }),
        AutoscalerVerdict::Conflict(owner) => json!({ "scaledBy": owner.to_string() }),
        AutoscalerVerdict::Unseen { why } | AutoscalerVerdict::Uncounted { why } => {
            json!({ "unseen": why })
        }
    };
    json!({
        "target": target,
        "decided": wall_time(record.decided.wall).0.to_string(),
        "notes": record.notes,
        "decision": verdict,
    })
}

fn checked(stored: &StoredAutoscaler) -> Result<Arc<AutoscalerPolicy>, AutoscalerVerdict> {
    let object = stored.object.as_ref();
    let object = object.map_err(|why| AutoscalerVerdict::Invalid {
        problem: SpecProblem::InvalidSpec,
        why: why.to_string(),
    })?;
    object.check().map(Arc::new).map_err(|violations| {
        let found: Vec<String> = violations.iter().map(ToString::to_string).collect();
        AutoscalerVerdict::Invalid {
            problem: violations.problem().unwrap_or(SpecProblem::InvalidSpec),
            why: found.join("; "),
        }
    })
}

/// A `PodAutoscaler`, as an event refers to it.
pub fn regarding(stored: &StoredAutoscaler) -> Regarding {
    Regarding {
        api_version: Arc::from(API_VERSION),
        kind: Arc::from(KIND),
        namespace: Arc::clone(&stored.key.namespace),
        name: Arc::clone(&stored.key.name),
        uid: Arc::clone(&stored.uid),
    }
}
