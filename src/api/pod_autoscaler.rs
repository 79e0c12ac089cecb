//! `PodAutoscaler`, `autoscaling.aibrix.ai/v1alpha1`: an object of AIBrix that users bring along.

use std::borrow::Cow;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
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

/// Field by field as AIBrix has it.
const DEFINITION: &str =
    include_str!("../../config/crd/bases/autoscaling.aibrix.ai_podautoscalers.yaml");

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
    serde_yaml::from_str(DEFINITION).unwrap_or_default()
}

#[cfg(test)]
mod tests;
