//! What several cells say together about a `PodAutoscaler`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Readers;
use super::mirrors::TargetLookup;
use crate::cluster::event::Regarding;
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::policy::key::{ObjectKey, TargetKey};
use crate::policy::object::TargetObject;
use crate::policy::pod_autoscaler::check::{AutoscalerPolicy, ScalingStrategy, SpecProblem};
use crate::policy::pod_autoscaler::object::{API_VERSION, KIND};
use crate::policy::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict, MeasuredPod};
use crate::policy::pod_autoscaler::samples::{read_failures, source_readings};
use crate::policy::pod_autoscaler::{AutoscalerState, AutoscalerView, decide};
use crate::policy::units::Replicas;
use wva_base::moment::Moment;

/// The pods of a target.
type MeasuredPods = BTreeMap<Arc<str>, MeasuredPod>;

/// What is seen of a target: its count and its pods, or why they are not known.
type SeenTarget = Result<(Replicas, MeasuredPods), Arc<str>>;

impl Readers {
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
        if let Some(owner) = self.mirrors.rival(policy, stored, &target) {
            record.verdict = AutoscalerVerdict::Conflict(owner);
            return;
        }
        let (current, pods) = match self.seen_target(&target, now) {
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
