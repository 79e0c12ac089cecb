//! The fleet from objects, with and without the controller.

mod pod_autoscalers;

use serde_json::{Value, json};

use super::enrich::{add_ages, add_decisions, old_note};
use super::fleet::FleetStatus;
use super::objects::{FleetObjects, list_events};
use super::render;
use crate::cluster::fake::{FakeResponse, FakeServer};
use wva_base::moment::WallTime;

fn variant(name: &str, cost: &str, desired: Option<u64>) -> Value {
    let conditions = json!([
        {"type": "MetricsAvailable", "status": "True", "message": "metrics are there"},
        {"type": "OptimizationReady", "status": "True", "message": "saturation decided"},
        {"type": "Ready", "status": "True", "message": "all is there"},
    ]);
    let status = json!({
        "desiredOptimizedAlloc": desired.map(|count| json!({"numReplicas": count})),
        "conditions": conditions,
    });
    json!({
        "metadata": {"namespace": "serving", "name": name},
        "spec": {"modelID": "llama", "variantCost": cost, "scaleTargetRef": {"name": name}},
        "status": desired.map(|_| status),
    })
}

fn workload(name: &str, current: u64, ready: u64) -> (&'static str, Value) {
    let object = json!({
        "metadata": {"namespace": "serving", "name": name},
        "spec": {"replicas": current},
        "status": {"replicas": current, "readyReplicas": ready},
    });
    ("Deployment", object)
}

fn scaler(name: &str, target: &str, owner: Option<&str>) -> Value {
    json!({
        "metadata": {
            "namespace": "serving", "name": name,
            "ownerReferences": owner.map(|kind| json!([{"apiVersion": "keda.sh/v1alpha1", "kind": kind}])),
        },
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": target}},
    })
}

fn objects() -> FleetObjects {
    FleetObjects {
        variants: vec![variant("l4", "10.5", Some(3)), variant("h100", "40", None)],
        workloads: vec![workload("l4", 2, 1), workload("h100", 1, 1)],
        hpas: vec![
            scaler("follows", "l4", None),
            scaler("keda-hpa-h100", "h100", Some("ScaledObject")),
        ],
        scaled_objects: vec![scaler("h100", "h100", None)],
        ..FleetObjects::default()
    }
}

#[test]
fn a_fleet_is_shown_by_model_and_variant() {
    assert_eq!(
        render::table(&FleetStatus::of(&FleetObjects::default()), None),
        "no VariantAutoscalings and no PodAutoscalers\n"
    );
    assert_eq!(
        render::table(&FleetStatus::of(&FleetObjects::default()), Some("a")),
        "no VariantAutoscalings and no PodAutoscalers in namespace a; -A shows all namespaces\n"
    );
    let status = FleetStatus::of(&objects());
    let wanted = "\
MODEL / VARIANT  CURRENT  DESIRED  READY  PENDING  GATED  SCALER             SIGNALS  COST  LAST DECISION
serving/llama    3        -        2      1        -                                  61.0
  h100           1        -        1      0        -      ScaledObject/h100  -        40.0  no controller has written a status
  l4             2        3        1      1        -      HPA/follows        -        21.0  saturation decided
";
    assert_eq!(render::table(&status, None), wanted);
    let document: Value = serde_json::from_str(&render::json(&status).unwrap()).unwrap();
    assert_eq!(document["variants"][1]["pending"], 1);
    assert_eq!(document["variants"][0]["desired"], Value::Null);
}

/// Replicas that wait for admission have not begun to start.
#[tokio::test]
async fn gated_replicas_are_no_pending_ones() {
    let gate = json!([{"name": "kueue.x-k8s.io/admission"}]);
    let pod = |name: &str, labels: Value, gates: &Value| {
        json!({
            "metadata": {"namespace": "serving", "name": name, "labels": labels},
            "spec": {"schedulingGates": gates},
        })
    };
    let worker = |index: &str| {
        json!({
            "leaderworkerset.sigs.k8s.io/name": "groups",
            "leaderworkerset.sigs.k8s.io/worker-index": index,
        })
    };
    let mut fleet = objects();
    let (_, mut l4) = workload("l4", 4, 1);
    l4["spec"]["selector"] = json!({"matchLabels": {"app": "l4"}});
    let (_, groups) = workload("groups", 2, 1);
    fleet.workloads = vec![("Deployment", l4), ("LeaderWorkerSet", groups)];
    let mut of_groups = variant("groups", "1", Some(2));
    of_groups["spec"]["scaleTargetRef"]["kind"] = json!("LeaderWorkerSet");
    fleet.variants = vec![variant("l4", "1", Some(4)), of_groups];
    let server = FakeServer::new([
        list(&[
            pod("a", json!({"app": "l4"}), &gate),
            pod("b", json!({"app": "l4"}), &gate),
            pod("starts", json!({"app": "l4"}), &Value::Null),
            pod("other", json!({"app": "other"}), &gate),
            pod("leader", worker("0"), &gate),
            pod("worker", worker("1"), &gate),
        ]),
        refused(403),
    ]);
    let read = fleet.clone().with_gated(&server.client(), None).await;
    let status = FleetStatus::of(&read);
    let counts = status.variants.iter().map(|row| {
        let replicas = row.replicas;
        (&*row.name, replicas.pending, replicas.gated)
    });
    let expected = [("groups", Some(0), Some(1)), ("l4", Some(1), Some(2))];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
    let document: Value = serde_json::from_str(&render::json(&status).unwrap()).unwrap();
    assert_eq!(document["variants"][1]["gated"], 2);
    assert!(
        render::table(&status, None)
            .contains("  l4             4        4        1      1        2 ")
    );
    let query = &server.asked()[0].query;
    assert!(query.contains("status.phase%3DPending"), "{query}");

    let unread = fleet.with_gated(&server.client(), None).await;
    assert!(unread.notes[0].contains("grant list on pods, or"), "{:?}", unread.notes);
    assert_eq!(FleetStatus::of(&unread).variants[1].replicas.gated, None);
}

#[test]
fn a_document_has_targets_and_scalers_of_the_own_objects_only() {
    let mut objects = objects();
    let (whole, _) = objects.clone().into_document();
    objects.workloads.push(workload("database", 1, 1));
    objects.workloads.push(("StatefulSet", workload("l4", 1, 1).1));
    objects.hpas.push(scaler("database", "database", None));
    objects.scaled_objects.push(scaler("database", "database", None));
    let (document, notes) = objects.into_document();
    assert_eq!(document["workloads"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["horizontalPodAutoscalers"][0]["metadata"]["name"], "follows");
    assert_eq!(document, whole);
    assert_eq!(notes, Vec::<String>::new());
}

/// An HPA that declares a variant.
fn annotated(name: &str, target: &str, model: &str) -> Value {
    let mut object = scaler(name, target, None);
    object["metadata"]["annotations"] =
        json!({"llm-d.ai/managed": "true", "llm-d.ai/model-id": model});
    object["spec"]["maxReplicas"] = json!(4);
    object
}

#[test]
fn a_declared_variant_without_a_count_or_with_a_rival_says_so() {
    let waits = |name| {
        format!(
            "no decision is stored yet; see the events of HorizontalPodAutoscaler serving/{name}"
        )
    };
    let dispute = |one: &str, other: &str, what: &str| {
        format!(
            "{one} and {other} claim one {what}, and none of them scales it; delete one, or set its annotation \
             llm-d.ai/managed to \"false\""
        )
    };
    let va = |name| format!("VariantAutoscaling serving/{name}");
    let hpa = |name| format!("HorizontalPodAutoscaler serving/{name}");
    let status = "no controller has written a status".to_owned();
    for (case, scaler, decisions) in [
        ("alone", annotated("b", "x", "m"), [status.clone(), waits("b")]),
        (
            "one target",
            annotated("b", "a", "m"),
            [
                dispute(&va("a"), &hpa("b"), "scale target"),
                dispute(&hpa("b"), &va("a"), "scale target"),
            ],
        ),
        (
            "one name",
            annotated("a", "x", "m"),
            [
                dispute(&va("a"), &hpa("a"), "variant name"),
                dispute(&hpa("a"), &va("a"), "variant name"),
            ],
        ),
        (
            "another instance",
            {
                let mut object = annotated("b", "a", "m");
                object["metadata"]["labels"] = json!({"wva.llmd.ai/controller-instance": "blue"});
                object
            },
            [status.clone(), waits("b")],
        ),
    ] {
        let mut objects = FleetObjects {
            variants: vec![variant("a", "1", None)],
            hpas: vec![scaler],
            ..FleetObjects::default()
        };
        objects.declare();
        let mut rows = FleetStatus::of(&objects).variants;
        rows.sort_by_key(|row| row.model != "llama");
        let shown: Vec<_> = rows.into_iter().map(|row| row.decision).collect();
        assert_eq!(shown, decisions, "{case}");
    }
    let mut objects = FleetObjects {
        variants: vec![variant("a", "1", Some(2)), variant("c", "1", Some(2))],
        hpas: vec![annotated("b", "a", "")],
        ..FleetObjects::default()
    };
    objects.variants[1]["spec"]["scaleTargetRef"]["name"] = json!("a");
    objects.declare();
    let rows = FleetStatus::of(&objects).variants;
    assert!(rows.iter().all(|row| !row.decision.contains("claim one")), "{rows:?}");
}

#[test]
fn a_condition_that_does_not_hold_says_why() {
    let mut objects = objects();
    let path = "/status/conditions/0";
    let condition = objects.variants[0].pointer_mut(path).unwrap();
    *condition = json!({"type": "MetricsAvailable", "status": "False", "message": "no\nsample"});
    let table = render::table(&FleetStatus::of(&objects), None);
    assert!(table.contains("  no sample\n"), "{table}");
}

#[test]
fn the_controller_adds_reasons_and_ages() {
    let mut status = FleetStatus::of(&objects());
    let snapshot = json!({
        "collection": {"ago": "3s"},
        "variants": [{"namespace": "serving", "name": "l4", "pods": [
            {"name": "a", "signals": {"kvUsage": {"value": 0.5, "age": "9.5s"}, "queueLength": 1}},
        ]}],
    });
    add_ages(&mut status, &snapshot);
    let ages: Vec<Option<&str>> =
        (status.variants.iter()).map(|row| row.signal_age.as_deref()).collect();
    assert_eq!(ages, [None, Some("12s")]);
    add_decisions(&mut status, json!({}));
    assert!(status.notes[0].contains("has made no plan"), "{status:?}");
    add_decisions(&mut status, json!({"decisions": {"a": 1}}));
    assert!(status.notes[1].contains("of the controller's version"), "{status:?}");
    assert_eq!(status.variants[1].decision, "saturation decided");
}

#[test]
fn an_old_plan_says_that_another_controller_leads() {
    let decisions = json!({"at": {"wall": 1_000}});
    assert_eq!(old_note(&json!({}), WallTime(9_000_000)), None);
    assert_eq!(old_note(&decisions, WallTime(601_000)), None);
    let note = old_note(&decisions, WallTime(661_000)).unwrap();
    assert!(
        note.starts_with("the last decision of this controller is 660 s old by the clock"),
        "{note}"
    );
}

fn list(items: &[Value]) -> FakeResponse {
    FakeResponse::Json(200, json!({"metadata": {}, "items": items}))
}

fn refused(code: u16) -> FakeResponse {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "no", "reason": "no", "code": code,
    });
    FakeResponse::Json(code, status)
}

#[tokio::test]
async fn what_may_not_be_read_is_a_note_with_the_right_that_is_missing() {
    let server = FakeServer::new([
        list(&[variant("l4", "1", Some(1))]),
        refused(404),
        refused(403),
        list(&[]),
        refused(404),
        list(&[]),
        refused(404),
    ]);
    let objects = FleetObjects::read(&server.client(), Some("serving")).await;
    let objects = objects.unwrap();
    assert_eq!(objects.variants.len(), 1);
    let [note] = &*objects.notes else {
        panic!("{:?}", objects.notes);
    };
    assert!(note.contains("grant list on deployments.apps"), "{note}");
    let paths: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    assert!(paths[0].ends_with("/namespaces/serving/variantautoscalings"), "{paths:?}");
}

/// Who may see scalers alone sees the variants that they declare.
#[tokio::test]
async fn a_missing_right_to_this_projects_objects_hides_no_annotated_scaler() {
    let read = async |answers: [FakeResponse; 7]| {
        let server = FakeServer::new(answers);
        FleetObjects::read(&server.client(), Some("serving")).await
    };
    let none = || refused(404);
    let scalers = list(&[annotated("follows", "l4", "m")]);
    let right = "grant list on variantautoscalings.llmd.ai";
    let denied = [refused(403), refused(403), none(), none(), none(), refused(403), refused(403)];
    let error = read(denied).await.unwrap_err();
    assert!(error.contains(right), "{error}");
    let partly = [refused(403), refused(403), none(), none(), none(), scalers, none()];
    let objects = read(partly).await.unwrap();
    assert_eq!(objects.declared.len(), 1);
    assert!(objects.notes[0].contains(right), "{:?}", objects.notes);
}

#[tokio::test]
async fn events_of_a_scaler_are_kept_where_a_controller_of_ours_reports_them() {
    let event = |name: &str, kind: &str, controller: &str| {
        json!({
            "metadata": {"namespace": "serving", "name": name},
            "regarding": {"kind": kind, "name": "l4"}, "reportingController": controller,
        })
    };
    let ours = "llmd.ai/workload-variant-autoscaler";
    let server = FakeServer::new([list(&[
        event("a", "VariantAutoscaling", ours),
        event("b", "PodAutoscaler", ""),
        event("c", "HorizontalPodAutoscaler", ours),
        event("d", "ScaledObject", ours),
        event("e", "HorizontalPodAutoscaler", "horizontal-pod-autoscaler"),
        event("f", "ScaledObject", "keda-operator"),
        event("g", "Deployment", ours),
    ])]);
    let kept = list_events(&server.client(), None).await.unwrap();
    let names = kept.iter().map(|event| &event["metadata"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn a_cluster_without_the_definitions_is_named() {
    let server = FakeServer::new((0..7).map(|_| refused(404)));
    let error = FleetObjects::read(&server.client(), None).await;
    let error = error.unwrap_err();
    assert!(error.contains("apply the output of wva crds"), "{error}");
}

/// An annotated scaler is a variant to a controller that takes annotations, and to one that is not seen.
#[tokio::test]
async fn what_no_controller_takes_for_a_variant_is_none() {
    let controller = |switch: &str| {
        let variables = json!([
            {"name": "PROMETHEUS_BASE_URL", "value": "https://prometheus"},
            {"name": "POD_NAMESPACE", "value": "wva-system"},
            {"name": "ANNOTATED_SCALERS_ENABLED", "value": switch},
        ]);
        let containers = json!([{"name": "manager", "image": "wva:1", "env": variables}]);
        list(&[json!({
            "metadata": {"namespace": "wva-system", "name": "wva"},
            "spec": {"template": {"spec": {"containers": containers}}},
        })])
    };
    for (answer, shown) in
        [(controller("false"), 0), (controller("true"), 1), (list(&[]), 1), (refused(403), 1)]
    {
        let mut objects =
            FleetObjects { hpas: vec![annotated("follows", "l4", "m")], ..FleetObjects::default() };
        objects.declare();
        let server = FakeServer::new([answer, list(&[])]);
        let objects = objects.decided(&server.client()).await;
        assert_eq!(FleetStatus::of(&objects).variants.len(), shown);
        assert_eq!(objects.notes.len(), 1 - shown);
    }
}
