use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::{AdmissionRoutes, MUTATING_PATH, VALIDATING_PATH};
use crate::serve::connection::Routes as _;

mod rules;
mod served;

/// A specification that is admitted.
fn good_spec() -> Value {
    json!({
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "llm" },
        "minReplicas": 1,
        "maxReplicas": 10,
        "scalingStrategy": "KPA",
        "metricsSources": [good_source()],
    })
}

fn good_source() -> Value {
    json!({
        "metricSourceType": "pod",
        "protocolType": "http",
        "port": "8000",
        "path": "/metrics",
        "targetMetric": "num_requests_waiting",
        "targetValue": "6",
    })
}

/// A document with other values for some of its fields.
fn with(mut document: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        document[key] = value.clone();
    }
    document
}

fn object(spec: &Value) -> Value {
    json!({
        "apiVersion": "autoscaling.aibrix.ai/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": { "name": "chat", "namespace": "prod", "uid": "7", "generation": 1 },
        "spec": spec,
    })
}

/// What the API server sends.
fn review(operation: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "operation": operation,
            "name": "chat",
            "namespace": "prod",
            "userInfo": { "username": "jane" },
            "object": object,
            "oldObject": null,
            "dryRun": false,
        },
    })
}

fn head(method: Method, path: &str) -> Parts {
    let request = Request::builder().method(method).uri(path).body(());
    request.unwrap().into_parts().0
}

async fn posted(path: &str, body: &[u8]) -> (StatusCode, String) {
    let routes = AdmissionRoutes::default();
    let answer = routes.answer_to_body(&head(Method::POST, path), body);
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, String::from_utf8(body.to_vec()).unwrap())
}

/// The response within the answer to a review.
async fn response(path: &str, review: &Value) -> Value {
    let (status, text) = posted(path, review.to_string().as_bytes()).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
    answer["response"].clone()
}

async fn judged(review: &Value) -> Value {
    response(VALIDATING_PATH, review).await
}

#[tokio::test]
async fn a_good_object_is_admitted_unchanged() {
    let admitted = json!({ "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": true });
    for operation in ["CREATE", "UPDATE"] {
        for path in [MUTATING_PATH, VALIDATING_PATH] {
            let review = review(operation, &object(&good_spec()));
            assert_eq!(response(path, &review).await, admitted, "{operation} {path}");
        }
    }
}

#[tokio::test]
async fn a_bad_object_is_refused_with_a_status_of_kubernetes() {
    let bad = with(good_spec(), &json!({ "minReplicas": 12, "scalingStrategy": "VPA" }));
    let mut object = object(&bad);
    object["metadata"]["annotations"] =
        json!({ "autoscaling.aibrix.ai/panic-threshold": "1", "other": "x" });
    let review = review("CREATE", &object);
    let refused = judged(&review).await;
    let cause = |field: &str, message: &str| json!({ "reason": "FieldValueInvalid", "field": field, "message": message });
    let expected = json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "allowed": false,
        "status": {
            "metadata": {},
            "status": "Failure",
            "message": "PodAutoscaler.autoscaling.aibrix.ai \"chat\" is invalid: \
                [spec.minReplicas: 12 is greater than maxReplicas 10; lower it, \
                spec.maxReplicas: 10 is less than minReplicas 12; raise it, \
                spec.scalingStrategy: \"VPA\" is no strategy; write HPA, KPA or APA]",
            "reason": "Invalid",
            "details": {
                "name": "chat",
                "group": "autoscaling.aibrix.ai",
                "kind": "PodAutoscaler",
                "causes": [
                    cause("spec.minReplicas", "12 is greater than maxReplicas 10; lower it"),
                    cause("spec.maxReplicas", "10 is less than minReplicas 12; raise it"),
                    cause("spec.scalingStrategy", "\"VPA\" is no strategy; write HPA, KPA or APA"),
                ],
            },
            "code": 422,
        },
        "warnings": [
            "annotation autoscaling.aibrix.ai/panic-threshold: \"1\" must be above 1; write for example 2; 2 is kept",
        ],
    });
    assert_eq!(refused, expected);
    // The mutating one leaves judging to the other.
    let passed = response(MUTATING_PATH, &review).await;
    assert_eq!(passed["allowed"], true);
}

#[tokio::test]
async fn an_annotation_is_a_warning_and_no_refusal() {
    let mut object = object(&good_spec());
    assert!(judged(&review("CREATE", &object)).await.get("warnings").is_none());
    object["metadata"]["annotations"] = json!({ "kpa.autoscaling.aibrix.ai/tolerance": "0.2" });
    let admitted = judged(&review("CREATE", &object)).await;
    assert_eq!(admitted["allowed"], true);
    let warnings = admitted["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].as_str().unwrap().contains("has no effect"));
}

#[tokio::test]
async fn a_deletion_is_never_held_up() {
    let bad = object(&with(good_spec(), &json!({ "maxReplicas": 0 })));
    for operation in ["CREATE", "UPDATE"] {
        assert_eq!(judged(&review(operation, &bad)).await["allowed"], false);
    }
    for object in [&bad, &Value::Null] {
        assert_eq!(judged(&review("DELETE", object)).await["allowed"], true);
    }
    // A finalizer is removed by an update.
    let mut going = bad.clone();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(judged(&review("UPDATE", &going)).await["allowed"], true);
    let mut status = review("UPDATE", &bad);
    status["request"]["subResource"] = json!("status");
    assert_eq!(judged(&status).await["allowed"], true);
}

#[tokio::test]
async fn name_and_namespace_may_be_those_of_the_request() {
    let mut bare = object(&good_spec());
    bare["metadata"] = json!({ "generateName": "chat-" });
    bare["spec"]["scaleTargetRef"]["namespace"] = json!("prod");
    assert_eq!(judged(&review("CREATE", &bare)).await["allowed"], true);
    bare["spec"]["scaleTargetRef"]["namespace"] = json!("other");
    let status = &judged(&review("CREATE", &bare)).await["status"];
    assert_eq!(status["details"]["name"], "chat-");
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.scaleTargetRef.namespace");
    assert!(cause["message"].as_str().unwrap().contains("\"prod\""));
}

/// Another version's definition may keep them.
#[tokio::test]
async fn a_field_that_the_kind_does_not_have_is_a_warning_and_no_refusal() {
    let mut source = good_source();
    source["circuitBreaker"] = json!({ "a": 1 });
    let fields = json!({ "behavior": {}, "metricsSources": [source] });
    let judged_as = |fields: Value| {
        let object = object(&with(good_spec(), &fields));
        async move { judged(&review("CREATE", &object)).await }
    };
    assert!(judged_as(json!({})).await.get("warnings").is_none());
    let admitted = judged_as(fields.clone()).await;
    assert_eq!(admitted["allowed"], true);
    let warnings = json!([
        "field spec.behavior has no effect: PodAutoscalers have none",
        "field spec.metricsSources[0].circuitBreaker has no effect: PodAutoscalers have none",
    ]);
    assert_eq!(admitted["warnings"], warnings);
    // It hides nothing that is wrong.
    let refused = judged_as(with(fields, &json!({ "minReplicas": "two" }))).await;
    assert_eq!(refused["allowed"], false);
    let causes = refused["status"]["details"]["causes"].as_array().unwrap();
    assert_eq!(causes[0]["field"], "spec.minReplicas", "{causes:?}");
    // They are bounded in number.
    let names = (0..40).map(|number| (format!("x{number}"), json!(0)));
    let many = judged_as(Value::Object(names.collect())).await;
    assert_eq!(many["allowed"], false);
}

/// The schema of the definition refuses these before a webhook is called; another definition may not.
#[tokio::test]
async fn an_object_of_another_form_is_refused_with_the_field() {
    let spec = |fields: &Value| object(&with(good_spec(), fields));
    let mut without_spec = object(&good_spec());
    without_spec.as_object_mut().unwrap().remove("spec");
    for (object, field, message) in wva_base::cases! {
        (spec(&json!({ "minReplicas": "two" })), "spec.minReplicas", "two"),
        (spec(&json!({ "metricsSources": [good_source(), with(good_source(), &json!({ "targetValue": 5 }))] })),
         "spec.metricsSources[1].targetValue", "5"),
        (without_spec, "", "missing field `spec`"),
        (json!("text"), "", "text"),
        (Value::Null, "", "null"),
    } {
        let refused = judged(&review("CREATE", &object)).await;
        assert_eq!(refused["allowed"], false);
        let causes = refused["status"]["details"]["causes"].as_array().unwrap();
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(causes[0]["field"], field, "{causes:?}");
        let found = causes[0]["message"].as_str().unwrap();
        assert!(found.contains(message), "{found}");
    }
}

#[tokio::test]
async fn every_field_of_another_form_is_a_cause_as_are_broken_rules() {
    let causes = |fields: Value| {
        let object = object(&with(good_spec(), &fields));
        async move {
            let judged = judged(&review("CREATE", &object)).await;
            let causes = judged["status"]["details"]["causes"].as_array();
            let fields = causes.into_iter().flatten();
            fields.map(|cause| cause["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };
    assert!(causes(json!({})).await.is_empty());
    let wrong =
        json!({ "minReplicas": "two", "panicWindowSeconds": "one", "scalingStrategy": "VPA" });
    let mut found = causes(wrong).await;
    found.sort();
    let expected = ["spec.minReplicas", "spec.panicWindowSeconds", "spec.scalingStrategy"];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_is_no_review_is_a_bad_request() {
    let good = review("CREATE", &object(&good_spec()));
    let without = |pointer: &str, field: &str| {
        let mut review = good.clone();
        let parent = review.pointer_mut(pointer).unwrap();
        parent.as_object_mut().unwrap().remove(field);
        review.to_string()
    };
    let other = |fields: Value| with(good.clone(), &fields).to_string();
    let deep = good.to_string().replace("null", &"[".repeat(100_000));
    for path in [MUTATING_PATH, VALIDATING_PATH] {
        let (status, text) = posted(path, good.to_string().as_bytes()).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        for body in [
            String::new(),
            "{}".to_owned(),
            "[]".to_owned(),
            "x".repeat(1000),
            deep.clone(),
            without("", "apiVersion"),
            without("", "request"),
            without("/request", "uid"),
            without("/request", "operation"),
            other(json!({ "apiVersion": "admission.k8s.io/v1beta1" })),
            other(json!({ "kind": "ConversionReview" })),
            other(json!({ "request": { "uid": "", "operation": "CREATE" } })),
            object(&good_spec()).to_string(),
        ] {
            let (status, text) = posted(path, body.as_bytes()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
            assert!(text.starts_with("the body is no AdmissionReview of admission.k8s.io/v1: "));
            assert!(text.len() < 250, "{text}");
        }
        assert_eq!(posted(path, b"\xff").await.0, StatusCode::BAD_REQUEST);
    }
}

#[test]
fn only_calls_of_the_two_have_their_bodies_read() {
    let routes = AdmissionRoutes::default();
    let paths = [MUTATING_PATH, VALIDATING_PATH];
    for path in paths {
        let call = format!("{path}?timeout=5s");
        assert!(routes.body_reader(&head(Method::POST, &call)).is_some());
    }
    let others = ["/", "/metrics", "/healthz", "/mutate", "/validate"].map(str::to_owned);
    let longer = paths.map(|path| format!("{path}/"));
    for path in others.iter().chain(&longer) {
        for method in [Method::GET, Method::POST] {
            let head = head(method, path);
            assert!(routes.body_reader(&head).is_none(), "{path}");
            assert_eq!(routes.answer(&head).status(), StatusCode::NOT_FOUND);
        }
    }
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::HEAD] {
        let head = head(method, VALIDATING_PATH);
        assert!(routes.body_reader(&head).is_none());
        let answer = routes.answer(&head);
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers()["allow"], "POST");
    }
}
