//! M1, M2: mirrors hold what is stored, object by object, and never what was stored before.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::core::PartialObjectMeta;
use serde_json::Value;

use super::InvariantViolation;
use crate::apiserver::Insider;
use crate::workloads::leader_worker_sets;
use crate::workloads::object::Object;
use wva::api::variant_autoscaling::VariantAutoscaling;
use wva::api::{HoldingPod, InferencePool, LeaderWorkerSet, OfferingNode, SlimPod};
use wva::cluster::project::gpu::holds_gpus;
use wva::cluster::project::service::ServiceObject;
use wva::cluster::project::{Interner, Projected};
use wva::cluster::{Mirror, ObjectKey};
use wva::policy::key::VariantKey;
use wva::state::mirrors::Mirrors;

pub(crate) struct Content(Vec<Box<dyn StoredKind + Send>>);

impl Default for Content {
    fn default() -> Self {
        Self(vec![
            all::<SlimPod>("pods.", |mirrors| &mirrors.pods),
            all::<Deployment>("deployments.apps", |mirrors| &mirrors.deployments),
            all::<StatefulSet>("statefulsets.apps", |mirrors| &mirrors.stateful_sets),
            all::<PartialObjectMeta<ReplicaSet>>("replicasets.apps", |mirrors| {
                &mirrors.replica_sets
            }),
            all::<PartialObjectMeta<Namespace>>("namespaces.", |mirrors| &mirrors.namespaces),
            all::<HorizontalPodAutoscaler>("horizontalpodautoscalers.autoscaling", |mirrors| {
                &mirrors.horizontal_pod_autoscalers
            }),
            all::<LeaderWorkerSet>(leader_worker_sets::RESOURCE, |mirrors| {
                &mirrors.leader_worker_sets
            }),
            all::<VariantAutoscaling>("variantautoscalings.llmd.ai", |mirrors| &mirrors.variants),
            Box::new(Views::<Service> {
                is_kept: ServiceObject::has_metrics,
                ..Views::new("services.", |mirrors| &mirrors.services)
            }),
            all::<InferencePool>("inferencepools.inference.networking.k8s.io", |mirrors| {
                &mirrors.pools_v1
            }),
            all::<OfferingNode>("nodes.", |mirrors| &mirrors.nodes),
            Box::new(Views::<HoldingPod> {
                // They are watched by themselves.
                plural: "pods of a selection",
                is_kept: holds_gpus,
                ..Views::new("pods.", |mirrors| &mirrors.holding_pods)
            }),
        ])
    }
}

impl Content {
    pub(crate) fn look(&mut self, insider: &Insider) {
        self.0.iter_mut().for_each(|kind| kind.look(insider));
    }

    /// What a mirror holds otherwise than it was stored at the last look, of the kinds that are watched just now.
    pub(crate) fn unlike(&self, mirrors: &Mirrors, is_followed: &dyn Fn(&str) -> bool) -> Unlike {
        let mut unlike = Unlike::default();
        for kind in &self.0 {
            kind.compare(mirrors, is_followed, &mut unlike);
        }
        unlike
    }
}

#[derive(Debug, Default)]
pub(crate) struct Unlike {
    pub(crate) odd: Vec<String>,
    pub(crate) gone: Vec<String>,
}

trait StoredKind {
    fn look(&mut self, insider: &Insider);

    fn compare(&self, mirrors: &Mirrors, is_followed: &dyn Fn(&str) -> bool, unlike: &mut Unlike);
}

struct Views<K: Projected> {
    plural: &'static str,
    resource: &'static str,
    mirror: fn(&Mirrors) -> &Mirror<K::View>,
    is_kept: fn(&K::View) -> bool,
    /// The objects in the order in which they are stored, each with what was read of it; `None` where it cannot be
    /// read.
    seen: Vec<(Arc<Value>, Option<K::View>)>,
}

fn all<K: Projected>(
    resource: &'static str,
    mirror: fn(&Mirrors) -> &Mirror<K::View>,
) -> Box<dyn StoredKind + Send> {
    Box::new(Views::<K>::new(resource, mirror))
}

impl<K: Projected> Views<K> {
    fn new(resource: &'static str, mirror: fn(&Mirrors) -> &Mirror<K::View>) -> Self {
        Self {
            plural: resource.split('.').next().unwrap_or_default(),
            resource,
            mirror,
            is_kept: |_| true,
            seen: Vec::new(),
        }
    }
}

impl<K: Projected> StoredKind for Views<K> {
    fn look(&mut self, insider: &Insider) {
        // A stored object is replaced, never changed, and what is kept here cannot be another's place.
        let place = |object: &Arc<Value>| Arc::as_ptr(object).addr();
        let before = std::mem::take(&mut self.seen).into_iter();
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
        let objects = insider.list(self.resource).into_iter();
        self.seen = objects.map(known).collect();
    }

    fn compare(&self, mirrors: &Mirrors, is_followed: &dyn Fn(&str) -> bool, unlike: &mut Unlike) {
        if !is_followed(self.plural) {
            return;
        }
        let held = (self.mirror)(mirrors).all().into_iter();
        let mut held: BTreeMap<ObjectKey, Arc<K::View>> = held.collect();
        let named = |key: ObjectKey| format!("{} {key}", self.plural);
        for (object, view) in &self.seen {
            let object = Object(Arc::clone(object));
            let key = ObjectKey::new(object.namespace(), object.name());
            let Some(stored) = view else {
                // What cannot be read is kept by its name.
                held.remove(&key);
                continue;
            };
            if (self.is_kept)(stored) && held.remove(&key).as_deref() != Some(stored) {
                unlike.odd.push(named(key));
            }
        }
        unlike.gone.extend(held.into_keys().map(named));
    }
}

#[derive(Debug, Default)]
pub(crate) struct SeenVersions(BTreeMap<VariantKey, (Arc<str>, u64)>);

impl SeenVersions {
    /// M1: no object goes back to an older version. `excused` where the server itself did.
    pub(crate) fn judge(
        &mut self,
        known: impl IntoIterator<Item = (VariantKey, Arc<str>, u64)>,
        excused: bool,
    ) -> Vec<InvariantViolation> {
        let mut found = Vec::new();
        let mut next = BTreeMap::new();
        for (key, uid, version) in known {
            let before = self.0.get(&key).filter(|(of, _)| *of == uid);
            if let Some((_, before)) = before
                && version < *before
                && !excused
            {
                let text = format!("{key} goes back from version {before} to {version}");
                found.push(InvariantViolation::new("M1", text));
            }
            next.insert(key, (uid, version));
        }
        self.0 = next;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_does_not_grow_younger() {
        let known = |uid: &str, version| [(VariantKey::new("n", "v"), Arc::from(uid), version)];
        let mut versions = SeenVersions::default();
        assert_eq!(versions.judge(known("a", 5), false), []);
        assert_eq!(versions.judge(known("a", 6), false), []);
        assert_eq!(versions.judge(known("b", 3), false), [], "another object");
        assert_eq!(versions.judge(known("b", 2), true), [], "so did the server");
        assert_eq!(versions.judge(known("b", 1), false)[0].invariant, "M1");
    }
}
