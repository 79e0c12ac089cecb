//! PodAutoscalers with the pods of their targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Mirrors, object_key};
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::cluster::project::variant::VariantRecord;
use crate::policy::filter::Admission;
use crate::policy::key::{ObjectKey, TargetKey, VariantKey};
use crate::policy::object::{Drain, Lifecycle, PodObject, TargetObject};
use crate::policy::pod_autoscaler::check::AutoscalerPolicy;
use crate::policy::pod_autoscaler::claims::{ClaimKind, TargetClaim, conflict};
use crate::policy::pod_autoscaler::demand::AutoscaledPod;
use crate::policy::pod_autoscaler::object::KIND;
use crate::policy::pod_autoscaler::record::{MeasuredPod, TargetOwner};
use crate::policy::snapshot::Readiness;
use wva_base::moment::WallTime;

/// Label of a pod that names its engine.
const ENGINE_LABEL: &str = "model.aibrix.ai/engine";

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
        let naming = self.pod_autoscalers.naming(&object_key(target));
        naming
            .into_iter()
            .filter(|(_, stored)| stored.target().as_ref() == Some(target))
            .filter_map(|(key, _)| self.managed_autoscaler(&key))
            .collect()
    }

    /// The object that scales a target instead of this one. The oldest of VariantAutoscalings and PodAutoscalers does;
    /// a HorizontalPodAutoscaler or a `ScaledObject` cannot be kept from it, so that it does in any case.
    pub fn rival(
        &self,
        own: &AutoscalerPolicy,
        stored: &StoredAutoscaler,
        target: &TargetKey,
    ) -> Option<TargetOwner> {
        if let Some(foreign) = self.foreign_scaler(target) {
            return Some(foreign);
        }
        let own = TargetClaim::of_autoscaler(own, stored.created);
        let mut others = self.autoscaler_claims(target);
        others.extend(self.claimants(target).iter().filter_map(|key| {
            let record = self.variants.get(&super::variant_object_key(key))?;
            Some(variant_claim(&record))
        }));
        conflict(&own, &others)
    }

    /// The `PodAutoscaler` that scales the target of a variant since before the variant was created.
    pub fn older_autoscaler(
        &self,
        record: &VariantRecord,
        target: &TargetKey,
    ) -> Option<TargetOwner> {
        let claims = self.autoscaler_claims(target);
        (!claims.is_empty())
            .then(|| conflict(&variant_claim(record), &claims))
            .flatten()
    }

    fn autoscaler_claims(&self, target: &TargetKey) -> Vec<TargetClaim> {
        let claim = |stored: &Arc<StoredAutoscaler>| {
            let policy = stored.object.as_ref().ok()?.check().ok()?;
            Some(TargetClaim::of_autoscaler(&policy, stored.created))
        };
        self.autoscalers_of(target)
            .iter()
            .filter_map(claim)
            .collect()
    }

    /// A live scaler of a target that no `PodAutoscaler` made.
    fn foreign_scaler(&self, target: &TargetKey) -> Option<TargetOwner> {
        let mirrors = [&self.horizontal_pod_autoscalers, &self.scaled_objects];
        let naming = mirrors
            .into_iter()
            .flat_map(|mirror| mirror.naming(&object_key(target)));
        let mut foreign = naming.filter(|(_, object)| {
            object.target.as_ref() == Some(target)
                && object.lifecycle == Lifecycle::Live
                && object.scaler.made_for.is_none()
                && !object
                    .owner
                    .as_ref()
                    .is_some_and(|owner| &*owner.kind == KIND)
        });
        foreign.next().map(|(key, object)| TargetOwner {
            kind: object.scaler.kind.to_string().into(),
            key,
        })
    }

    /// The name of the HorizontalPodAutoscaler that is generated for an object, while it is there.
    pub fn generated_hpa(&self, stored: &StoredAutoscaler) -> Option<String> {
        let name = format!("{}-hpa", stored.key.name);
        let key = ObjectKey::new(Arc::clone(&stored.key.namespace), &*name);
        let found = self.horizontal_pod_autoscalers.get(&key)?;
        let owner = found.owner.as_ref()?;
        (owner.uid == stored.uid).then_some(name)
    }

    /// The pods of a target with where they are measured; `None` until they are known.
    pub fn measured_pods(
        &self,
        target: &TargetObject,
        now: WallTime,
    ) -> Option<BTreeMap<Arc<str>, MeasuredPod>> {
        let pods = self.pods(target)?;
        let measured = pods.iter().filter_map(|view| {
            let key = ObjectKey::new(Arc::clone(&target.key.namespace), Arc::clone(&view.name));
            let pod = self.pods.get(&key)?;
            let state = match (pod.drain, view.readiness, view.ready_since) {
                (Drain::Draining, _, _) => AutoscaledPod::Draining,
                (Drain::None, Readiness::Ready, since) => AutoscaledPod::Ready {
                    ready_for: since.map(|since| now.since(since)).unwrap_or_default(),
                },
                (Drain::None, Readiness::NotReady, _) => AutoscaledPod::Pending,
            };
            Some((Arc::clone(&view.name), measured(&pod, state)))
        });
        Some(measured.collect())
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
    MeasuredPod {
        pod: state,
        address: pod.address,
        engine: pod.labels.get(ENGINE_LABEL).cloned(),
    }
}
