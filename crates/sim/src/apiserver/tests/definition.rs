//! Our own definition as this server enforces it: the table that the real one is asked, too.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::refusal::Cause;
use super::super::{rules, validate};
use super::{DEFINITION, ask, server};

#[derive(Deserialize)]
struct Vectors {
    accepted: Vec<Vector>,
    refused: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    spec: Option<Value>,
    #[serde(default)]
    stored: Value,
    #[serde(default)]
    because: String,
}

const PATH: &str = "/apis/llmd.ai/v1alpha1/namespaces/ns/variantautoscalings";

fn object(vector: &Vector) -> Value {
    let mut object = json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": {"name": vector.id.to_lowercase(), "labels": vector.labels},
    });
    if let Some(spec) = &vector.spec {
        object["spec"] = spec.clone();
    }
    object
}

#[tokio::test(start_paused = true)]
async fn objects_are_accepted_and_refused_as_by_a_real_server() {
    let server = server().await;
    let text = include_str!("../../../../../tests/vectors/crd.yaml");
    let vectors: Vectors = serde_yaml::from_str(text).unwrap();
    for vector in &vectors.accepted {
        let (code, stored) = ask(&server, "POST", PATH, &object(vector)).await;
        assert_eq!(code, 201, "{}: {stored}", vector.id);
        let spec = &stored["spec"];
        let seen = json!({
            "kind": spec["scaleTargetRef"]["kind"], "variantCost": spec["variantCost"],
            "minReplicas": spec["minReplicas"], "maxReplicas": spec["maxReplicas"],
        });
        assert_eq!(seen, vector.stored, "{}", vector.id);
        assert_eq!(spec.get("sloClassRef"), None, "{}", vector.id);
    }
    for vector in &vectors.refused {
        let (code, status) = ask(&server, "POST", PATH, &object(vector)).await;
        assert_eq!(code, 422, "{}: {status}", vector.id);
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(&vector.because), "{}: {message}", vector.id);
    }
}

fn collect<'a>(document: &'a Value, field: &str, found: &mut Vec<&'a str>) {
    match document {
        Value::Object(object) => {
            for (name, value) in object {
                match value.as_str().filter(|_| name == field) {
                    Some(text) => found.push(text),
                    None => collect(value, field, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|one| collect(one, field, found)),
        _ => {}
    }
}

#[test]
fn every_pattern_and_rule_of_the_definition_is_enforced() {
    let definition: Value = serde_yaml::from_str(DEFINITION).unwrap();
    let (mut patterns, mut known_rules) = (Vec::new(), Vec::new());
    collect(&definition, "pattern", &mut patterns);
    collect(&definition, "rule", &mut known_rules);
    assert_eq!((patterns.len(), known_rules.len()), (3, 1));
    for pattern in patterns {
        assert!(rules::pattern(pattern).is_some(), "{pattern}");
    }
    for rule in known_rules {
        assert_eq!(rules::obeys(rule, &json!({})), Some(true), "{rule}");
        let crossed = json!({"minReplicas": 2, "maxReplicas": 1});
        assert_eq!(rules::obeys(rule, &crossed), Some(false), "{rule}");
    }
}

#[test]
fn patterns_that_exclude_letters_are_enforced() {
    for (pattern, other, matching) in
        [("^a.c$", "ac", "abc"), ("^[^/]+$", "a/b", "ab"), (r"^\S+$", "a b", "é")]
    {
        let pattern = rules::pattern(pattern).unwrap();
        assert!(!pattern.is_match(other.as_bytes()), "{pattern}");
        assert!(pattern.is_match(matching.as_bytes()), "{pattern}");
    }
}

#[test]
fn an_edit_is_not_refused_for_what_was_wrong_before() {
    let live = json!({"spec": {"low": 5, "high": 2}, "status": {"count": 1}});
    let cause =
        |reason, field: &str| Cause { reason, message: String::new(), field: field.to_owned() };
    let broken = cause("FieldValueInvalid", "spec");
    let absent = cause("FieldValueRequired", "spec.middle");
    let written = json!({"spec": {"low": 5, "high": 2}, "status": {"count": 2}});
    let moved = json!({"spec": {"low": 5, "high": 3}, "status": {"count": 1}});
    for cause in [&broken, &absent] {
        assert!(validate::is_old(cause, &live, &written), "{cause:?}");
        assert!(!validate::is_old(cause, &live, &moved), "{cause:?}");
    }
    let typed = cause("FieldValueTypeInvalid", "spec");
    assert!(!validate::is_old(&typed, &live, &written));
    let listed = cause("FieldValueInvalid", "spec.parts[0].size");
    assert!(!validate::is_old(&listed, &live, &written));
}

/// Kinds of others are scaled where their definitions say.
#[tokio::test(start_paused = true)]
async fn a_leader_worker_set_has_a_scale() {
    let server = server().await;
    let text = include_str!("../../../../../tests/cluster/crds/leaderworkersets.yaml");
    let definition: Value = serde_yaml::from_str(text).unwrap();
    let sets = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/ns/leaderworkersets";
    let set = json!({"metadata": {"name": "l"}, "spec": {"leaderWorkerTemplate": {"size": 4}}});
    assert_eq!(ask(&server, "POST", sets, &set).await.0, 404, "not yet defined");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(ask(&server, "POST", definitions, &definition).await.0, 201);
    let (code, made) = ask(&server, "POST", sets, &set).await;
    assert_eq!((code, &made["spec"]["replicas"]), (201, &json!(1)), "{made}");
    let counted = json!({"status": {"replicas": 1, "hpaPodSelector": "app=l"}});
    let status = format!("{sets}/l/status");
    assert_eq!(ask(&server, "PATCH", &status, &counted).await.0, 200);
    let scale = format!("{sets}/l/scale");
    let (code, shown) = ask(&server, "GET", &scale, &Value::Null).await;
    assert_eq!(code, 200, "{shown}");
    assert_eq!(shown["spec"]["replicas"], 1);
    assert_eq!(shown["status"], json!({"replicas": 1, "selector": "app=l"}));
    let more = json!({"spec": {"replicas": 3}});
    assert_eq!(ask(&server, "PATCH", &scale, &more).await.0, 200);
    let (_, stored) = ask(&server, "GET", &format!("{sets}/l"), &Value::Null).await;
    assert_eq!(stored["spec"]["replicas"], 3, "{stored}");
}
