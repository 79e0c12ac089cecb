//! Statuses are applied on a real API server: by whom, over whom, and never over a live rival.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use wva::api::condition::{merge, time};
use wva::api::variant_autoscaling::{OptimizedAlloc, VariantAutoscaling, VariantAutoscalingStatus};
use wva::cluster::mirror::WriteEffect;
use wva::cluster::status::{
    StatusApi, StatusError, StatusFields, StatusPatch, StoredStatus, apply_status,
};
use wva::policy::condition::{Condition, ConditionReason, ConditionStatus, ConditionType};
use wva::policy::key::VariantKey;
use wva_base::moment::WallTime;

use crate::harness::fault::Result;
use crate::harness::permit::permit_of_term;
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::{eventually, seen};

const NOW: WallTime = WallTime(1_700_000_000_000);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "status::is_written_only_when_it_differs",
            is_written_only_when_it_differs,
        ),
        Case::shared("status::is_taken_over_from_a_merge_patcher", is_taken_over),
        Case::shared(
            "status::of_a_live_rival_is_left_alone",
            of_a_live_rival_is_left_alone,
        ),
        Case::shared(
            "status::of_another_version_is_left_alone",
            of_another_version_is_left_alone,
        ),
        Case::shared("status::loses_its_allocation", loses_its_allocation),
        Case::exclusive("status::fits_an_older_definition", fits_an_older_definition),
    ]
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
    let api = StatusApi {
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

fn owners(object: &VariantAutoscaling) -> BTreeSet<String> {
    object
        .managed_fields()
        .iter()
        .filter(|entry| entry.subresource.as_deref() == Some("status"))
        .filter_map(|entry| entry.manager.clone())
        .collect()
}

fn stored(object: &VariantAutoscaling) -> Value {
    json!(object.status)
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn is_written_only_when_it_differs(cx: &Cx) -> Result {
    let object = created(cx, "v").await?;
    assert_eq!(stored(&object), Value::Null);
    let written = apply(cx, "wva-1", &object, status(Some(3)), &[]).await?;
    assert_eq!(
        (written.change, written.fields),
        (WriteEffect::Changed, StatusFields::All)
    );
    let object = objects(cx).get("v").await?;
    assert_eq!(object.resource_version(), Some(written.resource_version));
    assert_eq!(stored(&object), json!(status(Some(3))));
    assert_eq!(object.meta().generation, Some(1));

    let again = apply(cx, "wva-1", &object, status(Some(3)), &[]).await?;
    assert_eq!(again.change, WriteEffect::Unchanged);
    let other = apply(cx, "wva-1", &object, status(Some(4)), &[]).await?;
    assert_eq!(other.change, WriteEffect::Changed);
    Ok(())
}

/// What the original does: a merge patch of the status endpoint.
async fn merge_patch(cx: &Cx, name: &str) -> Result<VariantAutoscaling> {
    let document = json!({"status": {
        "desiredOptimizedAlloc": {
            "numReplicas": 4, "accelerator": "H100", "lastRunTime": "2026-01-01T00:00:00Z",
        },
        "actuation": {"applied": false},
        "conditions": [
            {"type": "TargetResolved", "status": "True", "reason": "TargetFound",
             "message": "x", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "MetricsAvailable", "status": "True", "reason": "MetricsFound",
             "message": "x", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ],
    }});
    let parameters = PatchParams {
        field_manager: Some("manager".to_owned()),
        ..PatchParams::default()
    };
    Ok(objects(cx)
        .patch_status(name, &parameters, &Patch::Merge(document))
        .await?)
}

async fn is_taken_over(cx: &Cx) -> Result {
    created(cx, "v").await?;
    let object = merge_patch(cx, "v").await?;
    assert_eq!(owners(&object), names(&["manager"]));

    let written = apply(cx, "wva-1", &object, status(Some(5)), &[]).await?;
    assert_eq!(written.adopted, names(&["manager"]));
    let object = objects(cx).get("v").await?;
    assert_eq!(object.resource_version(), Some(written.resource_version));
    assert_eq!(owners(&object), names(&["wva-1"]));
    // Also what the other wrote and we never name: actuation, the accelerator, a condition.
    assert_eq!(stored(&object), json!(status(Some(5))));
    assert_eq!(object.spec.model_id, "m");

    // It comes back once more, with values that differ in part.
    let object = merge_patch(cx, "v").await?;
    assert_eq!(owners(&object), names(&["manager", "wva-1"]));
    apply(cx, "wva-1", &object, status(Some(5)), &[]).await?;
    let object = objects(cx).get("v").await?;
    assert_eq!(owners(&object), names(&["wva-1"]));
    assert_eq!(stored(&object), json!(status(Some(5))));
    Ok(())
}

async fn of_a_live_rival_is_left_alone(cx: &Cx) -> Result {
    let object = created(cx, "v").await?;
    apply(cx, "wva-1", &object, status(Some(3)), &[]).await?;
    let object = objects(cx).get("v").await?;

    match apply(cx, "wva-2", &object, status(Some(5)), &[]).await {
        Err(StatusError::Conflict { managers, .. }) => assert_eq!(managers, names(&["wva-1"])),
        other => panic!("{other:?}"),
    }
    let unchanged = objects(cx).get("v").await?;
    assert_eq!(unchanged.resource_version(), object.resource_version());

    // Saying the same is no conflict, but known.
    let agreed = apply(cx, "wva-2", &object, status(Some(3)), &[]).await?;
    assert_eq!(agreed.ownership_conflicts, names(&["wva-1"]));

    // A rival that is known to be dead is taken over.
    let object = objects(cx).get("v").await?;
    let written = apply(cx, "wva-2", &object, status(Some(5)), &["wva-1"]).await?;
    assert_eq!(written.adopted, names(&["wva-1"]));
    let object = objects(cx).get("v").await?;
    assert_eq!(owners(&object), names(&["wva-2"]));
    assert_eq!(stored(&object), json!(status(Some(5))));
    Ok(())
}

async fn of_another_version_is_left_alone(cx: &Cx) -> Result {
    let old = created(cx, "v").await?;
    merge_patch(cx, "v").await?;
    let result = apply(cx, "wva-1", &old, status(Some(3)), &[]).await;
    assert!(
        matches!(result, Err(StatusError::Outdated(_))),
        "{result:?}"
    );

    objects(cx).delete("v", &DeleteParams::default()).await?;
    let result = apply(cx, "wva-1", &old, status(Some(3)), &[]).await;
    assert!(matches!(result, Err(StatusError::Gone(_))), "{result:?}");

    // Another object of the same name.
    let new = created(cx, "v").await?;
    let result = apply(cx, "wva-1", &old, status(Some(3)), &[]).await;
    assert!(
        matches!(result, Err(StatusError::Outdated(_))),
        "{result:?}"
    );
    assert_eq!(stored(&objects(cx).get("v").await?), Value::Null);
    apply(cx, "wva-1", &new, status(Some(3)), &[]).await?;
    Ok(())
}

async fn loses_its_allocation(cx: &Cx) -> Result {
    let object = created(cx, "v").await?;
    apply(cx, "wva-1", &object, status(Some(3)), &[]).await?;
    let object = objects(cx).get("v").await?;
    assert_eq!(stored(&object)["desiredOptimizedAlloc"]["numReplicas"], 3);
    apply(cx, "wva-1", &object, status(None), &[]).await?;
    let object = objects(cx).get("v").await?;
    assert_eq!(stored(&object).get("desiredOptimizedAlloc"), None);
    apply(cx, "wva-1", &object, status(Some(0)), &[]).await?;
    let object = objects(cx).get("v").await?;
    assert_eq!(stored(&object)["desiredOptimizedAlloc"]["numReplicas"], 0);
    Ok(())
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
    let allocation = properties
        .get_mut("desiredOptimizedAlloc")
        .expect("it is declared");
    allocation
        .properties
        .as_mut()
        .expect("it has fields")
        .remove("cycleID");
    definitions
        .replace(name, &PostParams::default(), &older)
        .await?;

    let object = created(cx, "v").await?;
    let outcome = eventually(
        "the older definition is in force",
        Duration::from_secs(10),
        async || {
            let object = objects(cx).get("v").await?;
            let written = apply(cx, "wva-1", &object, status(Some(3)), &[]).await?;
            seen(&written.fields, &StatusFields::Original)
        },
    )
    .await;
    older.spec.versions.clone_from(&current.spec.versions);
    older.metadata = definitions.get(name).await?.metadata;
    definitions
        .replace(name, &PostParams::default(), &older)
        .await?;
    outcome?;

    let object = objects(cx).get(&object.name_any()).await?;
    let allocation = &stored(&object)["desiredOptimizedAlloc"];
    assert_eq!(
        (&allocation["numReplicas"], allocation.get("cycleID")),
        (&json!(3), None)
    );
    Ok(())
}
