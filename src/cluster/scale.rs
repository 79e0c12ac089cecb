//! Scale subresources: all that is known of a scale target whose kind has no watcher.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};

use super::client::{RequestError, within};
use crate::policy::key::{GroupKind, TargetKey, TargetKind};
use crate::policy::object::{Lifecycle, Placement, TargetObject};
use crate::policy::units::Replicas;
use crate::policy::workload::ReplicaTemplate;

/// What the scale subresources of all targets said last.
pub type Scales = BTreeMap<TargetKey, ScaleReading>;

/// What the scale subresource of one target said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleReading {
    /// How many replicas there are. How many of them are ready it does not say.
    Found(Arc<TargetObject>),
    /// There is no such object.
    Missing,
    /// The API server has given no answer yet.
    Unheard,
    /// Objects of this kind cannot be scaled.
    Unscalable(Arc<str>),
}

/// A kind with the version that its objects are asked for in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScaleKind {
    /// API group and kind.
    pub kind: Arc<GroupKind>,
    /// Version of the group.
    pub version: Arc<str>,
}

impl ScaleKind {
    fn group_version(&self) -> String {
        if self.kind.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.kind.group, self.version)
        }
    }
}

/// Reads scale subresources.
#[derive(Clone)]
pub struct ScaleApi {
    /// The API server.
    pub client: Client,
    /// Longest wait for one answer.
    pub timeout: Duration,
}

impl std::fmt::Debug for ScaleApi {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ScaleApi")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl ScaleApi {
    /// The resource of a kind, or why its objects cannot be scaled.
    ///
    /// # Errors
    /// Whatever kept the API server from answering.
    pub async fn discover(
        &self,
        kind: &ScaleKind,
    ) -> Result<Result<ApiResource, Arc<str>>, RequestError> {
        let (name, version) = (&kind.kind.kind, kind.group_version());
        let list = if kind.kind.group.is_empty() {
            within(
                self.timeout,
                self.client.list_core_api_resources(&kind.version),
            )
            .await
        } else {
            within(self.timeout, self.client.list_api_group_resources(&version)).await
        };
        let resources = match list {
            Ok(list) => list.resources,
            Err(error) if error.code() == Some(404) => Vec::new(),
            Err(error) => return Err(error),
        };
        let served = resources
            .iter()
            .find(|resource| resource.kind == **name && !resource.name.contains('/'));
        let Some(served) = served else {
            return Ok(Err(format!(
                "the API server does not serve {name} in {version}; install the definition of that kind, which is looked for until it is there, or correct scaleTargetRef"
            )
            .into()));
        };
        let scale = format!("{}/scale", served.name);
        if !served.namespaced || !resources.iter().any(|resource| resource.name == scale) {
            return Ok(Err(format!(
                "{name} in {version} has no scale subresource; name an object that has one in scaleTargetRef"
            )
            .into()));
        }
        Ok(Ok(ApiResource {
            group: kind.kind.group.to_string(),
            version: kind.version.to_string(),
            api_version: version,
            kind: name.to_string(),
            plural: served.name.clone(),
        }))
    }

    /// What the scale subresource of an object says now.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read(
        &self,
        target: &TargetKey,
        resource: &ApiResource,
    ) -> Result<ScaleReading, ReadError> {
        let objects: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &target.namespace, resource);
        match within(self.timeout, objects.get_scale(&target.name)).await {
            Ok(scale) => Ok(ScaleReading::Found(Arc::new(project(target, &scale)))),
            Err(error) if error.code() == Some(404) => Ok(ScaleReading::Missing),
            Err(error) if error.is_denied() => Err(ReadError::Denied {
                plural: resource.plural.clone(),
                group: resource.group.clone(),
                error,
            }),
            Err(error) => Err(ReadError::Failed(error)),
        }
    }
}

/// Why a scale subresource was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A right is missing.
    #[error("{error}; allow the controller to get {plural}/scale of group {group:?}")]
    Denied {
        /// The resource.
        plural: String,
        /// Its group.
        group: String,
        /// What the API server says.
        #[source]
        error: RequestError,
    },
    /// The API server gave no answer.
    #[error(transparent)]
    Failed(#[from] RequestError),
}

impl ReadError {
    /// See [`RequestError::retry_after`].
    pub fn retry_after(&self) -> Option<Duration> {
        let (Self::Denied { error, .. } | Self::Failed(error)) = self;
        error.retry_after()
    }
}

fn project(target: &TargetKey, scale: &Scale) -> TargetObject {
    let spec = scale.spec.as_ref().and_then(|spec| spec.replicas);
    let status = scale.status.as_ref();
    let status_replicas = status
        .map(|status| Replicas::from_count(status.replicas))
        .unwrap_or_default();
    TargetObject {
        key: target.clone(),
        uid: Arc::from(scale.metadata.uid.as_deref().unwrap_or_default()),
        lifecycle: Lifecycle::Live,
        generation: 0,
        observed_generation: 0,
        // What says nothing asks for nothing: the field is left out where it is 0.
        spec_replicas: Some(spec.map(Replicas::from_count).unwrap_or_default()),
        status_replicas,
        outdated_replicas: if rolls_out(&target.kind) {
            status_replicas
        } else {
            Replicas::ZERO
        },
        ready_replicas: Replicas::ZERO,
        placement: Placement::default(),
        template: ReplicaTemplate::default(),
        pod_labels: None,
        controller: None,
    }
}

/// Whether a kind may replace its pods by others while both exist. A scale subresource does not tell how many
/// of them are old: all may be, or what a rollout has for a while would be asked for, and each round of it
/// bring forth the next one.
fn rolls_out(kind: &TargetKind) -> bool {
    let TargetKind::Other(kind) = kind else {
        return true;
    };
    !matches!(
        (&*kind.group, &*kind.kind),
        ("apps", "ReplicaSet") | ("", "ReplicationController")
    )
}

/// The kind of a target that has no watcher.
pub fn kind_without_watcher(target: &TargetKey) -> Option<&Arc<GroupKind>> {
    match &target.kind {
        TargetKind::Deployment | TargetKind::StatefulSet | TargetKind::LeaderWorkerSet => None,
        TargetKind::Other(kind) => Some(kind),
    }
}

#[cfg(test)]
mod tests;
