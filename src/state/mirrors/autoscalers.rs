//! PodAutoscalers with the pods of their targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;

use super::{Mirrors, object_key};
use crate::cluster::kinds::WatchedKind;
use crate::cluster::mirror::SyncState;
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::cluster::project::scaler::ScalerObject;
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::scale::{ReadTarget, ScaleReading};
use crate::policy::filter::Admission;
use crate::policy::key::{ObjectKey, TargetKey, VariantKey};
use crate::policy::object::{Drain, Lifecycle, PodObject, TargetObject};
use crate::policy::params::LabelSelector;
use crate::policy::pod_autoscaler::check::AutoscalerPolicy;
use crate::policy::pod_autoscaler::claims::{ClaimKind, TargetClaim, TargetRivals};
use crate::policy::pod_autoscaler::demand::AutoscaledPod;
use crate::policy::pod_autoscaler::metric_name::ENGINE_LABEL;
use crate::policy::pod_autoscaler::object::KIND;
use crate::policy::pod_autoscaler::record::{MeasuredPod, TargetOwner};
use crate::policy::pod_autoscaler::status::PodAutoscalerStatus;
use crate::policy::pod_autoscaler::tuning::StormServiceMode;
use crate::policy::snapshot::Readiness;
use wva_base::moment::WallTime;

impl Mirrors {
    /// A `PodAutoscaler`, if this controller manages it.
    pub fn managed_autoscaler(&self, key: &ObjectKey) -> Option<Arc<StoredAutoscaler>> {
        let stored = self.pod_autoscalers.get(key)?;
        let admission = self.admission_of(&key.namespace, stored.instance.as_deref());
        let is_ours = admission == Some(Admission::Ours) && stored.lifecycle == Lifecycle::Live;
        is_ours.then_some(stored)
    }

    /// PodAutoscalers that this controller manages and that scale a target, sorted.
    pub fn autoscalers_of(&self, target: &TargetKey) -> Vec<Arc<StoredAutoscaler>> {
        let naming = self.pod_autoscalers.naming(&object_key(target)).into_iter();
        let naming = naming.filter(|(_, stored)| stored.target().as_ref() == Some(target));
        naming.filter_map(|(key, _)| self.managed_autoscaler(&key)).collect()
    }

    /// The object that scales a target instead of this one, or those that give way to it. The oldest of VariantAutoscalings and PodAutoscalers does;
    /// a HorizontalPodAutoscaler or a `ScaledObject` reads no claims, so that it does in any case.
    ///
    /// # Errors
    /// The kind that has not been listed yet: an object of it may scale the target.
    pub fn rival(
        &self,
        own: &AutoscalerPolicy,
        stored: &StoredAutoscaler,
        target: &TargetKey,
    ) -> Result<TargetRivals, WatchedKind> {
        let listed = [
            (WatchedKind::HorizontalPodAutoscaler, self.horizontal_pod_autoscalers.sync()),
            (WatchedKind::ScaledObject, self.scaled_objects.sync()),
            (WatchedKind::VariantAutoscaling, self.variants.sync()),
            (WatchedKind::PodAutoscaler, self.pod_autoscalers.sync()),
        ];
        if let Some((kind, _)) = listed.iter().find(|(_, sync)| *sync == SyncState::Never) {
            return Err(*kind);
        }
        if let Some(foreign) = self.foreign_scaler(target) {
            return Ok(TargetRivals::Owner(foreign));
        }
        let own = TargetClaim::of_autoscaler(own, self.storm_mode(own, target), stored.created);
        let mut others = self.autoscaler_claims(target);
        others.extend(self.claimants(target).iter().filter_map(|key| {
            let record = self.variants.get(&super::variant_object_key(key))?;
            Some(variant_claim(&record))
        }));
        Ok(TargetRivals::of(&own, &others))
    }

    /// The `PodAutoscaler` that scales the target of a variant since before the variant was created, or those that give
    /// way to the variant. One that another scaler keeps from the target does neither.
    pub fn rival_autoscalers(&self, record: &VariantRecord, target: &TargetKey) -> TargetRivals {
        let claims = self.autoscaler_claims(target);
        let scale = !claims.is_empty() && self.foreign_scaler(target).is_none();
        if scale {
            TargetRivals::of(&variant_claim(record), &claims)
        } else {
            TargetRivals::Yielding(Vec::new())
        }
    }

    /// The claims of PodAutoscalers of this controller, and of other ones that are in charge of theirs.
    fn autoscaler_claims(&self, target: &TargetKey) -> Vec<TargetClaim> {
        let naming = self.pod_autoscalers.naming(&object_key(target)).into_iter();
        let naming = naming.map(|(_, stored)| stored).filter(|stored| {
            stored.target().as_ref() == Some(target)
                && stored.lifecycle == Lifecycle::Live
                && self.is_in_charge(stored)
        });
        let claims = naming.filter_map(|stored| {
            let policy = stored.object.as_ref().ok()?.check().ok()?;
            let mode = self.storm_mode(&policy, target);
            Some(TargetClaim::of_autoscaler(&policy, mode, stored.created))
        });
        claims.collect()
    }

    /// Whether this controller decides on an object, or another one that has written its status.
    fn is_in_charge(&self, stored: &StoredAutoscaler) -> bool {
        match self.admission_of(&stored.key.namespace, stored.instance.as_deref()) {
            Some(Admission::Ours) => true,
            Some(Admission::ForeignInstance) => stored.status != PodAutoscalerStatus::default(),
            Some(Admission::OutsideScope | Admission::Excluded) | None => false,
        }
    }

    /// How a StormService is scaled: by its own mode, once that is known.
    fn storm_mode(&self, policy: &AutoscalerPolicy, target: &TargetKey) -> StormServiceMode {
        let annotated = policy.tuning.storm_service;
        let read = self.read_target(target);
        let service = read.as_deref().and_then(|read| read.service.as_ref());
        service.map_or(annotated, |service| service.mode(annotated))
    }

    /// A target whose kind has no watcher, if it was found.
    pub fn read_target(&self, target: &TargetKey) -> Option<Arc<ReadTarget>> {
        match self.scales.load().get(target) {
            Some(ScaleReading::Found(read)) => Some(Arc::clone(read)),
            _ => None,
        }
    }

    /// A live scaler of a target that no `PodAutoscaler` made.
    fn foreign_scaler(&self, target: &TargetKey) -> Option<TargetOwner> {
        let mirrors = [&self.horizontal_pod_autoscalers, &self.scaled_objects];
        let naming = mirrors.into_iter().flat_map(|mirror| mirror.naming(&object_key(target)));
        let mut foreign = naming.filter(|(_, object)| {
            object.target.as_ref() == Some(target)
                && object.lifecycle == Lifecycle::Live
                && object.scaler.made_for.is_none()
                && !self.is_generated(object)
        });
        foreign
            .next()
            .map(|(key, object)| TargetOwner { kind: object.scaler.kind.to_string().into(), key })
    }

    /// Whether a `PodAutoscaler` that exists made a HorizontalPodAutoscaler.
    fn is_generated(&self, object: &ScalerObject) -> bool {
        object.owner.as_ref().is_some_and(|owner| {
            let key = ObjectKey::new(Arc::clone(&object.namespace), Arc::clone(&owner.name));
            let maker = self.pod_autoscalers.get(&key);
            &*owner.kind == KIND && maker.is_some_and(|maker| maker.uid == owner.uid)
        })
    }

    /// The HorizontalPodAutoscaler that is generated for an object, while it is there.
    pub fn generated_hpa(&self, stored: &StoredAutoscaler) -> Option<Arc<HorizontalPodAutoscaler>> {
        let name = format!("{}-hpa", stored.key.name);
        let key = ObjectKey::new(Arc::clone(&stored.key.namespace), name);
        let found = self.horizontal_pod_autoscalers.get(&key)?;
        let is_ours = found.owner.as_ref()?.uid == stored.uid;
        found.generated.clone().filter(|_| is_ours)
    }

    /// The pods of a target with where they are measured; `None` until they are known. Without a selector they are those
    /// that it controls.
    pub fn measured_pods(
        &self,
        target: &TargetObject,
        selector: Option<&LabelSelector>,
        now: WallTime,
    ) -> Option<BTreeMap<Arc<str>, MeasuredPod>> {
        let Some(selector) = selector else {
            let pods = self.pods(target)?;
            let measured = pods.iter().filter_map(|view| {
                let key = ObjectKey::new(Arc::clone(&target.key.namespace), Arc::clone(&view.name));
                let pod = self.pods.get(&key)?;
                let state = state_of(&pod, view.readiness, view.ready_since, now);
                Some((Arc::clone(&view.name), measured(&pod, state)))
            });
            return Some(measured.collect());
        };
        let pods = self.pods.synced().then(|| {
            let pods = self.pods.in_namespace(&target.key.namespace);
            pods.into_iter().map(|(_, pod)| pod)
        });
        let live = pods?.filter(|pod| {
            pod.lifecycle == Lifecycle::Live
                && selector.matches(|label| pod.labels.get(label).map(|value| &**value))
        });
        let measured = live.map(|pod| {
            let pod = self.with_those_it_leads(pod);
            let state = state_of(&pod, pod.readiness, pod.ready_since, now);
            (Arc::clone(&pod.name), measured(&pod, state))
        });
        Some(measured.collect())
    }
}

fn state_of(
    pod: &PodObject,
    readiness: Readiness,
    ready_since: Option<WallTime>,
    now: WallTime,
) -> AutoscaledPod {
    match (pod.drain, readiness) {
        (Drain::Draining, _) => AutoscaledPod::Draining,
        (Drain::None, Readiness::Ready) => AutoscaledPod::Ready {
            ready_for: ready_since.map(|since| now.since(since)).unwrap_or_default(),
        },
        (Drain::None, Readiness::NotReady) => AutoscaledPod::Pending,
        (Drain::None, Readiness::Gated) => AutoscaledPod::Gated,
    }
}

fn variant_claim(record: &VariantRecord) -> TargetClaim {
    let VariantKey { namespace, name } = &record.object.key;
    TargetClaim {
        owner: TargetOwner {
            kind: Arc::from("VariantAutoscaling"),
            key: ObjectKey::new(Arc::clone(namespace), Arc::clone(name)),
        },
        created: record.created,
        kind: ClaimKind::VariantAutoscaling,
    }
}

fn measured(pod: &PodObject, state: AutoscaledPod) -> MeasuredPod {
    MeasuredPod { pod: state, address: pod.address, engine: pod.labels.get(ENGINE_LABEL).cloned() }
}
