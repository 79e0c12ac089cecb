//! What several cells say together about a `PodAutoscaler`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::Readers;
use super::mirrors::TargetLookup;
use super::recorder::AutoscalerEntry;
use crate::cluster::event::Regarding;
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::cluster::scale::{ReadTarget, autoscaler_target, kind_without_watcher};
use crate::policy::document::PodAutoscalerDocument;
use crate::policy::key::{ModelKey, ObjectKey, TargetKey};
use crate::policy::object::TargetObject;
use crate::policy::plan::Plan;
use crate::policy::pod_autoscaler::amounts::PodsPerReplica;
use crate::policy::pod_autoscaler::check::{AutoscalerPolicy, ScalingStrategy, SpecProblem};
use crate::policy::pod_autoscaler::claims::TargetRivals;
use crate::policy::pod_autoscaler::decide::AutoscalerOutcome;
use crate::policy::pod_autoscaler::demand::AutoscaledPod;
use crate::policy::pod_autoscaler::object::{API_VERSION, KIND};
use crate::policy::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict, MeasuredPod};
use crate::policy::pod_autoscaler::samples::{
    SampleKey, SampleSource, SampleTable, is_unread, read_failures, source_readings,
};
use crate::policy::pod_autoscaler::storm_service::ReplicaField;
use crate::policy::pod_autoscaler::{
    AutoscalerDecision, AutoscalerState, AutoscalerView, PodAutoscalerObject, decide,
};
use crate::policy::signal::{Failure, FreshnessBands, Signal};
use crate::policy::units::Replicas;
use wva_base::moment::Moment;

/// Label of pods, and label or annotation of a `PodAutoscaler`, that names the model.
const MODEL_KEY: &str = "model.aibrix.ai/name";

type MeasuredPods = BTreeMap<Arc<str>, MeasuredPod>;

/// What is seen of a target: its count with the field that holds it, and its pods.
#[derive(Debug, Default)]
struct SeenTarget {
    field: ReplicaField,
    current: Replicas,
    pods_per_replica: PodsPerReplica,
    pods: MeasuredPods,
    /// The model that its pods are labelled with.
    model: Option<Arc<str>>,
}

/// The last decisions, for the debug page: the plan of variants, and what PodAutoscalers decided.
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
        let clocks = before.as_ref();
        let clocks = clocks.map(|before| (before.unread_since, before.starting_since));
        let (unread_since, starting_since) = clocks.unwrap_or_default();
        let state = match before {
            Some(before) => before.state.clone(),
            None => AutoscalerState::restored(&stored.status),
        };
        let state = self.hooks.autoscaler_state(state, now);
        let mut record = AutoscalerRecord {
            key: key.clone(),
            uid: Arc::clone(&stored.uid),
            generation: stored.generation,
            term,
            decided: now,
            policy: None,
            target: stored.target(),
            model: None,
            field: ReplicaField::Scale,
            pods: Arc::default(),
            state: AutoscalerState::default(),
            verdict: AutoscalerVerdict::Unseen { why: Arc::default() },
            base: stored.base_bounds(),
            notes: Vec::new(),
            unread_since: None,
            starting_since: None,
            yielding: Vec::new(),
        };
        match checked(&stored) {
            Ok(mut policy) => {
                let target = record.target.as_ref();
                let read = target.and_then(|target| self.mirrors.read_target(target));
                let service = read.as_deref().and_then(|read| read.service.as_ref());
                let overridden = service.and_then(|service| service.overridden(&policy));
                if let Some(fault) = overridden {
                    fault.add_to(&mut Arc::make_mut(&mut policy).faults);
                }
                self.judge(&mut record, &policy, &stored, state, now);
                record.policy = Some(policy);
            }
            Err(invalid) => {
                record.state = state.suspended();
                record.verdict = invalid;
            }
        }
        let lacks_reads = self.lacks_reads(&record);
        if lacks_reads || matches!(record.verdict, AutoscalerVerdict::Unread { .. }) {
            record.unread_since = unread_since.or(Some(now));
        }
        let is_starting = lacks_reads && !record.pods.is_empty();
        if is_starting || record.is_cold() {
            record.starting_since = starting_since.or(Some(now));
        }
        Some(record)
    }

    /// Whether no count is decided because samples are on their way, or no pod was created yet.
    fn lacks_reads(&self, record: &AutoscalerRecord) -> bool {
        let (Some(decision), Some(policy)) = (record.decision(), &record.policy) else {
            return false;
        };
        if decision.outcome == AutoscalerOutcome::Decided {
            return false;
        }
        let tables = [self.pod_samples.load(), self.api_samples.load()];
        let serving = record.pods.iter().filter(|(_, pod)| serves(pod));
        let serving = serving.map(|(name, _)| name);
        record.pods.is_empty() || is_unread(policy, serving, &[&*tables[0], &*tables[1]])
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
            Ok(TargetRivals::Yielding(others)) => record.yielding = others,
            Ok(TargetRivals::Owner(owner)) => {
                record.state = state.suspended();
                record.verdict = AutoscalerVerdict::Conflict(owner);
                return;
            }
            Err(kind) => {
                let kind = kind.as_str();
                let why = format!(
                    "objects of kind {kind} have not been listed, and one of them may scale {target}"
                );
                record.state = state;
                record.verdict = AutoscalerVerdict::Unread { why: why.into() };
                return;
            }
        }
        let seen = match self.seen_target(policy, stored, &target, now) {
            Ok(seen) => seen,
            // The generated object is there before its target is.
            Err(_) if policy.strategy == ScalingStrategy::Hpa => SeenTarget::default(),
            Err(verdict) => {
                // A memory with a gap holds releases until it is whole again.
                record.state = state;
                record.verdict = verdict;
                return;
            }
        };
        record.field = seen.field.clone();
        record.model = asked_model(policy, seen.current, seen.model.as_ref());
        let (view, pods, notes) =
            self.autoscaler_view(policy, record.model.as_ref(), seen, &target, now);
        record.notes = notes;
        record.pods = Arc::new(pods);
        let (decision, after) = decide(policy, &view, &state, now);
        let decision = self.hooks.autoscaler_decision(decision);
        if let Ok(object) = &stored.object {
            self.recorder.record_autoscaler(|| AutoscalerEntry {
                now,
                object: Arc::clone(object),
                view,
                before: state,
                decision: decision.clone(),
                after: after.clone(),
            });
        }
        record.state = after;
        record.verdict = AutoscalerVerdict::Decided(Box::new(decision));
    }

    /// What a decision is made from, the pods behind it, and what could not be read of them.
    fn autoscaler_view(
        &self,
        policy: &AutoscalerPolicy,
        model: Option<&ModelKey>,
        SeenTarget { current, pods_per_replica, mut pods, .. }: SeenTarget,
        target: &TargetKey,
        now: Moment,
    ) -> (AutoscalerView, MeasuredPods, Vec<Arc<str>>) {
        let tables = [self.pod_samples.load(), self.api_samples.load()];
        let tables = [&*tables[0], &*tables[1]];
        mark_resharding(policy, &mut pods, tables[0], now);
        let view = AutoscalerView {
            current,
            pods_per_replica,
            pods: pods.iter().map(|(name, pod)| (Arc::clone(name), pod.pod)).collect(),
            readings: source_readings(policy, pods.keys(), &tables, now),
            held: model.and_then(|model| self.held(model, target, now)),
        };
        // A pod that starts refuses reads, which explains nothing of those that serve; the first sample of one that is
        // ready for seconds is not due.
        let mut ordered: Vec<_> = pods.iter().collect();
        ordered.sort_by_key(|(_, pod)| (!serves(pod), !pod.pod.is_sample_due()));
        let names = ordered.iter().map(|(name, _)| *name);
        let notes = read_failures(policy, names, &tables);
        (view, pods, notes)
    }

    /// What the next decision of every PodAutoscaler that was decided on is made from, by what is known now. `lag` is as
    /// [`PodAutoscalerDocument::of`] takes it.
    pub(crate) fn autoscaler_documents(
        &self,
        now: Moment,
        lag: Duration,
    ) -> Vec<PodAutoscalerDocument> {
        let records = self.autoscalers.snapshot().into_iter();
        let document = |(key, record): (ObjectKey, Arc<AutoscalerRecord>)| {
            let AutoscalerVerdict::Decided(_) = &record.verdict else {
                return None;
            };
            let stored = self.mirrors.managed_autoscaler(&key)?;
            let object = stored.object.as_ref().ok()?;
            let (policy, target) = (record.policy.as_ref()?, record.target.as_ref()?);
            let seen = self.seen_target(policy, &stored, target, now).ok()?;
            let (view, ..) = self.autoscaler_view(policy, record.model.as_ref(), seen, target, now);
            let object = PodAutoscalerObject::clone(object);
            Some(PodAutoscalerDocument::of(object, &view, &record.state, lag))
        };
        records.filter_map(document).collect()
    }

    /// Requests that wait in the routers in front of a target; `None` if there is no router.
    fn held(&self, model: &ModelKey, target: &TargetKey, now: Moment) -> Option<Signal> {
        let is_known = !self.mirrors.pools.synced() || !self.mirrors.pools_of(target).is_empty();
        let direct = self.direct.load();
        let counted = direct.get(model).and_then(|queue| queue.counted);
        let absent = Signal::from(Failure::Absent);
        is_known.then(|| {
            counted.map_or(absent, |counted| {
                let age = now.since(counted.at);
                FreshnessBands::default().judge(counted.requests, age, 0.0..=f64::MAX)
            })
        })
    }

    fn found_target(
        &self,
        stored: &StoredAutoscaler,
        target: &TargetKey,
    ) -> Result<Arc<TargetObject>, AutoscalerVerdict> {
        let unseen = |why: &str| Err(unseen(target, why));
        match self.mirrors.sight(target) {
            TargetLookup::Found(found) => Ok(found),
            TargetLookup::Missing => {
                unseen("does not exist; create it, or correct spec.scaleTargetRef")
            }
            TargetLookup::Unanswered => {
                unseen("did not exist when the API server answered last; it is looked for again")
            }
            TargetLookup::Unsynced if is_unreadable(stored, target) => unseen(
                "cannot be looked up; write apiVersion, kind and name of an object in spec.scaleTargetRef",
            ),
            TargetLookup::Unsynced => Err(unread(target, "has not been read yet")),
            TargetLookup::Unscalable(why) => Err(AutoscalerVerdict::Unseen { why }),
        }
    }

    fn seen_target(
        &self,
        policy: &AutoscalerPolicy,
        stored: &StoredAutoscaler,
        target: &TargetKey,
        now: Moment,
    ) -> Result<SeenTarget, AutoscalerVerdict> {
        let found = self.found_target(stored, target)?;
        let unseen = |why: &str| Err(unseen(target, why));
        let read = self.mirrors.read_target(target);
        let service = read.as_deref().and_then(|read| read.service.as_ref());
        let (field, current) = match service {
            Some(service) => service
                .resolve(&policy.target, policy.tuning.storm_service)
                .map_err(|why| AutoscalerVerdict::Uncounted { why })?,
            // Its scale subresource was read for a VariantAutoscaling.
            None if policy.target.is_storm_service() => {
                return Err(unread(target, "has not been read yet"));
            }
            None => (ReplicaField::Scale, found.spec_replicas.unwrap_or(Replicas::ONE)),
        };
        let pods_per_replica = service
            .map(|service| service.pods_per_replica(&policy.target, policy.tuning.storm_service));
        let stated = read.as_deref().and_then(ReadTarget::reporting);
        let selector = match (service, stated) {
            (Some(service), _) => Some(service.selector(&policy.target)),
            (None, Some(Ok(selector))) => Some(selector),
            (None, Some(Err(why))) => {
                return unseen(&format!("has a status.selector that is not read: {why}"));
            }
            (None, None) => None,
        };
        let pods = self.mirrors.measured_pods(&found, selector.as_ref(), now.wall);
        let Some(pods) = pods else {
            return Err(unread(target, "has pods that have not been read yet"));
        };
        let labels = found.pod_labels.as_ref();
        Ok(SeenTarget {
            field,
            current,
            pods_per_replica: pods_per_replica.unwrap_or_default(),
            pods,
            model: labels.and_then(|labels| labels.get(MODEL_KEY).cloned()),
        })
    }
}

fn serves(pod: &MeasuredPod) -> bool {
    matches!(pod.pod, AutoscaledPod::Ready { .. })
}

/// The model of an object that sleeps or may: as its own label or annotation names it, or the label of its pods.
fn asked_model(
    policy: &AutoscalerPolicy,
    current: Replicas,
    of_pods: Option<&Arc<str>>,
) -> Option<ModelKey> {
    let is_direct = policy.strategy != ScalingStrategy::Hpa;
    let may_sleep = policy.may_sleep() || current == Replicas::ZERO;
    let metadata = &policy.metadata;
    let own = metadata.labels.get(MODEL_KEY);
    let own = own.or_else(|| metadata.annotations.get(MODEL_KEY));
    let model = own.or(of_pods).filter(|_| is_direct && may_sleep)?;
    let namespace = Arc::clone(&metadata.namespace);
    Some(ModelKey::new(namespace, Arc::clone(model)))
}

/// A ready pod one of whose pages answers that it is scaling moves its shards: it serves again, and is not idle.
fn mark_resharding(
    policy: &AutoscalerPolicy,
    pods: &mut MeasuredPods,
    samples: &SampleTable,
    now: Moment,
) {
    for (name, pod) in pods {
        let is_unavailable = policy.sources.iter().any(|source| {
            let key = SampleKey {
                namespace: Arc::clone(&policy.metadata.namespace),
                pod: Some(Arc::clone(name)),
                source: SampleSource::of(source),
            };
            let reading = samples.get(&key);
            reading.is_some_and(|reading| reading.is_resharding(now))
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
        AutoscalerVerdict::Decided(decision) => shown_decision(decision, &record.state),
        AutoscalerVerdict::Invalid { why, .. } => json!({ "invalid": why }),
        AutoscalerVerdict::Conflict(owner) => json!({ "scaledBy": owner.to_string() }),
        AutoscalerVerdict::Unseen { why }
        | AutoscalerVerdict::Unread { why }
        | AutoscalerVerdict::Uncounted { why } => {
            json!({ "unseen": why })
        }
    };
    json!({
        "target": target,
        "decided": Timestamp::from_millisecond(record.decided.wall.0).unwrap_or_default().to_string(),
        "notes": record.notes,
        "decision": verdict,
    })
}

/// A decision, and what is remembered of it, as the debug page shows it.
pub(crate) fn shown_decision(decision: &AutoscalerDecision, state: &AutoscalerState) -> Value {
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
        "wouldBe": decision.would_be,
        "steps": steps.collect::<Vec<_>>(),
        "state": state,
    })
}

fn unseen(target: &TargetKey, why: &str) -> AutoscalerVerdict {
    AutoscalerVerdict::Unseen { why: format!("{target} {why}").into() }
}

fn unread(target: &TargetKey, why: &str) -> AutoscalerVerdict {
    AutoscalerVerdict::Unread { why: format!("{target} {why}").into() }
}

/// Whether the reference to a target of a kind without watcher cannot be part of a request.
fn is_unreadable(stored: &StoredAutoscaler, target: &TargetKey) -> bool {
    kind_without_watcher(target).is_some() && autoscaler_target(stored).is_none()
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
pub(crate) fn regarding(stored: &StoredAutoscaler) -> Regarding {
    Regarding {
        api_version: Arc::from(API_VERSION),
        kind: Arc::from(KIND),
        namespace: Arc::clone(&stored.key.namespace),
        name: Arc::clone(&stored.key.name),
        uid: Arc::clone(&stored.uid),
    }
}
