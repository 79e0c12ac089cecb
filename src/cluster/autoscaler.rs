//! What PodAutoscalers write: scale subresources, roles of StormServices, generated HorizontalPodAutoscalers, statuses.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
};
use serde_json::{Value, json};

use super::client::RequestError;
use super::permit::{PermitExpired, WriteApi, WritePermit};
use super::project::pod_autoscaler::{StoredAutoscaler, read_status};
use super::scale::{ScaleApi, ScaleKind, ServedKind};
use crate::api::pod_autoscaler::PodAutoscaler;
use crate::policy::key::TargetKey;
use crate::policy::pod_autoscaler::GeneratedHpa;
use crate::policy::pod_autoscaler::object::{API_VERSION, KIND};
use crate::policy::pod_autoscaler::status::{GeneratedHpaStatus, Judgement, PodAutoscalerStatus};
use crate::policy::pod_autoscaler::storm_service::ReplicaField;
use crate::policy::units::Replicas;
use wva_base::moment::WallTime;

mod pods;
mod storm_service;

pub(crate) use pods::PodMark;

#[derive(Debug, Clone, Copy)]
pub struct ScaleWrite<'a> {
    pub target: &'a TargetKey,
    pub api_version: &'a str,
    /// Where it holds the count.
    pub field: &'a ReplicaField,
    /// The count that the decision rests on.
    pub from: Replicas,
    pub to: Replicas,
}

impl ScaleWrite<'_> {
    /// Most requests of one write: discovery, read, write.
    pub const REQUESTS: u32 = 3;
}

#[derive(Debug, thiserror::Error)]
pub enum AutoscalerWriteError {
    /// The right to write would end before the next request. Nothing is in flight.
    #[error("the right to write ends too soon for another request")]
    Expired,
    /// The object has another version or count by now: decide again from that.
    #[error("the object has changed meanwhile")]
    Outdated,
    #[error("the object is gone")]
    Gone,
    /// Another object has the name of the generated one.
    #[error("{0}")]
    Foreign(Arc<str>),
    #[error("{0}")]
    Unscalable(Arc<str>),
    #[error("{error}; allow the controller to {verbs} {resource}")]
    Denied {
        verbs: &'static str,
        resource: String,
        #[source]
        error: RequestError,
    },
    /// The API server did not do it, or gave no answer.
    #[error(transparent)]
    Failed(RequestError),
}

impl AutoscalerWriteError {
    fn of(error: RequestError, verbs: &'static str, resource: &str) -> Self {
        match error.code() {
            Some(404) => Self::Gone,
            Some(409) => Self::Outdated,
            _ if error.is_denied() => Self::Denied { verbs, resource: resource.to_owned(), error },
            _ => Self::Failed(error),
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Denied { error, .. } | Self::Failed(error) => error.retry_after(),
            Self::Expired
            | Self::Outdated
            | Self::Gone
            | Self::Foreign(_)
            | Self::Unscalable(_) => None,
        }
    }

    /// Whether it may concern other objects as well.
    pub fn concerns_everything(&self) -> bool {
        match self {
            Self::Denied { .. } => true,
            Self::Failed(error) => !matches!(error.code(), Some(400 | 422)),
            _ => false,
        }
    }
}

impl From<PermitExpired> for AutoscalerWriteError {
    fn from(PermitExpired: PermitExpired) -> Self {
        Self::Expired
    }
}

impl WriteApi {
    /// Writes a count, if the target still has the one that the decision rests on. Returns whether it had not the new one
    /// already.
    pub async fn scale(
        &self,
        permit: WritePermit,
        write: &ScaleWrite<'_>,
    ) -> Result<bool, AutoscalerWriteError> {
        let served = self.served(&permit, write).await?;
        let is_plain = match write.field {
            ReplicaField::Scale => true,
            ReplicaField::Service => served.has_scale,
            ReplicaField::Role { .. } => false,
        };
        if is_plain {
            self.write_scale(&permit, write, &served.resource).await
        } else {
            let patched = self.patch_replicas(&permit, write, &served.resource).await;
            patched.map(|()| true)
        }
    }

    async fn write_scale(
        &self,
        permit: &WritePermit,
        write: &ScaleWrite<'_>,
        resource: &ApiResource,
    ) -> Result<bool, AutoscalerWriteError> {
        let (verbs, scale) = ("get and update", format!("{}/scale", resource.plural));
        let denied = |error| AutoscalerWriteError::of(error, verbs, &scale);
        let namespace = &write.target.namespace;
        let objects: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, resource);
        let name = &write.target.name;
        let mut found: Scale =
            permit.request(self.timeout, objects.get_scale(name)).await?.map_err(denied)?;
        let spec = found.spec.get_or_insert_default();
        let seen = Replicas::from_count(spec.replicas.unwrap_or_default());
        if seen == write.to {
            return Ok(false);
        }
        if seen != write.from {
            return Err(AutoscalerWriteError::Outdated);
        }
        spec.replicas = Some(write.to.to_count());
        let parameters = self.post();
        let replaced = objects.replace_scale(name, &parameters, &found);
        permit.request(self.timeout, replaced).await?.map_err(denied)?;
        Ok(true)
    }

    async fn served(
        &self,
        permit: &WritePermit,
        write: &ScaleWrite<'_>,
    ) -> Result<ServedKind, AutoscalerWriteError> {
        let kind = ScaleKind::of(write.api_version, &write.target.kind.to_string().into());
        if !permit.covers(self.timeout) {
            return Err(AutoscalerWriteError::Expired);
        }
        let scales = ScaleApi { client: self.client.clone(), timeout: self.timeout };
        let served = scales.served(&kind).await;
        let served = served.map_err(AutoscalerWriteError::Failed)?;
        let served = served.map_err(AutoscalerWriteError::Unscalable)?;
        match write.field {
            ReplicaField::Scale if !served.has_scale => {
                Err(AutoscalerWriteError::Unscalable(kind.has_no_scale()))
            }
            _ => Ok(served),
        }
    }

    /// Makes the generated object what it should be, and reads what it reports. One that another owner has is left
    /// alone. `is_new` applies what the object has already, so that fields go that were applied before.
    pub async fn apply_hpa(
        &self,
        permit: WritePermit,
        stored: &StoredAutoscaler,
        hpa: &GeneratedHpa,
        is_new: bool,
    ) -> Result<GeneratedHpaStatus, AutoscalerWriteError> {
        let api = self.hpas(stored);
        let mut manifest = hpa.manifest();
        let found = permit.request(self.timeout, api.get_opt(&hpa.name)).await?;
        let found = found.map_err(|error| hpa_error(error, "get"))?;
        let Some(found) = found else {
            self.apply(&permit, &api, &hpa.name, &manifest).await?;
            return Ok(GeneratedHpaStatus::default());
        };
        if !is_owned(&found.metadata, &stored.uid) {
            let why = format!(
                "HorizontalPodAutoscaler {}/{} is not this object's, and is left alone; delete or rename it, or rename the PodAutoscaler",
                stored.key.namespace, hpa.name
            );
            return Err(AutoscalerWriteError::Foreign(why.into()));
        }
        if is_new || !is_in_place(&found, hpa) {
            if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
                // An object of the same name that was made meanwhile is left alone.
                metadata.insert("uid".to_owned(), json!(found.metadata.uid));
            }
            self.apply(&permit, &api, &hpa.name, &manifest).await?;
        }
        Ok(reported(&found))
    }

    async fn apply(
        &self,
        permit: &WritePermit,
        api: &Api<HorizontalPodAutoscaler>,
        name: &str,
        manifest: &Value,
    ) -> Result<(), AutoscalerWriteError> {
        // One that was made since it was looked for is another's, and its fields are not taken.
        let parameters = PatchParams {
            force: manifest.pointer("/metadata/uid").is_some(),
            ..PatchParams::apply(&self.manager)
        };
        let patch = Patch::Apply(manifest);
        let applied = permit.request(self.timeout, api.patch(name, &parameters, &patch)).await?;
        applied.map_err(|error| hpa_error(error, "patch"))?;
        Ok(())
    }

    /// Deletes a generated object as it was seen: one of its name that was made or given away meanwhile stays.
    pub async fn delete_hpa(
        &self,
        permit: WritePermit,
        seen: ObjectMeta,
    ) -> Result<(), AutoscalerWriteError> {
        let namespace = seen.namespace.unwrap_or_default();
        let api: Api<HorizontalPodAutoscaler> = Api::namespaced(self.client.clone(), &namespace);
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: seen.uid,
                resource_version: seen.resource_version,
            }),
            ..DeleteParams::background()
        };
        let name = seen.name.unwrap_or_default();
        match permit.request(self.timeout, api.delete(&name, &parameters)).await? {
            Ok(_) => Ok(()),
            Err(error) if error.code() == Some(404) => Ok(()),
            Err(error) => Err(hpa_error(error, "delete")),
        }
    }

    fn hpas(&self, stored: &StoredAutoscaler) -> Api<HorizontalPodAutoscaler> {
        Api::namespaced(self.client.clone(), &stored.key.namespace)
    }

    /// Stores a status over the version that it was made from. Returns what the server kept of it.
    pub async fn write_status(
        &self,
        permit: WritePermit,
        stored: &StoredAutoscaler,
        status: &PodAutoscalerStatus,
    ) -> Result<PodAutoscalerStatus, AutoscalerWriteError> {
        let api: Api<PodAutoscaler> = Api::namespaced(self.client.clone(), &stored.key.namespace);
        let object = PodAutoscaler {
            metadata: ObjectMeta {
                name: Some(stored.key.name.to_string()),
                namespace: Some(stored.key.namespace.to_string()),
                uid: Some(stored.uid.to_string()),
                resource_version: Some(stored.resource_version.to_string()),
                ..ObjectMeta::default()
            },
            spec: json!({}),
            status: serde_json::to_value(status).ok(),
        };
        let (name, parameters) = (&stored.key.name, self.post());
        let replaced = api.replace_status(name, &parameters, &object);
        let replaced = permit.request(self.timeout, replaced).await?;
        let replaced = replaced.map_err(|error| {
            let resource = format!("{}/status", PodAutoscaler::plural(&()));
            AutoscalerWriteError::of(error, "update", &resource)
        })?;
        Ok(read_status(replaced.status))
    }

    fn post(&self) -> PostParams {
        PostParams { field_manager: Some(self.manager.to_string()), ..PostParams::default() }
    }
}

fn hpa_error(error: RequestError, verb: &'static str) -> AutoscalerWriteError {
    AutoscalerWriteError::of(error, verb, "horizontalpodautoscalers")
}

fn is_owned(metadata: &ObjectMeta, uid: &str) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|owner| {
        owner.controller == Some(true)
            && owner.kind == KIND
            && owner.api_version == API_VERSION
            && owner.uid == uid
    })
}

/// Whether an object has every field of a manifest. Lists are compared item by item.
fn holds(present: &Value, manifest: &Value) -> bool {
    match (present, manifest) {
        (Value::Object(present), Value::Object(manifest)) => manifest.iter().all(|(key, value)| {
            value.as_object().is_some_and(serde_json::Map::is_empty)
                || present.get(key).is_some_and(|present| holds(present, value))
        }),
        (Value::Array(present), Value::Array(manifest)) => {
            present.len() == manifest.len()
                && present.iter().zip(manifest).all(|(one, other)| holds(one, other))
        }
        (present, manifest) => present == manifest,
    }
}

/// Whether an object is what is to be generated.
pub(crate) fn is_in_place(present: &HorizontalPodAutoscaler, hpa: &GeneratedHpa) -> bool {
    let present_value = serde_json::to_value(present).unwrap_or_default();
    present.metadata.deletion_timestamp.is_none() && holds(&present_value, &hpa.manifest())
}

pub(crate) fn reported(hpa: &HorizontalPodAutoscaler) -> GeneratedHpaStatus {
    let status = hpa.status.clone().unwrap_or_default();
    let text = |text: Option<String>| Arc::from(text.unwrap_or_default());
    let conditions = status.conditions.into_iter().flatten();
    GeneratedHpaStatus {
        current: Replicas::from_count(status.current_replicas.unwrap_or_default()),
        desired: Replicas::from_count(status.desired_replicas),
        last_scale_time: status.last_scale_time.map(|time| WallTime(time.0.as_millisecond())),
        conditions: conditions
            .map(|condition| Judgement {
                kind: Arc::from(condition.type_),
                status: Arc::from(condition.status),
                reason: text(condition.reason),
                message: text(condition.message),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
