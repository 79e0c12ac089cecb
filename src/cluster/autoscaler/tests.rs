//! Counts are written where they were read, and only over what the decision rests on.

use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::cluster::fake::{self, FakeResponse, FakeServer, refusal, served};
use crate::policy::key::TargetKind;

const VERSION: &str = "orchestration.aibrix.ai/v1alpha1";

fn target() -> TargetKey {
    let kind = TargetKind::of(&"orchestration.aibrix.ai".into(), &"StormService".into());
    TargetKey::new("ns", kind, "pd")
}

fn decode() -> ReplicaField {
    ReplicaField::Role { index: 1, name: "decode".into() }
}

fn kinds(names: &[(&str, &str)]) -> FakeResponse {
    served(VERSION, names)
}

const SERVICES: (&str, &str) = ("stormservices", "StormService");
const WITHOUT_SCALE: &[(&str, &str)] = &[SERVICES];
const WITH_SCALE: &[(&str, &str)] = &[SERVICES, ("stormservices/scale", "Scale")];

fn service(replicas: u32, roles: &[(&str, Option<u32>)]) -> FakeResponse {
    let roles: Vec<Value> =
        roles.iter().map(|(name, replicas)| json!({"name": name, "replicas": replicas})).collect();
    FakeResponse::Json(
        200,
        json!({
            "apiVersion": VERSION, "kind": "StormService",
            "metadata": {"name": "pd", "namespace": "ns", "uid": "u"},
            "spec": {"replicas": replicas, "template": {"spec": {"roles": roles}}},
        }),
    )
}

fn scale(replicas: u32) -> FakeResponse {
    fake::scale("pd", [replicas; 2])
}

fn test_failed() -> FakeResponse {
    refusal(422, "Invalid", "the server rejected our request due to an error in our request")
}

/// Writes 4 over 2.
async fn write(server: &FakeServer, field: &ReplicaField) -> Result<bool, AutoscalerWriteError> {
    let api = server.writes("wva", 1);
    let permit = WritePermit::new(1, Instant::now() + Duration::from_mins(1));
    let write = ScaleWrite {
        target: &target(),
        api_version: VERSION,
        field,
        from: Replicas(2),
        to: Replicas(4),
    };
    api.scale(permit, &write).await
}

#[tokio::test]
async fn a_role_is_patched_with_tests_of_its_name_and_its_count() {
    // The scale subresource holds another count.
    for kinds in [WITHOUT_SCALE, WITH_SCALE].map(kinds) {
        let server =
            FakeServer::new([kinds, service(1, &[("prefill", Some(3)), ("decode", Some(4))])]);
        write(&server, &decode()).await.unwrap();
        let asked = server.asked();
        assert_eq!(asked.len(), 2);
        let path = "/apis/orchestration.aibrix.ai/v1alpha1/namespaces/ns/stormservices/pd";
        assert_eq!((&*asked[1].method, &*asked[1].path), ("PATCH", path));
        assert_eq!(asked[1].content_type, "application/json-patch+json");
        assert!(asked[1].query.contains("fieldManager=wva"));
        let roles = "/spec/template/spec/roles/1";
        assert_eq!(
            asked[1].body,
            json!([
                {"op": "test", "path": format!("{roles}/name"), "value": "decode"},
                {"op": "test", "path": format!("{roles}/replicas"), "value": 2},
                {"op": "replace", "path": format!("{roles}/replicas"), "value": 4},
            ])
        );
    }
}

#[tokio::test]
async fn a_whole_service_is_scaled_by_its_scale_or_else_in_itself() {
    let server = FakeServer::new([kinds(WITH_SCALE), scale(4)]);
    let is_written = write(&server, &ReplicaField::Service).await.unwrap();
    assert!(!is_written, "it has the count already");
    assert_eq!(server.asked().len(), 2);
    let server = FakeServer::new([kinds(WITH_SCALE), scale(2), scale(4)]);
    assert!(write(&server, &ReplicaField::Service).await.unwrap());
    let asked = server.asked();
    let methods: Vec<&str> = asked.iter().map(|asked| &*asked.method).collect();
    assert_eq!(methods, ["GET", "GET", "PUT"]);
    assert!(asked[2].path.ends_with("/stormservices/pd/scale"));
    assert_eq!(asked[2].body["spec"]["replicas"], 4);
    assert_eq!(asked[2].body["metadata"]["resourceVersion"], "7");

    let server = FakeServer::new([kinds(WITHOUT_SCALE), service(4, &[])]);
    write(&server, &ReplicaField::Service).await.unwrap();
    assert_eq!(
        server.asked()[1].body,
        json!([
            {"op": "test", "path": "/spec/replicas", "value": 2},
            {"op": "replace", "path": "/spec/replicas", "value": 4},
        ])
    );

    let server = FakeServer::new([kinds(WITH_SCALE), scale(3)]);
    let outdated = write(&server, &ReplicaField::Service).await;
    assert!(matches!(outdated, Err(AutoscalerWriteError::Outdated)));

    // What is read by its scale is written by it, or not at all.
    let server = FakeServer::new([kinds(WITHOUT_SCALE)]);
    let refused = write(&server, &ReplicaField::Scale).await.unwrap_err();
    let why = "StormService in orchestration.aibrix.ai/v1alpha1 has no scale subresource; name an object that has one in scaleTargetRef";
    assert_eq!(refused.to_string(), why);
}

#[tokio::test]
async fn a_patch_that_fails_is_judged_by_what_stands_there_now() {
    let prefill = ("prefill", Some(3));
    for (field, found, expected) in wva_base::cases! {
        // Another count, another order, another role, no count: decide again.
        (decode(), service(1, &[prefill, ("decode", Some(3))]), "Outdated"),
        (decode(), service(1, &[("decode", Some(2)), prefill]), "Outdated"),
        (decode(), service(1, &[prefill]), "Outdated"),
        (decode(), service(1, &[prefill, ("decode", None)]), "Outdated"),
        (ReplicaField::Service, service(5, &[]), "Outdated"),
        // It has the count already.
        (decode(), service(1, &[prefill, ("decode", Some(4))]), "written"),
        (ReplicaField::Service, service(4, &[]), "written"),
        // The object is not accepted.
        (decode(), service(1, &[prefill, ("decode", Some(2))]), "Failed"),
        (ReplicaField::Service, service(2, &[]), "Failed"),
        (decode(), refusal(404, "NotFound", "gone"), "Gone"),
    } {
        let server = FakeServer::new([kinds(WITHOUT_SCALE), test_failed(), found]);
        let found = match write(&server, &field).await {
            Ok(_) => "written".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        assert!(found.starts_with(expected), "{found} instead of {expected}");
        assert_eq!(server.asked().len(), 3);
    }
}

#[tokio::test]
async fn a_refused_patch_has_its_reason() {
    for (answer, expected) in wva_base::cases! {
        (refusal(404, "NotFound", "gone"), "the object is gone"),
        (refusal(409, "Conflict", "again"), "the object has changed meanwhile"),
        (refusal(403, "Forbidden", "no"), "allow the controller to get and patch stormservices"),
    } {
        let server = FakeServer::new([kinds(WITHOUT_SCALE), answer]);
        let error = write(&server, &decode()).await.unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[tokio::test]
async fn without_the_right_to_write_nothing_is_asked() {
    let server = FakeServer::new([]);
    let api = server.writes("wva", 1);
    let write = ScaleWrite {
        target: &target(),
        api_version: VERSION,
        field: &decode(),
        from: Replicas(2),
        to: Replicas(4),
    };
    let ended = WritePermit::new(1, Instant::now());
    let error = api.scale(ended, &write).await;
    assert!(matches!(error, Err(AutoscalerWriteError::Expired)));
    assert_eq!(server.asked().len(), 0);
}
