//! Writes of the annotation that lets a pod go first.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use serde_json::json;

use super::{AutoscalerApi, AutoscalerWriteError};
use crate::api::{CHOSEN_BY_ANNOTATION, DELETION_COST_ANNOTATION};
use crate::cluster::mirror::ObjectKey;
use crate::cluster::permit::WritePermit;
use crate::policy::deletion::CHOSEN_COST;

/// What becomes of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodMark {
    /// It is to go before the others.
    Chosen,
    /// It is as it was.
    Removed,
}

impl AutoscalerApi {
    /// Writes or removes the cost of a pod, with our name. Nothing else of the pod is touched.
    pub async fn mark_pod(
        &self,
        permit: WritePermit,
        pod: &ObjectKey,
        mark: PodMark,
    ) -> Result<(), AutoscalerWriteError> {
        let [cost, by] = match mark {
            PodMark::Chosen => [json!(CHOSEN_COST.to_string()), json!(&*self.manager)],
            PodMark::Removed => [json!(null), json!(null)],
        };
        let annotations = json!({ DELETION_COST_ANNOTATION: cost, CHOSEN_BY_ANNOTATION: by });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let parameters = PatchParams {
            field_manager: Some(self.manager.to_string()),
            ..PatchParams::default()
        };
        let pods: Api<PartialObjectMeta<Pod>> =
            Api::namespaced(self.client.clone(), &pod.namespace);
        let patched = pods.patch(&pod.name, &parameters, &patch);
        let patched = self.request(&permit, patched).await?;
        let stored = patched.map_err(|error| AutoscalerWriteError::of(error, "patch", "pods"));
        stored.map(|_| ())
    }
}
