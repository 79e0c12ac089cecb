//! Statuses are applied on a real API server: by whom, over whom, and never over a live rival.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use wva::api::condition::{merge, time};
use wva::api::variant_autoscaling::{OptimizedAlloc, VariantAutoscaling, VariantAutoscalingStatus};
use wva::cluster::permit::WriteApi;
use wva::cluster::status::{StatusError, StatusFields, StatusPatch, StoredStatus, apply_status};
use wva::policy::condition::{Condition, ConditionReason, ConditionStatus, ConditionType};
use wva::policy::key::VariantKey;
use wva_base::moment::WallTime;

use crate::harness::fault::Result;
use crate::harness::permit::permit_of_term;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::wait::{eventually, seen};

const NOW: WallTime = WallTime(1_700_000_000_000);

pub(crate) fn cases() -> Vec<Case> {
    vec![case!(exclusive, status::fits_an_older_definition)]
}

fn objects(cx: &Cx) -> Api<VariantAutoscaling> {
    Api::namespaced(cx.world.client.clone(), &cx.namespace.name)
}

async fn created(cx: &Cx, name: &str) -> Result<VariantAutoscaling> {
    let object = serde_json::from_value(json!({
        "metadata": {"name": name}, "spec": {"scaleTargetRef": {"name": "d"}, "modelID": "m"},
    }))?;
    Ok(objects(cx).create(&PostParams::default(), &object).await?)
}

fn status(replicas: Option<i32>) -> VariantAutoscalingStatus {
    let found = Condition {
        kind: ConditionType::TargetResolved,
        status: ConditionStatus::True,
        reason: ConditionReason::TargetFound,
        message: "Scale target Deployment d found".to_owned(),
    };
    VariantAutoscalingStatus {
        observed_generation: Some(1),
        desired_optimized_alloc: Some(OptimizedAlloc {
            num_replicas: replicas,
            last_run_time: replicas.map(|_| time(NOW)),
            cycle_id: replicas.map(|_| 7),
            accelerator: None,
        }),
        actuation: None,
        conditions: merge(&[], &[found], 1, NOW),
    }
}

async fn apply(
    cx: &Cx,
    manager: &str,
    object: &VariantAutoscaling,
    status: VariantAutoscalingStatus,
    retired: &[&str],
) -> std::result::Result<StoredStatus, StatusError> {
    let api = WriteApi {
        client: cx.world.client.clone(),
        manager: Arc::from(manager),
        timeout: Duration::from_secs(5),
    };
    let patch = StatusPatch {
        key: VariantKey::new(&*cx.namespace.name, object.name_any()),
        uid: Arc::from(object.uid().unwrap_or_default()),
        resource_version: Arc::from(object.resource_version().unwrap_or_default()),
        status,
    };
    let retired = retired.iter().map(|name| (*name).to_owned()).collect();
    let permit = permit_of_term(1);
    apply_status(permit, &api, &patch, &retired).await
}

fn stored(object: &VariantAutoscaling) -> Value {
    json!(object.status)
}

/// Helm does not replace definitions when it upgrades a release.
async fn fits_an_older_definition(cx: &Cx) -> Result {
    let definitions: Api<CustomResourceDefinition> = Api::all(cx.world.client.clone());
    let name = "variantautoscalings.llmd.ai";
    let current = definitions.get(name).await?;
    let mut older = current.clone();
    let properties = older.spec.versions[0]
        .schema
        .as_mut()
        .and_then(|schema| schema.open_api_v3_schema.as_mut())
        .and_then(|schema| schema.properties.as_mut())
        .and_then(|properties| properties.get_mut("status")?.properties.as_mut());
    let properties = properties.expect("the status has a schema");
    properties.remove("observedGeneration");
    let allocation = properties.get_mut("desiredOptimizedAlloc").expect("it is declared");
    allocation.properties.as_mut().expect("it has fields").remove("cycleID");
    definitions.replace(name, &PostParams::default(), &older).await?;

    let object = created(cx, "v").await?;
    let outcome =
        eventually("the older definition is in force", Duration::from_secs(10), async || {
            let object = objects(cx).get("v").await?;
            let written = apply(cx, "wva-1", &object, status(Some(3)), &[]).await?;
            seen(&written.fields, &StatusFields::Original)
        })
        .await;
    older.spec.versions.clone_from(&current.spec.versions);
    older.metadata = definitions.get(name).await?.metadata;
    definitions.replace(name, &PostParams::default(), &older).await?;
    outcome?;

    let object = objects(cx).get(&object.name_any()).await?;
    let allocation = &stored(&object)["desiredOptimizedAlloc"];
    assert_eq!((&allocation["numReplicas"], allocation.get("cycleID")), (&json!(3), None));
    Ok(())
}
