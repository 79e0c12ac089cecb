//! Discovery: which groups, versions and resources are served.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::refusal::ApiRefusal;
use super::state::State;

const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const SUB_VERBS: [&str; 3] = ["get", "patch", "update"];

pub(super) fn version() -> Value {
    json!({
        "major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "embedded",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": "embedded",
    })
}

pub(super) fn document(state: &State, path: &[&str]) -> Result<Value, ApiRefusal> {
    let groups = groups(state);
    match path {
        ["api"] => Ok(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        ["apis"] => {
            let list: Vec<_> = groups
                .iter()
                .filter(|(group, _)| !group.is_empty())
                .map(|(group, versions)| group_document(group, versions))
                .collect();
            Ok(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list}))
        }
        ["apis", group] => {
            let versions = groups.get(*group).ok_or_else(ApiRefusal::no_such_path)?;
            let mut document = group_document(group, versions);
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            Ok(document)
        }
        ["api", version] => resources(state, "", version),
        ["apis", group, version] => resources(state, group, version),
        _ => Err(ApiRefusal::no_such_path()),
    }
}

/// The versions of each group.
fn groups(state: &State) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut groups = BTreeMap::<_, BTreeSet<_>>::new();
    for kind in &state.kinds {
        groups.entry(&*kind.group).or_default().insert(&*kind.version);
    }
    groups
}

fn group_document(group: &str, versions: &BTreeSet<&str>) -> Value {
    let list: Vec<_> = versions
        .iter()
        .rev()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": list, "preferredVersion": list.first()})
}

fn resources(state: &State, group: &str, version: &str) -> Result<Value, ApiRefusal> {
    let kinds = state.kinds.iter().filter(|kind| kind.group == group && kind.version == version);
    let first = kinds.clone().next().ok_or_else(ApiRefusal::no_such_path)?;
    let mut list = Vec::new();
    for kind in kinds {
        list.push(json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": VERBS, "shortNames": kind.short_names,
            "categories": kind.categories,
        }));
        if kind.status {
            list.push(json!({
                "name": format!("{}/status", kind.plural), "singularName": "",
                "namespaced": kind.namespaced, "kind": kind.kind, "verbs": SUB_VERBS,
            }));
        }
        if kind.scale.is_some() {
            list.push(json!({
                "name": format!("{}/scale", kind.plural), "singularName": "",
                "namespaced": kind.namespaced, "group": "autoscaling", "version": "v1",
                "kind": "Scale", "verbs": SUB_VERBS,
            }));
        }
    }
    Ok(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": first.api_version(),
        "resources": list,
    }))
}
