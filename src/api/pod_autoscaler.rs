//! `PodAutoscaler`, `autoscaling.aibrix.ai/v1alpha1`: an object of AIBrix that users bring along.

mod schema;

use std::borrow::Cow;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::policy::pod_autoscaler::object::{API_VERSION, KIND};

const GROUP: &str = "autoscaling.aibrix.ai";
const VERSION: &str = "v1alpha1";
const PLURAL: &str = "podautoscalers";

/// Columns of `kubectl get`: name, type and path.
const COLUMNS: [(&str, &str, &str); 5] = [
    ("MINPODS", "integer", ".spec.minReplicas"),
    ("MAXPODS", "integer", ".spec.maxReplicas"),
    ("REPLICAS", "integer", ".status.actualScale"),
    ("STRATEGY", "string", ".spec.scalingStrategy"),
    ("AGE", "date", ".metadata.creationTimestamp"),
];

/// An object as it is stored. Its parts are not typed: one that cannot be read harms no other.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodAutoscaler {
    /// Names, labels and annotations.
    pub metadata: ObjectMeta,
    /// What is specified; null if it is missing.
    pub spec: Value,
    /// What was written last.
    pub status: Option<Value>,
}

impl Serialize for PodAutoscaler {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct(KIND, 5)?;
        object.serialize_field("apiVersion", API_VERSION)?;
        object.serialize_field("kind", KIND)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        match &self.status {
            Some(status) => object.serialize_field("status", status)?,
            None => object.skip_field("status")?,
        }
        object.end()
    }
}

impl Resource for PodAutoscaler {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The definition to install in a cluster. It sets no defaults: what is left out stays left out in storage.
pub fn definition() -> CustomResourceDefinition {
    let column = |(name, kind, path): (&str, &str, &str)| CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: kind.to_owned(),
        json_path: path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    };
    let version = CustomResourceDefinitionVersion {
        name: VERSION.to_owned(),
        served: true,
        storage: true,
        additional_printer_columns: Some(COLUMNS.map(column).into()),
        subresources: Some(CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(Value::Object(
                serde_json::Map::new(),
            ))),
            scale: None,
        }),
        schema: Some(CustomResourceValidation {
            open_api_v3_schema: Some(schema::object_schema()),
        }),
        ..CustomResourceDefinitionVersion::default()
    };
    CustomResourceDefinition {
        metadata: ObjectMeta {
            name: Some(format!("{PLURAL}.{GROUP}")),
            ..ObjectMeta::default()
        },
        spec: CustomResourceDefinitionSpec {
            group: GROUP.to_owned(),
            names: CustomResourceDefinitionNames {
                kind: KIND.to_owned(),
                list_kind: Some(format!("{KIND}List")),
                plural: PLURAL.to_owned(),
                singular: Some("podautoscaler".to_owned()),
                ..CustomResourceDefinitionNames::default()
            },
            scope: "Namespaced".to_owned(),
            versions: vec![version],
            ..CustomResourceDefinitionSpec::default()
        },
        status: None,
    }
}

#[cfg(test)]
mod tests;
