//! What the API server says about a kind and its objects, in words that help.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ReadError, ScaleApi, ScaleKind, ScaleReading};
use crate::cluster::fake::{FakeResponse, FakeServer, refusal};
use crate::policy::key::{GroupKind, TargetKey, TargetKind};
use crate::policy::units::Replicas;

fn kind() -> ScaleKind {
    ScaleKind {
        kind: Arc::new(GroupKind {
            group: "argoproj.io".into(),
            kind: "Rollout".into(),
        }),
        version: "v1alpha1".into(),
    }
}

fn target() -> TargetKey {
    TargetKey::new("ns", TargetKind::Other(kind().kind), "r")
}

fn resources(names: &[(&str, &str)]) -> FakeResponse {
    let resources: Vec<Value> = names
        .iter()
        .map(|(name, kind)| {
            json!({
                "name": name, "kind": kind, "namespaced": true, "singularName": "", "verbs": ["get"],
            })
        })
        .collect();
    FakeResponse::Json(
        200,
        json!({
            "apiVersion": "v1", "kind": "APIResourceList",
            "groupVersion": "argoproj.io/v1alpha1", "resources": resources,
        }),
    )
}

fn api(server: &FakeServer) -> ScaleApi {
    ScaleApi {
        client: server.client(),
        timeout: Duration::from_secs(1),
    }
}

#[tokio::test]
async fn a_kind_is_asked_for_by_what_it_is_served_as() {
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": { "name": "r", "namespace": "ns", "uid": "u" },
        "spec": { "replicas": 3 }, "status": { "replicas": 2 },
    });
    let server = FakeServer::new([
        resources(&[("rollouts", "Rollout"), ("rollouts/scale", "Scale")]),
        FakeResponse::Json(200, scale),
        refusal(404, "NotFound", "rollouts \"r\" not found"),
        refusal(403, "Forbidden", "cannot get rollouts/scale"),
        refusal(503, "ServiceUnavailable", "later"),
    ]);
    let api = api(&server);
    let resource = api.discover(&kind()).await.unwrap().unwrap();
    let ScaleReading::Found(found) = api.read(&target(), &resource).await.unwrap() else {
        panic!("it is there")
    };
    assert_eq!(
        (&*found.uid, found.spec_replicas, found.status_replicas),
        ("u", Some(Replicas(3)), Replicas(2))
    );
    let missing = api.read(&target(), &resource).await.unwrap();
    assert_eq!(missing, ScaleReading::Missing);
    let denied = api.read(&target(), &resource).await.unwrap_err();
    assert!(matches!(denied, ReadError::Denied { .. }), "{denied:?}");
    let why = denied.to_string();
    assert!(
        why.ends_with("allow the controller to get rollouts/scale of group \"argoproj.io\""),
        "{why}"
    );
    let later = api.read(&target(), &resource).await;
    assert!(matches!(later, Err(ReadError::Failed(error)) if error.code() == Some(503)));
    let paths: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    let path = "/apis/argoproj.io/v1alpha1/namespaces/ns/rollouts/r/scale";
    assert_eq!(paths[0], "/apis/argoproj.io/v1alpha1");
    assert!(paths[1..].iter().all(|asked| asked == path), "{paths:?}");
}

/// What a rollout has beyond what is asked for stays no longer than it: a kind that says nothing of its rollouts
/// may have one at any time, and one that has none never does.
#[tokio::test]
async fn replicas_of_a_kind_that_may_roll_out_may_all_be_old_ones() {
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": { "name": "r", "namespace": "ns", "uid": "u" },
        "spec": { "replicas": 3 }, "status": { "replicas": 4 },
    });
    for (group, kind, outdated) in [
        ("argoproj.io", "Rollout", 4),
        ("apps", "ReplicaSet", 0),
        ("", "ReplicationController", 0),
    ] {
        let names = vec![
            json!({
                "name": "things", "kind": kind, "namespaced": true, "singularName": "", "verbs": ["get"],
            }),
            json!({
                "name": "things/scale", "kind": "Scale", "namespaced": true, "singularName": "", "verbs": ["get"],
            }),
        ];
        let list = FakeResponse::Json(
            200,
            json!({"kind": "APIResourceList", "groupVersion": "-", "resources": names}),
        );
        let server = FakeServer::new([list, FakeResponse::Json(200, scale.clone())]);
        let api = api(&server);
        let kind = ScaleKind {
            kind: Arc::new(GroupKind {
                group: group.into(),
                kind: kind.into(),
            }),
            version: "v1".into(),
        };
        let resource = api.discover(&kind).await.unwrap().unwrap();
        let target = TargetKey::new("ns", TargetKind::Other(kind.kind), "r");
        let ScaleReading::Found(found) = api.read(&target, &resource).await.unwrap() else {
            panic!("it is there")
        };
        assert_eq!(found.status_replicas, Replicas(4));
        assert_eq!(found.outdated_replicas, Replicas(outdated));
    }
}

#[tokio::test]
async fn a_kind_that_cannot_be_scaled_is_told_with_the_remedy() {
    for (answer, expected) in [
        (
            refusal(404, "NotFound", "page not found"),
            "the API server does not serve Rollout in argoproj.io/v1alpha1; install",
        ),
        (
            resources(&[("analyses", "Analysis"), ("rollouts/status", "Rollout")]),
            "the API server does not serve Rollout in argoproj.io/v1alpha1; install",
        ),
        (
            resources(&[("rollouts", "Rollout")]),
            "Rollout in argoproj.io/v1alpha1 has no scale subresource",
        ),
    ] {
        let server = FakeServer::new([answer]);
        let why = api(&server).discover(&kind()).await.unwrap().unwrap_err();
        assert!(why.starts_with(expected), "{why}");
    }
    let server = FakeServer::new([refusal(500, "InternalError", "no")]);
    assert!(api(&server).discover(&kind()).await.is_err());
}
