//! How `kubectl` finds the server.

use std::net::SocketAddr;

use serde_json::json;

/// A kubeconfig for the server at an address: no credentials, no encryption.
pub fn kubeconfig(address: SocketAddr) -> String {
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "embedded",
        "clusters": [{"name": "embedded", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "embedded", "user": {}}],
        "contexts": [{
            "name": "embedded",
            "context": {"cluster": "embedded", "user": "embedded", "namespace": "default"},
        }],
    });
    // YAML is a superset of JSON.
    format!("{document:#}\n")
}
