//! Creating and changing objects.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::kind::Kind;
use super::managers::{self, Operation, Writer};
use super::prepare;
use super::refusal::{ApiRefusal, Cause};
use super::request::{Ask, RequestTarget};
use super::state::{DEFINITIONS, State, namespace_key};
use super::store::Key;
use super::validate;
use super::{list, patch, scale, view};

#[derive(Debug)]
pub(super) struct Written {
    pub(super) created: bool,
    pub(super) object: Arc<Value>,
    pub(super) warnings: Vec<String>,
}

impl State {
    pub(super) fn create(
        &mut self,
        target: &RequestTarget,
        ask: &Ask,
    ) -> Result<Written, ApiRefusal> {
        let mut object = ask.document()?;
        prepare::identify(target, &mut object)?;
        if object["metadata"].get("name").is_none()
            && let Some(stem) = object["metadata"]["generateName"].as_str()
        {
            let name = format!("{stem}{}", self.suffix());
            object["metadata"]["name"] = name.into();
        }
        let writer = ask.writer(target, Operation::Update);
        self.insert(target, ask, &writer, object)
    }

    fn insert(
        &mut self,
        target: &RequestTarget,
        ask: &Ask,
        writer: &Writer,
        mut object: Value,
    ) -> Result<Written, ApiRefusal> {
        let kind = &*target.kind;
        let name = prepare::name(kind, &object)?;
        let key = target.key_of(&name);
        self.admit(target, &name)?;
        if self.store.get(&key).is_some() {
            return Err(ApiRefusal::already_exists(kind, &name));
        }
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|text| !text.is_empty()) {
            return Err(ApiRefusal::versioned_newborn());
        }
        let warnings = Self::shape(kind, &mut object, ask)?;
        prepare::newborn(kind, &mut object);
        validate_object(kind, &name, None, &object)?;
        let (uid, stamp) = (self.uid(), self.stamp());
        let metadata = &mut object["metadata"];
        metadata["uid"] = uid.into();
        metadata["creationTimestamp"] = stamp.clone().into();
        if kind.generation {
            metadata["generation"] = json!(1);
        }
        if writer.operation == Operation::Update {
            managers::updated(kind, &json!({}), &mut object, writer, &stamp);
        }
        let stored = self.store.put(key.clone(), view::stored(kind, object));
        self.settle(&key);
        self.collect_if_orphan(&key);
        Ok(Written { created: true, object: view::shared(kind, &stored), warnings })
    }

    fn admit(&self, target: &RequestTarget, name: &str) -> Result<(), ApiRefusal> {
        let Some(namespace) = &target.namespace else {
            return Ok(());
        };
        let Some(found) = self.store.get(&namespace_key(namespace)) else {
            let kind = self.kind("", "v1", "namespaces");
            return Err(kind.map_or_else(ApiRefusal::no_such_path, |kind| {
                ApiRefusal::not_found(kind, namespace)
            }));
        };
        if found["metadata"].get("deletionTimestamp").is_some() {
            return Err(ApiRefusal::terminating(&target.kind, name, namespace));
        }
        Ok(())
    }

    fn shape(kind: &Kind, object: &mut Value, ask: &Ask) -> Result<Vec<String>, ApiRefusal> {
        let dropped = validate::prune(&kind.schema, object);
        let strictness = ask.parameter("fieldValidation").unwrap_or("Warn");
        let dropped: Vec<_> =
            dropped.into_iter().map(|path| format!("unknown field \"{path}\"")).collect();
        if strictness == "Strict" && !dropped.is_empty() {
            let text = dropped.join(", ");
            return Err(ApiRefusal::bad_request(if kind.is_custom() {
                format!("strict decoding error: {text}")
            } else {
                undecodable(kind, &format!("strict decoding error: {text}"))
            }));
        }
        validate::fill(&kind.schema, object);
        if !kind.is_custom() {
            decodable(kind, object)?;
        }
        prepare::defaults(kind, object);
        if strictness == "Ignore" {
            return Ok(Vec::new());
        }
        Ok(dropped)
    }

    pub(super) fn update(
        &mut self,
        target: &RequestTarget,
        ask: &Ask,
    ) -> Result<Written, ApiRefusal> {
        let kind = &*target.kind;
        let key = target.key()?;
        let mut next = ask.document()?;
        let Some(stored) = self.store.get(&key) else {
            return Err(ApiRefusal::not_found(kind, &key.name));
        };
        let live = view::shared(kind, stored);
        if target.subresource == "scale" {
            next = scale::written(kind, &live, &next)?;
        } else {
            prepare::identify(target, &mut next)?;
            let version = next["metadata"]["resourceVersion"].as_str();
            let version = version.unwrap_or_default();
            let is_strict = matches!(&*kind.kind, "Lease" | "CustomResourceDefinition");
            if version.is_empty() && (is_strict || kind.is_custom()) {
                let why = "must be specified for an update";
                let cause = Cause::invalid("metadata.resourceVersion", &json!(0), why);
                return Err(ApiRefusal::invalid(kind, &key.name, &[cause]));
            }
        }
        let writer = ask.writer(target, Operation::Update);
        self.commit(&live, (target, ask), &writer, next)
    }

    pub(super) fn patch(
        &mut self,
        target: &RequestTarget,
        ask: &Ask,
    ) -> Result<Written, ApiRefusal> {
        let kind = &*target.kind;
        let key = target.key()?;
        let change = ask.document()?;
        let media = ask.content_type.split(';').next();
        let media = media.unwrap_or_default().trim();
        let stored = self.store.get(&key).cloned();
        let apply = media.starts_with("application/apply-patch");
        if apply && stored.is_none() && target.subresource.is_empty() {
            return self.apply_new(target, ask, change);
        }
        let Some(stored) = stored else {
            return Err(ApiRefusal::not_found(kind, &key.name));
        };
        let live = view::shared(kind, &stored);
        let operation = if apply { Operation::Apply } else { Operation::Update };
        let writer = ask.writer(target, operation);
        let scaled = target.subresource == "scale";
        let mut next = if scaled { scale::shown(kind, &live) } else { Value::clone(&live) };
        match media {
            _ if apply => next = self.apply(target, ask, &live, change)?,
            "application/merge-patch+json" => patch::merge(&mut next, &change),
            "application/strategic-merge-patch+json" if !kind.is_custom() => {
                let schema = (!scaled).then_some(&*kind.schema);
                patch::strategic(schema, &mut next, &change);
            }
            other => return Err(ApiRefusal::unsupported_media(other)),
        }
        if scaled && !apply {
            next = scale::written(kind, &live, &next)?;
        }
        self.commit(&live, (target, ask), &writer, next)
    }

    fn apply_new(
        &mut self,
        target: &RequestTarget,
        ask: &Ask,
        mut config: Value,
    ) -> Result<Written, ApiRefusal> {
        let writer = appliers(target, ask, &mut config)?;
        let uid = config["metadata"].get("uid").and_then(Value::as_str);
        if uid.is_some_and(|uid| !uid.is_empty()) {
            let name = target.name.clone().unwrap_or_default();
            let why = "Precondition failed: the object that the uid names does not exist";
            return Err(ApiRefusal::conflict(&target.kind, &name, why));
        }
        let stamp = self.stamp();
        let (kind, none, force) = (&target.kind, &json!({}), ask.flag("force"));
        let next = managers::applied(kind, none, &config, &writer, force, &stamp)?;
        self.insert(target, ask, &writer, next)
    }

    fn apply(
        &self,
        target: &RequestTarget,
        ask: &Ask,
        live: &Value,
        mut config: Value,
    ) -> Result<Value, ApiRefusal> {
        let kind = &*target.kind;
        if target.subresource == "scale" {
            return scale::written(kind, live, &config);
        }
        let writer = appliers(target, ask, &mut config)?;
        // What it does not know it leaves out of the configuration as well.
        drop(validate::prune(&kind.schema, &mut config));
        let version = config["metadata"].get("resourceVersion").cloned();
        let uid = config["metadata"].get("uid").cloned();
        let force = ask.flag("force");
        let mut next = managers::applied(kind, live, &config, &writer, force, &self.stamp())?;
        next["metadata"]["resourceVersion"] = version.unwrap_or_default();
        if let Some(uid) = uid {
            next["metadata"]["uid"] = uid;
        }
        Ok(next)
    }

    fn commit(
        &mut self,
        live: &Arc<Value>,
        (target, ask): (&RequestTarget, &Ask),
        writer: &Writer,
        mut next: Value,
    ) -> Result<Written, ApiRefusal> {
        let kind = &*target.kind;
        let key = &target.key()?;
        prepare::identify(target, &mut next)?;
        if ask.method == Method::PATCH {
            prepare::same_uid(target, live, &mut next)?;
        }
        prepare::same_object(kind, key, live, &next)?;
        let warnings = Self::shape(kind, &mut next, ask)?;
        prepare::succeed(kind, &target.subresource, live, &mut next);
        validate_object(kind, &key.name, Some(live), &next)?;
        let stamp = self.stamp();
        if writer.operation == Operation::Update {
            managers::updated(kind, live, &mut next, writer, &stamp);
        }
        let shown = |object: Arc<Value>| match &*target.subresource {
            "scale" => Arc::new(scale::shown(kind, &object)),
            _ => object,
        };
        let object = if prepare::same_apart_from_times(live, &next) {
            Arc::clone(live)
        } else {
            let stored = self.store.put(key.clone(), view::stored(kind, next));
            self.settle(key);
            view::shared(kind, &stored)
        };
        Ok(Written { created: false, object: shown(object), warnings })
    }

    fn settle(&mut self, key: &Key) {
        if key.resource == DEFINITIONS {
            self.establish(key);
            self.refresh_kinds();
        }
        self.reap(key);
    }

    fn establish(&mut self, key: &Key) {
        let Some(stored) = self.store.get(key) else {
            return;
        };
        let mut definition = Value::clone(stored);
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": definition["metadata"]["creationTimestamp"],
            })
        };
        let versions: Vec<_> = list(&definition["spec"]["versions"])
            .iter()
            .filter(|version| version["storage"] == true)
            .map(|version| version["name"].clone())
            .collect();
        let status = json!({
            "acceptedNames": definition["spec"]["names"],
            "conditions": [
                condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            "storedVersions": versions,
        });
        if definition["status"] != status {
            definition["status"] = status;
            self.store.put(key.clone(), definition);
        }
    }
}

fn appliers(target: &RequestTarget, ask: &Ask, config: &mut Value) -> Result<Writer, ApiRefusal> {
    if ask.parameter("fieldManager").is_none() {
        let cause = Cause::required("fieldManager", ": is required for apply patch");
        return Err(ApiRefusal::options("PatchOptions", cause));
    }
    if config["metadata"].get("managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApiRefusal::bad_request("metadata.managedFields must be nil"));
    }
    prepare::identify(target, config)?;
    if let (Some(name), None) = (&target.name, config["metadata"].get("name")) {
        config["metadata"]["name"] = name.clone().into();
    }
    Ok(ask.writer(target, Operation::Apply))
}

/// The decoder of built-in kinds knows types only, and a missing field is zero to it.
fn decodable(kind: &Kind, object: &Value) -> Result<(), ApiRefusal> {
    let found = validate::check(&kind.schema, object);
    let wrong = found.iter().find(|cause| cause.reason == "FieldValueTypeInvalid");
    wrong.map_or(Ok(()), |cause| {
        let text = undecodable(kind, &cause.message);
        Err(ApiRefusal::bad_request(text))
    })
}

fn undecodable(Kind { kind, version, .. }: &Kind, why: &str) -> String {
    format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")
}

fn validate_object(
    kind: &Kind,
    name: &str,
    live: Option<&Value>,
    object: &Value,
) -> Result<(), ApiRefusal> {
    let mut found = validate::check(&kind.schema, object);
    if !kind.is_custom() {
        found.retain(|cause| cause.field.starts_with("spec."));
    } else if let Some(live) = live {
        found.retain(|cause| !validate::is_old(cause, live, object));
    }
    prepare::check(kind, live, object, &mut found);
    if found.is_empty() { Ok(()) } else { Err(ApiRefusal::invalid(kind, name, &found)) }
}
