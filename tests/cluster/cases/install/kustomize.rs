//! The kustomize bases and overlays.

use serde_json::{Value, json};

use wva::api::INSTANCE_LABEL;

use super::release::LATER;
use super::{RELEASE, SOON, running};
use crate::harness::audit::granted;
use crate::harness::engine::{EngineFleet, FleetSpec, Load, Reading};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::shipping::{Shipping, find, name_of, set};
use crate::harness::suite::Cx;
use crate::harness::tools::repository;

const SYSTEM: &str = "workload-variant-autoscaler-system";
const FOLDERS: [&str; 11] = [
    "crd",
    "rbac",
    "manager",
    "default",
    "prometheus",
    "network-policy",
    "openshift",
    "external-metrics",
    "samples",
    "samples/policies",
    "samples/scalers",
];

/// An object of a base in the namespace of a case. Bindings get a name of the case's own: cases that
/// run at the same time must not take each other's rights.
fn moved(mut object: Value, namespace: &str) -> Value {
    for place in ["/metadata/namespace", "/subjects/0/namespace"] {
        if let Some(place) = object.pointer_mut(place)
            && place != "kube-system"
        {
            *place = json!(namespace);
        }
    }
    if object["kind"] == "ClusterRoleBinding" {
        let name = format!("{namespace}-{}", name_of(&object));
        object["metadata"]["name"] = json!(name);
    }
    object
}

/// The server judges every object; those of cert-manager it does not know.
pub(super) async fn every_folder_is_accepted(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    for folder in FOLDERS {
        let objects = shipping.kustomize(folder).await?;
        assert!(!objects.is_empty(), "{folder}");
        for object in objects {
            if ["Issuer", "Certificate"].map(|kind| object["kind"] == kind) != [false; 2] {
                continue;
            }
            let what = format!("{folder}: {} {}", object["kind"], name_of(&object));
            let object = moved(object, namespace);
            manifest::dry_run(&cx.world.client, object, Some(namespace))
                .await
                .map_err(|fault| Fault::new(format!("{what}: {}", fault.text())))?;
        }
    }
    // What is applied by itself.
    for entry in std::fs::read_dir(repository().join("deploy"))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            for object in manifest::read(&path)? {
                let object = moved(object, namespace);
                manifest::dry_run(&cx.world.client, object, None).await?;
            }
        }
    }
    Ok(())
}

/// The rules of the role that is named so.
fn rules(objects: &[Value], kind: &str, ending: &str) -> Result<Value> {
    Ok(find(objects, kind, ending)?["rules"].clone())
}

pub(super) async fn grants_what_the_chart_grants(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let bases = shipping.kustomize("default").await?;
    let chart = shipping.template(RELEASE, "default", &[]).await?;
    for (kind, ending) in [
        ("ClusterRole", "-manager"),
        ("ClusterRole", "-metrics-auth"),
        ("ClusterRole", "-debug-reader"),
        ("ClusterRole", "-variantautoscaling-editor"),
        ("ClusterRole", "-variantautoscaling-viewer"),
        ("Role", "-leader-election"),
    ] {
        let both = [rules(&bases, kind, ending)?, rules(&chart, kind, ending)?];
        let [base, chart] = both.map(|rules| granted(&[json!({ "rules": rules })]));
        assert_eq!(base, chart, "{kind} *{ending}");
    }
    // One namespace alone: the same, but for the kinds that are asked for in the whole cluster.
    let values = set(&[("wva.namespaceScoped", "true")]);
    let scoped = shipping.template(RELEASE, "default", &values).await?;
    let whole = granted(&[json!({ "rules": rules(&chart, "ClusterRole", "-manager")? })]);
    let narrow = granted(&[json!({ "rules": rules(&scoped, "Role", "-manager")? })]);
    let wide: Vec<_> = whole
        .difference(&narrow)
        .map(|(_, resource, _)| resource.as_str())
        .collect();
    assert!(
        wide.iter()
            .all(|resource| ["namespaces", "nodes", "nodes/status"].contains(resource)),
        "{wide:?}"
    );
    Ok(())
}

/// Applies what `kubectl apply -k config/default` and `config/prometheus` would, in the system namespace
/// of the case and with the Prometheus of the world.
async fn apply_default(cx: &Cx) -> Result<Vec<Value>> {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.system().await?.name;
    let mut objects = shipping.kustomize("default").await?;
    objects.extend(shipping.kustomize("prometheus").await?);
    objects.retain(|object| {
        // Shared by all cases, or made by the harness.
        object["kind"] != "CustomResourceDefinition" && object["kind"] != "Namespace"
    });
    let text = json!(objects).to_string().replace(SYSTEM, namespace);
    let objects: Vec<Value> = serde_json::from_str(&text)?;
    let mut applied = Vec::new();
    for object in objects {
        let mut object = moved(object, namespace);
        if name_of(&object).ends_with("-variantautoscaling-config") {
            let data = &mut object["data"];
            data["PROMETHEUS_BASE_URL"] = json!(cx.world.prometheus.url);
            data["PROMETHEUS_ALLOW_HTTP"] = json!("true");
            // Objects of other cases are not its own.
            data["CONTROLLER_INSTANCE"] = json!(cx.namespace.name);
        }
        manifest::apply(&cx.world.client, object.clone(), Some(namespace)).await?;
        applied.push(object);
    }
    Ok(applied)
}

pub(super) async fn settings_change_live(cx: &Cx) -> Result {
    let objects = apply_default(cx).await?;
    let namespace = &cx.system().await?.name;
    running::settings_change_live(cx, &objects, namespace).await
}

/// The samples of a workload, its variant and its ScaledObject belong together, and the controller of the
/// default installation scales them.
pub(super) async fn scales_the_samples(cx: &Cx) -> Result {
    const NAME: &str = "llama-8b";
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    let samples = repository().join("config/samples");
    let mut objects = shipping.kustomize("samples/workloads").await?;
    objects.extend(manifest::read(&samples.join("name-only.yaml"))?);
    for mut object in objects {
        if object["kind"] == "VariantAutoscaling" {
            object["metadata"]["labels"] = json!({ INSTANCE_LABEL: namespace });
        }
        cx.namespace.apply(object).await?;
    }
    cx.namespace.settles(NAME, 1, SOON).await?;
    let spec = FleetSpec {
        namespace: namespace.clone(),
        selector: format!("app={NAME}"),
        model: "meta/llama-3.1-8b".to_owned(),
    };
    // Two thirds of three caches, which is below every trigger.
    let load = Load::Shared(Reading {
        kv_cache: 2.0,
        ..Reading::IDLE
    });
    let fleet = EngineFleet::start(&cx.world, spec, load);

    let mut objects = apply_default(cx).await?;
    for object in &mut objects {
        // The scrapes of the tests bring no token, and a minute is long.
        let text = object.to_string();
        let text = text.replace("--metrics-secure=true", "--metrics-secure=false");
        *object = serde_json::from_str(&text.replace("\"60s\"", "\"1s\""))?;
        if object["kind"] == "ConfigMap" {
            manifest::apply(&cx.world.client, object.clone(), None).await?;
        }
    }
    let system = &cx.system().await?.name;
    let controller = running::start(cx, &objects, system, "wva-0")
        .await?
        .controller;
    controller.ready().await?;
    let mut scaler = manifest::read(&samples.join("scalers/scaledobject.yaml"))?.remove(0);
    let metadata = &mut scaler["spec"]["triggers"][0]["metadata"];
    metadata["serverAddress"] = json!(cx.world.prometheus.url);
    let query = metadata["query"].as_str().unwrap_or_default();
    metadata["query"] = json!(query.replace("llm-d", namespace));
    cx.namespace.apply(scaler).await?;
    cx.namespace.settles(NAME, 3, LATER).await?;
    drop(fleet);
    running::nothing_was_refused(cx, system)
}
