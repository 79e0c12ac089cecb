//! PodAutoscalers with the pods of their targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Mirrors, object_key};
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::policy::filter::Admission;
use crate::policy::key::{ObjectKey, TargetKey};
use crate::policy::object::{Drain, Lifecycle, PodObject, TargetObject};
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

    /// The older object that scales a target, if there is one.
    pub fn rival(&self, own: &StoredAutoscaler, target: &TargetKey) -> Option<TargetOwner> {
        let rank = |one: &StoredAutoscaler| (one.created, one.key.clone());
        let others = self.autoscalers_of(target).into_iter();
        let older = others.filter(|other| rank(other) < rank(own));
        older
            .min_by_key(|other| rank(other))
            .map(|other| TargetOwner {
                kind: Arc::from(KIND),
                key: other.key.clone(),
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

fn measured(pod: &PodObject, state: AutoscaledPod) -> MeasuredPod {
    MeasuredPod {
        pod: state,
        address: pod.address,
        engine: pod.labels.get(ENGINE_LABEL).cloned(),
    }
}
