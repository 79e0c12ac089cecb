//! Rules about what is shipped: values and their schema, copies, alerts, dashboard, documentation. What
//! needs helm or servers is in `tests/cluster/cases/install`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

mod argocd;
mod command_line;
mod documents;
mod image;
mod observability;
mod readme;
mod samples;
mod values;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use wva::cluster::kinds::{KindSpec, WatchedKind};

const CHART: &str = "charts/workload-variant-autoscaler";

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn text(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn yaml(file: &str) -> Value {
    serde_yaml::from_str(&text(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// What the chart holds of other files; a chart is one folder.
#[test]
fn copies_are_equal() {
    for (original, copy) in [
        ("config/rbac/role.yaml", "role.yaml"),
        ("config/rbac/pod_autoscaler_role.yaml", "pod-autoscaler-role.yaml"),
        ("config/annotated-scalers/role.yaml", "annotated-scaler-role.yaml"),
        ("config/pod-marker/role.yaml", "pod-marker-role.yaml"),
        ("config/direct-actuation/role.yaml", "target-scaler-role.yaml"),
        ("config/prometheus/alerts.yaml", "alerts.yaml"),
        ("config/grafana/dashboard.json", "dashboard.json"),
    ] {
        let copy = format!("{CHART}/files/{copy}");
        let original = text(original);
        is_current(&copy, &original);
    }
}

/// The rules of the controller, with those for `PodAutoscaler`s.
fn granted_rules() -> Vec<Value> {
    let files = ["role.yaml", "pod_autoscaler_role.yaml"];
    let roles = files.map(|file| yaml(&format!("config/rbac/{file}")));
    let granted = roles.iter().filter_map(|role| role["rules"].as_array());
    granted.flatten().cloned().collect()
}

/// What is watched may be listed and watched.
#[test]
fn the_role_grants_every_watched_kind() {
    let role = granted_rules();
    let has = |rule: &Value, field: &str, wanted: &str| {
        let listed = rule[field].as_array().into_iter().flatten();
        listed.into_iter().any(|one| one == wanted)
    };
    for kind in WatchedKind::ALL {
        let KindSpec { name, group, resource, .. } = kind.spec();
        let is_granted = role.iter().any(|rule| {
            let verbs = ["list", "watch"];
            has(rule, "apiGroups", group)
                && has(rule, "resources", resource)
                && verbs.iter().all(|verb| has(rule, "verbs", verb))
        });
        assert!(is_granted, "{name}");
    }
}

fn is_current(file: &str, wanted: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path(file), wanted).unwrap();
    }
    let found = fs::read_to_string(path(file)).unwrap_or_default();
    assert!(found == wanted, "{file} is out of date: run with UPDATE=1");
}
