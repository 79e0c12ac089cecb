//! The controller with the chart's service account, ConfigMaps and arguments.

use std::fs;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::release::LATER;
use super::{RELEASE, SOON, at_home, our_prometheus, series, values_file};
use crate::harness::audit::uses;
use crate::harness::container::{Container, Running};
use crate::harness::controller::Controller;
use crate::harness::engine::{EngineFleet, Load};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::reader::Reader;
use crate::harness::shipping::{Shipping, find, set};
use crate::harness::suite::Cx;
use crate::harness::variants::Variants;
use crate::harness::wait::{eventually, seen};

const TARGET: &str = "ms-inference-scheduling-llm-d-modelservice-decode";
const MODEL: &str = "unsloth/Meta-Llama-3.1-8B";
const SAMPLE: &str = "wva-workload-variant-autoscaler-va";
const APISERVICE: &str = "v1beta1.external.metrics.k8s.io";
/// Wants more than three replicas.
const LOAD: f64 = 2.5;

/// Runs the container of the Deployment among some rendered objects.
pub(super) async fn start(
    cx: &Cx,
    objects: &[Value],
    namespace: &str,
    pod: &str,
) -> Result<Running> {
    let deployment = find(objects, "Deployment", "-controller-manager")?;
    let is_scraped = deployment.to_string().contains("--metrics-secure=false");
    let container = Container { deployment, namespace, pod, is_scraped };
    container.start(cx).await
}

/// Who may read `/metrics`, by the token that is shipped for it.
pub(super) async fn metrics_reader(cx: &Cx, objects: &[Value], namespace: &str) -> Result<Reader> {
    let secret = find(objects, "Secret", "-metrics-reader-token")?;
    let name = secret["metadata"]["name"].as_str().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(cx.world.client.clone(), namespace);
    eventually("the reader has a token", SOON, async || {
        let data = secrets.get(name).await?.data.unwrap_or_default();
        let token = data.get("token");
        let token = token.ok_or_else(|| Fault::new("no token yet"))?;
        Ok(Reader::anonymous().with_token(std::str::from_utf8(&token.0)?))
    })
    .await
}

/// Waits until a gauge without labels has this value.
pub(super) async fn gauge(
    controller: &Controller,
    reader: &Reader,
    name: &str,
    wanted: f64,
) -> Result {
    let url = format!("https://{}/metrics", controller.metrics);
    eventually(format!("{name} is {wanted}"), SOON, async || {
        let (status, text) = reader.get(&url).await?;
        let mut lines =
            text.lines().filter(|line| line.starts_with(name) && !line.starts_with('#'));
        let value = lines.next().and_then(|line| line.rsplit(' ').next());
        seen(&(status.as_u16(), value), &(200, Some(wanted.to_string().as_str())))
    })
    .await
}

/// Waits until this interval is in force.
pub(super) async fn interval_of(controller: &Controller, reader: &Reader, seconds: f64) -> Result {
    let name = "wva_config_optimization_interval_seconds";
    gauge(controller, reader, name, seconds).await
}

/// Edits interval and log level in the main ConfigMap, and sees both act in the running process.
async fn settings_change_live(cx: &Cx, objects: &[Value], namespace: &str) -> Result {
    let reader = metrics_reader(cx, objects, namespace).await?;
    let controller = start(cx, objects, namespace, "wva-0").await?.controller;
    controller.ready().await?;
    interval_of(&controller, &reader, 15.0).await?;
    let logs_debug = || -> Result<bool> {
        Ok(fs::read_to_string(controller.server.log())?.contains("\"level\":\"DEBUG\""))
    };
    assert!(!logs_debug()?);
    let name = find(objects, "ConfigMap", "-variantautoscaling-config")?;
    let name = name["metadata"]["name"].as_str().unwrap_or_default();
    let config_maps: Api<ConfigMap> = Api::namespaced(cx.world.client.clone(), namespace);
    let edit = json!({ "data": { "GLOBAL_OPT_INTERVAL": "1s", "LOG_LEVEL": "debug" } });
    config_maps.patch(name, &PatchParams::default(), &Patch::Merge(edit)).await?;
    interval_of(&controller, &reader, 1.0).await?;
    eventually("debug lines come", SOON, async || seen(&logs_debug()?, &true)).await?;
    assert_eq!(controller.stop().await?, Some(0));
    nothing_was_refused(cx, namespace)
}

/// The shipped rights suffice.
pub(super) fn nothing_was_refused(cx: &Cx, namespace: &str) -> Result {
    let refused = uses(&cx.world.site.logs())?.refused;
    let account = format!("system:serviceaccount:{namespace}:");
    let mine: Vec<_> = refused.iter().filter(|(user, _)| user.starts_with(&account)).collect();
    assert!(mine.is_empty(), "refused: {mine:?}");
    Ok(())
}

pub(super) async fn chart_settings_change_live(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    let mut values = at_home(cx);
    values.extend(our_prometheus(cx));
    // It sees the whole cluster, and the objects of other cases are not its own.
    values.extend(set(&[("wva.controllerInstance", namespace)]));
    shipping.install(RELEASE, namespace, &values).await?;
    let objects = shipping.manifest(RELEASE, namespace).await?;
    settings_change_live(cx, &objects, namespace).await?;
    shipping.uninstall(RELEASE, namespace).await
}

/// The sample's Deployment with one replica, and its engines, which are busy.
async fn busy_model(cx: &Cx) -> Result<EngineFleet> {
    let pods = cx.namespace.run(TARGET, 1, SOON).await?;
    let load = Load::cache(LOAD);
    Ok(EngineFleet::start(cx, &pods, MODEL, load))
}

/// What both loops are installed with: a cycle a second, and a sample of at most three replicas.
fn busy_values(cx: &Cx) -> Vec<String> {
    let mut values = values_file("values-dev.yaml");
    values.extend(at_home(cx));
    values.extend(our_prometheus(cx));
    values.extend(set(&[
        ("wva.prometheus.tls.insecureSkipVerify", "false"),
        ("wva.reconcileInterval", "1s"),
        ("va.maxReplicas", "3"),
    ]));
    values
}

/// Waits until the sample's target has three replicas, and the sample says that all is well.
async fn grows(cx: &Cx, controller: &Controller) -> Result {
    cx.namespace.settles(TARGET, 3, LATER).await?;
    let variants = Variants::new(&cx.namespace, controller);
    let conditions = [("Ready", "True/VariantReady"), ("ActuationReady", "True/ScalerFollows")];
    variants.says(SAMPLE, &conditions, LATER).await.map(drop)
}

/// Limited to the namespace of the model, with Roles only, through Prometheus and KEDA; and at work it
/// shows every series that is named.
pub(super) async fn chart_scales_its_sample_through_keda(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let release = cx.system().await?.name.clone();
    let fleet = busy_model(cx).await?;
    let mut values = busy_values(cx);
    values.extend(set(&[
        ("keda.enabled", "true"),
        ("keda.pollingInterval", "1"),
        ("wva.namespaceScoped", "true"),
        ("wva.watchNamespace", &cx.namespace.name),
        ("wva.metrics.secure", "false"),
        ("wva.controllerInstance", &cx.namespace.name),
    ]));
    shipping.install(RELEASE, &release, &values).await?;
    let objects = shipping.manifest(RELEASE, &release).await?;
    let controller = start(cx, &objects, &release, "wva-0").await?.controller;
    controller.ready().await?;
    grows(cx, &controller).await?;
    series::are_exposed(cx, &controller, &objects, &release).await?;
    drop(fleet);
    // Its rights go with the release.
    assert_eq!(controller.stop().await?, Some(0));
    nothing_was_refused(cx, &release)?;
    shipping.uninstall(RELEASE, &release).await
}

/// With the rights of the default installation, through the controller's own external metrics API.
pub(super) async fn chart_scales_its_sample_through_its_hpa(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let release = cx.system().await?.name.clone();
    let client = &cx.world.client;
    let fleet = busy_model(cx).await?;
    let mut values = busy_values(cx);
    // The values for development have one replica, and the APIService wants two.
    values.extend(set(&[("externalMetrics.enabled", "true"), ("wva.replicaCount", "2")]));
    // KEDA gives way, and so does what let the HPA controller read from it.
    let kind = ApiResource {
        group: "apiregistration.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiregistration.k8s.io/v1".to_owned(),
        kind: "APIService".to_owned(),
        plural: "apiservices".to_owned(),
    };
    let registrations: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    registrations.delete(APISERVICE, &DeleteParams::default()).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.delete("external-metrics-reader", &DeleteParams::default()).await?;
    shipping.install(RELEASE, &release, &values).await?;
    let objects = shipping.manifest(RELEASE, &release).await?;
    let service = find(&objects, "Service", "-external-metrics")?;
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    // An upgrade finds its own registration and keeps the certificate.
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &release);
    let before = secrets.get(name).await?.data;
    shipping.upgrade(RELEASE, &release, &values).await?;
    assert_eq!(secrets.get(name).await?.data, before);
    let running = start(cx, &objects, &release, "wva-0").await?;
    running.controller.ready().await?;

    // On loopback the API server reaches a Service only by a name, and by the port of the server.
    let services: Api<Service> = Api::namespaced(client.clone(), &release);
    services.delete(name, &DeleteParams::default()).await?;
    let port = running.external;
    let by_name = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": release },
        "spec": {
            "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }],
        },
    });
    manifest::apply(client, by_name, None).await?;
    let patch = json!({ "spec": { "service": { "port": port } } });
    registrations.patch(APISERVICE, &PatchParams::default(), &Patch::Merge(patch)).await?;
    grows(cx, &running.controller).await?;
    drop(fleet);
    assert_eq!(running.controller.stop().await?, Some(0));
    nothing_was_refused(cx, &release)?;

    shipping.uninstall(RELEASE, &release).await?;
    assert!(registrations.get_opt(APISERVICE).await?.is_none());
    Ok(())
}
