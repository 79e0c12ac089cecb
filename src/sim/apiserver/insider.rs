//! The server as components of the same world use it: they look at objects without a copy, and write
//! through the API like everybody else.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use serde_json::Value;
use tower::ServiceExt;

use super::server::ApiServer;
use super::store::{Change, Key};
use super::versions::Follower;

/// A component with a name as an owner of fields.
#[derive(Debug, Clone)]
pub struct Insider {
    server: ApiServer,
    manager: &'static str,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The version that it made.
    pub version: u64,
    /// The resource, as in [`Insider::list`].
    pub resource: String,
    /// The object as it is since, or was last.
    pub object: Arc<Value>,
    /// Whether it was removed.
    pub removed: bool,
}

/// An answer other than success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{method} {path}: {code} {message}")]
pub struct Denied {
    method: Method,
    path: String,
    /// The status code.
    pub code: u16,
    message: String,
}

impl Insider {
    /// A component whose writes carry the name of this field manager.
    pub fn new(server: ApiServer, manager: &'static str) -> Self {
        Self { server, manager }
    }

    /// All objects of a resource in the order of namespace and name. A resource is named by plural
    /// and group, as in `deployments.apps` or `pods.`.
    pub fn list(&self, resource: &str) -> Vec<Arc<Value>> {
        let found = self
            .server
            .shared
            .with(|state| state.store.list(resource, None));
        found.into_values().collect()
    }

    /// One object.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key = Key {
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.server
            .shared
            .with(|state| state.store.get(&key).cloned())
    }

    /// The version of the last change, as it moves.
    pub fn versions(&self) -> Follower {
        self.server.shared.versions.follow()
    }

    /// Whether one of these resources has changed after a version; true where that is forgotten.
    pub fn changed_since(&self, version: u64, resources: &[&str]) -> bool {
        self.server.shared.with(|state| {
            resources.iter().any(|resource| {
                let changes = state.store.changes(resource, None, version);
                changes.is_none_or(|changes| !changes.is_empty())
            })
        })
    }

    /// What has changed after a version, oldest first; `None` where some of it is forgotten.
    pub fn changes_after(&self, version: u64) -> Option<Vec<Changed>> {
        self.server.shared.with(|state| {
            let changes = state.store.all_changes(version)?;
            let told = |change: &Change| Changed {
                version: change.revision,
                resource: change.key.resource.clone(),
                object: Arc::clone(&change.last),
                removed: change.after.is_none(),
            };
            Some(changes.map(told).collect())
        })
    }

    /// Creates an object in a collection.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn create(&self, collection: &str, object: &Value) -> Result<Value, Denied> {
        self.send(Method::POST, collection, object).await
    }

    /// Changes an object, or its status, by a merge patch.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn merge(&self, path: &str, change: &Value) -> Result<Value, Denied> {
        self.send(Method::PATCH, path, change).await
    }

    /// Deletes an object with these options.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<Value, Denied> {
        self.send(Method::DELETE, path, options).await
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, Denied> {
        let media = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let denied = |code, message: String| Denied {
            method: method.clone(),
            path: path.to_owned(),
            code,
            message,
        };
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("{path}?fieldManager={}", self.manager))
            .header("content-type", media)
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|error| denied(0, error.to_string()))?;
        let answer = match self.server.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let code = answer.status().as_u16();
        let bytes = match answer.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(never) => match never {},
        };
        let document: Value =
            serde_json::from_slice(&bytes).map_err(|error| denied(code, error.to_string()))?;
        if code < 300 {
            return Ok(document);
        }
        let message = document["message"].as_str().unwrap_or_default().to_owned();
        Err(denied(code, message))
    }
}
