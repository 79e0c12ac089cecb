//! What a ScaledObject is answered: the count that the status of its VariantAutoscaling holds, as external metrics
//! have it, so that replicas of the controller agree.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tonic::Status;

use super::super::visibility::{NotVisible, scaler_visible, variants_visible, visible};
use super::trigger::{ScalerTrigger, VARIANT_NAME};
use crate::cluster::project::scaler::MODEL_KEY;
use crate::cluster::project::variant::{MANAGED_ANNOTATION, VariantRecord};
use crate::policy::key::{ObjectKey, TargetKey, TargetKind, VariantKey};
use crate::policy::scaler::ScalerKind;
use crate::policy::units::Replicas;
use crate::state::Readers;
use crate::state::changes::FollowedObject;
use crate::state::mirrors::{Mirrors, TargetLookup, target_of};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScalingAnswer {
    record: Arc<VariantRecord>,
    /// The decision, or before the first one what the target has; `None` where there is neither.
    count: Option<Replicas>,
}

impl ScalingAnswer {
    /// The count: the decision, or before the first one what there is.
    pub(super) fn count(&self, object: &ObjectKey) -> Result<Replicas, Status> {
        self.count.ok_or_else(|| no_count(object, &self.record))
    }

    /// Whether the target is to have replicas. A target that does not exist is left to be made.
    pub(super) fn is_active(&self) -> bool {
        self.count.is_none_or(|count| count > Replicas::ZERO)
    }
}

#[derive(Debug, Clone)]
pub(super) struct DecisionLookup(Readers);

impl DecisionLookup {
    pub(super) fn new(shared: Readers) -> Self {
        Self(shared)
    }

    pub(super) fn answer(&self, trigger: &ScalerTrigger) -> Result<ScalingAnswer, Status> {
        let (object, mirrors, now) = (&trigger.object, &self.0.mirrors, self.0.clock.now());
        variants_visible(mirrors, now).map_err(|why| blind(object, &why))?;
        let record = match &trigger.variant {
            Some(name) => self.named(object, name)?,
            None => self.claimant(object)?,
        };
        scaler_visible(mirrors, &record, now).map_err(|why| blind(object, &why))?;
        let count = match record.object.stored.desired {
            Some(desired) => Some(desired),
            None => self.current(object, &record)?,
        };
        Ok(ScalingAnswer { record, count })
    }

    /// Whether the annotation of a ScaledObject says that it is no variant.
    pub(super) fn is_excluded(&self, object: &ObjectKey) -> bool {
        let known = self.0.mirrors.scaled_objects.get(object);
        known.is_some_and(|known| known.is_excluded)
    }

    /// The count that the target has in its specification; `None` where there is no target that can be scaled. A
    /// variant that is malformed or disputed names none, and KEDA scales that of the ScaledObject all the same.
    fn current(
        &self,
        object: &ObjectKey,
        record: &VariantRecord,
    ) -> Result<Option<Replicas>, Status> {
        let mirrors = &self.0.mirrors;
        let no_count = || no_count(object, record);
        let target = target_of(record);
        let target = target.or_else(|| scaled_target(mirrors, object));
        let target = target.ok_or_else(no_count)?;
        match mirrors.sight(&target) {
            TargetLookup::Found(found) => {
                let seen = self.kind_visible(&target.kind);
                seen.map_err(|why| blind(object, &why))?;
                Ok(Some(found.spec_replicas.unwrap_or(Replicas::ONE)))
            }
            TargetLookup::Missing | TargetLookup::Unscalable(_) => Ok(None),
            // It may have none.
            TargetLookup::Unsynced | TargetLookup::Unanswered => Err(no_count()),
        }
    }

    fn kind_visible(&self, kind: &TargetKind) -> Result<(), NotVisible> {
        let (mirrors, now) = (&self.0.mirrors, self.0.clock.now());
        match kind {
            TargetKind::Deployment => visible("Deployments", &mirrors.deployments, now),
            TargetKind::StatefulSet => visible("StatefulSets", &mirrors.stateful_sets, now),
            TargetKind::LeaderWorkerSet => {
                visible("LeaderWorkerSets", &mirrors.leader_worker_sets, now)
            }
            TargetKind::Other(_) => Ok(()),
        }
    }

    fn named(&self, object: &ObjectKey, name: &Arc<str>) -> Result<Arc<VariantRecord>, Status> {
        let mirrors = &self.0.mirrors;
        let variant = VariantKey::new(Arc::clone(&object.namespace), Arc::clone(name));
        let Some(known) = mirrors.any_record(&variant) else {
            return Err(Status::not_found(format!(
                "ScaledObject {object}: {VARIANT_NAME}={name:?} names no VariantAutoscaling of its namespace; create \
                 it, or correct the trigger metadata"
            )));
        };
        let Some(record) = mirrors.managed(&variant) else {
            return Err(foreign(object, &known));
        };
        let pair = scaled_target(mirrors, object).zip(target_of(&record));
        match pair.filter(|(scaled, decided)| scaled != decided) {
            Some((scaled, decided)) => Err(Status::failed_precondition(format!(
                "ScaledObject {object} scales {scaled}, and {VARIANT_NAME}={name:?} scales {decided}; give both the \
                 same scaleTargetRef"
            ))),
            None => Ok(record),
        }
    }

    /// The one VariantAutoscaling of this controller with the target of the ScaledObject.
    fn claimant(&self, object: &ObjectKey) -> Result<Arc<VariantRecord>, Status> {
        let mirrors = &self.0.mirrors;
        visible("ScaledObjects", &mirrors.scaled_objects, self.0.clock.now())
            .map_err(|why| blind(object, &why))?;
        let own = VariantKey::new(Arc::clone(&object.namespace), Arc::clone(&object.name));
        let own = mirrors.managed(&own);
        if let Some(own) = own.filter(|own| own.declared_by == Some(ScalerKind::ScaledObject)) {
            return Ok(own);
        }
        let Some(target) = scaled_target(mirrors, object) else {
            return Err(Status::not_found(format!(
                "ScaledObject {object} is not seen by this controller, or its target is of no kind that can be \
                 scaled; state {VARIANT_NAME} in the trigger metadata, or let the controller watch its namespace"
            )));
        };
        let claimants = mirrors.claimants(&target);
        let mut ours = claimants.iter().filter_map(|key| mirrors.managed(key));
        let Some(record) = ours.next() else {
            return Err(match mirrors.foreign_claimant(&target) {
                Some(record) => foreign(object, &record),
                None if self.is_excluded(object) => Status::not_found(format!(
                    "ScaledObject {object} is no variant by its annotation {MANAGED_ANNOTATION}=\"false\", and no \
                     VariantAutoscaling names {target} as its target; correct the annotation, or create one"
                )),
                None => Status::not_found(format!(
                    "ScaledObject {object}: no VariantAutoscaling names {target} as its target; create one, state \
                     {VARIANT_NAME} in the trigger metadata, or with ANNOTATED_SCALERS_ENABLED=true {MODEL_KEY}"
                )),
            });
        };
        if claimants.len() > 1 {
            let names: Vec<&str> = claimants.iter().map(|key| &*key.name).collect();
            return Err(Status::failed_precondition(format!(
                "ScaledObject {object}: VariantAutoscalings {} name {target} as their target; delete all but one, or \
                 state {VARIANT_NAME} in the trigger metadata",
                names.join(", ")
            )));
        }
        Ok(record)
    }

    /// Ready at the next change of the objects that a trigger names, from this call on. What else can change the
    /// answer wakes nothing: objects become visible, exclusions end, the count of a target becomes known.
    pub(super) fn changes(&self, trigger: &ScalerTrigger) -> Vec<BoxFuture<'static, ()>> {
        let object = &trigger.object;
        if let Some(name) = &trigger.variant {
            let key = VariantKey::new(Arc::clone(&object.namespace), Arc::clone(name));
            return vec![self.change(FollowedObject::Variant(key))];
        }
        // Its target is read once a change of it would be noticed.
        let mut changes = vec![self.change(FollowedObject::ScaledObject(object.clone()))];
        let target = scaled_target(&self.0.mirrors, object).map(FollowedObject::Target);
        changes.extend(target.map(|target| self.change(target)));
        changes
    }

    fn change(&self, object: FollowedObject) -> BoxFuture<'static, ()> {
        let follower = self.0.changes.follow(object);
        let changed = follower.changed();
        async move {
            changed.await;
            drop(follower);
        }
        .boxed()
    }
}

fn blind(object: &ObjectKey, why: &NotVisible) -> Status {
    Status::unavailable(format!(
        "ScaledObject {object}: {why}; the count is served again once the controller reaches the API server"
    ))
}

fn foreign(object: &ObjectKey, record: &VariantRecord) -> Status {
    let (kind, key) = (record.kind(), &record.object.key);
    Status::failed_precondition(format!(
        "ScaledObject {object}: {kind} {key} is not managed by this controller; correct its instance label, or the \
         exclusion of its namespace"
    ))
}

fn no_count(object: &ObjectKey, record: &VariantRecord) -> Status {
    let (kind, key) = (record.kind(), &record.object.key);
    // Where an object has what keeps it from a decision.
    let account = match record.declared_by {
        None => "its condition TargetResolved",
        Some(_) => "its events",
    };
    Status::unavailable(format!(
        "ScaledObject {object}: nothing is decided for {kind} {key} yet, and the count of its target is unknown; see \
         {account}"
    ))
}

fn scaled_target(mirrors: &Mirrors, object: &ObjectKey) -> Option<TargetKey> {
    mirrors.scaled_objects.get(object)?.target.clone()
}
