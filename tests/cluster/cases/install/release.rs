//! Releases: installed, upgraded, rolled back, removed.

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use reqwest::StatusCode;
use serde_json::{Value, json};
use wva::api::variant_autoscaling::VariantAutoscaling;

use super::running::{interval_of, metrics_reader, start};
use super::{RELEASE, SOON, at_home, our_prometheus, rendering};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::shipping::{Shipping, find, name_of, set};
use crate::harness::suite::Cx;
use crate::harness::variants::variant;
use crate::harness::wait::{eventually, seen};

const MAIN: &str = "wva-workload-variant-autoscaler-variantautoscaling-config";
/// What notes say where the default address of Prometheus is that of another platform.
const BLIND: &str = "decides nothing until baseURL is";
const SATURATION: &str = "wva-workload-variant-autoscaler-wva-saturation-scaling-config";

/// Side by side, as releases of one namespace. Fake kubelets make the pods ready. The cluster
/// has an APIService already, and that is respected.
pub(super) async fn every_set_installs(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    let mut foreign = at_home(cx);
    foreign.extend(set(&[("externalMetrics.enabled", "true")]));
    let Err(refused) = shipping.install("door", namespace, &foreign).await else {
        return Err(Fault::new("KEDA's APIService is replaced"));
    };
    let text = refused.text();
    assert!(text.contains("externalMetrics.apiService: v1beta1.external"), "{text}");

    // Fake kubelets have no registry, class or LeaderWorkerSet controller.
    let sets = rendering::sets();
    let sets = sets.into_iter().filter(|(set, _)| *set != "everything");
    try_join_all(sets.map(|(set, values)| installs(cx, &shipping, set, values))).await?;
    // A sample that the controller does not watch.
    let elsewhere = set(&[
        ("llmd.namespace", namespace),
        ("wva.namespaceScoped", "true"),
        ("wva.watchNamespace", "default"),
        ("wva.prometheus.baseURL", "https://prometheus:9090"),
    ]);
    let mut values = at_home(cx);
    values.extend(elsewhere);
    let notes = shipping.install("astray", namespace, &values).await?;
    assert!(notes.contains("no controller\nmanages"), "{notes}");
    assert!(!notes.contains(BLIND), "{notes}");
    shipping.uninstall("astray", namespace).await
}

/// Installs one set, waits until its pods are ready, reads its notes, and removes it.
async fn installs(cx: &Cx, shipping: &Shipping, set: &str, mut values: Vec<String>) -> Result {
    let namespace = &cx.namespace.name;
    // The defaults have to install as they are.
    let is_bare = set == "default";
    if !is_bare {
        values.extend(at_home(cx));
    }
    if set != "client" {
        values.extend(["--wait", "--timeout=150s"].map(str::to_owned));
    }
    let notes = shipping.install(set, namespace, &values).await?;
    let says_how = notes.contains("describe va") && notes.contains("ActuationReady");
    assert_eq!(says_how, !is_bare, "{set}: {notes}");
    assert!(!is_bare || notes.contains("first-variants.md"), "{notes}");
    let warns = notes.contains("no controller\nmanages");
    assert!(!warns, "{set}: {notes}");
    // The address of OpenShift leads nowhere here.
    assert!(!is_bare || notes.contains(BLIND), "{notes}");
    shipping.uninstall(set, namespace).await
}

fn config_maps(cx: &Cx) -> Api<ConfigMap> {
    cx.namespace.api()
}

async fn setting(cx: &Cx, config_map: &str, key: &str) -> Result<Option<String>> {
    let data = config_maps(cx).get(config_map).await?.data;
    Ok(data.unwrap_or_default().remove(key))
}

pub(super) async fn upgrade_rollback_uninstall(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    let values = at_home(cx);
    shipping.install(RELEASE, namespace, &values).await?;
    let objects = shipping.manifest(RELEASE, namespace).await?;
    let mine = variant("mine", "mine", &json!({}));
    cx.namespace.apply(mine).await?;
    let interval = async || setting(cx, MAIN, "GLOBAL_OPT_INTERVAL").await;
    assert_eq!(interval().await?.as_deref(), Some("15s"));

    let mut changed = values.clone();
    changed.extend(set(&[("wva.reconcileInterval", "30s"), ("wva.replicaCount", "1")]));
    shipping.upgrade(RELEASE, namespace, &changed).await?;
    assert_eq!(interval().await?.as_deref(), Some("30s"));
    // One pod cannot be spared, and is not guarded.
    let after = shipping.manifest(RELEASE, namespace).await?;
    assert!(find(&after, "PodDisruptionBudget", "").is_err());
    let budget = find(&objects, "PodDisruptionBudget", "")?;
    assert!(!exists(cx, budget).await?);

    shipping.helm(&["rollback", RELEASE, "1"], namespace, &[]).await?;
    assert_eq!(interval().await?.as_deref(), Some("15s"));
    assert!(exists(cx, budget).await?);

    upgrades_over_another_selector(cx, &shipping, &objects).await?;

    shipping.uninstall(RELEASE, namespace).await?;
    for object in &objects {
        let what = format!("{} {} is gone", object["kind"], name_of(object));
        eventually(what, SOON, async || seen(&exists(cx, object).await?, &false)).await?;
    }
    // The definition and the objects of users stay.
    let variants: Api<VariantAutoscaling> = cx.namespace.api();
    variants.get("mine").await?;
    Ok(())
}

/// Over a Deployment that selects its pods by other labels, as older charts had it, there is no upgrade
/// before that Deployment is deleted.
async fn upgrades_over_another_selector(cx: &Cx, shipping: &Shipping, objects: &[Value]) -> Result {
    let namespace = &cx.namespace.name;
    let values = at_home(cx);
    let ours = find(objects, "Deployment", "-controller-manager")?;
    let deployments: Api<Deployment> = cx.namespace.api();
    let gone = async || {
        // At once, so that the name is free.
        deployments.delete(name_of(ours), &DeleteParams::background()).await?;
        eventually("the Deployment is gone", SOON, async || seen(&exists(cx, ours).await?, &false))
            .await
    };
    gone().await?;
    let mut old = ours.clone();
    old["spec"]["selector"] = json!({ "matchLabels": { "control-plane": "controller-manager" } });
    cx.namespace.apply(old).await?;
    let Err(refused) = shipping.upgrade(RELEASE, namespace, &values).await else {
        return Err(Fault::new("the selector changes"));
    };
    let text = refused.text();
    assert!(text.contains("spec.selector") && text.contains("immutable"), "{text}");
    gone().await?;
    shipping.upgrade(RELEASE, namespace, &values).await?;
    let now = deployments.get(name_of(ours)).await?;
    let selector = now.spec.and_then(|spec| spec.selector.match_labels);
    assert_eq!(selector.unwrap_or_default().len(), 3);
    Ok(())
}

async fn exists(cx: &Cx, object: &Value) -> Result<bool> {
    let namespace = Some(cx.namespace.name.as_str());
    let api = manifest::api_of(&cx.world.client, object, namespace).await?;
    Ok(api.get_opt(name_of(object)).await?.is_some())
}

/// Immutable means that the API server refuses every change, upgrades too. The way around it is
/// delete, upgrade, restart; a running controller survives it, and the other ConfigMaps are free.
pub(super) async fn an_immutable_config_map_stays_honest(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    let mut values = at_home(cx);
    values.extend(our_prometheus(cx));
    values.extend(set(&[
        ("wva.configMap.immutable", "true"),
        ("wva.controllerInstance", namespace),
        ("wva.reconcileInterval", "30s"),
    ]));
    shipping.install(RELEASE, namespace, &values).await?;
    let objects = shipping.manifest(RELEASE, namespace).await?;
    let reader = metrics_reader(cx, &objects, namespace).await?;
    let first = start(cx, &objects, namespace, "before").await?.controller;
    first.ready().await?;
    interval_of(&first, &reader, 30.0).await?;

    let edit = Patch::Merge(json!({ "data": { "LOG_LEVEL": "debug" } }));
    let edited = config_maps(cx).patch(MAIN, &PatchParams::default(), &edit).await;
    let refusal = edited.map(drop).map_err(|error| error.to_string());
    assert!(refusal.is_err_and(|text| text.contains("immutable")));
    let mut changed = values.clone();
    changed.extend(set(&[("wva.reconcileInterval", "20s")]));
    let Err(refused) = shipping.upgrade(RELEASE, namespace, &changed).await else {
        return Err(Fault::new("the upgrade is accepted"));
    };
    let text = refused.text();
    assert!(text.contains("field is immutable when `immutable` is set"), "{text}");
    // Another one is not.
    let default = json!({ "data": { "default": "kvSpareTrigger: 0.25\n" } });
    config_maps(cx).patch(SATURATION, &PatchParams::default(), &Patch::Merge(default)).await?;
    super::running::gauge(&first, &reader, "wva_config_kv_spare_threshold", 0.25).await?;

    config_maps(cx).delete(MAIN, &DeleteParams::default()).await?;
    // Live settings fall back to their defaults; the process goes on.
    interval_of(&first, &reader, 60.0).await?;
    assert_eq!(first.readyz().await?.0, StatusCode::OK);
    first.server.check()?;
    shipping.upgrade(RELEASE, namespace, &changed).await?;
    assert_eq!(setting(cx, MAIN, "GLOBAL_OPT_INTERVAL").await?.as_deref(), Some("20s"));
    assert_eq!(first.stop().await?, Some(0));
    let second = start(cx, &objects, namespace, "after").await?.controller;
    second.ready().await?;
    interval_of(&second, &reader, 20.0).await?;
    // Its rights go with the release.
    assert_eq!(second.stop().await?, Some(0));
    shipping.uninstall(RELEASE, namespace).await
}

/// Long enough for a load to pass through everything.
pub(super) const LATER: Duration = Duration::from_mins(1);
