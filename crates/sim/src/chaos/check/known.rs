//! M1, M2: mirrors hold what is stored, object by object.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::core::PartialObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::apiserver::Insider;
use crate::workloads::leader_worker_sets;
use crate::workloads::object::Object;
use wva::api::gpu::{HoldingPod, OfferingNode};
use wva::api::inference_pool::v1::InferencePool;
use wva::api::leader_worker_set::LeaderWorkerSet;
use wva::api::pod::SlimPod;
use wva::api::variant_autoscaling::VariantAutoscaling;
use wva::cluster::mirror::{Mirror, ObjectKey};
use wva::cluster::project::gpu::HoldingPodObject;
use wva::cluster::project::service::ServiceObject;
use wva::cluster::project::{Interner, Projected};
use wva::state::mirrors::Mirrors;

/// What is stored, as mirrors hold it. What has not changed since the last look is not read again.
#[derive(Default)]
pub(crate) struct Content {
    pods: Views<SlimPod>,
    deployments: Views<Deployment>,
    stateful_sets: Views<StatefulSet>,
    replica_sets: Views<PartialObjectMeta<ReplicaSet>>,
    namespaces: Views<PartialObjectMeta<Namespace>>,
    horizontal_pod_autoscalers: Views<HorizontalPodAutoscaler>,
    leader_worker_sets: Views<LeaderWorkerSet>,
    variants: Views<VariantAutoscaling>,
    services: Views<Service>,
    pools: Views<InferencePool>,
    nodes: Views<OfferingNode>,
    holding_pods: Views<HoldingPod>,
}

impl Content {
    pub(crate) fn look(&mut self, insider: &Insider) {
        let list = |resource| insider.list(resource);
        self.pods.look(list("pods."));
        self.deployments.look(list("deployments.apps"));
        self.stateful_sets.look(list("statefulsets.apps"));
        self.replica_sets.look(list("replicasets.apps"));
        self.namespaces.look(list("namespaces."));
        self.horizontal_pod_autoscalers
            .look(list("horizontalpodautoscalers.autoscaling"));
        self.leader_worker_sets
            .look(list(leader_worker_sets::RESOURCE));
        self.variants.look(list("variantautoscalings.llmd.ai"));
        self.services.look(list("services."));
        self.pools
            .look(list("inferencepools.inference.networking.k8s.io"));
        self.nodes.look(list("nodes."));
        self.holding_pods.look(list("pods."));
    }

    /// The objects of which a mirror holds something else than was stored at the last look, or nothing,
    /// or that it holds alone; of the kinds that are watched just now.
    pub(crate) fn unlike(&self, mirrors: &Mirrors, is_heard: &dyn Fn(&str) -> bool) -> Vec<String> {
        let hpas = &mirrors.horizontal_pod_autoscalers;
        let groups = &mirrors.leader_worker_sets;
        let odd = [
            ("pods", self.pods.unlike(&mirrors.pods)),
            ("deployments", self.deployments.unlike(&mirrors.deployments)),
            (
                "statefulsets",
                self.stateful_sets.unlike(&mirrors.stateful_sets),
            ),
            (
                "replicasets",
                self.replica_sets.unlike(&mirrors.replica_sets),
            ),
            ("namespaces", self.namespaces.unlike(&mirrors.namespaces)),
            (
                "horizontalpodautoscalers",
                self.horizontal_pod_autoscalers.unlike(hpas),
            ),
            ("leaderworkersets", self.leader_worker_sets.unlike(groups)),
            (
                "variantautoscalings",
                self.variants.unlike(&mirrors.variants),
            ),
            (
                "services",
                (self.services).unlike_where(&mirrors.services, ServiceObject::has_metrics),
            ),
            ("inferencepools", self.pools.unlike(&mirrors.pools.v1)),
            ("nodes", self.nodes.unlike(&mirrors.nodes)),
            (
                // They are watched by themselves.
                "pods of a selection",
                (self.holding_pods)
                    .unlike_where(&mirrors.holding_pods, HoldingPodObject::holds_gpus),
            ),
        ];
        let odd = odd.into_iter().filter(|(plural, _)| is_heard(plural));
        let named = |(plural, keys): (&str, Vec<ObjectKey>)| {
            let names = keys.iter().map(|key| format!("{plural} {key}"));
            names.collect::<Vec<_>>()
        };
        odd.flat_map(named).collect()
    }
}

/// The objects of one kind in the order in which they are stored, each beside what was read of it; `None`
/// where it cannot be read.
struct Views<K: Projected>(Vec<(Arc<Value>, Option<K::View>)>);

impl<K: Projected> Default for Views<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Projected + DeserializeOwned> Views<K> {
    fn look(&mut self, objects: Vec<Arc<Value>>) {
        // A stored object is replaced, never changed, and what is kept here cannot be another's place.
        let place = |object: &Arc<Value>| Arc::as_ptr(object).addr();
        let before = std::mem::take(&mut self.0).into_iter();
        let mut before: BTreeMap<usize, _> = before.map(|known| (place(&known.0), known)).collect();
        let read = |object: Arc<Value>| {
            let read = K::deserialize(&*object).ok();
            let view = read.map(|read| read.project(&mut Interner::default()));
            (object, view)
        };
        let known = |object: Arc<Value>| {
            let known = before.remove(&place(&object));
            known.unwrap_or_else(|| read(object))
        };
        self.0 = objects.into_iter().map(known).collect();
    }

    fn unlike(&self, mirror: &Mirror<K::View>) -> Vec<ObjectKey> {
        self.unlike_where(mirror, |_| true)
    }

    /// The same, where of all objects only those are kept of which this is true.
    fn unlike_where(
        &self,
        mirror: &Mirror<K::View>,
        is_kept: fn(&K::View) -> bool,
    ) -> Vec<ObjectKey> {
        let mut alone: BTreeMap<ObjectKey, Arc<K::View>> = mirror.all().into_iter().collect();
        let mut odd = Vec::new();
        for (object, view) in &self.0 {
            let Some(stored) = view else {
                // What cannot be read is kept by its name.
                let object = Object(Arc::clone(object));
                alone.remove(&ObjectKey::new(object.namespace(), object.name()));
                continue;
            };
            let key = K::key(stored);
            if is_kept(stored) && alone.remove(&key).as_deref() != Some(stored) {
                odd.push(key);
            }
        }
        odd.extend(alone.into_keys());
        odd
    }
}
