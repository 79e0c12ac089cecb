//! Reads facts: from a cluster and its Prometheus, or from files.

mod controllers;
#[cfg(test)]
pub(super) use self::controllers::controller as controller_of;
pub mod files;
mod objects;
mod prometheus;
#[cfg(test)]
pub(super) use self::prometheus::proxy_path;
mod rights;
mod scaler_rights;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::{Client, CustomResourceExt as _};
use tokio::time::Instant;

use self::objects::{Place, list, list_pools};
use super::facts::{Facts, LiveKind, Reading};
use super::finding::FindingGroup;
use super::object::LiveObject;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::client::within;
use crate::settings::pool_group::PoolGroup;

/// Longest wait for one answer of the API server.
const DEADLINE: Duration = Duration::from_secs(15);
/// Namespaces that are read one by one; of more, all are read at once.
const MOST_NAMESPACES: usize = 10;

/// What to look at, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DoctorScope {
    /// The namespace of variants; `None` looks at all.
    pub namespace: Option<String>,
    /// The only variant.
    pub variant: Option<String>,
    /// The namespace of the controller; `None` looks in all.
    pub controller_namespace: Option<String>,
    /// Whether the controller is yet to be installed.
    pub is_before: bool,
    /// The address of Prometheus in place of the controller's.
    pub prometheus: Option<String>,
    /// The environment of this process.
    pub environment: BTreeMap<String, String>,
}

impl DoctorScope {
    /// Whether this process runs in a pod, which reaches what the controller reaches.
    fn is_in_cluster(&self) -> bool {
        self.environment.contains_key("KUBERNETES_SERVICE_HOST")
    }
}

/// How long each part of a look took.
pub type LookTimes = BTreeMap<FindingGroup, Duration>;

/// Asks whether there is an API server.
///
/// # Errors
/// None answers, with the cause and the remedy.
pub async fn reach(client: &Client) -> Result<(), String> {
    match within(DEADLINE, objects::fetch(client, "/version")).await {
        // One that refuses is there.
        Err(error) if error.code().is_none() => Err(format!(
            "{error}; start it, or name another one by KUBECONFIG or the context of the kubeconfig"
        )),
        _ => Ok(()),
    }
}

/// Looks once.
pub async fn look(client: &Client, scope: &DoctorScope, now: f64) -> (Facts, LookTimes) {
    let mut facts = Facts {
        now,
        variant: scope.variant.clone(),
        searched: scope.controller_namespace.clone(),
        is_before: scope.is_before,
        is_narrowed: !scope.is_before && (scope.variant.is_some() || scope.namespace.is_some()),
        ..Facts::default()
    };
    let mut times = LookTimes::new();
    let begun = Instant::now();
    let mut since = begun;
    let mut lap = |group: FindingGroup| {
        times.insert(group, since.elapsed());
        since = Instant::now();
    };
    objects_of_cluster(client, scope, &mut facts).await;
    lap(FindingGroup::Cluster);
    let controllers = controllers::read(client, scope, &mut facts).await;
    facts.controllers = match controllers {
        // That none is there is no finding before the installation.
        Reading::Known(none) if scope.is_before && none.is_empty() => Reading::NotAsked,
        controllers => controllers,
    };
    facts.declare();
    if !scope.is_before {
        leases(client, &mut facts).await;
        facts.rights = rights::review(client, &facts).await;
        facts.scaler_rights = scaler_rights::review(client, scope, &facts).await;
    }
    lap(FindingGroup::Controller);
    prometheus::ask(client, scope, &mut facts, begun).await;
    lap(FindingGroup::Prometheus);
    (facts, times)
}

/// Looks whether annotations may declare variants.
pub async fn takes_annotations(client: &Client) -> bool {
    let mut facts = Facts::default();
    facts.controllers = controllers::read(client, &DoctorScope::default(), &mut facts).await;
    facts.takes_annotations()
}

/// Kinds that are read where variants and PodAutoscalers are.
const NEAR_VARIANTS: [LiveKind; 6] = [
    LiveKind::Deployment,
    LiveKind::StatefulSet,
    LiveKind::LeaderWorkerSet,
    LiveKind::Pod,
    LiveKind::ConfigMap,
    LiveKind::ResourceClaimTemplate,
];

async fn version(client: &Client) -> Reading<(u32, u32)> {
    let document = match objects::get(client, "/version").await {
        Ok(Some(document)) => document,
        Ok(None) => return Reading::NotAsked,
        Err(why) => return Reading::Failed(why),
    };
    let number = |pointer: &str| {
        // Some clouds write `33+`.
        let text = super::object::text(&document, pointer).trim_end_matches('+');
        text.parse().ok()
    };
    match (number("/major"), number("/minor")) {
        (Some(major), Some(minor)) => Reading::Known((major, minor)),
        _ => Reading::Failed(format!("{document} names no version")),
    }
}

async fn objects_of_cluster(client: &Client, scope: &DoctorScope, facts: &mut Facts) {
    facts.version = version(client).await;
    let place = scope.namespace.clone().map_or(Place::Everywhere, Place::Namespace);
    let later = |kind: LiveKind| {
        NEAR_VARIANTS.contains(&kind)
            || matches!(kind, LiveKind::Lease | LiveKind::EndpointSlice | LiveKind::Event)
    };
    for kind in LiveKind::ALL {
        // Accounts in the cluster have no right to definitions.
        let is_out_of_reach = kind == LiveKind::CustomResourceDefinition && scope.is_in_cluster();
        // Conditions of PodAutoscalers name the conflicts that its mode makes.
        let is_of_files = kind == LiveKind::StormService;
        if later(kind) || is_out_of_reach || is_of_files || (scope.is_before && !kind.is_before()) {
            continue;
        }
        let place = match (kind, &scope.namespace) {
            (LiveKind::Namespace, Some(name)) => Place::Object(name.clone()),
            (LiveKind::CustomResourceDefinition, _) => {
                Place::Object(VariantAutoscaling::crd_name().to_owned())
            }
            _ if kind.is_namespaced() => place.clone(),
            _ => Place::Everywhere,
        };
        let read = list(client, kind, &[place], "").await;
        facts.objects.insert(kind, read);
    }
    if scope.is_before {
        return;
    }
    for group in [PoolGroup::GATEWAY, PoolGroup::LLM_D] {
        let read = Reading::from(list_pools(client, group, &place).await);
        let pools = facts.objects.entry(LiveKind::InferencePool);
        match (read, pools.or_default()) {
            (Reading::Known(found), Reading::Known(pools)) => pools.extend(found),
            // What cannot be read may be what selects a pod.
            (Reading::Absent, _) | (_, Reading::Failed(_)) => {}
            (read, pools) => *pools = read,
        }
    }
    facts.declare();
    let near = places(facts, scope);
    for kind in NEAR_VARIANTS {
        let read = list(client, kind, &near, "").await;
        facts.objects.insert(kind, read);
    }
    // They stand in for the status of scalers alone.
    let near = if facts.declared.is_empty() { Vec::new() } else { near };
    let read = list(client, LiveKind::Event, &near, "").await;
    facts.objects.insert(LiveKind::Event, read);
    let services = webhook_namespaces(facts);
    let read = list(client, LiveKind::EndpointSlice, &services, "").await;
    facts.objects.insert(LiveKind::EndpointSlice, read);
}

/// The namespaces with variants or PodAutoscalers.
fn places(facts: &Facts, scope: &DoctorScope) -> Vec<Place> {
    if let Some(namespace) = &scope.namespace {
        return vec![Place::Namespace(namespace.clone())];
    }
    let autoscalers = facts.all(LiveKind::PodAutoscaler).iter();
    let objects = facts.variants().chain(autoscalers);
    let names: BTreeSet<&str> = objects.map(LiveObject::namespace).collect();
    if names.len() > MOST_NAMESPACES {
        return vec![Place::Everywhere];
    }
    let names = names.into_iter().map(str::to_owned);
    names.map(Place::Namespace).collect()
}

/// The namespaces of Services that webhooks call.
fn webhook_namespaces(facts: &Facts) -> Vec<Place> {
    let webhooks = super::checks::webhooks_of(facts);
    let names: BTreeSet<String> = webhooks
        .map(|(_, webhook)| super::object::text(webhook, "/clientConfig/service/namespace"))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names.into_iter().map(Place::Namespace).collect()
}

async fn leases(client: &Client, facts: &mut Facts) {
    let names = facts.generations().map(|one| &one.statics.scope.system_namespace);
    let names: BTreeSet<String> = names.cloned().collect();
    let places: Vec<Place> = names.into_iter().map(Place::Namespace).collect();
    let read = list(client, LiveKind::Lease, &places, "").await;
    facts.objects.insert(LiveKind::Lease, read);
}

fn add(facts: &mut Facts, kind: LiveKind, more: Reading<Vec<LiveObject>>) {
    let known = facts.objects.entry(kind).or_insert(Reading::Known(Vec::new()));
    match (known, more) {
        (Reading::Known(objects), Reading::Known(more)) => {
            for object in more {
                if !objects.iter().any(|one| one.title() == object.title()) {
                    objects.push(object);
                }
            }
        }
        (known @ Reading::Known(_), failed @ Reading::Failed(_)) => *known = failed,
        _ => {}
    }
}
