//! The server as components of the same world use it: they look at objects without a copy, and write
//! through the API like everybody else.

use std::sync::Arc;

use http::Method;
use serde_json::Value;

use super::request::Ask;
use super::server::ApiServer;
use super::store::Key;
use super::versions::VersionFollower;

/// A component with a name as an owner of fields.
#[derive(Debug, Clone)]
pub struct Insider {
    server: ApiServer,
    manager: &'static str,
}

impl Insider {
    /// A component whose writes carry the name of this field manager.
    pub fn new(server: ApiServer, manager: &'static str) -> Self {
        Self { server, manager }
    }

    /// All objects of a resource in the order of namespace and name. A resource is named by plural
    /// and group, as in `deployments.apps` or `pods.`.
    pub fn list(&self, resource: &str) -> Vec<Arc<Value>> {
        self.server.shared.with(|state| {
            let found = state.store.range(resource, None);
            found.map(|(_, object)| Arc::clone(object)).collect()
        })
    }

    /// One object.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key = Key::of(resource, namespace, name);
        self.server.shared.with(|state| state.store.get(&key).cloned())
    }

    pub(crate) fn version(&self) -> u64 {
        self.server.shared.versions.current()
    }

    pub(crate) fn follow(&self, resources: &[&str]) -> VersionFollower {
        self.server.shared.versions.follow(resources)
    }

    /// Whether one of these resources has changed after a version; true where that is forgotten.
    pub(crate) fn changed_since(&self, version: u64, resources: &[&str]) -> bool {
        self.server.shared.with(|state| {
            let changes = state.store.all_changes(version);
            changes.is_none_or(|mut changes| {
                changes.any(|change| resources.contains(&&*change.key.resource))
            })
        })
    }

    /// What has changed after a version, oldest first, each as text; `None` where some of it is forgotten.
    #[cfg(test)]
    pub(crate) fn changes_after(&self, version: u64) -> Option<Vec<(u64, String)>> {
        self.server.shared.with(|state| {
            let changes = state.store.all_changes(version)?;
            let texts = changes.map(|change| {
                let (resource, is_gone) = (&change.key.resource, change.after.is_none());
                (change.revision, format!("{resource} {} {is_gone}", change.last))
            });
            Some(texts.collect())
        })
    }

    /// Changes the specification of a stored object without asking any rule, as it would have been
    /// stored before there was one; `false` if there is none.
    pub(crate) fn bend(&self, resource: &str, namespace: &str, name: &str, spec: &Value) -> bool {
        let key = Key::of(resource, namespace, name);
        self.server.shared.with(|state| {
            let Some(stored) = state.store.get(&key) else {
                return false;
            };
            let mut object = Value::clone(stored);
            for (field, value) in spec.as_object().into_iter().flatten() {
                object["spec"][field] = value.clone();
            }
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
            object["metadata"]["generation"] = (generation + 1).into();
            state.store.put(key.clone(), object);
            true
        })
    }

    /// Creates an object in a collection.
    pub async fn create(&self, collection: &str, object: &Value) -> Result<Arc<Value>, String> {
        self.send(Method::POST, collection, object).await
    }

    /// Changes an object, or its status, by a merge patch.
    pub async fn merge(&self, path: &str, change: &Value) -> Result<Arc<Value>, String> {
        self.send(Method::PATCH, path, change).await
    }

    /// Deletes an object with these options.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<Arc<Value>, String> {
        self.send(Method::DELETE, path, options).await
    }

    /// Fails with the text of an answer other than success.
    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Arc<Value>, String> {
        let media = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let ask = Ask::inside(method, path, (self.manager, media), body.clone());
        let answer = self.server.answer_inside(&ask).await;
        answer.map_err(|refusal| {
            let (code, message) = (refusal.code, refusal.message);
            format!("{} {path}: {code} {message}", ask.method)
        })
    }
}
