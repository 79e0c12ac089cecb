//! Which variants a controller takes: by instance, namespace and annotation, changed while it runs.

use std::time::Duration;

use k8s_openapi::api::core::v1 as core;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::settings::MAIN;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::Result;
use crate::harness::namespace::{Namespace, Workload};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::{DESIRED, Variants, variant};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(30);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, filters::instance_label),
        case!(shared, filters::excluded_namespace),
        case!(shared, filters::watched_namespace),
    ]
}

/// No cycle comes during a test, so whatever it sees is the reaction to a change.
fn without_cycles(spec: ControllerSpec<'_>) -> ControllerSpec<'_> {
    spec.with("GLOBAL_OPT_INTERVAL", "10m")
}

async fn instance_label(cx: &Cx) -> Result {
    let spec = without_cycles(ControllerSpec::scoped(cx)).with("CONTROLLER_INSTANCE", "blue");
    let controller = Controller::start_ready(cx, &spec).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let names = ["ours", "theirs", "unlabelled"];
    for (name, instance) in names.iter().zip([Some("blue"), Some("green"), None]) {
        cx.namespace.deploy(&Workload::new(name, 1)).await?;
        labelled(cx, name, instance).await?;
    }
    variants.publishes("ours", Some(1.0), SOON).await?;
    let blue = [("variant_name", "ours"), ("controller_instance", "blue")];
    assert_eq!(controller.value(DESIRED, &blue).await?, Some(1.0));
    for foreign in ["theirs", "unlabelled"] {
        assert_eq!(variants.desired(foreign).await?, None, "{foreign}");
    }

    labelled(cx, "unlabelled", Some("blue")).await?;
    variants.publishes("unlabelled", Some(1.0), SOON).await?;
    labelled(cx, "theirs", Some("blue")).await?;
    variants.publishes("theirs", Some(1.0), SOON).await?;

    labelled(cx, "unlabelled", None).await?;
    variants.publishes("unlabelled", None, SOON).await?;
    labelled(cx, "theirs", Some("green")).await?;
    variants.publishes("theirs", None, SOON).await?;
    assert_eq!(variants.desired("ours").await?, Some(1.0));
    Ok(())
}

async fn labelled(cx: &Cx, name: &str, instance: Option<&str>) -> Result {
    let mut object = variant(name, name, &json!({}));
    if let Some(instance) = instance {
        object["metadata"]["labels"] = json!({ "wva.llmd.ai/controller-instance": instance });
    }
    cx.namespace.apply(object).await?;
    Ok(())
}

async fn excluded_namespace(cx: &Cx) -> Result {
    let spec =
        without_cycles(ControllerSpec { watch_namespace: None, ..ControllerSpec::scoped(cx) });
    // It sees the variants of every case.
    let spec = spec.with("CONTROLLER_INSTANCE", &cx.namespace.name);
    let controller = Controller::start_ready(cx, &spec).await?;
    let mirrored = controller.readiness().await?;
    assert!(mirrored.contains("[+] mirror/Namespace:"), "{mirrored}");
    let variants = Variants::new(&cx.namespace, &controller);
    cx.namespace.deploy(&Workload::new("v", 1)).await?;
    labelled(cx, "v", Some(&cx.namespace.name)).await?;
    variants.publishes("v", Some(1.0), SOON).await?;

    for (excluded, shown) in [(Some("true"), None), (Some("false"), Some(1.0))] {
        annotate(cx, excluded).await?;
        variants.publishes("v", shown, SOON).await?;
    }
    annotate(cx, Some("true")).await?;
    variants.publishes("v", None, SOON).await?;
    annotate(cx, None).await?;
    variants.publishes("v", Some(1.0), SOON).await
}

async fn annotate(cx: &Cx, excluded: Option<&str>) -> Result {
    let namespaces: Api<core::Namespace> = Api::all(cx.world.client.clone());
    let annotations = json!({ "wva.llmd.ai/exclude": excluded });
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    namespaces.patch(&cx.namespace.name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn watched_namespace(cx: &Cx) -> Result {
    let other = format!("{}-other", cx.namespace.name);
    let other = Namespace::create(&cx.world, &other).await?;
    let outcome = sees_one_of(cx, &other).await;
    other.delete().await?;
    outcome
}

/// Of two namespaces with the same in them one is seen, and the settings of the system's are.
async fn sees_one_of(cx: &Cx, other: &Namespace) -> Result {
    for namespace in [other, &cx.namespace] {
        namespace.deploy(&Workload::new("llama", 1)).await?;
        namespace.apply(variant("v", "llama", &json!({}))).await?;
    }
    let controller =
        Controller::start_ready(cx, &without_cycles(ControllerSpec::scoped(cx))).await?;
    let mirrored = controller.readiness().await?;
    assert!(!mirrored.contains("mirror/Namespace"), "{mirrored}");
    assert!(mirrored.contains("[+] mirror/ConfigMap.system:"), "{mirrored}");
    let seen_one = Variants::new(&cx.namespace, &controller);
    seen_one.publishes("v", Some(1.0), SOON).await?;
    let unseen = Variants::new(other, &controller);
    assert_eq!(unseen.desired("v").await?, None);

    let generation = async || controller.value("wva_config_generation", &[]).await;
    assert_eq!(generation().await?, Some(1.0));
    for (namespace, data) in [
        (other, "2m"),
        // The main ConfigMap is that of the system namespace alone.
        (&cx.namespace, "2m"),
        (cx.system().await?, "3m"),
    ] {
        let settings = json!({
            "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD": "50s",
            "PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD": data,
        });
        namespace.configure(MAIN, settings).await?;
    }
    eventually("the settings are in force", SOON, async || seen(&generation().await?, &Some(2.0)))
        .await
}
