//! AIBrix's StormService, read as it is: its roles have no scale subresource.

use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;

use super::lifecycle;
use crate::cluster::scale::unwatched;
use crate::policy::key::TargetKey;
use crate::policy::object::TargetObject;
use crate::policy::pod_autoscaler::storm_service::{StormServiceObject, StormServiceRole};
use crate::policy::pod_autoscaler::tuning::StormServiceMode;
use crate::policy::units::Replicas;

/// What its scale subresource would report.
pub(crate) fn target(key: &TargetKey, object: &DynamicObject) -> TargetObject {
    let number = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_i64);
    let counts = ["/spec/replicas", "/status/replicas"]
        .map(|pointer| count(object.data.pointer(pointer)).unwrap_or_default());
    TargetObject {
        lifecycle: lifecycle(&object.metadata),
        generation: object.metadata.generation.unwrap_or_default(),
        observed_generation: number("/status/observedGeneration").unwrap_or_default(),
        ..unwatched(key, &object.metadata, counts)
    }
}

/// Mode, count and roles.
pub(crate) fn storm_service(object: &DynamicObject) -> StormServiceObject {
    let spec = |pointer: &str| object.data.pointer(pointer);
    let roles = spec("/spec/template/spec/roles").and_then(Value::as_array);
    StormServiceObject {
        replicas: count(spec("/spec/replicas")),
        mode: match spec("/spec/mode").and_then(Value::as_str) {
            Some("Replica") => Some(StormServiceMode::Replica),
            Some("Pooled") => Some(StormServiceMode::Pooled),
            _ => None,
        },
        roles: roles.into_iter().flatten().map(role).collect(),
    }
}

fn role(role: &Value) -> StormServiceRole {
    let name = role.get("name").and_then(Value::as_str);
    StormServiceRole {
        name: Arc::from(name.unwrap_or_default()),
        replicas: count(role.get("replicas")),
        pod_group_size: count(role.get("podGroupSize")).map(|size| size.0),
    }
}

/// A count that the API server may hold; `None` for what is none.
fn count(value: Option<&Value>) -> Option<Replicas> {
    let count = value?.as_i64()?;
    u32::try_from(i32::try_from(count).ok()?).ok().map(Replicas)
}
