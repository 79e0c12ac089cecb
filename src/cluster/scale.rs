//! Scale subresources: all that is known of a scale target whose kind has no watcher. Of a StormService, whose roles
//! have none, the object itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};

use super::client::{RequestError, within};
use super::project::pod_autoscaler::StoredAutoscaler;
use super::project::storm_service::{storm_service, target as storm_service_target};
use crate::policy::accelerator::Placement;
use crate::policy::gpu::GpuCount;
use crate::policy::key::{GroupKind, TargetKey, TargetKind};
use crate::policy::object::{Lifecycle, TargetObject, TargetReference, group_version};
use crate::policy::params::{InvalidSelector, LabelSelector};
use crate::policy::pod_autoscaler::storm_service::{StormServiceObject, reporting};
use crate::policy::units::Replicas;
use crate::policy::workload::ReplicaTemplate;
use wva_base::names::check_object_name;

/// What the scale subresources of all targets said last.
pub type Scales = BTreeMap<TargetKey, ScaleReading>;

/// What the scale subresource of one target said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleReading {
    /// There is one.
    Found(Arc<ReadTarget>),
    /// The object does not exist.
    Missing,
    /// The API server has given no answer yet.
    Unanswered,
    /// Objects of this kind cannot be scaled.
    Unscalable(Arc<str>),
}

/// A target whose kind has no watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTarget {
    /// How many replicas there are. How many of them are ready it does not state.
    pub object: TargetObject,
    /// Its pods by their labels, or why that cannot be read; `None` if it states none.
    pub selector: Option<Result<LabelSelector, InvalidSelector>>,
    /// Its mode and its roles, if it was read as a StormService.
    pub service: Option<StormServiceObject>,
}

impl ReadTarget {
    /// Its pods that answer requests by their labels; `None` if it states none.
    pub fn reporting(&self) -> Option<Result<LabelSelector, &InvalidSelector>> {
        let stated = self.selector.as_ref()?.as_ref();
        Some(stated.map(|selector| match kind_without_watcher(&self.object.key) {
            Some(kind) => reporting(kind, selector.clone()),
            None => selector.clone(),
        }))
    }
}

/// What is read of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadForm {
    /// Its scale subresource.
    Scale,
    /// The StormService itself.
    StormService,
}

/// How a target is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScaleSource {
    /// What its objects are asked for as.
    pub kind: ScaleKind,
    /// What is read.
    pub form: ReadForm,
}

/// A kind as the API server serves it.
#[derive(Debug, Clone)]
pub struct ServedKind {
    /// The resource, whose objects have namespaces.
    pub resource: ApiResource,
    /// Whether it has a scale subresource.
    pub has_scale: bool,
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
    /// The kind of a reference with this `apiVersion`.
    pub fn of(api_version: &str, kind: &Arc<str>) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            kind: Arc::new(GroupKind { group: Arc::from(group), kind: Arc::clone(kind) }),
            version: Arc::from(version),
        }
    }

    /// Why its objects cannot be scaled, where it has no scale subresource.
    pub fn has_no_scale(&self) -> Arc<str> {
        let (name, version) = (&self.kind.kind, self.group_version());
        format!(
            "{name} in {version} has no scale subresource; name an object that has one in scaleTargetRef"
        )
        .into()
    }

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

wva_base::debug_of!(ScaleApi: timeout);

impl ScaleApi {
    /// The resource of a kind, or why its objects cannot be scaled.
    pub async fn discover(
        &self,
        kind: &ScaleKind,
    ) -> Result<Result<ApiResource, Arc<str>>, RequestError> {
        let served = self.served(kind).await?;
        Ok(served.and_then(|served| {
            if served.has_scale {
                return Ok(served.resource);
            }
            Err(kind.has_no_scale())
        }))
    }

    /// The resource of a kind as it is read, or why it cannot be.
    pub async fn discover_source(
        &self,
        source: &ScaleSource,
    ) -> Result<Result<ApiResource, Arc<str>>, RequestError> {
        match source.form {
            ReadForm::Scale => self.discover(&source.kind).await,
            ReadForm::StormService => {
                let served = self.served(&source.kind).await?;
                Ok(served.map(|served| served.resource))
            }
        }
    }

    /// What a kind is served as, or why its objects cannot be named.
    pub async fn served(
        &self,
        kind: &ScaleKind,
    ) -> Result<Result<ServedKind, Arc<str>>, RequestError> {
        let (name, version) = (&kind.kind.kind, kind.group_version());
        // It becomes part of a path.
        if group_version(&version).is_none() {
            let why = format!("{version:?} is no group and version; correct scaleTargetRef");
            return Ok(Err(why.into()));
        }
        let list = if kind.kind.group.is_empty() {
            within(self.timeout, self.client.list_core_api_resources(&kind.version)).await
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
        let has_scale = resources.iter().any(|resource| resource.name == scale);
        Ok(Ok(ServedKind {
            resource: ApiResource {
                group: kind.kind.group.to_string(),
                version: kind.version.to_string(),
                api_version: version,
                kind: name.to_string(),
                plural: served.name.clone(),
            },
            has_scale: served.namespaced && has_scale,
        }))
    }

    /// What a target states now.
    pub async fn read(
        &self,
        target: &TargetKey,
        resource: &ApiResource,
        form: ReadForm,
    ) -> Result<ScaleReading, ReadError> {
        let objects: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &target.namespace, resource);
        let (suffix, read) = match form {
            ReadForm::Scale => {
                let scale = within(self.timeout, objects.get_scale(&target.name)).await;
                ("/scale", scale.map(|scale| read_scale(target, &scale)))
            }
            ReadForm::StormService => {
                let object = within(self.timeout, objects.get(&target.name)).await;
                ("", object.map(|object| read_service(target, &object)))
            }
        };
        match read {
            Ok(read) => Ok(ScaleReading::Found(Arc::new(read))),
            Err(error) if error.code() == Some(404) => Ok(ScaleReading::Missing),
            Err(error) if error.is_denied() => Err(ReadError::Denied {
                resource: format!("{}{suffix}", resource.plural),
                group: resource.group.clone(),
                error,
            }),
            Err(error) => Err(ReadError::Failed(error)),
        }
    }
}

/// Why a target was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A right is missing.
    #[error("{error}; allow the controller to get {resource} of group {group:?}")]
    Denied {
        /// The resource.
        resource: String,
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

fn read_scale(target: &TargetKey, scale: &Scale) -> ReadTarget {
    let status = scale.status.as_ref();
    let selector = status.and_then(|status| status.selector.as_deref());
    let selector = selector.filter(|selector| !selector.trim().is_empty());
    // An absent field is 0: the field is left out where it is 0.
    let spec = scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
    let counts = [spec, status.map_or(0, |status| status.replicas)].map(Replicas::from_count);
    ReadTarget {
        object: unwatched(target, &scale.metadata, counts),
        selector: selector.map(LabelSelector::parse),
        service: None,
    }
}

fn read_service(target: &TargetKey, object: &DynamicObject) -> ReadTarget {
    ReadTarget {
        object: storm_service_target(target, object),
        selector: None,
        service: Some(storm_service(object)),
    }
}

/// A target of which no more is known than the counts that it wants and has.
pub(super) fn unwatched(
    target: &TargetKey,
    metadata: &ObjectMeta,
    [spec_replicas, status_replicas]: [Replicas; 2],
) -> TargetObject {
    TargetObject {
        key: target.clone(),
        uid: Arc::from(metadata.uid.as_deref().unwrap_or_default()),
        lifecycle: Lifecycle::Live,
        generation: 0,
        observed_generation: 0,
        spec_replicas: Some(spec_replicas),
        status_replicas,
        outdated_replicas: if rolls_out(&target.kind) { status_replicas } else { Replicas::ZERO },
        ready_replicas: Replicas::ZERO,
        placement: Placement::default(),
        // Its pods show it, as far as there are any; the roles of a StormService hold different ones.
        template: ReplicaTemplate { gpu_count: GpuCount::Unknown, ..ReplicaTemplate::default() },
        pod_labels: None,
        controller: None,
    }
}

/// Whether a kind may replace its pods by others while both exist. A scale subresource does not show how many
/// of them are old: all may be, or what a rollout has for a while would be asked for, and each round of it
/// bring forth the next one.
fn rolls_out(kind: &TargetKind) -> bool {
    let TargetKind::Other(kind) = kind else {
        return true;
    };
    !matches!((&*kind.group, &*kind.kind), ("apps", "ReplicaSet") | ("", "ReplicationController"))
}

/// The kind of a target that has no watcher.
pub fn kind_without_watcher(target: &TargetKey) -> Option<&Arc<GroupKind>> {
    match &target.kind {
        TargetKind::Deployment | TargetKind::StatefulSet | TargetKind::LeaderWorkerSet => None,
        TargetKind::Other(kind) => Some(kind),
    }
}

/// The target of a `PodAutoscaler`, if its kind has no watcher, and how it is read; `None` as well for a reference that
/// cannot be part of a path.
pub fn autoscaler_target(stored: &StoredAutoscaler) -> Option<(TargetKey, ScaleSource)> {
    let target = stored.target()?;
    kind_without_watcher(&target)?;
    let reference = &stored.object.as_ref().ok()?.spec.scale_target_ref;
    let written = TargetReference {
        api_version: Some(Arc::clone(&reference.api_version)),
        kind: Arc::clone(&reference.kind),
        name: Arc::clone(&reference.name),
    };
    written.group_version()?;
    check_object_name(&target.name).ok()?;
    let source = ScaleSource {
        kind: ScaleKind::of(&reference.api_version, &reference.kind),
        form: if reference.has_roles() { ReadForm::StormService } else { ReadForm::Scale },
    };
    (written.resolve(&target.namespace)? == target).then_some((target, source))
}

#[cfg(test)]
mod tests;
