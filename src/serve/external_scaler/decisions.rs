//! What a ScaledObject is answered: the count that the status of its VariantAutoscaling holds, as external metrics
//! have it, so that replicas of the controller agree.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::super::visibility::{NotVisible, scaler_visible, visible};
use super::trigger::{ScalerTrigger, VARIANT_NAME};
use crate::cluster::project::scaler::MODEL_KEY;
use crate::cluster::project::variant::{MANAGED_ANNOTATION, VariantRecord};
use crate::policy::actuation::ScalerKind;
use crate::policy::key::{ObjectKey, TargetKey, TargetKind, VariantKey};
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

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Unanswerable {
    #[error(
        "ScaledObject {object}: {why}; the count is served again once the controller reaches the API server"
    )]
    Blind { object: ObjectKey, why: NotVisible },
    #[error(
        "ScaledObject {}: {VARIANT_NAME}={:?} names no VariantAutoscaling of its namespace; create it, or correct the \
         trigger metadata", object, variant.name
    )]
    NoVariant {
        object: ObjectKey,
        variant: VariantKey,
    },
    #[error(
        "ScaledObject {object}: {} {} is not managed by this controller; correct its instance label, or the exclusion \
         of its namespace", record.kind(), record.object.key
    )]
    Foreign {
        object: ObjectKey,
        record: Arc<VariantRecord>,
    },
    #[error(
        "ScaledObject {object} is no variant by its annotation {MANAGED_ANNOTATION}=\"false\", and no \
         VariantAutoscaling names {target} as its target; correct the annotation, or create one"
    )]
    Excluded { object: ObjectKey, target: String },
    #[error(
        "ScaledObject {object} is not seen by this controller, or its target is of no kind that can be scaled; state {VARIANT_NAME} in \
         the trigger metadata, or let the controller watch its namespace"
    )]
    NoObject { object: ObjectKey },
    #[error(
        "ScaledObject {object}: no VariantAutoscaling names {target} as its target; create one, state \
         {VARIANT_NAME} in the trigger metadata, or with ANNOTATED_SCALERS_ENABLED=true {MODEL_KEY}"
    )]
    NoClaimant { object: ObjectKey, target: String },
    #[error(
        "ScaledObject {object}: VariantAutoscalings {names} name {target} as their target; delete all but one, or \
         state {VARIANT_NAME} in the trigger metadata"
    )]
    SeveralClaimants {
        object: ObjectKey,
        target: String,
        names: String,
    },
    #[error(
        "ScaledObject {object} scales {scaled}, and {VARIANT_NAME}={:?} scales {decided}; give both the same \
         scaleTargetRef", variant.name
    )]
    OtherTarget {
        object: ObjectKey,
        variant: VariantKey,
        scaled: String,
        decided: String,
    },
    #[error(
        "ScaledObject {object}: nothing is decided for {} {} yet, and the count of its target is unknown; see {}",
        record.kind(), record.object.key, account(record)
    )]
    NoCount {
        object: ObjectKey,
        record: Arc<VariantRecord>,
    },
}

/// Where an object has what keeps it from a decision.
fn account(record: &VariantRecord) -> &'static str {
    match record.declared_by {
        None => "its condition TargetResolved",
        Some(_) => "its events",
    }
}

impl ScalingAnswer {
    /// The count: the decision, or before the first one what there is.
    pub(super) fn count(&self, object: &ObjectKey) -> Result<Replicas, Unanswerable> {
        self.count.ok_or_else(|| Unanswerable::NoCount {
            object: object.clone(),
            record: Arc::clone(&self.record),
        })
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

    pub(super) fn answer(&self, trigger: &ScalerTrigger) -> Result<ScalingAnswer, Unanswerable> {
        let object = &trigger.object;
        self.visible().map_err(|why| blind(object, why))?;
        let record = match &trigger.variant {
            Some(name) => self.named(object, name)?,
            None => self.claimant(object)?,
        };
        scaler_visible(&self.0.mirrors, &record, self.0.clock.now())
            .map_err(|why| blind(object, why))?;
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
        record: &Arc<VariantRecord>,
    ) -> Result<Option<Replicas>, Unanswerable> {
        let mirrors = &self.0.mirrors;
        let no_count = || Unanswerable::NoCount {
            object: object.clone(),
            record: Arc::clone(record),
        };
        let target = target_of(record);
        let target = target.or_else(|| scaled_target(mirrors, object));
        let target = target.ok_or_else(no_count)?;
        match mirrors.sight(&target) {
            TargetLookup::Found(found) => {
                let seen = self.kind_visible(&target.kind);
                seen.map_err(|why| blind(object, why))?;
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

    fn visible(&self) -> Result<(), NotVisible> {
        let (mirrors, now) = (&self.0.mirrors, self.0.clock.now());
        visible("VariantAutoscalings", &mirrors.variants, now)?;
        if mirrors.scope().watch_namespace.is_none() {
            visible("Namespaces", &mirrors.namespaces, now)?;
        }
        Ok(())
    }

    fn named(
        &self,
        object: &ObjectKey,
        name: &Arc<str>,
    ) -> Result<Arc<VariantRecord>, Unanswerable> {
        let mirrors = &self.0.mirrors;
        let variant = VariantKey::new(Arc::clone(&object.namespace), Arc::clone(name));
        let object = || object.clone();
        let Some(known) = mirrors.any_record(&variant) else {
            let object = object();
            return Err(Unanswerable::NoVariant { object, variant });
        };
        let Some(record) = mirrors.managed(&variant) else {
            let (object, record) = (object(), known);
            return Err(Unanswerable::Foreign { object, record });
        };
        let pair = scaled_target(mirrors, &object()).zip(target_of(&record));
        match pair.filter(|(scaled, decided)| scaled != decided) {
            Some((scaled, decided)) => Err(Unanswerable::OtherTarget {
                object: object(),
                variant,
                scaled: scaled.to_string(),
                decided: decided.to_string(),
            }),
            None => Ok(record),
        }
    }

    /// The one VariantAutoscaling of this controller with the target of the ScaledObject.
    fn claimant(&self, object: &ObjectKey) -> Result<Arc<VariantRecord>, Unanswerable> {
        let mirrors = &self.0.mirrors;
        visible("ScaledObjects", &mirrors.scaled_objects, self.0.clock.now())
            .map_err(|why| blind(object, why))?;
        let own = VariantKey::new(Arc::clone(&object.namespace), Arc::clone(&object.name));
        let own = mirrors.managed(&own);
        if let Some(own) = own.filter(|own| own.declared_by == Some(ScalerKind::ScaledObject)) {
            return Ok(own);
        }
        let object = || object.clone();
        let Some(target) = scaled_target(mirrors, &object()) else {
            let object = object();
            return Err(Unanswerable::NoObject { object });
        };
        let claimants = mirrors.claimants(&target);
        let mut ours = claimants.iter().filter_map(|key| mirrors.managed(key));
        let Some(record) = ours.next() else {
            let (object, foreign) = (object(), mirrors.foreign_claimant(&target));
            let target = target.to_string();
            return Err(match foreign {
                Some(record) => Unanswerable::Foreign { object, record },
                None if self.is_excluded(&object) => Unanswerable::Excluded { object, target },
                None => Unanswerable::NoClaimant { object, target },
            });
        };
        if claimants.len() > 1 {
            let names: Vec<&str> = claimants.iter().map(|key| &*key.name).collect();
            return Err(Unanswerable::SeveralClaimants {
                object: object(),
                target: target.to_string(),
                names: names.join(", "),
            });
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

fn blind(object: &ObjectKey, why: NotVisible) -> Unanswerable {
    Unanswerable::Blind {
        object: object.clone(),
        why,
    }
}

fn scaled_target(mirrors: &Mirrors, object: &ObjectKey) -> Option<TargetKey> {
    mirrors.scaled_objects.get(object)?.target.clone()
}
