//! `VariantAutoscaling`.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Interner, Projected, label, lifecycle, name, namespace_of, uid, wall_time};
pub use crate::api::MANAGED_ANNOTATION;
use crate::api::variant_autoscaling::{
    OptimizedAlloc, VariantAutoscaling, VariantAutoscalingSpec, VariantAutoscalingStatus,
};
use crate::api::{ACCELERATOR_LABEL, INSTANCE_LABEL};
use crate::cluster::event::Regarding;
use crate::cluster::status::controllers;
use crate::cluster::watch::Malformed;
use crate::policy::key::VariantKey;
use crate::policy::object::{
    SpecReading, StoredAllocation, TargetReference, VariantObject, VariantSpec,
};
use crate::policy::ownership::StatusOwner;
use crate::policy::scaler::ScalerKind;
use crate::policy::snapshot::VariantPolicy;
use crate::policy::units::Replicas;
use wva_base::moment::WallTime;

/// A variant as it is stored: what decisions rest on, and what the next status is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantRecord {
    /// What decisions rest on.
    pub object: VariantObject,
    /// The kind of the scaler whose annotations declare it; `None` for a `VariantAutoscaling`.
    pub declared_by: Option<ScalerKind>,
    /// The label `wva.llmd.ai/controller-instance`.
    pub instance: Option<Arc<str>>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// `metadata.creationTimestamp`.
    pub created: WallTime,
    /// The controllers of our kind that have written its status.
    pub owners: Arc<[StatusOwner]>,
    /// The whole status.
    pub status: VariantAutoscalingStatus,
}

impl VariantRecord {
    /// Its API version.
    pub fn api_version(&self) -> &'static str {
        (self.declared_by).map_or("llmd.ai/v1alpha1", ScalerKind::api_version)
    }

    /// Its kind.
    pub fn kind(&self) -> &'static str {
        (self.declared_by).map_or("VariantAutoscaling", ScalerKind::as_str)
    }

    /// Whether another state of the object differs in more than its version.
    pub fn differs_from(&self, other: &Self) -> bool {
        let resource_version = Arc::clone(&other.resource_version);
        let same_version = Self { resource_version, ..self.clone() };
        same_version != *other
    }

    /// The object, as an event refers to it.
    pub fn regarding(&self) -> Regarding {
        let VariantKey { namespace, name } = &self.object.key;
        Regarding {
            api_version: Arc::from(self.api_version()),
            kind: Arc::from(self.kind()),
            namespace: Arc::clone(namespace),
            name: Arc::clone(name),
            uid: Arc::clone(&self.object.uid),
        }
    }
}

impl Projected for VariantAutoscaling {
    type View = VariantRecord;

    fn project(self, texts: &mut Interner) -> VariantRecord {
        let status = self.status.unwrap_or_default();
        let spec = SpecReading::Read(spec(&self.spec, texts));
        record(&self.metadata, spec, status, texts)
    }
}

/// The record of an object that cannot be read: its name and what is wrong with it.
pub fn malformed(malformed: &Malformed, texts: &mut Interner) -> VariantRecord {
    let spec = SpecReading::Malformed { why: Arc::from(&*malformed.text) };
    // What was decided last outlives an edit that breaks the specification.
    let status = malformed
        .status
        .clone()
        .and_then(|status| serde_json::from_value(status).ok())
        .unwrap_or_default();
    record(&malformed.metadata, spec, status, texts)
}

fn record(
    metadata: &ObjectMeta,
    spec: SpecReading,
    status: VariantAutoscalingStatus,
    texts: &mut Interner,
) -> VariantRecord {
    let stored = status.desired_optimized_alloc.as_ref();
    VariantRecord {
        object: VariantObject {
            key: VariantKey::new(namespace_of(metadata, texts), name(metadata)),
            uid: uid(metadata),
            generation: metadata.generation.unwrap_or_default(),
            lifecycle: lifecycle(metadata),
            accelerator_label: label(metadata, ACCELERATOR_LABEL).map(|text| texts.intern(text)),
            spec,
            stored: stored.map(|stored| allocation(stored, texts)).unwrap_or_default(),
        },
        declared_by: None,
        instance: label(metadata, INSTANCE_LABEL).map(|text| texts.intern(text)),
        resource_version: Arc::from(metadata.resource_version.as_deref().unwrap_or_default()),
        created: wall_time(metadata.creation_timestamp.as_ref()),
        owners: Arc::from(controllers(metadata)),
        status,
    }
}

fn spec(spec: &VariantAutoscalingSpec, texts: &mut Interner) -> VariantSpec {
    let target = &spec.scale_target_ref;
    VariantSpec {
        model_id: texts.intern(&spec.model_id),
        target: TargetReference {
            api_version: target.api_version.as_deref().map(|text| texts.intern(text)),
            kind: texts.intern(&target.kind),
            name: Arc::from(&*target.name),
        },
        cost: Some(texts.intern(&spec.variant_cost)),
        min: spec.min_replicas,
        max: spec.max_replicas,
        policy: VariantPolicy::default(),
    }
}

fn allocation(stored: &OptimizedAlloc, texts: &mut Interner) -> StoredAllocation {
    StoredAllocation {
        desired: stored.num_replicas.map(Replicas::from_count),
        accelerator: stored
            .accelerator
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| texts.intern(text)),
    }
}
