//! Scalers that are variants by annotation: no object of this project is in the namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::external_metrics_door::hpa;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::Result;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{MODEL, Variants, variant};
use crate::harness::wait::{eventually, seen};

const NAME: &str = "llama";
const SOON: Duration = Duration::from_mins(1);

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::shared(
        "annotations::what_is_wrong_is_said_and_lowers_nothing",
        what_is_wrong_is_said,
    )]
}

pub(super) fn annotated(mut scaler: Value, model: &str) -> Value {
    scaler["metadata"]["annotations"] = json!({
        "llm-d.ai/managed": "true", "llm-d.ai/model-id": model, "llm-d.ai/variant-cost": "10",
    });
    scaler
}

/// The kinds of the objects that an event of this reason is about, of those whose note has all parts.
async fn objects_of(cx: &Cx, reason: &str, parts: &[&str]) -> Result<BTreeSet<String>> {
    let all = cx.namespace.events(reason).await?;
    let found = all.into_iter().filter(|event| {
        let note = event.note.as_deref().unwrap_or_default();
        parts.iter().all(|part| note.contains(part))
    });
    Ok(found.filter_map(|event| event.regarding?.kind).collect())
}

async fn controller(cx: &Cx) -> Result<Controller> {
    let spec = ControllerSpec::scoped(cx).with("ANNOTATED_SCALERS_ENABLED", "true");
    Controller::start_ready(cx, &spec).await
}

async fn what_is_wrong_is_said(cx: &Cx) -> Result {
    // Without metrics of any engine two replicas are kept.
    cx.namespace.run(NAME, 2, SOON).await?;
    let controller = controller(cx).await?;
    let hpas: Api<HorizontalPodAutoscaler> = cx.namespace.api();
    cx.namespace.apply(annotated(hpa(&cx.namespace.name, NAME, 10)?, MODEL)).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let shows_two = || variants.publishes(NAME, Some(2.0), SOON);
    let annotations = async || -> Result<BTreeMap<String, String>> {
        let metadata = hpas.get(NAME).await?.metadata;
        Ok(metadata.annotations.unwrap_or_default())
    };
    let holds_two = async || {
        eventually("2 are stored", SOON, async || {
            let annotations = annotations().await?;
            let count = annotations.get("llm-d.ai/desired-replicas");
            seen(&count.map(String::as_str), &Some("2"))
        })
        .await
    };
    shows_two().await?;
    holds_two().await?;

    let annotate = async |name: &str, value: Value| -> Result {
        let patch = json!({ "metadata": { "annotations": { name: value } } });
        let parameters = PatchParams::default();
        hpas.patch(NAME, &parameters, &Patch::Merge(patch)).await?;
        Ok(())
    };
    annotate("llm-d.ai/variant-cost", json!("cheap")).await?;
    eventually("the wrong value is an event", SOON, async || {
        let parts = ["llm-d.ai/variant-cost=\"cheap\"", "at least 0"];
        let kinds = objects_of(cx, "MalformedObject", &parts).await?;
        seen(&kinds, &["HorizontalPodAutoscaler".to_owned()].into())
    })
    .await?;
    shows_two().await?;
    holds_two().await?;
    annotate("llm-d.ai/variant-cost", json!("5")).await?;

    cx.namespace.apply(variant("other", NAME, &json!({ "maxReplicas": 4 }))).await?;
    let malformed = [("TargetResolved", "False/MalformedObject")];
    let message = variants.says("other", &malformed, SOON).await?;
    assert!(message.contains("HorizontalPodAutoscaler"), "{message}");
    eventually("there is an event on each", SOON, async || {
        let kinds = objects_of(cx, "MalformedObject", &["scale target Deployment"]).await?;
        let both = ["HorizontalPodAutoscaler", "VariantAutoscaling"];
        seen(&kinds, &both.map(str::to_owned).into())
    })
    .await?;
    shows_two().await?;
    holds_two().await?;

    annotate("llm-d.ai/managed", Value::Null).await?;
    let found = [("TargetResolved", "True/TargetFound")];
    variants.says("other", &found, SOON).await?;
    eventually("no count stays", SOON, async || {
        let names = annotations().await?.into_keys();
        seen(&names.filter(|name| name.ends_with("replicas")).count(), &0)
    })
    .await
}
