//! Who owns fields of a status, as the API server keeps it in `metadata.managedFields`.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use kube::core::Status;
use serde_json::{Map, Value};

use crate::cluster::fingerprint::fingerprint;
use crate::policy::ownership::{Holding, StatusOwner};
use wva_base::moment::WallTime;

/// What the names of all controllers of our kind begin with.
const PREFIX: &str = "wva-";

/// The field manager of one installation: the same for all of its replicas and for every start,
/// different for another lease or instance.
pub fn manager_name(namespace: &str, lease: &str, instance: Option<&str>) -> String {
    let parts = [namespace, lease, instance.unwrap_or_default()];
    format!("{PREFIX}{:016x}", fingerprint(&parts))
}

/// Whether a field manager is a controller of our kind.
pub fn is_manager(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Everybody but `me` who owns fields of the status.
pub(super) fn others(metadata: &ObjectMeta, me: &str) -> BTreeSet<String> {
    status_entries(metadata)
        .filter_map(|entry| entry.manager.clone())
        .filter(|manager| manager != me)
        .collect()
}

/// Splits owners into live controllers of our kind, which are left alone, and the rest, whose
/// fields may be taken: any other program, and controllers of our kind that have `retired`.
pub(super) fn split(
    owners: BTreeSet<String>,
    retired: &BTreeSet<String>,
) -> (BTreeSet<String>, BTreeSet<String>) {
    owners.into_iter().partition(|owner| owner.starts_with(PREFIX) && !retired.contains(owner))
}

/// The managed fields after `me` took over the status fields of the managers in `from`.
///
/// They become fields that `me` applied. So the next apply removes those that it does not name,
/// where taking only the entries away would leave values without an owner, which are never removed.
pub(super) fn adopt(
    metadata: &ObjectMeta,
    me: &str,
    from: &BTreeSet<String>,
) -> Vec<ManagedFieldsEntry> {
    let owner = |entry: &ManagedFieldsEntry| entry.manager.clone().unwrap_or_default();
    let mut fields = Value::Object(Map::new());
    let mut api_version = None;
    let mut kept = Vec::new();
    for entry in metadata.managed_fields.iter().flatten() {
        let mine = owner(entry) == me && entry.operation.as_deref() == Some("Apply");
        if is_status(entry) && (mine || from.contains(&owner(entry))) {
            if let Some(FieldsV1(owned)) = &entry.fields_v1 {
                merge(&mut fields, owned);
            }
            api_version.clone_from(&entry.api_version);
        } else {
            kept.push(entry.clone());
        }
    }
    kept.push(ManagedFieldsEntry {
        api_version,
        fields_type: Some("FieldsV1".to_owned()),
        fields_v1: Some(FieldsV1(fields)),
        manager: Some(me.to_owned()),
        operation: Some("Apply".to_owned()),
        subresource: Some("status".to_owned()),
        time: None,
    });
    kept
}

/// The condition that says who else claims the object.
const REPORT: &str = r#"k:{"type":"ControllerConflict"}"#;

/// The controllers of our kind that have written the status.
pub fn controllers(metadata: &ObjectMeta) -> Vec<StatusOwner> {
    status_entries(metadata)
        .filter_map(|entry| {
            let manager = entry.manager.as_deref()?;
            let fields = entry.fields_v1.as_ref()?.0.get("f:status")?.as_object()?;
            let conditions = fields.get("f:conditions").and_then(Value::as_object);
            let conditions = || conditions.into_iter().flat_map(Map::keys);
            let judges = conditions().any(|name| name.starts_with("k:") && name != REPORT);
            let decides =
                fields.keys().any(|name| name.starts_with("f:") && name != "f:conditions");
            manager.starts_with(PREFIX).then(|| StatusOwner {
                manager: Arc::from(manager),
                holds: if judges || decides { Holding::Status } else { Holding::Nothing },
                reports: conditions().any(|name| name == REPORT),
                written: written(entry),
            })
        })
        .collect()
}

/// The controllers of our kind that have written an annotation.
pub fn annotators(metadata: &ObjectMeta, annotation: &str) -> Vec<StatusOwner> {
    let field = format!("f:{annotation}");
    let entries = metadata.managed_fields.iter().flatten();
    let owners = entries.filter_map(|entry| {
        let manager = entry.manager.as_deref()?;
        let fields = &entry.fields_v1.as_ref()?.0;
        let owned = fields.get("f:metadata")?.get("f:annotations")?.get(&field);
        let is_ours = owned.is_some() && manager.starts_with(PREFIX);
        is_ours.then(|| StatusOwner {
            manager: Arc::from(manager),
            holds: Holding::Status,
            reports: false,
            written: written(entry),
        })
    });
    owners.collect()
}

fn written(entry: &ManagedFieldsEntry) -> WallTime {
    WallTime(entry.time.as_ref().map_or(0, |time| time.0.as_millisecond()))
}

/// The managers that an apply collided with, or `None` if the refusal has another cause.
pub(super) fn collisions(refusal: &Status) -> Option<BTreeSet<String>> {
    let managers: BTreeSet<_> = refusal
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .filter_map(|cause| cause.message.split('"').nth(1))
        .map(str::to_owned)
        .collect();
    (!managers.is_empty()).then_some(managers)
}

fn status_entries(metadata: &ObjectMeta) -> impl Iterator<Item = &ManagedFieldsEntry> {
    metadata.managed_fields.iter().flatten().filter(|entry| is_status(entry))
}

fn is_status(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref() == Some("status")
}

/// The union of two sets of fields: objects all the way down, where an empty one is a leaf.
fn merge(into: &mut Value, from: &Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        for (name, fields) in from {
            merge(into.entry(name).or_insert_with(|| Value::Object(Map::new())), fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::core::Status;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{adopt, collisions, manager_name, merge, others, split};

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn metadata() -> ObjectMeta {
        let entry = |manager: &str, operation: &str, subresource: Value, fields: Value| {
            json!({
                "manager": manager, "operation": operation, "subresource": subresource,
                "apiVersion": "llmd.ai/v1alpha1", "fieldsType": "FieldsV1", "fieldsV1": fields,
            })
        };
        serde_json::from_value(json!({"name": "a", "managedFields": [
            entry("kubectl", "Update", Value::Null, json!({"f:spec": {"f:modelID": {}}})),
            entry("manager", "Update", json!("status"), json!({"f:status": {"f:b": {}, "f:c": {}}})),
            entry("wva-me", "Apply", json!("status"), json!({"f:status": {"f:a": {".": {}}}})),
            entry("wva-other", "Apply", json!("status"), json!({"f:status": {"f:d": {}}})),
        ]}))
        .unwrap()
    }

    #[test]
    fn a_manager_is_named_by_what_distinguishes_installations() {
        let name = manager_name("ns", "lease", None);
        assert!(name.starts_with("wva-") && name.len() == 20, "{name}");
        assert_eq!(name, manager_name("ns", "lease", Some("")));
        for other in [
            manager_name("nsl", "ease", None),
            manager_name("ns", "lease", Some("a")),
            manager_name("ns", "other", None),
            manager_name("other", "lease", None),
        ] {
            assert_ne!(name, other);
        }
    }

    #[test]
    fn owners_of_the_status_are_found_and_distinguished() {
        let others = others(&metadata(), "wva-me");
        assert_eq!(others, names(&["manager", "wva-other"]));
        let (ownership_conflicts, takeable) = split(others.clone(), &names(&[]));
        assert_eq!((ownership_conflicts, takeable), (names(&["wva-other"]), names(&["manager"])));
        let (ownership_conflicts, takeable) = split(others.clone(), &names(&["wva-other"]));
        assert_eq!((ownership_conflicts, takeable), (names(&[]), others));
    }

    #[test]
    fn adopted_fields_become_our_own_and_the_rest_stays() {
        let after = adopt(&metadata(), "wva-me", &names(&["manager"]));
        let entries: Vec<_> = after
            .iter()
            .map(|entry| {
                let fields = entry.fields_v1.as_ref().unwrap().0.to_string();
                (entry.manager.as_deref().unwrap(), entry.operation.as_deref().unwrap(), fields)
            })
            .collect();
        assert_eq!(
            entries,
            [
                ("kubectl", "Update", r#"{"f:spec":{"f:modelID":{}}}"#.to_owned()),
                ("wva-other", "Apply", r#"{"f:status":{"f:d":{}}}"#.to_owned()),
                (
                    "wva-me",
                    "Apply",
                    r#"{"f:status":{"f:a":{".":{}},"f:b":{},"f:c":{}}}"#.to_owned()
                ),
            ]
        );
    }

    #[test]
    fn collisions_are_read_from_the_causes() {
        let refusal: Status = serde_json::from_value(json!({"code": 409, "details": {"causes": [
            {"reason": "FieldManagerConflict", "field": ".status.a",
             "message": "conflict with \"manager\" with subresource \"status\" using llmd.ai/v1alpha1"},
            {"reason": "FieldManagerConflict", "field": ".status.b",
             "message": "conflict with \"wva-other\" with subresource \"status\""},
        ]}}))
        .unwrap();
        assert_eq!(collisions(&refusal), Some(names(&["manager", "wva-other"])));
        let moved: Status = serde_json::from_value(json!({"code": 409, "details": {}})).unwrap();
        assert_eq!(collisions(&moved), None);
    }

    fn fields() -> impl Strategy<Value = Value> {
        Just(json!({})).prop_recursive(3, 20, 4, |inner| {
            prop::collection::btree_map("[ab]", inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Value>())
        })
    }

    proptest! {
        #[test]
        fn the_union_of_fields_is_a_union(a in fields(), b in fields()) {
            let union = |into: &Value, from: &Value| {
                let mut result = into.clone();
                merge(&mut result, from);
                result
            };
            prop_assert_eq!(union(&a, &a), a.clone());
            prop_assert_eq!(union(&a, &b), union(&b, &a));
            prop_assert_eq!(union(&union(&a, &b), &b), union(&a, &b));
        }
    }
}
