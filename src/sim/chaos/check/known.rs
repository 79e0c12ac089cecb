//! M1, M2: mirrors hold what is stored, object by object.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use serde::de::DeserializeOwned;

use crate::actors::mirrors::Mirrors;
use crate::api::leader_worker_set::LeaderWorkerSet;
use crate::api::pod::SlimPod;
use crate::cluster::mirror::Mirror;
use crate::cluster::project::{Interner, Projected};
use crate::sim::apiserver::Insider;
use crate::sim::workloads::leader_worker_sets;

/// The objects of which a mirror holds something else than the API server, or nothing, or that it holds
/// alone; of the kinds that are watched just now.
pub(in crate::sim::chaos) fn unlike(
    insider: &Insider,
    mirrors: &Mirrors,
    is_heard: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut odd = Vec::new();
    let mut look = Look {
        insider,
        is_heard,
        odd: &mut odd,
    };
    look.at::<SlimPod>("pods.", &mirrors.pods);
    look.at::<Deployment>("deployments.apps", &mirrors.deployments);
    look.at::<StatefulSet>("statefulsets.apps", &mirrors.stateful_sets);
    look.at::<PartialObjectMeta<ReplicaSet>>("replicasets.apps", &mirrors.replica_sets);
    look.at::<PartialObjectMeta<Namespace>>("namespaces.", &mirrors.namespaces);
    look.at::<HorizontalPodAutoscaler>(
        "horizontalpodautoscalers.autoscaling",
        &mirrors.horizontal_pod_autoscalers,
    );
    look.at::<LeaderWorkerSet>(leader_worker_sets::RESOURCE, &mirrors.leader_worker_sets);
    odd
}

struct Look<'a> {
    insider: &'a Insider,
    is_heard: &'a dyn Fn(&str) -> bool,
    odd: &'a mut Vec<String>,
}

impl Look<'_> {
    fn at<K>(&mut self, resource: &str, mirror: &Mirror<K::View>)
    where
        K: Projected + DeserializeOwned,
    {
        let plural = resource.split('.').next().unwrap_or_default();
        if !(self.is_heard)(plural) {
            return;
        }
        let mut texts = Interner::default();
        let mut left = mirror.all();
        for object in self.insider.list(resource) {
            let Ok(object) = serde_json::from_value::<K>((*object).clone()) else {
                continue;
            };
            let stored = object.project(&mut texts);
            let key = K::key(&stored);
            let place = left.iter().position(|(known, _)| *known == key);
            let known = place.map(|place| left.swap_remove(place).1);
            if known.as_deref() != Some(&stored) {
                self.odd.push(format!("{plural} {key}"));
            }
        }
        let alone = left.iter().map(|(key, _)| format!("{plural} {key}"));
        self.odd.extend(alone);
    }
}
