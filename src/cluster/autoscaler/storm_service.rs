//! Writes of counts that no scale subresource holds.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::{AutoscalerWriteError, ScaleWrite};
use crate::cluster::client::RequestError;
use crate::cluster::permit::{WriteApi, WritePermit};
use crate::cluster::project::storm_service::storm_service;
use crate::policy::pod_autoscaler::storm_service::ReplicaField;

/// The code of a JSON patch whose tests fail, and of an object that is not accepted.
const UNPROCESSABLE: u16 = 422;

impl WriteApi {
    /// Replaces a count in an object, if role and count are those that the decision rests on. Nothing else of the object
    /// is touched.
    pub(super) async fn patch_replicas(
        &self,
        permit: &WritePermit,
        write: &ScaleWrite<'_>,
        resource: &ApiResource,
    ) -> Result<(), AutoscalerWriteError> {
        let Some(steps) = steps(write) else {
            return Err(AutoscalerWriteError::Outdated);
        };
        let patch = serde_json::from_value(steps)
            .map_err(|error| AutoscalerWriteError::Unscalable(error.to_string().into()))?;
        let objects: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &write.target.namespace, resource);
        let parameters =
            PatchParams { field_manager: Some(self.manager.to_string()), ..PatchParams::default() };
        let patch = Patch::Json::<()>(patch);
        let patched = objects.patch(&write.target.name, &parameters, &patch);
        match permit.request(self.timeout, patched).await? {
            Ok(_) => Ok(()),
            Err(error) if error.code() == Some(UNPROCESSABLE) => {
                let found = permit.request(self.timeout, objects.get(&write.target.name)).await?;
                let found = found.map_err(|error| denied(error, resource))?;
                judge(write, &found, error)
            }
            Err(error) => Err(denied(error, resource)),
        }
    }
}

fn denied(error: RequestError, resource: &ApiResource) -> AutoscalerWriteError {
    AutoscalerWriteError::of(error, "get and patch", &resource.plural)
}

fn steps(write: &ScaleWrite<'_>) -> Option<Value> {
    let pointer = write.field.pointer()?;
    let mut steps = Vec::new();
    if let ReplicaField::Role { index, name } = write.field {
        let path = format!("/spec/template/spec/roles/{index}/name");
        steps.push(json!({"op": "test", "path": path, "value": name}));
    }
    steps.push(json!({"op": "test", "path": pointer, "value": write.from.to_count()}));
    steps.push(json!({"op": "replace", "path": pointer, "value": write.to.to_count()}));
    Some(Value::Array(steps))
}

/// The API server answers alike where a test fails and where it does not accept the object.
fn judge(
    write: &ScaleWrite<'_>,
    found: &DynamicObject,
    error: RequestError,
) -> Result<(), AutoscalerWriteError> {
    let service = storm_service(found);
    let seen = match write.field {
        ReplicaField::Scale | ReplicaField::Service => service.replicas,
        ReplicaField::Role { index, name } => {
            let role = service.roles.get(*index);
            role.filter(|role| role.name == *name).and_then(|role| role.replicas)
        }
    };
    match seen {
        Some(seen) if seen == write.to => Ok(()),
        Some(seen) if seen == write.from => Err(AutoscalerWriteError::Failed(error)),
        _ => Err(AutoscalerWriteError::Outdated),
    }
}
