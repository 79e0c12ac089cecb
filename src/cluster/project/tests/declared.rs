//! Variants that annotations of scalers declare.

use super::*;
use crate::api::scaled_object::ScaledObject;
use crate::cluster::project::scaler::unknown_keys;
use crate::cluster::project::variant::VariantRecord;
use crate::policy::object::VariantSpec;
use crate::policy::ownership::{Holding, StatusOwner};
use crate::policy::scaler::ScalerKind;
use crate::policy::snapshot::VariantPolicy;
use crate::state::mirrors::tests::count_writer;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;

const GOOD: [(&str, &str); 2] = [("managed", "true"), ("model-id", "llama")];

fn object(spec: &Value, annotations: &[(&str, &str)]) -> Value {
    let annotations: serde_json::Map<String, Value> = annotations
        .iter()
        .map(|(name, value)| (format!("llm-d.ai/{name}"), json!(value)))
        .collect();
    json!({
        "metadata": {
            "namespace": "ns", "name": "v", "uid": "u", "resourceVersion": "7",
            "annotations": annotations,
        },
        "spec": spec,
    })
}

fn hpa(spec: &Value, annotations: &[(&str, &str)]) -> Option<Arc<VariantRecord>> {
    project::<HorizontalPodAutoscaler>(&object(spec, annotations)).declared
}

fn scaled(spec: &Value, annotations: &[(&str, &str)]) -> Option<Arc<VariantRecord>> {
    project::<ScaledObject>(&object(spec, annotations)).declared
}

fn plain() -> Value {
    json!({ "scaleTargetRef": { "kind": "Deployment", "name": "d" }, "maxReplicas": 4 })
}

fn spec(record: &VariantRecord) -> &VariantSpec {
    match &record.object.spec {
        SpecReading::Read(spec) => spec,
        SpecReading::Malformed { why } => panic!("{why}"),
    }
}

#[test]
fn only_the_word_true_declares_a_variant() {
    for value in ["", "TRUE", "True", "1", "yes", "false", " true"] {
        let annotations = [("managed", value), ("model-id", "llama")];
        assert_eq!(hpa(&plain(), &annotations), None, "{value:?}");
    }
    assert_eq!(hpa(&plain(), &[("model-id", "llama")]), None);
    let declared = hpa(&plain(), &GOOD).unwrap();
    assert_eq!(declared.declared_by, Some(ScalerKind::HorizontalPodAutoscaler));
    assert_eq!(declared.object.key.to_string(), "ns/v");
    assert_eq!((&*declared.object.uid, &*declared.resource_version), ("u", "7"));
    assert_eq!(&*spec(&declared).model_id, "llama");
    assert_eq!(declared.object.stored.desired, None);
}

#[test]
fn bounds_are_those_that_the_scaler_keeps() {
    let target = json!({ "name": "d" });
    let of = |record: Option<Arc<VariantRecord>>| {
        let record = record.unwrap();
        let spec = spec(&record);
        (spec.min, spec.max)
    };
    for (fields, expected) in wva_base::cases! {
        (json!({ "maxReplicas": 4 }), (Some(1), Some(4))),
        (json!({ "minReplicas": 0, "maxReplicas": 4 }), (Some(0), Some(4))),
        (json!({ "minReplicas": 2, "maxReplicas": 4 }), (Some(2), Some(4))),
    } {
        let mut spec = fields;
        spec["scaleTargetRef"] = json!({ "kind": "Deployment", "name": "d" });
        assert_eq!(of(hpa(&spec, &GOOD)), expected);
    }
    for (fields, expected) in wva_base::cases! {
        (json!({}), (None, Some(100))),
        (json!({ "minReplicaCount": 0 }), (Some(0), Some(100))),
        (json!({ "idleReplicaCount": 0, "minReplicaCount": 2 }), (Some(2), Some(100))),
        (json!({ "minReplicaCount": 1, "maxReplicaCount": 9 }), (Some(1), Some(9))),
        (json!({ "minReplicaCount": 5, "maxReplicaCount": 5 }), (Some(5), Some(5))),
    } {
        let mut spec = fields;
        spec["scaleTargetRef"] = target.clone();
        assert_eq!(of(scaled(&spec, &GOOD)), expected);
    }
}

#[test]
fn a_model_that_is_missing_or_blank_is_named_with_the_remedy() {
    for (annotations, said) in wva_base::cases! {
        (&[][..], "annotation llm-d.ai/model-id is missing; set it to"),
        (&[("model-id", "")], "llm-d.ai/model-id=\"\" is blank; set it to"),
        (&[("model-id", "  ")], "llm-d.ai/model-id=\"  \" is blank; set it to"),
    } {
        let declared = hpa(&plain(), &[&GOOD[..1], annotations].concat()).unwrap();
        let SpecReading::Malformed { why } = &declared.object.spec else {
            panic!("{annotations:?} is read")
        };
        assert!(why.starts_with("HorizontalPodAutoscaler ns/v"), "{why}");
        assert!(why.contains(said), "{why} lacks {said}");
    }
}

#[test]
fn a_wrong_value_is_named_with_object_annotation_value_and_remedy() {
    let with = |extra: &[(&'static str, &'static str)]| [&GOOD[..1], extra].concat();
    for (annotations, parts) in wva_base::cases! {
        (with(&[("model-id", "a\nb")]), vec![r#"llm-d.ai/model-id="a\nb""#]),
        (with(&[("model-id", "llama"), ("variant-cost", "-1")]),
         vec!["HorizontalPodAutoscaler ns/v", "llm-d.ai/variant-cost=\"-1\"", "at least 0"]),
        (with(&[("variant-cost", "-1"), ("replica-start-seconds", "x")]),
         vec!["llm-d.ai/model-id is missing", "variant-cost=\"-1\"", "replica-start-seconds=\"x\""]),
        (with(&[("model-id", "llama"), ("variant-cost", "abc")]), vec!["variant-cost=\"abc\""]),
        (with(&[("model-id", "llama"), ("variant-cost", "NaN")]), vec!["variant-cost=\"NaN\""]),
        (with(&[("model-id", "llama"), ("variant-cost", "inf")]), vec!["variant-cost=\"inf\""]),
        (with(&[("model-id", "llama"), ("variant-cost", "")]), vec!["variant-cost=\"\""]),
    } {
        let counted = [&annotations[..], &[("desired-replicas", "3")]].concat();
        let mut counted = object(&plain(), &counted);
        counted["metadata"]["managedFields"] = count_writer();
        let declared = project::<HorizontalPodAutoscaler>(&counted).declared;
        let declared = declared.unwrap();
        let SpecReading::Malformed { why } = &declared.object.spec else {
            panic!("{annotations:?} is read");
        };
        for part in parts {
            assert!(why.contains(part), "{why} lacks {part}");
        }
        // What was decided before stays.
        assert_eq!(declared.object.stored.desired, Some(Replicas(3)));
    }
    let negative = json!({ "scaleTargetRef": { "name": "d" }, "minReplicaCount": -1 });
    let none = json!({ "scaleTargetRef": { "name": "d" }, "maxReplicaCount": 0 });
    let nameless = json!({ "scaleTargetRef": { "name": "" } });
    let crossed =
        json!({ "scaleTargetRef": { "name": "d" }, "minReplicaCount": 7, "maxReplicaCount": 5 });
    let idle = |idle: i32, min: Option<i32>| {
        let target = json!({ "name": "d" });
        json!({ "scaleTargetRef": target, "idleReplicaCount": idle, "minReplicaCount": min })
    };
    for (count, min) in [(1, 2), (0, 0)] {
        spec(&scaled(&idle(count, Some(min)), &GOOD).unwrap());
    }
    for (spec, part) in [
        (
            idle(0, None),
            "spec.idleReplicaCount is 0; write less than 0, which KEDA takes for the minimum",
        ),
        (idle(1, Some(0)), "spec.idleReplicaCount is 1; write less than 1,"),
        (idle(2, Some(2)), "spec.idleReplicaCount is 2; write less than 2,"),
        (crossed, "spec.minReplicaCount is 7, and spec.maxReplicaCount 5;"),
        (negative, "spec.minReplicaCount is -1"),
        (none, "spec.maxReplicaCount is 0"),
        (nameless, "spec.scaleTargetRef.name is empty"),
    ] {
        let declared = scaled(&spec, &GOOD).unwrap();
        let SpecReading::Malformed { why } = &declared.object.spec else {
            panic!("{spec} is read");
        };
        assert!(why.contains(part) && why.contains("ScaledObject ns/v"), "{why}");
    }
}

#[test]
fn a_cost_is_any_number_that_is_not_negative() {
    for (text, expected) in [
        (None, None),
        (Some("40"), Some("40")),
        (Some("0"), Some("0")),
        (Some("2.5"), Some("2.5")),
        (Some("1e1"), Some("10")),
    ] {
        let annotations: Vec<_> =
            GOOD.into_iter().chain(text.map(|text| ("variant-cost", text))).collect();
        let declared = hpa(&plain(), &annotations).unwrap();
        assert_eq!(spec(&declared).cost.as_deref(), expected);
    }
}

#[test]
fn what_another_controller_makes_is_left_to_its_maker() {
    for (kind, version, is_made) in [
        ("ScaledObject", "keda.sh/v1alpha1", true),
        ("PodAutoscaler", "autoscaling.aibrix.ai/v1alpha1", true),
        ("ScaledObject", "example.com/v1", false),
        ("Release", "example.com/v1", false),
    ] {
        let mut made = object(&plain(), &GOOD);
        made["metadata"]["ownerReferences"] = json!([{
            "apiVersion": version, "kind": kind, "name": "o", "uid": "o", "controller": true,
        }]);
        let declared = project::<HorizontalPodAutoscaler>(&made).declared;
        assert_eq!(declared.is_none(), is_made, "{kind}");
    }
}

#[test]
fn count_labels_and_writers_are_read() {
    let mut annotated = object(&plain(), &[GOOD[0], GOOD[1], ("desired-replicas", "3")]);
    annotated["metadata"]["labels"] = json!({
        "inference.optimization/acceleratorName": "H100",
        "wva.llmd.ai/controller-instance": "blue",
    });
    let entry = |manager: &str, annotation: &str| {
        let fields = json!({ "f:metadata": { "f:annotations": { annotation: {} } } });
        json!({
            "manager": manager, "operation": "Apply", "apiVersion": "autoscaling/v2",
            "time": "1970-01-01T00:00:05Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    annotated["metadata"]["managedFields"] = json!([
        entry("wva-a", "f:llm-d.ai/desired-replicas"),
        entry("wva-b", "f:llm-d.ai/managed"),
        entry("kubectl", "f:llm-d.ai/desired-replicas"),
    ]);
    let declared = project::<HorizontalPodAutoscaler>(&annotated).declared;
    let declared = declared.unwrap();
    assert_eq!(declared.object.stored.desired, Some(Replicas(3)));
    assert_eq!(declared.object.accelerator_label.as_deref(), Some("H100"));
    assert_eq!(declared.instance.as_deref(), Some("blue"));
    let owner = StatusOwner {
        manager: "wva-a".into(),
        holds: Holding::Status,
        reports: false,
        written: WallTime(5_000),
    };
    assert_eq!(&*declared.owners, [owner]);
    for count in ["", "-1", "3.5", "many"] {
        annotated["metadata"]["annotations"]["llm-d.ai/desired-replicas"] = json!(count);
        let declared = project::<HorizontalPodAutoscaler>(&annotated).declared;
        assert_eq!(declared.unwrap().object.stored.desired, None, "{count:?}");
    }
    let copied = hpa(&plain(), &[GOOD[0], GOOD[1], ("desired-replicas", "3")]);
    assert_eq!(copied.unwrap().object.stored.desired, None);
}

/// A ScaledObject with a trigger of each type, and the metadata of the first one.
fn triggered(
    kind: &str,
    metadata: &Value,
    annotations: &[(&str, &str)],
) -> Option<Arc<VariantRecord>> {
    let spec = json!({
        "scaleTargetRef": { "name": "d" },
        "triggers": [
            { "type": kind, "metadata": metadata },
            { "type": "prometheus", "metadata": { "modelID": "of another scaler" } },
        ],
    });
    scaled(&spec, annotations)
}

#[test]
fn a_trigger_that_names_a_model_declares_a_variant() {
    assert_eq!(triggered("external", &json!({ "scalerAddress": "x" }), &[]), None);
    let metadata = json!({ "modelID": "llama", "variantCost": "12.5" });
    assert_eq!(triggered("prometheus", &metadata, &[]), None);
    for kind in ["external", "external-push"] {
        let declared = triggered(kind, &metadata, &[]).unwrap();
        let read = spec(&declared);
        assert_eq!((&*read.model_id, read.cost.as_deref()), ("llama", Some("12.5")));
        assert_eq!((read.min, read.max), (None, Some(100)));
        assert_eq!(declared.object.key.to_string(), "ns/v");
    }
    // It may be switched off, and one that names another variant is none itself.
    let off = triggered("external", &metadata, &[("managed", "false")]);
    assert_eq!(off, None);
    let blank = [("managed", "false"), ("model-id", " ")];
    assert_eq!(triggered("external", &metadata, &blank), None);
    assert_eq!(hpa(&plain(), &blank), None);
    let named = json!({ "modelID": "llama", "variantName": "other" });
    assert_eq!(triggered("external", &named, &[]), None);
    // An annotation may say the same, and add what the trigger leaves out.
    let model = json!({ "modelID": "llama" });
    let both = [("managed", "true"), ("model-id", "llama"), ("variant-cost", "3")];
    let declared = triggered("external", &model, &both).unwrap();
    assert_eq!(spec(&declared).cost.as_deref(), Some("3"));
}

#[test]
fn what_a_trigger_says_wrong_is_named_with_its_key() {
    for (metadata, annotations, parts) in wva_base::cases! {
        (json!({ "modelID": "" }), &[][..], ["trigger metadata modelID=\"\"", "is blank; set it to"]),
        (json!({ "modelID": "llama", "variantCost": "-1" }), &[],
         ["trigger metadata variantCost=\"-1\"", "number of at least 0"]),
        (json!({ "modelID": "llama" }), &[("model-id", "qwen")],
         ["annotation llm-d.ai/model-id=\"qwen\"", "trigger metadata modelID=\"llama\" differ"]),
        (json!({ "modelID": "llama", "scalerAddress": "wva:9090", "warmPool": "2" }), &[],
         ["trigger metadata \"warmPool\"=\"2\" is no key", "the keys are variantName, modelID, variantCost"]),
        (json!({ "modelID": "llama", "variantCost": "-1", "replicaStartSeconds": "x" }), &[],
         ["variantCost=\"-1\" is no cost", "replicaStartSeconds=\"x\" is no number of seconds"]),
        (json!({ "modelID": "llama", "variantCost": "-1", "foo": "bar", "foe": "" }), &[("model-id", "qwen")],
         ["trigger metadata \"foe\"=\"\", \"foo\"=\"bar\" are no keys", "variantCost=\"-1\""]),
        (json!({ "modelID": "llama", "variantCost": "-1", "foo": "bar" }), &[("model-id", "qwen")],
         ["differ; remove one of them. trigger metadata variantCost=\"-1\"",
          "to a number of at least 0, or remove it. trigger metadata \"foo\"=\"bar\""]),
    } {
        let declared = triggered("external", &metadata, annotations).unwrap();
        let SpecReading::Malformed { why } = &declared.object.spec else {
            panic!("{metadata} is read")
        };
        for part in parts {
            assert!(why.contains(part), "{why} lacks {part}");
        }
    }
}

#[test]
fn unknown_keys_of_several_triggers_are_listed_once_and_counted() {
    let metadata = |keys: &[&str]| -> BTreeMap<String, String> {
        let pairs = keys.iter().map(|key| ((*key).to_owned(), "1".to_owned()));
        pairs.collect()
    };
    let why = |keys: &[&str]| {
        let (one, other) = (metadata(keys), metadata(&["a"]));
        unknown_keys(one.iter().chain(&other))
    };
    let known = metadata(&["variantName", "modelID", "enableTLS"]);
    assert_eq!(unknown_keys(&known), None);
    let keys = "the keys are variantName, modelID, variantCost, scalingPolicy, defaultOutputTokens, \
                replicaStartSeconds";
    let one = format!("\"a\"=\"1\" is no key of this scaler; remove it, {keys}");
    assert_eq!(why(&["a"]), Some(one));
    let seven = format!(
        "\"a\"=\"1\", \"b\"=\"1\", \"c\"=\"1\", \"d\"=\"1\", \"e\"=\"1\" and 2 more are no keys of this scaler; \
         remove them, {keys}"
    );
    let names = ["modelID", "a", "b", "c", "d", "e", "f", "g"];
    assert_eq!(why(&names), Some(seven));
}

#[test]
fn a_trigger_or_an_annotation_states_tier_and_seeds() {
    let declared = triggered("external", &json!({ "modelID": "llama" }), &[]).unwrap();
    assert_eq!(spec(&declared).policy, VariantPolicy::default());
    let policy = |tier: &str| VariantPolicy {
        scaling_policy: Some(tier.into()),
        default_output_tokens: Some(700),
        replica_start_seconds: Some(240),
    };
    let metadata = json!({
        "modelID": "llama", "scalingPolicy": "gold", "defaultOutputTokens": "700", "replicaStartSeconds": "240",
    });
    let declared = triggered("external", &metadata, &[]).unwrap();
    assert_eq!(spec(&declared).policy, policy("gold"));
    let annotations = [
        GOOD[0],
        GOOD[1],
        ("scaling-policy", "silver"),
        ("default-output-tokens", "700"),
        ("replica-start-seconds", "240"),
    ];
    assert_eq!(spec(&hpa(&plain(), &annotations).unwrap()).policy, policy("silver"));
    for (key, value, remedy) in [
        ("scalingPolicy", "default", "is no key of a tier"),
        ("scalingPolicy", "a b", "is no key of a tier"),
        ("defaultOutputTokens", "0", "from 1 to 1000000"),
        ("defaultOutputTokens", "many", "from 1 to 1000000"),
        ("replicaStartSeconds", "86401", "from 1 to 86400"),
        ("replicaStartSeconds", "1.5", "from 1 to 86400"),
    ] {
        let declared =
            triggered("external", &json!({ "modelID": "llama", key: value }), &[]).unwrap();
        let SpecReading::Malformed { why } = &declared.object.spec else {
            panic!("{key}={value} is read")
        };
        let named = format!("trigger metadata {key}={value:?}");
        assert!(why.contains(&named) && why.contains(remedy), "{why}");
    }
}
