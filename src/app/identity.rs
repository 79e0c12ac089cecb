//! The names by which the API server knows this process.

use std::sync::Arc;

use super::Env;
use crate::cluster::event::Regarding;
use crate::cluster::status::manager_name;
use crate::settings::StaticSettings;

/// The identity begins with the name of the pod. Its uid is not known, so that its events are found
/// among those of the namespace.
pub(super) fn own_pod(env: &Env, namespace: &str) -> Regarding {
    let name = env.identity.rsplit_once('_').map(|(pod, _)| pod);
    Regarding {
        api_version: Arc::from("v1"),
        kind: Arc::from("Pod"),
        namespace: Arc::from(namespace),
        name: Arc::from(name.unwrap_or(&env.identity)),
        uid: Arc::from(""),
    }
}

/// The name of this installation as an owner of fields.
pub(super) fn manager(statics: &StaticSettings) -> String {
    let scope = &statics.scope;
    let lease = &statics.leader_election.id;
    let instance = scope.controller_instance.as_deref();
    manager_name(&scope.system_namespace, lease, instance)
}
