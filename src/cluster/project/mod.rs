//! From Kubernetes objects to what is kept of them: pure functions, one file for each kind, one for all watched scale targets.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::de::DeserializeOwned;

pub use self::intern::Interner;
use crate::policy::object::{ControllerRef, Lifecycle};
use wva_base::moment::WallTime;

pub mod config_map;
mod declared;
pub(crate) mod device;
pub mod gpu;
mod intern;
pub(crate) mod keda;
mod namespace;
mod pod;
pub(crate) mod pod_autoscaler;
mod pod_template;
pub(crate) mod pool;
pub(crate) mod promql;
mod replica_set;
pub(crate) mod resource_claim_template;
pub(crate) mod scaler;
pub mod service;
pub(crate) mod service_monitor;
pub(crate) mod storm_service;
pub mod variant;
mod workload;

/// An object of which we keep a part.
pub trait Projected:
    Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static
{
    /// What is kept. Two equal views mean that nothing which concerns us has changed.
    type View: PartialEq + fmt::Debug + Send + Sync + 'static;

    /// Takes out what is kept. Texts that many objects share are stored once.
    fn project(self, texts: &mut Interner) -> Self::View;
}

fn name(metadata: &ObjectMeta) -> Arc<str> {
    Arc::from(metadata.name.as_deref().unwrap_or_default())
}

fn namespace_of(metadata: &ObjectMeta, texts: &mut Interner) -> Arc<str> {
    texts.intern(metadata.namespace.as_deref().unwrap_or_default())
}

fn uid(metadata: &ObjectMeta) -> Arc<str> {
    Arc::from(metadata.uid.as_deref().unwrap_or_default())
}

fn lifecycle(metadata: &ObjectMeta) -> Lifecycle {
    match metadata.deletion_timestamp {
        Some(_) => Lifecycle::Deleting,
        None => Lifecycle::Live,
    }
}

fn controller(metadata: &ObjectMeta, texts: &mut Interner) -> Option<ControllerRef> {
    let owner =
        metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))?;
    let (group, _) = owner.api_version.split_once('/').unwrap_or_default();
    Some(ControllerRef {
        group: texts.intern(group),
        kind: texts.intern(&owner.kind),
        name: texts.intern(&owner.name),
        uid: texts.intern(&owner.uid),
    })
}

fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn wall_time(time: Option<&Time>) -> WallTime {
    WallTime(time.map_or(0, |time| time.0.as_millisecond()))
}

#[cfg(test)]
mod tests;
