//! What the API server says about a kind and its objects, in words that help.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    ReadError, ReadForm, ScaleApi, ScaleKind, ScaleReading, ScaleSource, autoscaler_target,
};
use crate::api::pod_autoscaler::PodAutoscaler;
use crate::cluster::fake::{FakeResponse, FakeServer, refusal, scale, served};
use crate::cluster::project::{Interner, Projected};
use crate::policy::gpu::GpuCount;
use crate::policy::key::{GroupKind, TargetKey, TargetKind};
use crate::policy::pod_autoscaler::storm_service::{StormServiceObject, StormServiceRole};
use crate::policy::pod_autoscaler::tuning::StormServiceMode;
use crate::policy::units::Replicas;

fn kind() -> ScaleKind {
    ScaleKind {
        kind: Arc::new(GroupKind { group: "argoproj.io".into(), kind: "Rollout".into() }),
        version: "v1alpha1".into(),
    }
}

fn target() -> TargetKey {
    TargetKey::new("ns", TargetKind::Other(kind().kind), "r")
}

fn resources(names: &[(&str, &str)]) -> FakeResponse {
    served("argoproj.io/v1alpha1", names)
}

fn api(server: &FakeServer) -> ScaleApi {
    ScaleApi { client: server.client(), timeout: Duration::from_secs(1) }
}

#[tokio::test]
async fn a_kind_is_asked_for_by_what_it_is_served_as() {
    let server = FakeServer::new([
        resources(&[("rollouts", "Rollout"), ("rollouts/scale", "Scale")]),
        scale("r", [3, 2]),
        refusal(404, "NotFound", "rollouts \"r\" not found"),
        refusal(403, "Forbidden", "cannot get rollouts/scale"),
        refusal(503, "ServiceUnavailable", "later"),
    ]);
    let api = api(&server);
    let resource = api.discover(&kind()).await.unwrap().unwrap();
    let ScaleReading::Found(found) = api.read(&target(), &resource, ReadForm::Scale).await.unwrap()
    else {
        panic!("it is there")
    };
    assert_eq!(
        (&*found.object.uid, found.object.spec_replicas, found.object.status_replicas),
        ("u", Some(Replicas(3)), Replicas(2))
    );
    let missing = api.read(&target(), &resource, ReadForm::Scale).await.unwrap();
    assert_eq!(missing, ScaleReading::Missing);
    let denied = api.read(&target(), &resource, ReadForm::Scale).await.unwrap_err();
    assert!(matches!(denied, ReadError::Denied { .. }), "{denied:?}");
    let why = denied.to_string();
    assert!(
        why.ends_with("allow the controller to get rollouts/scale of group \"argoproj.io\""),
        "{why}"
    );
    let later = api.read(&target(), &resource, ReadForm::Scale).await;
    assert!(matches!(later, Err(ReadError::Failed(error)) if error.code() == Some(503)));
    let paths: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    let path = "/apis/argoproj.io/v1alpha1/namespaces/ns/rollouts/r/scale";
    assert_eq!(paths[0], "/apis/argoproj.io/v1alpha1");
    assert!(paths[1..].iter().all(|asked| asked == path), "{paths:?}");
}

#[tokio::test]
async fn a_version_that_is_no_part_of_a_path_is_not_asked_for() {
    for version in ["apps/../../api/v1", "apps/v1/..", "..", "apps/%2e%2e", "apps/", ""] {
        let server = FakeServer::new([]);
        let kind = ScaleKind::of(version, &"Deployment".into());
        let why = api(&server).discover(&kind).await.unwrap().unwrap_err();
        let expected = format!("{version:?} is no group and version; correct scaleTargetRef");
        assert_eq!(&*why, expected);
        assert!(server.asked().is_empty(), "{version}");
    }
}

/// What a rollout has beyond what is asked for stays no longer than it: a kind that says nothing of its rollouts
/// may have one at any time, and one that has none never does.
#[tokio::test]
async fn replicas_of_a_kind_that_may_roll_out_may_all_be_old_ones() {
    for (group, kind, outdated) in
        [("argoproj.io", "Rollout", 4), ("apps", "ReplicaSet", 0), ("", "ReplicationController", 0)]
    {
        let list = served("-", &[("things", kind), ("things/scale", "Scale")]);
        let server = FakeServer::new([list, scale("r", [3, 4])]);
        let api = api(&server);
        let kind = ScaleKind {
            kind: Arc::new(GroupKind { group: group.into(), kind: kind.into() }),
            version: "v1".into(),
        };
        let resource = api.discover(&kind).await.unwrap().unwrap();
        let target = TargetKey::new("ns", TargetKind::Other(kind.kind), "r");
        let ScaleReading::Found(found) =
            api.read(&target, &resource, ReadForm::Scale).await.unwrap()
        else {
            panic!("it is there")
        };
        assert_eq!(found.object.status_replicas, Replicas(4));
        assert_eq!(found.object.outdated_replicas, Replicas(outdated));
    }
}

#[tokio::test]
async fn a_kind_that_cannot_be_scaled_is_named_with_the_remedy() {
    for (answer, expected) in wva_base::cases! {
        (refusal(404, "NotFound", "page not found"),
         "the API server does not serve Rollout in argoproj.io/v1alpha1; install"),
        (resources(&[("analyses", "Analysis"), ("rollouts/status", "Rollout")]),
         "the API server does not serve Rollout in argoproj.io/v1alpha1; install"),
        (resources(&[("rollouts", "Rollout")]), "Rollout in argoproj.io/v1alpha1 has no scale subresource"),
    } {
        let server = FakeServer::new([answer]);
        let why = api(&server).discover(&kind()).await.unwrap().unwrap_err();
        assert!(why.starts_with(expected), "{why}");
    }
    let server = FakeServer::new([refusal(500, "InternalError", "no")]);
    assert!(api(&server).discover(&kind()).await.is_err());
}

fn storm_service() -> (ScaleSource, TargetKey) {
    let kind = ScaleKind::of("orchestration.aibrix.ai/v1alpha1", &"StormService".into());
    let target = TargetKey::new("ns", TargetKind::Other(Arc::clone(&kind.kind)), "pd");
    let form = ReadForm::StormService;
    (ScaleSource { kind, form }, target)
}

#[tokio::test]
async fn a_selector_is_kept_as_it_is_stated_or_with_what_is_wrong_in_it() {
    let scale = |selector: Value| {
        FakeResponse::Json(
            200,
            json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": { "name": "r", "namespace": "ns", "uid": "u" },
                "spec": { "replicas": 3 }, "status": { "replicas": 2, "selector": selector },
            }),
        )
    };
    for (selector, expected) in [
        (Value::Null, None),
        (json!(" "), None),
        (json!("app=llm,!spot"), Some(Ok("app in (llm),!spot"))),
        (json!("app=llm,=x"), Some(Err("=x"))),
    ] {
        let kinds = resources(&[("rollouts", "Rollout"), ("rollouts/scale", "Scale")]);
        let server = FakeServer::new([kinds, scale(selector.clone())]);
        let api = api(&server);
        let resource = api.discover(&kind()).await.unwrap().unwrap();
        let read = api.read(&target(), &resource, ReadForm::Scale).await;
        let ScaleReading::Found(read) = read.unwrap() else { panic!("it is there") };
        assert_eq!(read.service, None);
        assert_eq!(read.object.template.gpu_count, GpuCount::Unknown);
        let found = read.selector.as_ref().map(|found| match found {
            Ok(selector) => Ok(selector.to_string()),
            Err(why) => Err(why.term.clone()),
        });
        let expected = expected.map(|one| one.map(str::to_owned).map_err(str::to_owned));
        assert_eq!(found, expected, "{selector}");
    }
}

#[tokio::test]
async fn a_storm_service_is_read_itself_whether_it_has_a_scale_or_not() {
    let object = json!({
        "apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": "StormService",
        "metadata": { "name": "pd", "namespace": "ns", "uid": "u", "generation": 4 },
        "spec": {
            "replicas": 2, "mode": "Pooled",
            "template": { "spec": { "roles": [
                { "name": "prefill", "replicas": 3, "podGroupSize": 2 },
                { "name": "decode" },
                { "name": "bad", "replicas": -1 },
            ] } },
        },
        "status": { "replicas": 1, "observedGeneration": 3 },
    });
    let (source, target) = storm_service();
    for names in [
        &[("stormservices", "StormService")][..],
        &[("stormservices", "StormService"), ("stormservices/scale", "Scale")],
    ] {
        let server = FakeServer::new([
            resources(names),
            FakeResponse::Json(200, object.clone()),
            refusal(403, "Forbidden", "cannot get stormservices"),
        ]);
        let api = api(&server);
        let resource = api.discover_source(&source).await.unwrap().unwrap();
        let ScaleReading::Found(read) = api.read(&target, &resource, source.form).await.unwrap()
        else {
            panic!("it is there")
        };
        let found = &read.object;
        assert_eq!(
            (&*found.uid, found.spec_replicas, found.status_replicas),
            ("u", Some(Replicas(2)), Replicas(1))
        );
        assert_eq!((found.generation, found.observed_generation), (4, 3));
        let role = |name: &str, replicas: Option<u32>, pod_group_size| StormServiceRole {
            name: name.into(),
            replicas: replicas.map(Replicas),
            pod_group_size,
        };
        let service = StormServiceObject {
            replicas: Some(Replicas(2)),
            mode: Some(StormServiceMode::Pooled),
            roles: vec![
                role("prefill", Some(3), Some(2)),
                role("decode", None, None),
                role("bad", None, None),
            ],
        };
        assert_eq!(read.service, Some(service));
        let denied = api.read(&target, &resource, source.form).await.unwrap_err();
        let why = denied.to_string();
        let remedy =
            "allow the controller to get stormservices of group \"orchestration.aibrix.ai\"";
        assert!(why.ends_with(remedy), "{why}");
        let path = "/apis/orchestration.aibrix.ai/v1alpha1/namespaces/ns/stormservices/pd";
        assert_eq!(server.asked()[1].path, path);
    }
}

#[test]
fn a_reference_that_cannot_be_part_of_a_path_is_not_read() {
    let source = |api_version: &str, kind: &str, name: &str| {
        let object = json!({
            "metadata": {"namespace": "ns", "name": "pa", "uid": "u"},
            "spec": {"scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name}},
        });
        let object: PodAutoscaler = serde_json::from_value(object).unwrap();
        autoscaler_target(&object.project(&mut Interner::default()))
    };
    let (storm, target) = storm_service();
    let version = "orchestration.aibrix.ai/v1alpha1";
    assert_eq!(source(version, "StormService", "pd"), Some((target, storm)));
    let fleet = source(version, "RayClusterFleet", "f").unwrap().1;
    assert_eq!(fleet.form, ReadForm::Scale);
    let core = source("v1", "ReplicationController", "c").unwrap().1;
    assert_eq!((&*core.kind.kind.group, &*core.kind.version), ("", "v1"));
    for (api_version, kind, name) in [
        ("apps/v1", "Deployment", "d"),
        ("", "Rollout", "r"),
        ("a/b/c", "Rollout", "r"),
        ("../v1", "Rollout", "r"),
        ("argoproj.io/v1alpha1", "Roll/out", "r"),
        ("argoproj.io/v1alpha1", "Rollout", "r/../s"),
        ("argoproj.io/v1alpha1", "Rollout", ""),
    ] {
        let found = source(api_version, kind, name);
        assert_eq!(found, None, "{api_version} {kind} {name}");
    }
}
