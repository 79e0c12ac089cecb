//! Writes the status of `VariantAutoscaling` objects by server-side apply.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

pub use self::count::{CountPatch, apply_count};
pub use self::owners::{annotators, controllers, is_manager, manager_name};
use super::client::RequestError;
use super::permit::{PermitExpired, WriteApi, WritePermit};
use crate::api::variant_autoscaling::{
    OptimizedAlloc, VariantAutoscaling, VariantAutoscalingStatus,
};
use crate::policy::key::VariantKey;

mod count;
mod owners;

/// A complete status for one version of one object. What it leaves out is removed.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusPatch {
    /// The object.
    pub key: VariantKey,
    /// Its unique id.
    pub uid: Arc<str>,
    /// Its version that the status was made from. Any other version is left alone, so that a late
    /// request replaces neither a newer status nor that of an object of the same name.
    pub resource_version: Arc<str>,
    /// The status, with all conditions of ours.
    pub status: VariantAutoscalingStatus,
}

/// A status that is now stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredStatus {
    /// The version of the object now.
    pub resource_version: String,
    /// Live controllers of our kind that say the same about the object. One of us is superfluous.
    pub ownership_conflicts: BTreeSet<String>,
    /// Which fields were stored.
    pub fields: StatusFields,
}

/// Which fields of a status the installed definition takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFields {
    /// All.
    All,
    /// Those of the original only: the installed definition is older than this program. Its
    /// definitions should be applied, as `wva crds` prints them.
    Original,
}

/// Why a status is not stored.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The right to write would end before the next request. Nothing is in flight.
    #[error("status of {0}: the right to write ends too soon for another request")]
    Expired(VariantKey),
    /// Live controllers of our kind own fields with other values.
    #[error(
        "status of {key} belongs to {}: two controllers claim the object; \
         give each of them its own CONTROLLER_INSTANCE, or uninstall one",
        names(managers)
    )]
    Conflict {
        /// The object.
        key: VariantKey,
        /// Their names as field managers.
        managers: BTreeSet<String>,
    },
    /// The object has another version by now: decide again from that.
    #[error("status of {0}: the object has changed meanwhile")]
    Outdated(VariantKey),
    /// The object does not exist any more.
    #[error("status of {0}: the object is gone")]
    Gone(VariantKey),
    /// The controller's role lacks a rule.
    #[error("status of {key}: {text}; grant the verb patch on {resources}")]
    Forbidden {
        /// The object.
        key: VariantKey,
        /// What must be granted.
        resources: &'static str,
        /// The API server's words.
        text: String,
    },
    /// The API server does not accept this status, or the object as it is stored.
    #[error("status of {key} is refused: {text}")]
    Invalid {
        /// The object.
        key: VariantKey,
        /// The API server's words.
        text: String,
    },
    /// Worth another try. The status may have been stored all the same.
    #[error("status of {key}: {error}")]
    Retry {
        /// The object.
        key: VariantKey,
        /// What happened.
        error: RequestError,
    },
}

impl StatusError {
    /// What the API server had against the request, without the object: it may stand where everybody
    /// can read it. `None` where the object alone is the matter.
    pub fn grievance(&self) -> Option<String> {
        match self {
            Self::Forbidden { text, .. } => Some(text.clone()),
            Self::Retry { error, .. } => Some(error.to_string()),
            Self::Expired(_)
            | Self::Conflict { .. }
            | Self::Outdated(_)
            | Self::Gone(_)
            | Self::Invalid { .. } => None,
        }
    }

    /// See [`RequestError::retry_after`].
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Retry { error, .. } => error.retry_after(),
            _ => None,
        }
    }
}

/// Stores a status.
///
/// Applies it without force. Fields that a foreign program owns are taken over from it, for good;
/// those of a live controller of our kind never are. `retired` names controllers of our kind that
/// are known to be dead: their fields may be taken as well.
pub async fn apply_status(
    permit: WritePermit,
    api: &WriteApi,
    patch: &StatusPatch,
    retired: &BTreeSet<String>,
) -> Result<StoredStatus, StatusError> {
    let mut writer = Writer {
        permit,
        manager: &api.manager,
        timeout: api.timeout,
        objects: Api::namespaced(api.client.clone(), &patch.key.namespace),
        patch,
        fields: StatusFields::All,
    };
    let stored = match writer.apply(&patch.resource_version).await {
        Ok(metadata) => metadata,
        Err(Failure::Owned(managers)) => {
            let (ownership_conflicts, _) = owners::split(managers, retired);
            if !ownership_conflicts.is_empty() {
                return Err(StatusError::Conflict {
                    key: patch.key.clone(),
                    managers: ownership_conflicts,
                });
            }
            writer.read().await?
        }
        Err(Failure::Final(error)) => return Err(error),
    };
    let (ownership_conflicts, takeable) =
        owners::split(owners::others(&stored, &api.manager), retired);
    if takeable.is_empty() {
        return Ok(writer.written(&stored, ownership_conflicts));
    }
    let adopted = writer.adopt(&stored, &takeable).await?;
    match writer.apply(&version(&adopted)).await {
        Ok(stored) => Ok(writer.written(&stored, ownership_conflicts)),
        // Another writer wrote again in between, so the version has moved as well.
        Err(Failure::Owned(_)) => Err(StatusError::Outdated(patch.key.clone())),
        Err(Failure::Final(error)) => Err(error),
    }
}

struct Writer<'a> {
    permit: WritePermit,
    manager: &'a str,
    timeout: Duration,
    objects: Api<PartialObjectMeta<VariantAutoscaling>>,
    patch: &'a StatusPatch,
    fields: StatusFields,
}

enum Failure {
    /// Others own fields that would change.
    Owned(BTreeSet<String>),
    Final(StatusError),
}

impl From<StatusError> for Failure {
    fn from(error: StatusError) -> Self {
        Self::Final(error)
    }
}

impl Writer<'_> {
    async fn apply(&mut self, version: &str) -> Result<ObjectMeta, Failure> {
        match self.apply_once(version).await? {
            Err(error) if self.fields == StatusFields::All && is_undeclared(&error) => {
                self.fields = StatusFields::Original;
                self.apply_once(version).await?
            }
            answer => answer,
        }
        .map_err(|error| match collided(&error) {
            Some(managers) => Failure::Owned(managers),
            None => Failure::Final(self.failure(error)),
        })
    }

    async fn apply_once(
        &self,
        version: &str,
    ) -> Result<Result<ObjectMeta, RequestError>, StatusError> {
        let key = &self.patch.key;
        let document = Patch::Apply(json!({
            "apiVersion": VariantAutoscaling::api_version(&()),
            "kind": VariantAutoscaling::kind(&()),
            "metadata": {
                "namespace": key.namespace, "name": key.name,
                "uid": self.patch.uid, "resourceVersion": version,
            },
            "status": status_document(&self.patch.status, self.fields),
        }));
        let parameters = PatchParams::apply(self.manager);
        let request = self.objects.patch_status(&key.name, &parameters, &document);
        let answer = self.request(request).await?;
        Ok(answer.map(|object| object.metadata))
    }

    /// The object's metadata, provided that it is still the version we know.
    async fn read(&self) -> Result<ObjectMeta, StatusError> {
        let request = self.objects.get_metadata(&self.patch.key.name);
        let object = self.request(request).await?;
        let object = object.map_err(|error| self.failure(error))?;
        if version(&object.metadata) == *self.patch.resource_version {
            Ok(object.metadata)
        } else {
            Err(StatusError::Outdated(self.patch.key.clone()))
        }
    }

    /// Makes us the owner of the status fields of others. The status endpoint ignores that edit,
    /// so this goes to the object itself, and changes nothing else of it.
    async fn adopt(
        &self,
        stored: &ObjectMeta,
        from: &BTreeSet<String>,
    ) -> Result<ObjectMeta, StatusError> {
        let document = Patch::Merge(json!({"metadata": {
            "uid": stored.uid, "resourceVersion": stored.resource_version,
            "managedFields": owners::adopt(stored, self.manager, from),
        }}));
        let parameters =
            PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() };
        let request = self.objects.patch(&self.patch.key.name, &parameters, &document);
        let object = self.request(request).await?;
        object.map(|object| object.metadata).map_err(|error| self.failure(error))
    }

    async fn request<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<Result<T, RequestError>, StatusError> {
        let answer = self.permit.request(self.timeout, request).await;
        answer.map_err(|PermitExpired| StatusError::Expired(self.patch.key.clone()))
    }

    fn written(&self, stored: &ObjectMeta, ownership_conflicts: BTreeSet<String>) -> StoredStatus {
        StoredStatus { resource_version: version(stored), ownership_conflicts, fields: self.fields }
    }

    fn failure(&self, error: RequestError) -> StatusError {
        let resources =
            "variantautoscalings and on variantautoscalings/status in the group llmd.ai";
        failure(&self.patch.key, error, resources)
    }
}

fn failure(key: &VariantKey, error: RequestError, resources: &'static str) -> StatusError {
    let key = key.clone();
    let text = |error: &RequestError| error.to_string();
    match error.code() {
        Some(404) => StatusError::Gone(key),
        Some(409) => StatusError::Outdated(key),
        Some(403) => StatusError::Forbidden { key, resources, text: text(&error) },
        Some(code) if code != 429 && code < 500 => StatusError::Invalid { key, text: text(&error) },
        _ => StatusError::Retry { key, error },
    }
}

/// The status as it is sent. An empty allocation is left out: sent as an empty object after one
/// with content, the API server makes it null and refuses its own result.
fn status_document(status: &VariantAutoscalingStatus, fields: StatusFields) -> Value {
    let mut status = status.clone();
    if fields == StatusFields::Original {
        status.observed_generation = None;
        if let Some(allocation) = &mut status.desired_optimized_alloc {
            allocation.cycle_id = None;
        }
    }
    status.desired_optimized_alloc.take_if(|allocation| *allocation == OptimizedAlloc::default());
    json!(status)
}

/// Whether the installed definition lacks a field of ours. The API server has no better sign for
/// it than its words.
fn is_undeclared(error: &RequestError) -> bool {
    matches!(error, RequestError::Refused(status)
        if status.code == 500 && status.message.contains("field not declared in schema"))
}

fn collided(error: &RequestError) -> Option<BTreeSet<String>> {
    match error {
        RequestError::Refused(status) if status.code == 409 => owners::collisions(status),
        _ => None,
    }
}

fn version(metadata: &ObjectMeta) -> String {
    metadata.resource_version.clone().unwrap_or_default()
}

fn names(managers: &BTreeSet<String>) -> String {
    managers.iter().cloned().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
