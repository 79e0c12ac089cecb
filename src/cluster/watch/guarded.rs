//! Objects that may be malformed, so that one of them does not spoil the list it comes in.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::api::text::bounded;
use crate::cluster::mirror::ObjectKey;
use crate::policy::pod_autoscaler::object::unreadable;

/// Longest description of what is wrong with an object, in bytes: it may quote the object.
const TEXT_LIMIT: usize = 512;

/// An object, or its name and what is wrong with it.
///
/// `kube::core::DeserializeGuard` does the same, but copies every object on the way, and it hides
/// from the client that only metadata is wanted.
#[derive(Debug, Clone)]
pub struct Guarded<K>(Result<K, Malformed>);

/// An object that does not have the form of its kind.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{} cannot be read: {text}; correct the object, or delete it", key_of(metadata))]
pub struct Malformed {
    /// Its metadata, which can be read.
    pub metadata: Box<ObjectMeta>,
    /// Its status, if there is one; it may be in order although the rest is not.
    pub status: Option<Value>,
    /// What is wrong with the rest, and where.
    pub text: String,
}

impl Malformed {
    pub fn key(&self) -> ObjectKey {
        key_of(&self.metadata)
    }
}

impl<K: Resource<DynamicType = ()>> Guarded<K> {
    /// The object's key.
    pub fn key(&self) -> ObjectKey {
        key_of(self.meta())
    }

    /// The object's version, empty if it has none.
    pub fn resource_version(&self) -> String {
        self.meta().resource_version.clone().unwrap_or_default()
    }

    /// The object, if it can be read.
    pub fn into_object(self) -> Result<K, Malformed> {
        self.0
    }
}

/// Names an object by its metadata.
pub fn key_of(metadata: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = Value::deserialize(deserializer)?;
        if let Ok(object) = K::deserialize(&document) {
            return Ok(Self(Ok(object)));
        }
        let metadata =
            document.get("metadata").ok_or_else(|| D::Error::missing_field("metadata"))?;
        Ok(Self(Err(Malformed {
            metadata: Box::new(ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?),
            status: document.get("status").cloned(),
            text: bounded(&unreadable::<K>(document).join("; "), TEXT_LIMIT),
        })))
    }
}

/// The version of its group in which a kind is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ServedVersion {
    /// That of its type.
    #[default]
    Own,
    /// An older one of the same fields, or of fields that its type reads, too.
    Older(&'static str),
    /// One of another group, whose objects its type reads, too.
    Other { group: &'static str, version: Arc<str> },
}

impl<K: Resource<DynamicType = ()>> Resource for Guarded<K> {
    type DynamicType = ServedVersion;
    type Scope = K::Scope;

    fn kind(_: &ServedVersion) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group(version: &ServedVersion) -> Cow<'_, str> {
        match version {
            ServedVersion::Other { group, .. } => Cow::Borrowed(group),
            ServedVersion::Own | ServedVersion::Older(_) => K::group(&()),
        }
    }

    fn version(version: &ServedVersion) -> Cow<'_, str> {
        match version {
            ServedVersion::Own => K::version(&()),
            ServedVersion::Older(version) => Cow::Borrowed(version),
            ServedVersion::Other { version, .. } => Cow::Borrowed(version),
        }
    }

    fn plural(_: &ServedVersion) -> Cow<'_, str> {
        K::plural(&())
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(malformed) => &malformed.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(malformed) => &mut malformed.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Resource;
    use kube::core::PartialObjectMeta;
    use serde_json::json;

    use super::Guarded;
    use crate::api::variant_autoscaling::VariantAutoscaling;
    use crate::cluster::mirror::ObjectKey;

    #[test]
    fn a_good_object_comes_through() {
        let guarded: Guarded<ConfigMap> = serde_json::from_value(json!({
            "metadata": {"namespace": "a", "name": "b", "resourceVersion": "4"},
            "data": {"key": "value"},
        }))
        .unwrap();
        assert_eq!(guarded.key(), ObjectKey::new("a", "b"));
        assert_eq!(guarded.resource_version(), "4");
        let data = guarded.into_object().unwrap().data.unwrap();
        assert_eq!(data["key"], "value");
    }

    #[test]
    fn a_bad_object_keeps_its_name_and_says_where_and_why() {
        for (spec, expected) in [
            (
                json!({"modelID": "m", "scaleTargetRef": {"name": "d"}, "minReplicas": "many"}),
                "spec.minReplicas: invalid type: string \"many\"; write a whole number from 0 to 2147483647",
            ),
            (
                json!({"modelID": 5, "scaleTargetRef": {"name": "d"}, "minReplicas": "many"}),
                "spec.minReplicas: invalid type: string \"many\"; \
                write a whole number from 0 to 2147483647; spec.modelID: invalid type: integer `5`, expected a string",
            ),
            (
                json!({"modelID": "m", "scaleTargetRef": {"name": ["d"]}}),
                "spec.scaleTargetRef.name: invalid type: list, expected a string",
            ),
            (json!({"scaleTargetRef": {"name": "d"}}), "spec: missing field `modelID`"),
            (json!("text"), "spec: invalid type: string \"text\", expected"),
        ] {
            let metadata = json!({"namespace": "a", "name": "b", "uid": "u"});
            let guarded: Guarded<VariantAutoscaling> =
                serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
            let malformed = guarded.into_object().unwrap_err();
            assert_eq!(malformed.key(), ObjectKey::new("a", "b"));
            assert_eq!(malformed.metadata.uid.as_deref(), Some("u"));
            assert!(malformed.text.starts_with(expected), "{spec}: {}", malformed.text);
            assert!(malformed.to_string().starts_with("a/b cannot be read: "), "{malformed}");
        }
    }

    #[test]
    fn what_an_object_quotes_is_cut() {
        let guarded: Guarded<ConfigMap> = serde_json::from_value(json!({
            "metadata": {"namespace": "a", "name": "b"}, "data": "x".repeat(100_000),
        }))
        .unwrap();
        let text = guarded.into_object().unwrap_err().text;
        assert!(text.starts_with("data: invalid type") && text.len() <= 512, "{text}");
    }

    #[test]
    fn only_what_has_no_metadata_fails_the_list() {
        assert!(serde_json::from_value::<Guarded<ConfigMap>>(json!({"data": 1})).is_err());
    }

    #[test]
    fn metadata_requests_stay_metadata_requests() {
        assert!(Guarded::<PartialObjectMeta<ReplicaSet>>::metadata_api());
        assert!(!Guarded::<ReplicaSet>::metadata_api());
    }
}
