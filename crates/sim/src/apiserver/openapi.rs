//! OpenAPI v3, as far as `kubectl apply` reads it: which parameters a request takes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::refusal::ApiRefusal;
use super::state::State;

pub(super) fn document(state: &State, path: &[&str]) -> Result<Value, ApiRefusal> {
    let wanted = path.join("/");
    if wanted.is_empty() {
        return Ok(index(state));
    }
    let kinds: Vec<_> = state.kinds.iter().filter(|kind| root(kind) == wanted).collect();
    if kinds.is_empty() {
        return Err(ApiRefusal::no_such_path());
    }
    let mut paths = Map::new();
    for kind in kinds {
        add_paths(&mut paths, kind);
    }
    Ok(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.33.0"},
        "paths": paths, "components": {"schemas": {}},
    }))
}

fn index(state: &State) -> Value {
    let roots: BTreeSet<_> = state.kinds.iter().map(|kind| root(kind)).collect();
    let paths: Map<_, _> = roots
        .into_iter()
        .map(|root| {
            let url = format!("/openapi/v3/{root}");
            (root, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

fn root(kind: &Kind) -> String {
    let api = if kind.group.is_empty() { "api" } else { "apis" };
    format!("{api}/{}", kind.api_version())
}

fn add_paths(paths: &mut Map<String, Value>, kind: &Kind) {
    let root = root(kind);
    let place = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
    let collection = format!("/{root}/{place}{}", kind.plural);
    let operation = |action: &str| {
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": {
                "group": kind.group, "version": kind.version, "kind": kind.kind,
            },
            "responses": {"200": {"description": "OK"}},
            "parameters": [
                {"name": "fieldManager", "in": "query", "schema": {"type": "string"}},
                {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}},
            ],
        })
    };
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({
            "get": operation("get"), "put": operation("put"), "patch": operation("patch"),
            "delete": operation("delete"),
        }),
    );
    paths.insert(collection, json!({"get": operation("list"), "post": operation("post")}));
}
