//! Writes of the annotation that lets a pod go first.

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use serde_json::json;

use super::AutoscalerWriteError;
use crate::api::{CHOSEN_BY_ANNOTATION, DELETION_COST_ANNOTATION};
use crate::cluster::permit::{WriteApi, WritePermit};
use crate::policy::deletion::CHOSEN_COST;
use crate::policy::object::{DeletionCost, PodObject};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodMark {
    /// It is to go before the others.
    Chosen,
    /// It is as it was.
    Removed,
}

impl WriteApi {
    /// Writes the cost of a pod with our name, or removes it with that of its owner. Nothing else of the pod is touched.
    ///
    /// The fields are applied, and not by force: a cost that something else wrote since the pod was read is a conflict,
    /// and one that it wrote over ours stays where ours is removed. A version would do so as well, but every change of
    /// a status would refuse the write. The uid keeps a pod from being created that is gone.
    pub async fn mark_pod(
        &self,
        permit: WritePermit,
        pod: &PodObject,
        mark: PodMark,
    ) -> Result<(), AutoscalerWriteError> {
        let annotations = match mark {
            PodMark::Chosen => json!({
                DELETION_COST_ANNOTATION: CHOSEN_COST.to_string(), CHOSEN_BY_ANNOTATION: &*self.manager,
            }),
            PodMark::Removed => json!({}),
        };
        let patch = Patch::Apply(json!({
            "apiVersion": Pod::API_VERSION, "kind": Pod::KIND,
            "metadata": { "name": &*pod.name, "uid": &*pod.uid, "annotations": annotations },
        }));
        // A former name of ours owns what was written under it.
        let manager = match (mark, &pod.deletion_cost) {
            (PodMark::Removed, DeletionCost::Chosen(by)) => by,
            _ => &self.manager,
        };
        let parameters = PatchParams::apply(manager);
        let pods: Api<PartialObjectMeta<Pod>> =
            Api::namespaced(self.client.clone(), &pod.namespace);
        let patched = pods.patch(&pod.name, &parameters, &patch);
        let patched = permit.request(self.timeout, patched).await?;
        let stored = patched.map_err(|error| AutoscalerWriteError::of(error, "patch", "pods"));
        stored.map(|_| ())
    }
}
