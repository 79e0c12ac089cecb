//! What is kept of scalers, from the objects that people write.

use super::*;
use crate::api::scaled_object::ScaledObject;
use crate::cluster::project::scaler::ScalerObject;
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::scaler::{
    Absence, Aim, Input, Published, ScalerActivity, ScalerKind, Tolerance,
};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;

fn published() -> Published {
    Published {
        variant: Some("va".into()),
        is_unclear: false,
        namespace: Some("ns".into()),
        aim: Aim::Replicas,
        absence: Absence::Error,
    }
}

/// The object of the integration guide, with further fields of its specification.
fn native(fields: &Value) -> ScalerObject {
    let mut object = json!({
        "metadata": { "namespace": "ns", "name": "hpa" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
            "maxReplicas": 10,
            "metrics": [{ "type": "External", "external": {
                "metric": { "name": "wva_desired_replicas", "selector": { "matchLabels": {
                    "variant_name": "va", "exported_namespace": "ns",
                }}},
                "target": { "type": "AverageValue", "averageValue": "1" },
            }}],
        },
    });
    for (name, value) in fields.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    project::<HorizontalPodAutoscaler>(&object)
}

fn scaled_object(fields: &Value, metadata: &[(&str, &str)]) -> ScalerObject {
    let query = r#"max by (variant_name) (wva_desired_replicas{variant_name="va",exported_namespace='ns'})"#;
    let mut object = json!({
        "metadata": { "namespace": "ns", "name": "so" },
        "spec": {
            "scaleTargetRef": { "name": "d" },
            "triggers": [{ "type": "prometheus", "metadata": {
                "query": query, "threshold": "1", "ignoreNullValues": "false",
            }}],
        },
    });
    for (name, value) in metadata {
        object["spec"]["triggers"][0]["metadata"][name] = json!(value);
    }
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
    project::<ScaledObject>(&object)
}

#[test]
fn the_documented_ones_read_the_count() {
    let hpa = native(&json!({}));
    let target = TargetKey::new("ns", TargetKind::Deployment, "d");
    assert_eq!(hpa.target, Some(target.clone()));
    assert_eq!(hpa.scaler.kind, ScalerKind::HorizontalPodAutoscaler);
    assert_eq!((hpa.scaler.min, hpa.scaler.max), (Replicas(1), Replicas(10)));
    assert_eq!(hpa.scaler.tolerance, Tolerance { up: 0.1, down: 0.1 });
    assert_eq!(hpa.scaler.inputs, [Input::Published(published())]);
    assert_eq!(hpa.scaler.activity, ScalerActivity::Working);

    let keda = scaled_object(&json!({}), &[]);
    assert_eq!(keda.target, Some(target));
    assert_eq!((keda.scaler.min, keda.scaler.max), (Replicas(0), Replicas(100)));
    assert_eq!(keda.scaler.inputs, [Input::Published(published())]);
    assert_eq!(keda.scaler.activity, ScalerActivity::Working);
}

#[test]
fn what_is_stated_beats_what_is_usual() {
    let exact = json!({ "scaleUp": { "tolerance": "0" }, "scaleDown": { "tolerance": "50m" } });
    let hpa = native(&json!({ "minReplicas": 3, "behavior": exact.clone() }));
    assert_eq!(hpa.scaler.min, Replicas(3));
    assert_eq!(hpa.scaler.min_field, "minReplicas");
    assert_eq!(hpa.scaler.tolerance, Tolerance { up: 0.0, down: 0.05 });
    let mut spec = json!({ "spec": {
        "scaleTargetRef": { "name": "d" }, "minReplicaCount": 2, "idleReplicaCount": 0,
        "maxReplicaCount": 7,
        "advanced": { "horizontalPodAutoscalerConfig": { "behavior": exact } },
    }});
    let keda = scaled_object(&spec, &[]).scaler;
    assert_eq!((keda.min, keda.max), (Replicas(0), Replicas(7)));
    assert_eq!(keda.min_field, "idleReplicaCount");
    spec["spec"]["idleReplicaCount"] = json!(null);
    let awake = scaled_object(&spec, &[]).scaler;
    assert_eq!((awake.min, awake.min_field), (Replicas(2), "minReplicaCount"));
    assert_eq!(keda.tolerance, Tolerance { up: 0.0, down: 0.05 });
    assert_eq!(keda.inputs, []);
}

#[test]
fn another_metric_another_aim_and_another_target_are_distinguished() {
    let external = |metric: &Value, target: &Value| {
        let metrics =
            json!([{ "type": "External", "external": { "metric": metric, "target": target } }]);
        native(&json!({ "metrics": metrics })).scaler.inputs
    };
    let one = json!({ "type": "AverageValue", "averageValue": "1000m" });
    let ours = json!({ "name": "wva_desired_replicas", "selector": { "matchExpressions": [
        { "key": "variant_name", "operator": "In", "values": ["va"] },
        { "key": "namespace", "operator": "In", "values": ["ns"] },
    ]}});
    assert_eq!(external(&ours, &one), [Input::Published(published())]);
    assert_eq!(external(&json!({ "name": "queue" }), &one), [Input::Other]);
    let value = external(&ours, &json!({ "type": "Value", "value": "1" }));
    let aim = Aim::Other("Value 1".into());
    assert_eq!(value, [Input::Published(Published { aim, ..published() })]);
    let two = external(&ours, &json!({ "type": "AverageValue", "averageValue": "2" }));
    let aim = Aim::Other("AverageValue 2".into());
    assert_eq!(two, [Input::Published(Published { aim, ..published() })]);
    let set = json!({ "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "d" } });
    let target = TargetKey::new("ns", TargetKind::StatefulSet, "d");
    assert_eq!(native(&set).target, Some(target));
}

fn reading(query: &str) -> Input {
    scaled_object(&json!({}), &[("query", query)]).scaler.inputs[0].clone()
}

#[test]
fn queries_are_read_by_their_matchers() {
    for other in [
        "up",
        "up # wva_desired_replicas",
        "wva_desired_replicas_total",
        "my_wva_desired_replicas{variant_name='a'}",
    ] {
        assert_eq!(reading(other), Input::Other, "{other}");
    }
    let other = "up{variant_name=\"c\",namespace=\"d\"}";
    for (form, variant, namespace) in wva_base::cases! {
        ("Q", None, None),
        ("Q{ variant_name = 'a', namespace='b' }", Some("a"), Some("b")),
        ("Q{my_variant_name='a',variant_name='b'}", Some("b"), None),
        ("# variant_name='b', don't\nmax(Q{variant_name='a'})", Some("a"), None),
        ("max(Q{variant_name='a'}) and on() OTHER", Some("a"), None),
        ("OTHER * 0 + on() Q{variant_name='a'}", Some("a"), None),
        ("Q{'variant_name'=\"a\"}", Some("a"), None),
        ("{'Q', 'variant_name'='a',}", Some("a"), None),
        ("{__name__='Q', variant_name='a'}", Some("a"), None),
        ("Q{variant_name=~'^(a)$'}", Some("a"), None),
        ("Q{variant_name=~'a.*',variant_name='a'}", Some("a"), None),
        ("Q{variant_name!='a'}", None, None),
        ("Q{variant_name=''}", None, None),
        ("Q and on() up{job='x'}", None, None),
    } {
        let expected = Input::Published(Published {
            variant: variant.map(Arc::from),
            namespace: namespace.map(Arc::from),
            ..published()
        });
        let query = form.replace('Q', "wva_desired_replicas");
        assert_eq!(reading(&query.replace("OTHER", other)), expected, "{form}");
    }
}

#[test]
fn a_query_that_may_read_any_variant_is_unclear() {
    for form in [
        "Q{variant_name=~'a.*'}",
        "Q{variant_name=~'a|b'}",
        "Q{variant_name='\\u0061'}",
        "Q{variant_name=",
        "max(Q{variant_name='a'}) or max(Q{variant_name='b'})",
        "Q and on(variant_name) up{variant_name='a'}",
        "team:Q:max",
    ] {
        let Input::Published(read) = reading(&form.replace('Q', "wva_desired_replicas")) else {
            panic!("{form}");
        };
        assert!(read.is_unclear && read.variant.is_none(), "{form}");
    }
}

#[test]
fn an_absent_count_is_zero_or_an_error() {
    let absent = |value| scaled_object(&json!({}), &[("ignoreNullValues", value)]).scaler.inputs;
    // KEDA refuses what is no boolean.
    for (absence, stated) in [
        (Absence::Zero, &["true", "1", "no"][..]),
        (Absence::Error, &["false", "False", "FALSE", "f", "F", "0"]),
    ] {
        for value in stated {
            let expected = Input::Published(Published { absence, ..published() });
            assert_eq!(absent(value), [expected], "{value}");
        }
    }
}

#[test]
fn a_scaler_that_does_not_work_says_why() {
    let hpa = |owner: Option<&str>, kind: &str, reason: &str| {
        let owners: Vec<Value> = owner
            .into_iter()
            .map(|name| json!({
                "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": name, "uid": "u",
                "controller": true,
            }))
            .collect();
        let object = project::<HorizontalPodAutoscaler>(&json!({
            "metadata": { "namespace": "ns", "name": "hpa", "ownerReferences": owners },
            "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "d" }, "maxReplicas": 1 },
            "status": { "conditions": [
                { "type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange" },
                { "type": kind, "status": "False", "reason": reason, "message": "its own words" },
            ], "desiredReplicas": 0 },
        }));
        (object.scaler.made_for, object.scaler.activity)
    };
    let saying = |reason: &str, message: &str| ScalerActivity::Failing {
        reason: reason.into(),
        message: message.into(),
    };
    let failing = |reason: &str| saying(reason, "its own words");
    let metric = "FailedGetExternalMetric";
    assert_eq!(hpa(None, "ScalingActive", metric), (None, failing(metric)));
    assert_eq!(hpa(None, "AbleToScale", "FailedGetScale").1, failing("FailedGetScale"));
    let disabled = "ScalingDisabled";
    let made = hpa(Some("so"), "ScalingActive", disabled);
    assert_eq!(made, (Some("so".into()), ScalerActivity::Working), "KEDA scales from zero itself");

    let keda = |annotations: Value, conditions: Value| {
        let fields = json!({
            "metadata": { "namespace": "ns", "name": "so", "annotations": annotations },
            "status": { "conditions": conditions },
        });
        scaled_object(&fields, &[]).scaler.activity
    };
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "ScaledObjectReady" },
                       { "type": "Fallback", "status": "Unknown" }]);
    assert_eq!(keda(json!({}), ready.clone()), ScalerActivity::Working);
    let paused = json!({ "autoscaling.keda.sh/paused": "true" });
    let annotation = r#"autoscaling.keda.sh/paused="true""#.into();
    assert_eq!(keda(paused, ready), ScalerActivity::Paused { annotation });
    let fallback = json!([{ "type": "Fallback", "status": "True", "reason": "FallbackExists",
                            "message": "At least one trigger is falling back" }]);
    assert_eq!(
        keda(json!({}), fallback),
        saying("FallbackExists", "At least one trigger is falling back")
    );
    let broken = json!([{ "type": "Ready", "status": "False" }]);
    assert_eq!(keda(json!({}), broken), saying("Ready", ""));
}

/// Of a long report both ends are kept: the cause is the last part.
#[test]
fn the_cause_in_a_report_of_a_scaler_is_kept() {
    let kept = |message: &str| {
        let conditions = json!([{ "type": "Ready", "status": "False", "message": message }]);
        let fields = json!({
            "metadata": { "namespace": "ns", "name": "so" },
            "status": { "conditions": conditions },
        });
        let ScalerActivity::Failing { message, .. } = scaled_object(&fields, &[]).scaler.activity
        else {
            panic!("it does not fail");
        };
        message.to_string()
    };
    let whole = "x".repeat(300);
    assert_eq!(kept(&whole), whole);
    let long = format!("{}{}{}", "a".repeat(100), "b".repeat(500), "c".repeat(195));
    let cut = format!("{} ... {}", "a".repeat(100), "c".repeat(195));
    assert_eq!(kept(&long), cut);
    assert_eq!(cut.len(), 300);
    // As HorizontalPodAutoscalers of KEDA report it.
    let selector = "/&LabelSelector{MatchLabels:map[string]string{scaledobject.keda.sh/name: llama-8b,},MatchExpressions:[]LabelSelectorRequirement{},}";
    let before = "the HPA was unable to compute the replica count: unable to get external metric llm-d/s0-prometheus";
    let after = ": unable to fetch metrics from external metrics API: rpc error: code = Unknown desc = no metrics returned";
    let cause = [before, after].concat();
    assert_eq!(kept(&[before, selector, after].concat()), cause);
}

#[test]
fn what_a_scaler_may_not_do_is_kept() {
    let half = |by: &str| ScalerActivity::GrowthPaused { by: by.into() };
    let grows = |by: &str| ScalerActivity::GrowsOnly { by: by.into() };
    let keda = |annotations: Value, scale_up: Value| {
        let behavior = json!({ "scaleUp": scale_up });
        let fields = json!({
            "metadata": { "namespace": "ns", "name": "so", "annotations": annotations },
            "spec": { "scaleTargetRef": { "name": "d" }, "triggers": [],
                      "advanced": { "horizontalPodAutoscalerConfig": { "behavior": behavior } } },
        });
        scaled_object(&fields, &[]).scaler.activity
    };
    let (none, disabled) = (json!({}), json!({ "selectPolicy": "Disabled" }));
    let switch = |direction: &str, value: &str| {
        let name = format!("autoscaling.keda.sh/paused-scale-{direction}");
        json!({ name: value })
    };
    assert_eq!(keda(switch("in", "False"), none.clone()), ScalerActivity::Working);
    assert_eq!(
        keda(switch("in", "true"), none.clone()),
        grows(r#"autoscaling.keda.sh/paused-scale-in="true""#)
    );
    assert_eq!(
        keda(switch("out", "1"), disabled.clone()),
        half(r#"autoscaling.keda.sh/paused-scale-out="1", scaleUp.selectPolicy is Disabled"#)
    );
    assert_eq!(keda(none, disabled.clone()), half("scaleUp.selectPolicy is Disabled"));
    // In neither direction.
    assert_eq!(
        keda(switch("in", "true"), disabled),
        half(r#"scaleUp.selectPolicy is Disabled, autoscaling.keda.sh/paused-scale-in="true""#)
    );

    let hpa = |owners: Value| {
        let object = project::<HorizontalPodAutoscaler>(&json!({
            "metadata": { "namespace": "ns", "name": "hpa", "ownerReferences": owners },
            "spec": {
                "scaleTargetRef": { "kind": "Deployment", "name": "d" }, "maxReplicas": 1,
                "behavior": { "scaleDown": { "selectPolicy": "Disabled" } },
            },
        }));
        object.scaler.activity
    };
    let by_hand = grows("scaleDown.selectPolicy is Disabled");
    assert_eq!(hpa(json!([])), by_hand);
    // KEDA writes it there for its annotation.
    let made = json!([{ "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "so",
                        "uid": "u", "controller": true }]);
    assert_eq!(hpa(made), ScalerActivity::Working);
}

#[test]
fn a_scaler_that_did_not_go_to_zero_itself_is_paused_by_hand() {
    let activity = |kind: &str, scaled: &str| {
        let object = json!({
            "metadata": { "namespace": "ns", "name": "hpa" },
            "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "d" }, "maxReplicas": 1 },
            "status": { "conditions": [
                { "type": "ScalingActive", "status": "False", "reason": "ScalingDisabled" },
                { "type": kind, "status": scaled, "reason": "x" },
            ], "desiredReplicas": 0 },
        });
        project::<HorizontalPodAutoscaler>(&object).scaler.activity
    };
    let at_zero = activity("ScalingLimited", "False");
    assert_eq!(at_zero, ScalerActivity::AtZeroByHand, "before Kubernetes 1.37");
    let by_hand = activity("ScaledToZero", "False");
    assert_eq!(by_hand, ScalerActivity::AtZeroByHand);
    let failing = ScalerActivity::Failing { reason: "ScalingDisabled".into(), message: "".into() };
    assert_eq!(activity("ScaledToZero", "True"), failing);
}

#[test]
fn a_trigger_of_the_external_scaler_is_known_by_its_metadata_or_by_the_metric_of_its_position() {
    let inputs = |triggers: Value, metrics: &[&str]| {
        let fields = json!({
            "spec": { "scaleTargetRef": { "name": "d" }, "triggers": triggers },
            "status": { "externalMetricNames": metrics },
        });
        scaled_object(&fields, &[]).scaler.inputs
    };
    let ours = |variant: Option<&str>, is_asked| Input::ExternalScaler {
        variant: variant.map(Into::into),
        aim: Aim::Replicas,
        is_asked,
    };
    let address = json!({ "scalerAddress": "wva:443" });
    let unnamed = json!({ "type": "external-push", "metadata": address });
    let named = json!({ "type": "external", "metadata": { "variantName": "va" } });
    let cron = json!({ "type": "cron", "metadata": { "variantName": "va" } });
    let metric = "s1-wva_desired_replicas";
    assert_eq!(inputs(json!([named]), &[]), [ours(Some("va"), false)]);
    let model = json!({ "type": "external", "metadata": { "modelID": "m" } });
    assert_eq!(inputs(json!([model]), &[]), [ours(None, false)]);
    assert_eq!(inputs(json!([unnamed]), &[metric]), [Input::Other]);
    // KEDA has not asked it yet.
    assert_eq!(inputs(json!([unnamed]), &[]), [ours(None, false)]);
    let both = json!([cron, unnamed]);
    assert_eq!(inputs(both, &["s0-cron", metric]), [Input::Other, ours(None, true)]);
    let value =
        json!([{ "type": "external", "metricType": "Value", "metadata": { "variantName": "va" } }]);
    let aim = Aim::Other("Value 1".into());
    let variant = Some("va".into());
    let is_asked = false;
    let expected = Input::ExternalScaler { variant, aim, is_asked };
    assert_eq!(inputs(value, &[]), [expected]);
}

#[test]
fn an_excluded_object_reads_no_count_by_the_model_of_its_trigger() {
    let reads = |managed: &str, metadata: Value| {
        let fields = json!({
            "metadata": { "namespace": "ns", "name": "so", "annotations": { "llm-d.ai/managed": managed } },
            "spec": { "scaleTargetRef": { "name": "d" }, "triggers": [
                { "type": "external", "metadata": metadata },
            ] },
        });
        let inputs = project::<ScaledObject>(&fields).scaler.inputs;
        inputs.iter().any(|input| *input != Input::Other)
    };
    for metadata in
        [json!({ "scalerAddress": "x", "modelID": "m" }), json!({ "scalerAddress": "x" })]
    {
        assert!(reads("true", metadata.clone()), "{metadata}");
        assert!(!reads("false", metadata.clone()), "{metadata}");
    }
}

#[test]
fn a_pause_is_a_boolean_as_keda_parses_it() {
    let switched = |name: &str, value: &str| {
        let name = format!("autoscaling.keda.sh/{name}");
        let fields = json!({
            "metadata": { "namespace": "ns", "name": "so", "annotations": { name: value } },
        });
        scaled_object(&fields, &[]).scaler.activity
    };
    for off in ["False", "0", "f", "false"] {
        assert_eq!(switched("paused", off), ScalerActivity::Working, "{off}");
    }
    for (name, value) in [("paused", "True"), ("paused", "yes"), ("paused-replicas", "false")] {
        let annotation = format!("autoscaling.keda.sh/{name}={value:?}").into();
        assert_eq!(switched(name, value), ScalerActivity::Paused { annotation }, "{name}={value}");
    }
}
