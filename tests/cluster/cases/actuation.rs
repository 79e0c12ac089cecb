//! Whether anything follows what is published, as the condition `ActuationReady` says it.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::door::shipped;
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::scaled_object::ScaledObject;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::Variants;
use crate::harness::wait::eventually;

const NAME: &str = "llama";
const SOON: Duration = Duration::from_secs(40);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared("actuation::native_scalers_are_judged", native),
        Case::shared("actuation::scaled_objects_are_judged", keda),
        Case::shared("actuation::direct_writes_the_scale_until_a_scaler_comes", direct),
    ]
}

async fn controller(cx: &Cx) -> Result<Controller> {
    cx.namespace.deploy(&Workload::new(NAME, 1)).await?;
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let bounds = json!({ "minReplicas": 1, "maxReplicas": 8 });
    variants.apply(NAME, NAME, bounds).await?;
    Ok(controller)
}

/// Waits for a reason why nothing follows, and answers the message.
async fn lacks(variants: Variants<'_>, reason: &str) -> Result<String> {
    let wanted = format!("False/{reason}");
    variants.says(NAME, &[("ActuationReady", wanted.as_str())], SOON).await
}

/// The shipped example under a name, with a selector for a variant and further fields.
fn hpa(cx: &Cx, name: &str, variant: &str, fields: &Value) -> Result<Value> {
    let mut hpa = shipped("hpa.yaml")?;
    hpa["metadata"]["name"] = json!(name);
    hpa["spec"]["scaleTargetRef"]["name"] = json!(NAME);
    let metric = &mut hpa["spec"]["metrics"][0]["external"]["metric"];
    metric["selector"]["matchLabels"] =
        json!({ "variant_name": variant, "exported_namespace": cx.namespace.name });
    for (field, value) in fields.as_object().into_iter().flatten() {
        hpa["spec"][field] = value.clone();
    }
    Ok(hpa)
}

/// Waits for an event on the variant.
async fn is_reported(cx: &Cx, reason: &str) -> Result {
    eventually(format!("the event {reason}"), SOON, async || {
        let all = cx.namespace.events(reason).await?;
        let found = all.iter().find(|event| {
            let kind = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
            kind == Some("VariantAutoscaling")
        });
        let note = found.and_then(|event| event.note.as_deref());
        match note {
            Some(note) if note.contains("(cycle ") => Ok(()),
            other => Err(Fault::new(format!("{other:?} among {}", all.len()))),
        }
    })
    .await
}

async fn native(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let hpas: Api<HorizontalPodAutoscaler> = cx.namespace.api();
    let message = lacks(variants, "NoScaler").await?;
    assert!(message.contains("variant_name \"llama\""), "{message}");
    is_reported(cx, "NoScaler").await?;

    cx.namespace.apply(hpa(cx, "one", "other", &json!({}))?).await?;
    lacks(variants, "CountNotRead").await?;
    // No server has the count here, so the HPA itself says that it does not work.
    let narrow = json!({ "minReplicas": 2, "maxReplicas": 5, "behavior": null });
    cx.namespace.apply(hpa(cx, "one", NAME, &narrow)?).await?;
    let message = lacks(variants, "ScalerFailing").await?;
    for part in ["FailedGetExternalMetric", "at least 2", "at most 5"] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    assert!(!message.contains("steps of one"), "{message}");

    cx.namespace.apply(hpa(cx, "two", NAME, &json!({}))?).await?;
    let message = lacks(variants, "SeveralScalers").await?;
    for part in ["HorizontalPodAutoscaler one", "HorizontalPodAutoscaler two"] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    hpas.delete("one", &DeleteParams::default()).await?;
    let message = lacks(variants, "ScalerFailing").await?;
    assert!(!message.contains("at most"), "{message}");
    hpas.delete("two", &DeleteParams::default()).await?;
    lacks(variants, "NoScaler").await.map(drop)
}

/// By the rights that are shipped: the published count, past what is written by hand, and nothing once an HPA is there.
async fn direct(cx: &Cx) -> Result {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "wva-saturation-scaling-config" },
        "data": { "default": "actuation: direct" },
    });
    cx.system().await?.apply(map).await?;
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let says = async |reason: &str| {
        let wanted = [("ActuationReady", reason)];
        variants.says(NAME, &wanted, SOON).await
    };
    says("True/ScaledDirectly").await?;
    let bounds = json!({ "minReplicas": 3, "maxReplicas": 8 });
    variants.apply(NAME, NAME, bounds).await?;
    cx.namespace.settles(NAME, 3, SOON).await?;
    cx.namespace.scale(NAME, 1).await?;
    cx.namespace.settles(NAME, 3, SOON).await?;

    cx.namespace.apply(hpa(cx, "one", NAME, &json!({}))?).await?;
    let message = says("False/ScalerFailing").await?;
    let rests = "the setting actuation: direct rests while a scaler is attached";
    assert!(message.ends_with(rests), "{message}");
    Ok(())
}

async fn keda(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    lacks(variants, "NoScaler").await?;
    let scaler = ScaledObject { target: NAME, variant: NAME, min: 1, max: 8 };
    scaler.apply(cx).await?;
    let follows = [("ActuationReady", "True/ScalerFollows")];
    variants.says(NAME, &follows, SOON).await?;
    is_reported(cx, "ScalerFollows").await?;

    let query = format!(
        "wva_desired_replicas{{variant_name=\"{NAME}\",exported_namespace=\"{}\"}}",
        cx.namespace.name
    );
    let usual = scaler.manifest(&cx.world.prometheus.url, &query);
    let mut forgetful = usual.clone();
    forgetful["spec"]["triggers"][0]["metadata"]["ignoreNullValues"] = json!("true");
    cx.namespace.apply(forgetful).await?;
    lacks(variants, "NullCountsAsZero").await?;
    let mut small = usual.clone();
    small["spec"]["maxReplicaCount"] = json!(3);
    cx.namespace.apply(small).await?;
    lacks(variants, "ScalerMaximum").await?;
    let mut paused = usual.clone();
    paused["metadata"]["annotations"] = json!({ "autoscaling.keda.sh/paused": "true" });
    cx.namespace.apply(paused).await?;
    lacks(variants, "ScalerPaused").await?;
    cx.namespace.apply(usual).await?;
    variants.says(NAME, &follows, SOON).await.map(drop)
}
