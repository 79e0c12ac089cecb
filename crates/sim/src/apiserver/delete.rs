//! Deleting objects: preconditions, finalizers, dependents, namespaces.
//!
//! What controllers of a real cluster do a moment later, the garbage collector and that of
//! namespaces, happens here within the request.

use serde_json::{Value, json};

use super::kind::Kind;
use super::refusal::ApiRefusal;
use super::request::{Ask, Payload};
use super::state::{DEFINITIONS, State, namespace_key};
use super::store::Key;
use super::{list, view};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

#[derive(Debug, Clone, Default)]
pub(super) struct Deletion {
    grace: Option<i64>,
    propagation: String,
    uid: Option<String>,
    version: Option<String>,
}

impl Deletion {
    pub(super) fn read(ask: &Ask) -> Result<Self, ApiRefusal> {
        let body = match &ask.body {
            Payload::Bytes(bytes) if bytes.is_empty() => json!({}),
            _ => ask.document()?,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let query = |name: &str| ask.parameter(name).map(str::to_owned);
        let grace = ask.number("gracePeriodSeconds")?;
        Ok(Self {
            grace: body["gracePeriodSeconds"]
                .as_i64()
                .or_else(|| grace.and_then(|grace| i64::try_from(grace).ok())),
            propagation: text(&body["propagationPolicy"])
                .or_else(|| query("propagationPolicy"))
                .unwrap_or_default(),
            uid: text(&body["preconditions"]["uid"]),
            version: text(&body["preconditions"]["resourceVersion"]),
        })
    }

    fn check(&self, kind: &Kind, key: &Key, object: &Value) -> Result<(), ApiRefusal> {
        let own = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        for (asked, field, title, happened) in [
            (&self.uid, "uid", "UID", "deleted and then recreated"),
            (&self.version, "resourceVersion", "ResourceVersion", "modified"),
        ] {
            if let Some(asked) = asked.as_ref().filter(|asked| *asked != own(field)) {
                let why = format!(
                    "the {title} in the precondition ({asked}) does not match the {title} in record \
                     ({}). The object might have been {happened}",
                    own(field)
                );
                return Err(ApiRefusal::precondition(kind, &key.name, &why));
            }
        }
        Ok(())
    }
}

impl State {
    /// Deletes an object, or marks it where a finalizer must act first.
    pub(super) fn delete(
        &mut self,
        kind: &Kind,
        key: &Key,
        how: &Deletion,
    ) -> Result<Value, ApiRefusal> {
        let Some(stored) = self.store.get(key).cloned() else {
            return Err(ApiRefusal::not_found(kind, &key.name));
        };
        let mut object = Value::clone(&stored);
        how.check(kind, key, &object)?;
        let done = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {
                "name": key.name, "group": kind.group, "kind": kind.plural,
                "uid": object["metadata"]["uid"],
            },
        });
        let grace = grace(key, &object, how);
        let marked = object["metadata"].get("deletionTimestamp").is_some();
        let earlier = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
        if !marked || earlier.is_some_and(|earlier| grace < earlier) {
            let when = self.seconds().saturating_add(grace);
            let when = jiff::Timestamp::from_second(when).unwrap_or_default();
            object["metadata"]["deletionTimestamp"] = when.to_string().into();
            object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
            let extra = match &*how.propagation {
                "Foreground" => Some(FOREGROUND),
                "Orphan" => Some(ORPHAN),
                _ => None,
            };
            if let Some(extra) = extra {
                let mut held = finalizers(&object).to_vec();
                if !held.iter().any(|one| one == extra) {
                    held.push(extra.into());
                }
                object["metadata"]["finalizers"] = held.into();
            }
            if key.resource == "namespaces." {
                object["status"]["phase"] = "Terminating".into();
            }
            if kind.generation && !marked {
                let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
                object["metadata"]["generation"] = json!(generation.saturating_add(1));
            }
        }
        let waits = grace > 0 || !finalizers(&object).is_empty() || key.resource == "namespaces.";
        if waits && object != *stored {
            self.store.put(key.clone(), object.clone());
        }
        if !waits {
            self.erase(key);
            return Ok(match &*key.resource {
                "pods." => view::shown(kind, &object),
                _ => done,
            });
        }
        let marked = self.store.get(key).map(|object| view::shown(kind, object));
        self.pursue(key);
        Ok(marked.unwrap_or(done))
    }

    fn pursue(&mut self, key: &Key) {
        let Some(object) = self.store.get(key).cloned() else {
            return;
        };
        let uid = &object["metadata"]["uid"];
        let waiting = finalizers(&object);
        if key.resource == "namespaces." {
            let inside = self.store.all().map(|(key, _)| key);
            let inside: Vec<_> = inside.filter(|one| one.namespace == key.name).cloned().collect();
            for key in inside {
                self.delete_quietly(&key, "Background");
            }
        }
        if waiting.iter().any(|one| one == ORPHAN) {
            for (dependent, _) in self.dependents(key, uid) {
                self.disown(&dependent, uid);
            }
            self.drop_finalizer(key, ORPHAN);
        }
        if waiting.iter().any(|one| one == FOREGROUND) {
            for (dependent, blocking) in self.dependents(key, uid) {
                let policy = if blocking { "Foreground" } else { "Background" };
                self.delete_dependent(&dependent, uid, policy);
            }
            self.end_foreground(key);
        }
        self.reap(key);
    }

    pub(super) fn reap(&mut self, key: &Key) {
        let Some(object) = self.store.get(key) else {
            return;
        };
        let metadata = &object["metadata"];
        let graceful = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
        let marked = metadata.get("deletionTimestamp").is_some();
        if !marked || graceful || !finalizers(object).is_empty() {
            return;
        }
        let is_inside = |one: &Key| one.namespace == key.name;
        if key.resource == "namespaces." && self.store.all().any(|(one, _)| is_inside(one)) {
            return;
        }
        self.erase(key);
    }

    fn erase(&mut self, key: &Key) {
        let Some(last) = self.store.remove(key) else {
            return;
        };
        let uid = &last["metadata"]["uid"];
        for (dependent, _) in self.dependents(key, uid) {
            self.delete_dependent(&dependent, uid, "Background");
        }
        for owner in list(&last["metadata"]["ownerReferences"]) {
            if let Some(owner) = self.place_of(&owner["uid"]).cloned() {
                self.end_foreground(&owner);
            }
        }
        if key.resource == DEFINITIONS {
            let resource = key.name.clone();
            for custom in self.store.list(&resource, None).into_keys() {
                self.delete_quietly(&custom, "Background");
            }
            self.refresh_kinds();
        }
        if !key.namespace.is_empty() {
            self.reap(&namespace_key(&key.namespace));
        }
    }

    fn dependents(&self, owner: &Key, uid: &Value) -> Vec<(Key, bool)> {
        let reference = |object: &Value| -> Option<bool> {
            let mut owners = list(&object["metadata"]["ownerReferences"]).iter();
            let ours = owners.find(|one| one["uid"] == *uid)?;
            Some(ours["blockOwnerDeletion"] == true)
        };
        self.store
            .owned_by(uid.as_str().unwrap_or_default())
            .filter(|key| owner.namespace.is_empty() || key.namespace == owner.namespace)
            .filter_map(|key| Some((key.clone(), reference(self.store.get(key)?)?)))
            .collect()
    }

    fn delete_dependent(&mut self, key: &Key, owner: &Value, policy: &str) {
        let Some(object) = self.store.get(key).cloned() else {
            return;
        };
        let owners = list(&object["metadata"]["ownerReferences"]).iter();
        let mut others = owners.map(|one| &one["uid"]);
        if others.any(|uid| uid != owner && self.place_of(uid).is_some()) {
            self.disown(key, owner);
        } else {
            self.delete_quietly(key, policy);
        }
    }

    fn delete_quietly(&mut self, key: &Key, policy: &str) {
        let marked = self
            .store
            .get(key)
            .is_none_or(|object| object["metadata"].get("deletionTimestamp").is_some());
        let Some(kind) = self.kind_of(key).filter(|_| !marked) else {
            return;
        };
        let how = Deletion { propagation: policy.to_owned(), ..Deletion::default() };
        if let Err(refusal) = self.delete(&kind, key, &how) {
            tracing::debug!(name = key.name, refusal = refusal.message, "dependent stays");
        }
    }

    fn disown(&mut self, key: &Key, owner: &Value) {
        self.rewrite(key, |object| {
            if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
                owners.retain(|one| one["uid"] != *owner);
            }
        });
    }

    fn end_foreground(&mut self, key: &Key) {
        let Some(object) = self.store.get(key) else {
            return;
        };
        let uid = object["metadata"]["uid"].clone();
        let blocked = self.dependents(key, &uid).iter().any(|(_, blocking)| *blocking);
        if !blocked {
            self.drop_finalizer(key, FOREGROUND);
        }
    }

    fn drop_finalizer(&mut self, key: &Key, gone: &str) {
        let is_gone = |one: &Value| one == gone;
        if self.store.get(key).is_some_and(|object| finalizers(object).iter().any(is_gone)) {
            self.rewrite(key, |object| {
                if let Some(list) = object["metadata"]["finalizers"].as_array_mut() {
                    list.retain(|one| one.as_str() != Some(gone));
                }
            });
            self.reap(key);
        }
    }

    fn rewrite(&mut self, key: &Key, change: impl FnOnce(&mut Value)) {
        if let Some(stored) = self.store.get(key) {
            let mut object = Value::clone(stored);
            change(&mut object);
            self.store.put(key.clone(), object);
        }
    }

    pub(super) fn collect_if_orphan(&mut self, key: &Key) {
        let Some(object) = self.store.get(key).cloned() else {
            return;
        };
        let owners = list(&object["metadata"]["ownerReferences"]);
        let is_gone = |owner: &Value| self.place_of(&owner["uid"]).is_none();
        if !owners.is_empty() && owners.iter().all(is_gone) {
            self.delete_quietly(key, "Background");
        }
    }
}

/// Pods on a node are given time; their node removes them by another deletion without any.
fn grace(key: &Key, object: &Value, how: &Deletion) -> i64 {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    let scheduled = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    if key.resource != "pods." || !scheduled || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64();
    how.grace.or(own).unwrap_or(30).max(0)
}

fn finalizers(object: &Value) -> &[Value] {
    list(&object["metadata"]["finalizers"])
}
