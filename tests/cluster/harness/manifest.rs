//! Applying objects of any kind, and the definitions of foreign kinds.

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures::future::try_join_all;
use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::Value;

use super::fault::{Fault, Result};
use super::namespace::condition_of;
use super::wait::{eventually, seen};

/// The field manager of everything that the tests write.
pub(crate) const MANAGER: &str = "cluster-tests";

/// Applies one object on the server's side; a namespaced kind goes into `namespace`, unless the
/// object names one.
pub(crate) async fn apply(
    client: &Client,
    object: Value,
    namespace: Option<&str>,
) -> Result<DynamicObject> {
    let name = text(&object, "/metadata/name")?;
    let api = api_of(client, &object, namespace).await?;
    let params = PatchParams::apply(MANAGER).force();
    Ok(api.patch(&name, &params, &Patch::Apply(object)).await?)
}

/// Has the server judge one object as if it were applied, and changes nothing.
pub(crate) async fn dry_run(client: &Client, object: Value, namespace: Option<&str>) -> Result {
    let name = text(&object, "/metadata/name")?;
    let api = api_of(client, &object, namespace).await?;
    let params = PatchParams {
        dry_run: true,
        // A misspelt field is an error.
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(MANAGER).force()
    };
    api.patch(&name, &params, &Patch::Apply(object)).await?;
    Ok(())
}

/// The client for the kind of an object.
pub(crate) async fn api_of(
    client: &Client,
    object: &Value,
    namespace: Option<&str>,
) -> Result<Api<DynamicObject>> {
    let version = text(object, "/apiVersion")?;
    let kind = text(object, "/kind")?;
    let own = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let (resource, scope) = resource(client, &version, &kind).await?;
    match (scope, own.or(namespace)) {
        (Scope::Cluster, _) => Ok(Api::all_with(client.clone(), &resource)),
        (Scope::Namespaced, Some(own)) => Ok(Api::namespaced_with(client.clone(), own, &resource)),
        (Scope::Namespaced, None) => Err(Fault::new(format!("a {kind} needs a namespace"))),
    }
}

/// How the server serves a kind, by its discovery.
pub(crate) async fn resource(
    client: &Client,
    version: &str,
    kind: &str,
) -> Result<(ApiResource, Scope)> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    Ok((resource, capabilities.scope))
}

/// Applies every object of a folder of YAML files and waits until the definitions among them are
/// served.
pub(crate) async fn apply_folder(client: &Client, folder: &Path) -> Result {
    let mut objects = Vec::new();
    let entries = fs::read_dir(folder)
        .map_err(|error| Fault::new(format!("{}: {error}", folder.display())))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            objects.extend(read(&path)?);
        }
    }
    if objects.is_empty() {
        return Err(Fault::new(format!("{} holds no manifest", folder.display())));
    }
    try_join_all(objects.into_iter().map(|object| define(client, object))).await?;
    Ok(())
}

/// The objects of a YAML file, which may hold several documents.
pub(crate) fn read(path: &Path) -> Result<Vec<Value>> {
    parse(&fs::read_to_string(path)?, &path.display().to_string())
}

/// The objects of a text from `source`, which may hold several documents.
pub(crate) fn parse(content: &str, source: &str) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in serde_yaml::Deserializer::from_str(content) {
        let object = Value::deserialize(document)
            .map_err(|error| Fault::new(format!("{source}: {error}")))?;
        if object.is_object() {
            objects.push(object);
        }
    }
    Ok(objects)
}

async fn define(client: &Client, object: Value) -> Result {
    let is_definition = object["kind"] == "CustomResourceDefinition";
    let name = text(&object, "/metadata/name")?;
    let api = api_of(client, &object, None).await?;
    apply(client, object, None).await?;
    if !is_definition {
        return Ok(());
    }
    eventually(format!("{name} is served"), Duration::from_secs(30), async || {
        let [established, ..] = condition_of(&api.get(&name).await?, "Established");
        seen(&established.as_str(), &"True")
    })
    .await
}

fn text(object: &Value, pointer: &str) -> Result<String> {
    let value = object.pointer(pointer).and_then(Value::as_str);
    value.map(ToOwned::to_owned).ok_or_else(|| Fault::new(format!("{pointer} missing: {object}")))
}
