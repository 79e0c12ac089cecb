//! `PodAutoscaler`.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use super::{Interner, Projected, label, lifecycle, name, namespace_of, uid, wall_time};
use crate::api::INSTANCE_LABEL;
use crate::api::pod_autoscaler::PodAutoscaler;
use crate::api::text::bounded;
use crate::cluster::mirror::ObjectKey;
use crate::cluster::watch::Malformed;
use crate::policy::key::TargetKey;
use crate::policy::object::Lifecycle;
use crate::policy::pod_autoscaler::PodAutoscalerObject;
use crate::policy::pod_autoscaler::object::{
    AutoscalerMetadata, PodAutoscalerSpec, SkippedFields, read_known,
};
use crate::policy::pod_autoscaler::schedule::ReplicaBounds;
use crate::policy::pod_autoscaler::status::PodAutoscalerStatus;
use crate::policy::units::Replicas;
use wva_base::moment::WallTime;

/// Longest description of a specification that cannot be read, in bytes.
const TEXT_LIMIT: usize = 512;

#[derive(Deserialize)]
struct Specified {
    spec: PodAutoscalerSpec,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredAutoscaler {
    pub key: ObjectKey,
    pub uid: Arc<str>,
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created: WallTime,
    pub resource_version: Arc<str>,
    pub lifecycle: Lifecycle,
    /// The label `wva.llmd.ai/controller-instance`.
    pub instance: Option<Arc<str>>,
    /// What is asked for, or why it cannot be read.
    pub object: Result<Arc<PodAutoscalerObject>, Arc<str>>,
    /// What was written last.
    pub status: PodAutoscalerStatus,
}

impl StoredAutoscaler {
    /// Whether another state of the object differs in nothing but its status.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        (&self.uid, self.generation, self.lifecycle)
            == (&other.uid, other.generation, other.lifecycle)
            && self.instance == other.instance
            && self.object == other.object
    }

    /// The bounds as they are written, whether they make sense or not.
    pub fn base_bounds(&self) -> ReplicaBounds {
        let spec = self.object.as_ref().ok().map(|object| &object.spec);
        let min = spec.and_then(|spec| spec.min_replicas).unwrap_or(1);
        let max = spec.and_then(|spec| spec.max_replicas).unwrap_or_default();
        ReplicaBounds { min: Replicas::from_count(min), max: Replicas::from_count(max) }
    }

    /// The object that it scales, if its reference names one.
    pub fn target(&self) -> Option<TargetKey> {
        let object = self.object.as_ref().ok()?;
        object.spec.scale_target_ref.key(&self.key.namespace)
    }
}

impl Projected for PodAutoscaler {
    type View = StoredAutoscaler;

    fn project(self, texts: &mut Interner) -> StoredAutoscaler {
        // What is found has the paths of the object.
        let document = serde_json::Map::from_iter([("spec".to_owned(), self.spec)]);
        let read = read_known::<Specified>(document.into());
        let spec = read.map(|(read, skipped)| (read.spec, skipped));
        let spec = spec.map_err(|unreadable| {
            let fields: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
            Arc::from(&*bounded(&fields.join("; "), TEXT_LIMIT))
        });
        stored(&self.metadata, spec, self.status, texts)
    }
}

/// A status as it is stored; an empty one where it has another form.
pub(crate) fn read_status(status: Option<Value>) -> PodAutoscalerStatus {
    let status = status.and_then(|status| serde_json::from_value(status).ok());
    status.unwrap_or_default()
}

/// What is kept of an object that has not the form of its kind.
pub(crate) fn malformed(malformed: &Malformed, texts: &mut Interner) -> StoredAutoscaler {
    let why = Err(Arc::from(&*malformed.text));
    stored(&malformed.metadata, why, malformed.status.clone(), texts)
}

fn stored(
    metadata: &ObjectMeta,
    spec: Result<(PodAutoscalerSpec, SkippedFields), Arc<str>>,
    status: Option<Value>,
    texts: &mut Interner,
) -> StoredAutoscaler {
    let key = ObjectKey::new(namespace_of(metadata, texts), name(metadata));
    let uid = uid(metadata);
    let texts_of = |texts: &Option<std::collections::BTreeMap<String, String>>| {
        let texts = texts.iter().flatten();
        texts.map(|(key, value)| (Arc::from(&**key), Arc::from(&**value))).collect()
    };
    let object = spec.map(|(spec, skipped)| {
        Arc::new(PodAutoscalerObject {
            api_version: None,
            kind: None,
            metadata: AutoscalerMetadata {
                namespace: Arc::clone(&key.namespace),
                name: Arc::clone(&key.name),
                creation_timestamp: None,
                uid: Some(Arc::clone(&uid)),
                labels: texts_of(&metadata.labels),
                annotations: texts_of(&metadata.annotations),
            },
            spec,
            skipped,
            status: None,
        })
    });
    StoredAutoscaler {
        key,
        uid,
        generation: metadata.generation.unwrap_or_default(),
        created: wall_time(metadata.creation_timestamp.as_ref()),
        resource_version: Arc::from(metadata.resource_version.as_deref().unwrap_or_default()),
        lifecycle: lifecycle(metadata),
        instance: label(metadata, INSTANCE_LABEL).map(|text| texts.intern(text)),
        object,
        status: read_status(status),
    }
}
