//! The count of a variant that a scaler declares: an annotation of the scaler, since it has no status of ours.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use serde_json::{Map, Value, json};

use super::{StatusError, collided, failure, owners};
use crate::api::COUNT_ANNOTATION;
use crate::api::scaled_object::ScaledObject;
use crate::cluster::permit::{PermitExpired, WriteApi, WritePermit};
use crate::policy::key::VariantKey;
use crate::policy::scaler::ScalerKind;
use crate::policy::units::Replicas;

/// A count for one version of one scaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountPatch {
    /// Its kind.
    pub kind: ScalerKind,
    /// Its namespace and name.
    pub key: VariantKey,
    /// Its unique id.
    pub uid: Arc<str>,
    /// Its version that the count was decided on. Any other is left alone, so that a late request replaces no newer
    /// count.
    pub resource_version: Arc<str>,
    /// The count; `None` removes it.
    pub desired: Option<Replicas>,
}

/// Stores a count. Applies nothing else, and without force, except against programs that are no controller of our kind.
///
/// # Errors
/// As for a status.
pub async fn apply_count(
    permit: WritePermit,
    api: &WriteApi,
    patch: &CountPatch,
    retired: &BTreeSet<String>,
) -> Result<(), StatusError> {
    match patch.kind {
        ScalerKind::HorizontalPodAutoscaler => {
            let resources = "horizontalpodautoscalers in the group autoscaling";
            apply::<HorizontalPodAutoscaler>(&permit, api, patch, retired, resources).await
        }
        ScalerKind::ScaledObject => {
            let resources = "scaledobjects in the group keda.sh";
            apply::<ScaledObject>(&permit, api, patch, retired, resources).await
        }
    }
}

async fn apply<K>(
    permit: &WritePermit,
    api: &WriteApi,
    patch: &CountPatch,
    retired: &BTreeSet<String>,
    resources: &'static str,
) -> Result<(), StatusError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug,
{
    let key = &patch.key;
    let objects: Api<PartialObjectMeta<K>> = Api::namespaced(api.client.clone(), &key.namespace);
    let count = patch.desired.map(|count| (COUNT_ANNOTATION.to_owned(), json!(count.to_string())));
    let annotations: Map<String, Value> = count.into_iter().collect();
    let document = Patch::Apply(json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {
            "namespace": key.namespace, "name": key.name,
            "uid": patch.uid, "resourceVersion": patch.resource_version,
            "annotations": annotations,
        },
    }));
    let mut parameters = PatchParams::apply(&api.manager);
    loop {
        let request = objects.patch(&key.name, &parameters, &document);
        let answer = permit.request(api.timeout, request).await;
        let answer = answer.map_err(|PermitExpired| StatusError::Expired(key.clone()))?;
        let Err(error) = answer else {
            return Ok(());
        };
        let Some(managers) = collided(&error).filter(|_| !parameters.force) else {
            return Err(failure(key, error, resources));
        };
        let (managers, _) = owners::split(managers, retired);
        if !managers.is_empty() {
            let key = key.clone();
            return Err(StatusError::Conflict { key, managers });
        }
        parameters.force = true;
    }
}
