use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{StatusError, StatusFields, StatusPatch, StoredStatus, apply_status};
use crate::api::condition::{merge, time};
use crate::api::variant_autoscaling::{OptimizedAlloc, VariantAutoscalingStatus};
use crate::cluster::fake::{FakeResponse, FakeServer, refusal};
use crate::cluster::permit::WritePermit;
use crate::policy::condition::{Condition, ConditionReason, ConditionStatus, ConditionType};
use crate::policy::key::VariantKey;
use wva_base::moment::WallTime;

const PATH: &str = "/apis/llmd.ai/v1alpha1/namespaces/a/variantautoscalings/v";

fn patch() -> StatusPatch {
    let now = WallTime(1_700_000_000_000);
    let found = Condition {
        kind: ConditionType::TargetResolved,
        status: ConditionStatus::True,
        reason: ConditionReason::TargetFound,
        message: "Scale target Deployment d found".to_owned(),
    };
    StatusPatch {
        key: VariantKey::new("a", "v"),
        uid: Arc::from("u-1"),
        resource_version: Arc::from("7"),
        status: VariantAutoscalingStatus {
            observed_generation: Some(2),
            desired_optimized_alloc: Some(OptimizedAlloc {
                num_replicas: Some(3),
                accelerator: Some("H100".to_owned()),
                last_run_time: Some(time(now)),
                cycle_id: Some(9),
            }),
            actuation: None,
            conditions: merge(&[], &[found], 2, now),
        },
    }
}

fn owner(manager: &str, operation: &str, fields: &[&str]) -> Value {
    let fields: Value = fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
    json!({
        "manager": manager, "operation": operation, "subresource": "status",
        "apiVersion": "llmd.ai/v1alpha1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": fields},
    })
}

fn stored(version: &str, owners: &[Value]) -> FakeResponse {
    FakeResponse::Json(
        200,
        json!({
            "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
            "metadata": {
                "namespace": "a", "name": "v", "uid": "u-1", "resourceVersion": version,
                "managedFields": owners,
            },
            "spec": {"anything": true},
        }),
    )
}

fn collision(managers: &[&str]) -> FakeResponse {
    let causes: Vec<_> = managers
        .iter()
        .map(|manager| {
            json!({
                "reason": "FieldManagerConflict", "field": ".status.x",
                "message": format!("conflict with \"{manager}\" with subresource \"status\""),
            })
        })
        .collect();
    FakeResponse::Json(
        409,
        json!({
            "kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict",
            "message": "Apply failed", "details": {"causes": causes},
        }),
    )
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn apply(server: &FakeServer, retired: &[&str]) -> Result<StoredStatus, StatusError> {
    let api = server.writes("wva-me", 5);
    let permit = WritePermit::new(1, Instant::now() + Duration::from_mins(1));
    apply_status(permit, &api, &patch(), &names(retired)).await
}

#[tokio::test(start_paused = true)]
async fn a_status_is_applied_without_force_and_with_its_identity() {
    let server = FakeServer::new([stored("8", &[owner("wva-me", "Apply", &["f:a"])])]);
    let written = apply(&server, &[]).await.unwrap();
    assert_eq!(
        written,
        StoredStatus {
            resource_version: "8".to_owned(),
            ownership_conflicts: names(&[]),
            fields: StatusFields::All,
        }
    );
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].path, format!("{PATH}/status"));
    assert_eq!(asked[0].content_type, "application/apply-patch+yaml");
    assert_eq!(asked[0].query.trim_matches('&'), "fieldManager=wva-me");
    assert_eq!(
        asked[0].body,
        json!({
            "apiVersion": "llmd.ai/v1alpha1",
            "kind": "VariantAutoscaling",
            "metadata": {"namespace": "a", "name": "v", "uid": "u-1", "resourceVersion": "7"},
            "status": {
                "observedGeneration": 2,
                "desiredOptimizedAlloc": {
                    "numReplicas": 3, "accelerator": "H100",
                    "lastRunTime": "2023-11-14T22:13:20Z", "cycleID": 9,
                },
                "conditions": [{
                    "type": "TargetResolved", "status": "True", "reason": "TargetFound",
                    "message": "Scale target Deployment d found", "observedGeneration": 2,
                    "lastTransitionTime": "2023-11-14T22:13:20Z",
                }],
            },
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_foreign_owner_loses_its_fields_for_good() {
    let owners = [owner("manager", "Update", &["f:b"])];
    let server = FakeServer::new([
        collision(&["manager"]),
        stored("7", &owners),
        stored("8", &[owner("wva-me", "Apply", &["f:b"])]),
        stored("9", &[owner("wva-me", "Apply", &["f:a"])]),
    ]);
    let written = apply(&server, &[]).await.unwrap();
    assert_eq!(written.resource_version, "9");

    let asked = server.asked();
    let calls: Vec<_> = asked
        .iter()
        .map(|asked| (&*asked.method, asked.path.trim_start_matches(PATH), &*asked.content_type))
        .collect();
    let apply = ("PATCH", "/status", "application/apply-patch+yaml");
    let adopt = ("PATCH", "", "application/merge-patch+json");
    assert_eq!(calls, [apply, ("GET", "", "application/json"), adopt, apply]);
    assert_eq!(
        asked[2].body,
        json!({"metadata": {
            "uid": "u-1", "resourceVersion": "7",
            "managedFields": [owner("wva-me", "Apply", &["f:b"])],
        }})
    );
    assert_eq!(asked[3].body.pointer("/metadata/resourceVersion"), Some(&json!("8")));
    assert!(asked.iter().all(|asked| !asked.query.contains("force")), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_owner_that_says_the_same_is_found_as_well() {
    let server = FakeServer::new([
        stored("8", &[owner("wva-me", "Apply", &["f:a"]), owner("manager", "Update", &["f:b"])]),
        stored("9", &[owner("wva-me", "Apply", &["f:a", "f:b"])]),
        stored("10", &[owner("wva-me", "Apply", &["f:a"])]),
    ]);
    let written = apply(&server, &[]).await.unwrap();
    assert_eq!(written.resource_version, "10");
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_live_controller_of_our_kind_is_left_alone() {
    let server = FakeServer::new([collision(&["manager", "wva-other"])]);
    match apply(&server, &[]).await {
        Err(StatusError::Conflict { key, managers }) => {
            assert_eq!(key, VariantKey::new("a", "v"));
            assert_eq!(managers, names(&["wva-other"]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_everybody_may_read_of_an_error_names_no_object() {
    let key = patch().key.to_string();
    for (code, is_public) in [(503, true), (429, true), (403, true), (422, false), (404, false)] {
        let server = FakeServer::new([refusal(code, "", "its own words")]);
        let error = apply(&server, &[]).await.unwrap_err();
        assert!(error.to_string().contains(&key), "{error}");
        let grievance = error.grievance();
        assert_eq!(grievance.is_some(), is_public, "{error}");
        if let Some(text) = grievance {
            assert!(text.contains("its own words") && !text.contains(&key), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_our_kind_that_agrees_is_named() {
    let owners = [owner("wva-me", "Apply", &["f:a"]), owner("wva-other", "Apply", &["f:a"])];
    let server = FakeServer::new([stored("8", &owners)]);
    let written = apply(&server, &[]).await.unwrap();
    assert_eq!(written.ownership_conflicts, names(&["wva-other"]));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_our_kind_that_is_dead_loses_its_fields() {
    let server = FakeServer::new([
        collision(&["wva-other"]),
        stored("7", &[owner("wva-other", "Apply", &["f:b"])]),
        stored("8", &[owner("wva-me", "Apply", &["f:b"])]),
        stored("9", &[owner("wva-me", "Apply", &["f:a"])]),
    ]);
    let written = apply(&server, &["wva-other"]).await.unwrap();
    assert_eq!(written.resource_version, "9");
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_moved_is_not_taken_over() {
    let server = FakeServer::new([
        collision(&["manager"]),
        stored("8", &[owner("manager", "Update", &["f:b"])]),
    ]);
    let result = apply(&server, &[]).await;
    assert!(matches!(result, Err(StatusError::Outdated(_))), "{result:?}");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_writes_during_the_takeover_means_another_try() {
    let server = FakeServer::new([
        collision(&["manager"]),
        stored("7", &[owner("manager", "Update", &["f:b"])]),
        stored("8", &[owner("wva-me", "Apply", &["f:b"])]),
        collision(&["manager"]),
    ]);
    let result = apply(&server, &[]).await;
    assert!(matches!(result, Err(StatusError::Outdated(_))), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn an_older_definition_gets_the_fields_that_it_knows() {
    let undeclared = "failed to create typed patch object (a/v; llmd.ai/v1alpha1, \
        Kind=VariantAutoscaling): .status.desiredOptimizedAlloc.cycleID: field not declared in schema";
    let server = FakeServer::new([
        refusal(500, "", undeclared),
        stored("8", &[owner("wva-me", "Apply", &["f:a"])]),
    ]);
    let written = apply(&server, &[]).await.unwrap();
    assert_eq!(written.fields, StatusFields::Original);
    let status = &server.asked()[1].body["status"];
    assert_eq!(status.pointer("/desiredOptimizedAlloc/numReplicas"), Some(&json!(3)));
    assert_eq!(status.pointer("/desiredOptimizedAlloc/cycleID"), None);
    assert_eq!(status.pointer("/observedGeneration"), None);
}

#[tokio::test(start_paused = true)]
async fn an_empty_allocation_is_left_out() {
    let server = FakeServer::new([stored("8", &[owner("wva-me", "Apply", &["f:a"])])]);
    let mut emptied = patch();
    emptied.status.desired_optimized_alloc = Some(OptimizedAlloc::default());
    let api = server.writes("wva-me", 5);
    let permit = WritePermit::new(1, Instant::now() + Duration::from_mins(1));
    apply_status(permit, &api, &emptied, &names(&[])).await.unwrap();
    let status = &server.asked()[0].body["status"];
    assert!(status.get("desiredOptimizedAlloc").is_none(), "{status}");
    assert!(status.get("conditions").is_some(), "{status}");
}

#[tokio::test(start_paused = true)]
async fn no_request_starts_when_the_permit_would_not_outlive_it() {
    let slow = FakeServer::new([FakeResponse::Hang]);
    let api = |server: &FakeServer| server.writes("wva-me", 5);
    let short = WritePermit::new(1, Instant::now() + Duration::from_secs(4));
    let result = apply_status(short, &api(&slow), &patch(), &names(&[])).await;
    assert!(matches!(result, Err(StatusError::Expired(_))), "{result:?}");
    assert_eq!(slow.asked().len(), 0);

    // Also between two requests of one apply: the collision is answered after the permit's end.
    let (lines, body) = tokio::sync::mpsc::unbounded_channel();
    let server = FakeServer::new([FakeResponse::Lines(body)]);
    let permit = WritePermit::new(1, Instant::now() + Duration::from_secs(5));
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let owners = [owner("manager", "Update", &["f:b"])];
        let FakeResponse::Json(_, object) = stored("8", &owners) else {
            return;
        };
        lines.send(object.to_string()).unwrap();
        drop(lines);
    };
    let (api, patch, none) = (api(&server), patch(), names(&[]));
    let (result, ()) = futures::join!(apply_status(permit, &api, &patch, &none), late);
    assert!(matches!(result, Err(StatusError::Expired(_))), "{result:?}");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_refusal_has_its_meaning() {
    type Expected = fn(&StatusError) -> bool;
    let cases: [(FakeResponse, Expected); 9] = [
        (refusal(404, "NotFound", "no"), |error| matches!(error, StatusError::Gone(_))),
        (refusal(409, "Conflict", "modified"), |error| matches!(error, StatusError::Outdated(_))),
        (refusal(403, "Forbidden", "no"), |error| matches!(error, StatusError::Forbidden { .. })),
        (refusal(422, "Invalid", "no"), |error| matches!(error, StatusError::Invalid { .. })),
        (refusal(500, "InternalError", "no"), |error| matches!(error, StatusError::Retry { .. })),
        (refusal(503, "Unavailable", "no"), |error| matches!(error, StatusError::Retry { .. })),
        (FakeResponse::Break, |error| matches!(error, StatusError::Retry { .. })),
        (FakeResponse::Hang, |error| matches!(error, StatusError::Retry { .. })),
        (
            FakeResponse::Json(
                429,
                json!({"kind": "Status", "code": 429, "message": "later",
                    "details": {"retryAfterSeconds": 7}}),
            ),
            |error| error.retry_after() == Some(Duration::from_secs(7)),
        ),
    ];
    for (answer, expected) in cases {
        let server = FakeServer::new([answer]);
        let error = apply(&server, &[]).await.unwrap_err();
        assert!(expected(&error), "{error:?}");
        assert!(error.to_string().starts_with("status of a/v"), "{error}");
    }
}
