//! What to look at after a case failed: its objects, their events, and the ends of the logs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::api::{DynamicObject, ListParams};
use kube::{Api, ResourceExt};
use serde_json::Value;
use tokio::time::timeout;

use super::fault::Result;
use super::manifest;
use super::process::tail;
use super::world::World;

const SERVER_LINES: usize = 12;
const CONTROLLER_LINES: usize = 80;
const OBJECT_WIDTH: usize = 900;
const TIME: Duration = Duration::from_secs(15);

/// The kinds that show what happened, each with the part of the object that does.
const KINDS: [(&str, &str, &[&str]); 7] = wva_base::cases! {
    ("apps/v1", "Deployment", &["/spec/replicas", "/status"]),
    ("v1", "Pod", &["/spec/nodeName", "/status/phase", "/status/conditions"]),
    ("autoscaling/v2", "HorizontalPodAutoscaler", &["/status"]),
    ("keda.sh/v1alpha1", "ScaledObject", &["/status"]),
    ("llmd.ai/v1alpha1", "VariantAutoscaling", &["/spec", "/status"]),
    ("coordination.k8s.io/v1", "Lease", &["/spec"]),
    ("v1", "Event", &["/involvedObject/kind", "/involvedObject/name", "/reason", "/message"]),
};

/// All of it as text; a world that does not answer any more only shows its logs.
pub(crate) async fn of_case(world: &World, namespaces: &[&str], logs: &Logs) -> String {
    let objects = timeout(TIME, objects(world, namespaces)).await;
    let mut text =
        objects.unwrap_or_else(|_| String::from("--- the world does not answer any more\n"));
    text.push_str(&logs.since(&world.site.logs(), namespaces));
    text
}

async fn objects(world: &World, namespaces: &[&str]) -> String {
    let mut text = String::new();
    match world.prometheus.unhealthy_targets(namespaces).await {
        Ok(targets) => {
            for target in targets {
                text.push_str(&line("scrape failed", &target));
            }
        }
        Err(fault) => text.push_str(&line("scrape targets unknown", fault.text())),
    }
    for namespace in namespaces {
        for (version, kind, parts) in KINDS {
            match list(world, namespace, version, kind).await {
                Ok(found) => {
                    for object in found {
                        let name = format!("{namespace} {kind} {}", object.name_any());
                        text.push_str(&line(&name, &excerpt(&object, parts)));
                    }
                }
                Err(fault) => text.push_str(&line(kind, fault.text())),
            }
        }
    }
    text
}

async fn list(
    world: &World,
    namespace: &str,
    version: &str,
    kind: &str,
) -> Result<Vec<DynamicObject>> {
    let (resource, _) = manifest::resource(&world.client, version, kind).await?;
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), namespace, &resource);
    Ok(api.list(&ListParams::default()).await?.items)
}

fn excerpt(object: &DynamicObject, parts: &[&str]) -> String {
    let shown = parts.iter().filter_map(|part| object.data.pointer(part));
    let shown: Vec<String> = shown.map(Value::to_string).collect();
    shown.join(" ")
}

fn line(name: &str, value: &str) -> String {
    let value: String = value.chars().take(OBJECT_WIDTH).collect();
    format!("{name}: {value}\n")
}

/// How long each log was when a case began.
pub(crate) struct Logs(BTreeMap<PathBuf, u64>);

impl Logs {
    pub(crate) fn mark(folder: &Path) -> Self {
        let lengths = logs(folder).into_iter().map(|path| {
            let length = fs::metadata(&path).map_or(0, |log| log.len());
            (path, length)
        });
        Self(lengths.collect())
    }

    /// The end of what was written since then: of the controllers of these namespaces in some
    /// length, of each server in short.
    fn since(&self, folder: &Path, namespaces: &[&str]) -> String {
        let mut text = String::new();
        for path in logs(folder) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_controller = name.starts_with("controller-");
            let is_of_case = namespaces.iter().any(|namespace| name.ends_with(namespace));
            let lines = match (is_controller, is_of_case) {
                (true, true) => CONTROLLER_LINES,
                (true, false) => continue,
                (false, _) => SERVER_LINES,
            };
            let from = self.0.get(&path).copied().unwrap_or(0);
            if fs::metadata(&path).is_ok_and(|log| log.len() > from) {
                text.push_str(&tail(&path, from, lines));
            }
        }
        text
    }
}

fn logs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
