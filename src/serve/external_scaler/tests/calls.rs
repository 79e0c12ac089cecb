use serde_json::{Value, json};
use tonic::Code;

use super::{
    DESIRED, connected, deployment, exclude_namespace, reference, scaled_object, store_deployments,
    store_scaled_objects, store_variants, variant,
};
use crate::state::mirrors::tests::count_writer;

#[tokio::test]
async fn a_decision_is_the_count_and_zero_is_inactive() {
    let (shared, _server, client) = connected().await;
    let named = || reference("so", &[("variantName", "a"), ("scalerAddress", "wva:50051")]);
    let gone = client.count(named()).await.unwrap_err();
    assert_eq!(gone.code(), Code::Unavailable, "nothing is listed yet");

    store_deployments(&shared, [deployment("a", 7)]);
    for desired in [3, 0, 1] {
        store_variants(&shared, [variant("a", "a", Some(desired))]);
        assert_eq!(client.count(named()).await.unwrap(), i64::from(desired));
        assert_eq!(client.is_active(named()).await.unwrap(), desired > 0);
    }
    let specs = client.spec(named()).await.unwrap().metric_specs;
    let [spec] = specs.as_slice() else {
        panic!("{specs:?}");
    };
    assert_eq!((spec.metric_name.as_str(), spec.target_size), (DESIRED, 1));
    assert!((spec.target_size_float - 1.0).abs() < f64::EPSILON);
}

#[tokio::test]
async fn before_the_first_decision_the_target_is_mirrored() {
    let (shared, _server, client) = connected().await;
    let named = || reference("so", &[("variantName", "a")]);
    store_variants(&shared, [variant("a", "a", None)]);
    let unknown = client.count(named()).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unavailable);
    assert!(unknown.message().contains("ScaledObject ns/so"), "{unknown}");
    assert!(unknown.message().contains("TargetResolved"), "{unknown}");
    let unknown = client.is_active(named()).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unavailable, "it may have no replicas");

    store_deployments(&shared, []);
    let missing = client.count(named()).await.unwrap_err();
    assert_eq!(missing.code(), Code::Unavailable, "{missing}");
    assert!(client.is_active(named()).await.unwrap());

    for replicas in [2, 0] {
        store_deployments(&shared, [deployment("a", replicas)]);
        assert_eq!(client.count(named()).await.unwrap(), i64::from(replicas));
        assert_eq!(client.is_active(named()).await.unwrap(), replicas > 0);
    }
}

#[tokio::test]
async fn a_declared_variant_is_answered_what_is_stored_whatever_its_annotations_say() {
    let (shared, _server, client) = connected().await;
    store_variants(&shared, []);
    store_deployments(&shared, [deployment("x", 7)]);
    let declared = |count: Option<&str>, model: &str| {
        let mut object = scaled_object("so", "x");
        object["metadata"]["managedFields"] = count_writer();
        object["metadata"]["annotations"] = json!({
            "llm-d.ai/managed": "true", "llm-d.ai/model-id": model, "llm-d.ai/desired-replicas": count.unwrap_or("none"),
        });
        object
    };
    for name in [&[][..], &[("variantName", "so")]] {
        let count = async || client.count(reference("so", name)).await.unwrap();
        store_scaled_objects(&shared, [declared(None, "m")]);
        assert_eq!(count().await, 7, "nothing is decided yet");
        store_scaled_objects(&shared, [declared(Some("3"), "m")]);
        assert_eq!(count().await, 3);
        store_scaled_objects(&shared, [declared(Some("3"), "")]);
        assert_eq!(count().await, 3, "the wrong annotation lowers nothing");
        store_variants(&shared, [variant("a", "x", Some(2))]);
        store_scaled_objects(&shared, [declared(Some("3"), "m")]);
        assert_eq!(count().await, 3, "a dispute lowers nothing");
        store_variants(&shared, []);
    }
}

#[tokio::test]
async fn without_a_decision_what_is_malformed_or_disputed_mirrors_the_target_of_its_scaler() {
    let (shared, _server, client) = connected().await;
    let declared = |model: &str| {
        let mut object = scaled_object("so", "x");
        object["metadata"]["annotations"] =
            json!({ "llm-d.ai/managed": "true", "llm-d.ai/model-id": model });
        object
    };
    for (case, object, variants, metadata, text) in wva_base::cases! {
        ("a declared one without a model", declared(""), vec![], None, "ScaledObject ns/so yet"),
        ("a contested target", declared("m"), vec![variant("a", "x", None)], None, "its events"),
        ("a VariantAutoscaling that is named", declared("m"), vec![variant("a", "x", None)], Some(("variantName", "a")),
         "its condition TargetResolved"),
    } {
        let named = || reference("so", metadata.as_slice());
        store_variants(&shared, variants);
        store_scaled_objects(&shared, [object]);
        for replicas in [0, 4] {
            store_deployments(&shared, [deployment("x", replicas)]);
            assert_eq!(client.count(named()).await.unwrap(), i64::from(replicas), "{case}");
            assert_eq!(client.is_active(named()).await.unwrap(), replicas > 0, "{case}");
        }
        store_deployments(&shared, []);
        assert!(client.is_active(named()).await.unwrap(), "{case}: it is to be made");
        let missing = client.count(named()).await.unwrap_err();
        assert!(missing.message().contains(text), "{case}: {missing}");
    }
    // What has no count that can be known is left as it is.
    store_variants(&shared, []);
    let mut object = declared("m");
    object["spec"]["scaleTargetRef"]["kind"] = json!("Unknown");
    store_scaled_objects(&shared, [object]);
    let unknown = client.is_active(reference("so", &[])).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unavailable, "{unknown}");
}

#[tokio::test]
async fn a_trigger_that_names_a_model_is_answered_for_its_own_object() {
    let (shared, _server, client) = connected().await;
    store_variants(&shared, []);
    store_deployments(&shared, [deployment("x", 7)]);
    let metadata = [("modelID", "m"), ("variantCost", "3")];
    let mut object = scaled_object("so", "x");
    store_scaled_objects(&shared, [object.clone()]);
    let count = async || client.count(reference("so", &metadata)).await;
    assert!(count().await.is_err(), "nothing is declared");
    object["spec"]["triggers"] =
        json!([{ "type": "external", "metadata": { "modelID": "m", "variantCost": "3" } }]);
    store_scaled_objects(&shared, [object.clone()]);
    assert_eq!(count().await.unwrap(), 7, "nothing is decided yet");
    object["metadata"]["managedFields"] = count_writer();
    object["metadata"]["annotations"] = json!({ "llm-d.ai/desired-replicas": "3" });
    store_scaled_objects(&shared, [object]);
    assert_eq!(count().await.unwrap(), 3);
}

#[tokio::test]
async fn without_a_name_the_variant_of_the_target_is_followed() {
    let (shared, _server, client) = connected().await;
    let count = async || client.count(reference("so", &[])).await;
    store_variants(&shared, [variant("a", "x", Some(2)), variant("b", "y", Some(5))]);
    let unseen = count().await.unwrap_err();
    assert_eq!(unseen.code(), Code::Unavailable, "{unseen}");

    for (target, wanted) in [("x", 2), ("y", 5)] {
        store_scaled_objects(&shared, [scaled_object("so", target)]);
        assert_eq!(count().await.unwrap(), wanted);
    }
}

/// A ScaledObject, one entry of its metadata, and the refusal: its code and parts of its message.
type Refusal = (&'static str, Option<(&'static str, &'static str)>, Code, &'static [&'static str]);

const REFUSALS: [Refusal; 8] = wva_base::cases! {
    ("of-x", Some(("variantName", "d")), Code::NotFound, &["ns/of-x", "variantName=\"d\"", "create it"]),
    ("of-x", Some(("variantName", "b")), Code::FailedPrecondition, &["Deployment ns/x", "Deployment ns/y"]),
    ("gone", None, Code::NotFound, &["ns/gone", "state variantName"]),
    ("of-z", None, Code::NotFound, &["ns/of-z", "Deployment ns/z"]),
    ("of-y", None, Code::FailedPrecondition, &["b, c", "delete all but one"]),
    ("of-x", Some(("variantName", "A b")), Code::InvalidArgument, &["ns/of-x", "variantName=\"A b\""]),
    ("of-x", Some(("modelId", "m")), Code::InvalidArgument, &["\"modelId\""]),
    ("", None, Code::InvalidArgument, &["name is empty"]),
};

#[tokio::test]
async fn what_is_not_known_is_an_error_with_object_and_remedy() {
    let (shared, _server, client) = connected().await;
    let claims = [("a", "x"), ("b", "y"), ("c", "y")];
    store_variants(&shared, claims.map(|(name, target)| variant(name, target, Some(1))));
    let objects = [("of-x", "x"), ("of-y", "y"), ("of-z", "z")];
    store_scaled_objects(&shared, objects.map(|(name, target)| scaled_object(name, target)));
    assert_eq!(client.count(reference("of-x", &[])).await.unwrap(), 1);
    for (object, entry, code, parts) in REFUSALS {
        let named = || reference(object, entry.as_slice());
        for error in
            [client.count(named()).await.unwrap_err(), client.is_active(named()).await.unwrap_err()]
        {
            assert_eq!(error.code(), code, "{object} {entry:?}: {error}");
            for part in parts {
                assert!(error.message().contains(part), "{error} lacks {part}");
            }
        }
        // The metrics of a trigger depend on its metadata alone.
        let spec = client.spec(named()).await;
        assert_eq!(spec.is_err(), code == Code::InvalidArgument, "{object} {entry:?}");
    }
    exclude_namespace(&shared);
    for metadata in [&[("variantName", "a")][..], &[]] {
        let foreign = client.count(reference("of-x", metadata)).await;
        let foreign = foreign.unwrap_err();
        assert_eq!(foreign.code(), Code::FailedPrecondition, "{foreign}");
        assert!(foreign.message().contains("ns/a is not managed"), "{foreign}");
    }
    let unnamed = client.count(reference("of-z", &[])).await.unwrap_err();
    assert_eq!(unnamed.code(), Code::NotFound, "{unnamed}");
}

/// A ScaledObject that its annotation makes a variant, or excludes.
fn annotated(managed: &str) -> Value {
    let mut object = scaled_object("so", "x");
    object["metadata"]["annotations"] =
        json!({"llm-d.ai/managed": managed, "llm-d.ai/model-id": "m"});
    object
}

#[tokio::test]
async fn a_foreign_variant_is_named_by_its_kind() {
    let (shared, _server, client) = connected().await;
    store_variants(&shared, []);
    store_scaled_objects(&shared, [annotated("true")]);
    exclude_namespace(&shared);
    for metadata in [&[("variantName", "so")][..], &[]] {
        let foreign = client.count(reference("so", metadata)).await.unwrap_err();
        let named = "ScaledObject ns/so is not managed by this controller";
        assert!(foreign.message().contains(named), "{foreign}");
        assert!(!foreign.message().contains("VariantAutoscaling"), "{foreign}");
    }
}

#[tokio::test]
async fn what_an_excluded_object_states_of_a_model_is_not_judged() {
    let (shared, _server, client) = connected().await;
    let blank = || reference("so", &[("modelID", " ")]);
    store_variants(&shared, []);
    store_scaled_objects(&shared, [annotated("true")]);
    let judged = client.count(blank()).await.unwrap_err();
    assert_eq!(judged.code(), Code::InvalidArgument, "{judged}");
    assert!(judged.message().contains("modelID=\" \" is blank; set it to"), "{judged}");

    store_scaled_objects(&shared, [annotated("false")]);
    let excluded = client.count(blank()).await.unwrap_err();
    assert_eq!(excluded.code(), Code::NotFound, "{excluded}");
    assert!(excluded.message().contains("llm-d.ai/managed=\"false\""), "{excluded}");
    assert!(client.spec(blank()).await.is_ok());
    // It follows the VariantAutoscaling of its target all the same.
    store_variants(&shared, [variant("a", "x", Some(4))]);
    assert_eq!(client.count(blank()).await.unwrap(), 4);
}

#[tokio::test]
async fn a_call_of_no_method_or_metric_is_refused() {
    let (shared, _server, client) = connected().await;
    store_variants(&shared, [variant("a", "a", Some(1))]);
    let named = || reference("so", &[("variantName", "a")]);
    let other = client.metrics(named(), "wva_current_replicas").await.unwrap_err();
    assert_eq!(other.code(), Code::InvalidArgument);
    assert!(other.message().contains("\"wva_current_replicas\""), "{other}");
    let unknown = client.call::<_, super::IsActiveResponse>("Scale", named()).await;
    assert_eq!(unknown.unwrap_err().code(), Code::Unimplemented);
    let long = "x".repeat(100_000);
    let large = client.is_active(reference("so", &[("variantName", &long)])).await;
    assert_eq!(large.unwrap_err().code(), Code::OutOfRange);
    assert!(client.is_active(named()).await.unwrap(), "the connection is kept");
}
