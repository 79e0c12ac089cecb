//! Scalers that are variants by annotation, alone and where another object claims the same.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

use super::super::tests::{TestMirrors, count_writer, list, mirrors};
use crate::api::scaled_object::ScaledObject;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::policy::key::{TargetKey, TargetKind, VariantKey};
use crate::policy::units::Replicas;
use crate::policy::variant;
use crate::settings::FeatureSwitch;
use crate::settings::pool_group::PoolGroup;

fn listed(variants: &[Value], hpas: &[Value], scaled_objects: &[Value]) -> TestMirrors {
    let mirrors = mirrors(PoolGroup::default());
    let writers = &mirrors.writers;
    list::<PartialObjectMeta<Namespace>>(&writers.namespaces, []);
    list::<VariantAutoscaling>(&writers.variants, variants.to_vec());
    list::<HorizontalPodAutoscaler>(&writers.horizontal_pod_autoscalers, hpas.to_vec());
    list::<ScaledObject>(&writers.scaled_objects, scaled_objects.to_vec());
    mirrors
}

fn object(name: &str, target: &str) -> Value {
    json!({
        "metadata": { "namespace": "ns", "name": name, "uid": name, "managedFields": count_writer(), "annotations": {
            "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m", "llm-d.ai/desired-replicas": "3",
        }},
        "spec": {
            "scaleTargetRef": { "kind": "Deployment", "name": target },
            "maxReplicas": 9, "modelID": "m",
        },
        "status": { "desiredOptimizedAlloc": { "numReplicas": 3 } },
    })
}

fn with(mut object: Value, annotation: &str, value: &str) -> Value {
    object["metadata"]["annotations"][format!("llm-d.ai/{annotation}")] = json!(value);
    object
}

fn key(name: &str) -> VariantKey {
    VariantKey::new("ns", name)
}

/// What is wrong with a variant, and the count that it keeps.
fn dispute(mirrors: &TestMirrors, name: &str) -> (Option<String>, Option<Replicas>) {
    let record = mirrors.managed(&key(name)).unwrap();
    let why = variant::read(&record.object).err();
    let why = why.map(|why| why.to_string());
    (why, mirrors.stored(&key(name)))
}

#[test]
fn an_annotated_scaler_is_a_variant_and_another_is_none() {
    let target = TargetKey::new("ns", TargetKind::Deployment, "d");
    for (hpas, scaled_objects) in
        [(vec![object("v", "d")], vec![]), (vec![], vec![object("v", "d")])]
    {
        let mirrors = listed(&[], &hpas, &scaled_objects);
        assert_eq!(dispute(&mirrors, "v"), (None, Some(Replicas(3))));
        assert_eq!(mirrors.claimants(&target), [key("v")]);
        assert_eq!(mirrors.variants_in("ns"), [key("v")].into());
        assert_eq!(mirrors.all_records().len(), 1);

        let plain = |one: Value| with(one, "managed", "false");
        let hpas: Vec<_> = hpas.into_iter().map(plain).collect();
        let scaled_objects: Vec<_> = scaled_objects.into_iter().map(plain).collect();
        let mirrors = listed(&[], &hpas, &scaled_objects);
        assert!(mirrors.managed(&key("v")).is_none());
        assert_eq!(mirrors.claimants(&target), []);
        assert!(mirrors.any_record(&key("v")).is_none() && mirrors.variants_in("ns").is_empty());
    }
}

#[test]
fn one_target_of_two_objects_is_said_on_both_and_both_keep_their_counts() {
    let target = "scale target Deployment d";
    let cases = wva_base::cases! {
        (listed(&[object("a", "d")], &[object("b", "d")], &[]),
         ["VariantAutoscaling ns/a", "HorizontalPodAutoscaler ns/b"]),
        (listed(&[], &[object("a", "d")], &[object("b", "d")]), ["HorizontalPodAutoscaler ns/a", "ScaledObject ns/b"]),
        (listed(&[], &[], &[object("a", "d"), object("b", "d")]), ["ScaledObject ns/a", "ScaledObject ns/b"]),
    };
    for (mirrors, objects) in cases {
        for name in ["a", "b"] {
            let (why, count) = dispute(&mirrors, name);
            let why = why.unwrap();
            for part in objects.into_iter().chain([target, "llm-d.ai/managed"]) {
                assert!(why.contains(part), "{why} lacks {part}");
            }
            assert_eq!(count, Some(Replicas(3)));
        }
    }
}

#[test]
fn one_name_of_two_objects_is_said_whatever_they_scale() {
    for (target, what) in [("d", "scale target Deployment d"), ("e", "variant name v")] {
        let mirrors = listed(&[object("v", "d")], &[object("v", target)], &[]);
        let (why, count) = dispute(&mirrors, "v");
        assert!(why.as_ref().unwrap().contains(what), "{why:?}");
        assert_eq!(count, Some(Replicas(3)));
        let named = mirrors.all_managed(&key("v"));
        let kinds: Vec<_> = named.iter().map(|record| record.kind()).collect();
        assert_eq!(kinds, ["VariantAutoscaling", "HorizontalPodAutoscaler"]);
    }
}

#[test]
fn what_is_wrong_or_of_another_controller_takes_nothing_from_others() {
    let wrong = with(object("b", "d"), "variant-cost", "abc");
    let mirrors = listed(&[object("a", "d")], &[wrong], &[]);
    assert_eq!(dispute(&mirrors, "a").0, None);
    let (why, count) = dispute(&mirrors, "b");
    assert!(why.unwrap().contains("llm-d.ai/variant-cost=\"abc\""));
    assert_eq!(count, Some(Replicas(3)));

    let mut labelled = object("b", "d");
    labelled["metadata"]["labels"] = json!({ "wva.llmd.ai/controller-instance": "blue" });
    let mirrors = listed(&[object("a", "d")], &[labelled], &[]);
    let unlabelled = dispute(&mirrors, "a").0;
    assert_eq!(unlabelled.is_some(), mirrors.managed(&key("b")).is_some());
}

#[test]
fn without_the_switch_no_scaler_is_a_variant() {
    let mut mirrors = listed(&[object("a", "d")], &[object("b", "d")], &[]);
    assert!(dispute(&mirrors, "a").0.is_some());
    mirrors.readers.annotated = FeatureSwitch::Disabled;
    assert_eq!(dispute(&mirrors, "a").0, None);
    assert_eq!(mirrors.all_records().len(), 1);
    assert!(mirrors.is_dispensable(&mirrors.horizontal_pod_autoscalers));
}
