//! The definitions, as the API server enforces them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde::Deserialize;
use serde_json::{Value, json};
use wva::api::pod_autoscaler::PodAutoscaler;

use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::tools::repository;
use crate::harness::wait::eventually;

const SPANS: &str = "spans.bounds.example";
const SOON: Duration = Duration::from_secs(30);
const VECTORS: &str = include_str!("../../vectors/crd.yaml");

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, definition::documented_objects_are_accepted),
        case!(shared, definition::invalid_objects_are_refused),
        case!(shared, definition::samples_are_accepted),
        case!(shared, definition::a_rule_that_is_broken_already_keeps_no_status_out),
    ]
}

#[derive(Deserialize)]
struct Vectors {
    accepted: Vec<Accepted>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Accepted {
    id: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    spec: Value,
    stored: Value,
}

#[derive(Deserialize)]
struct Refused {
    id: String,
    spec: Option<Value>,
    because: String,
}

fn objects(cx: &Cx) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("llmd.ai", "v1alpha1", "VariantAutoscaling");
    let resource = ApiResource::from_gvk(&kind);
    Api::namespaced_with(cx.world.client.clone(), &cx.namespace.name, &resource)
}

fn object(
    id: &str,
    labels: &BTreeMap<String, String>,
    spec: Option<&Value>,
) -> Result<DynamicObject> {
    let mut object = json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": {"name": id.to_lowercase(), "labels": labels},
    });
    if let Some(spec) = spec {
        object["spec"] = spec.clone();
    }
    Ok(serde_json::from_value(object)?)
}

async fn documented_objects_are_accepted(cx: &Cx) -> Result {
    let vectors: Vectors = serde_yaml::from_str(VECTORS)?;
    let objects = objects(cx);
    for vector in vectors.accepted {
        let object = object(&vector.id, &vector.labels, Some(&vector.spec))?;
        let stored = objects
            .create(&PostParams::default(), &object)
            .await
            .map_err(|error| Fault::new(format!("{} is refused: {error}", vector.id)))?;
        let spec = &stored.data["spec"];
        let seen = json!({
            "kind": spec["scaleTargetRef"]["kind"],
            "variantCost": spec["variantCost"],
            "minReplicas": spec["minReplicas"],
            "maxReplicas": spec["maxReplicas"],
        });
        assert_eq!(seen, vector.stored, "{}", vector.id);
        assert_eq!(spec["modelID"], vector.spec["modelID"], "{}", vector.id);
        assert_eq!(spec.get("sloClassRef"), None, "{}", vector.id);
    }
    Ok(())
}

async fn invalid_objects_are_refused(cx: &Cx) -> Result {
    let vectors: Vectors = serde_yaml::from_str(VECTORS)?;
    let objects = objects(cx);
    for vector in vectors.refused {
        let object = object(&vector.id, &BTreeMap::new(), vector.spec.as_ref())?;
        match objects.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) => {
                assert_eq!(status.code, 422, "{}: {}", vector.id, status.message);
                let named = status.message.contains(&vector.because);
                assert!(named, "{}: {}", vector.id, status.message);
            }
            Err(error) => return Err(error.into()),
            Ok(stored) => {
                let text = format!("{} is accepted: {}", vector.id, stored.data);
                return Err(Fault::new(text));
            }
        }
    }
    Ok(())
}

/// A kind whose bounds obey these rules, which no other case uses.
fn spans(rules: &Value) -> Result<CustomResourceDefinition> {
    let whole = json!({"type": "integer"});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({
        "type": "object", "properties": {"low": whole, "high": whole},
        "x-kubernetes-validations": rules,
    });
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": open}});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": SPANS},
        "spec": {
            "group": "bounds.example", "scope": "Namespaced",
            "names": {"plural": "spans", "singular": "span", "kind": "Span"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema},
            }],
        },
    }))?)
}

/// One whose bounds contradict each other.
fn crossed(name: &str) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "bounds.example/v1", "kind": "Span",
        "metadata": {"name": name}, "spec": {"low": 5, "high": 2},
    }))?)
}

/// An object may be older than a rule that it breaks. The server takes whatever leaves the broken part as
/// it is, above all the status.
async fn a_rule_that_is_broken_already_keeps_no_status_out(cx: &Cx) -> Result {
    let definitions: Api<CustomResourceDefinition> = Api::all(cx.world.client.clone());
    let parameters = PostParams::default();
    definitions.create(&parameters, &spans(&json!([]))?).await?;
    let outcome = see_old_and_new(cx, &definitions).await;
    definitions.delete(SPANS, &DeleteParams::default()).await?;
    outcome
}

async fn see_old_and_new(cx: &Cx, definitions: &Api<CustomResourceDefinition>) -> Result {
    let parameters = PostParams::default();
    let kind = GroupVersionKind::gvk("bounds.example", "v1", "Span");
    let resource = ApiResource::from_gvk(&kind);
    let objects: Api<DynamicObject> =
        Api::namespaced_with(cx.world.client.clone(), &cx.namespace.name, &resource);
    eventually("the kind is served", SOON, async || {
        Ok(objects.create(&parameters, &crossed("old")?).await?)
    })
    .await?;
    let mut strict = spans(&json!([{"rule": "self.low <= self.high"}]))?;
    strict.metadata = definitions.get(SPANS).await?.metadata;
    definitions.replace(SPANS, &parameters, &strict).await?;
    let mut attempts = 0;
    eventually("the rule is in force", SOON, async || {
        attempts += 1;
        let another = crossed(&format!("new-{attempts}"))?;
        match objects.create(&parameters, &another).await {
            Err(kube::Error::Api(status)) if status.code == 422 => Ok(()),
            other => Err(Fault::new(format!("{other:?}"))),
        }
    })
    .await?;
    let merge = PatchParams::default();
    let status = Patch::Merge(json!({"status": {"replicas": 2}}));
    let written = objects.patch_status("old", &merge, &status).await?;
    assert_eq!(written.data["status"]["replicas"], 2);
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    objects.patch("old", &merge, &label).await?;
    let spec = Patch::Merge(json!({"spec": {"high": 3}}));
    let refused = objects.patch("old", &merge, &spec).await;
    let is_refused = matches!(&refused, Err(kube::Error::Api(status)) if status.code == 422);
    assert!(is_refused, "{refused:?}");
    Ok(())
}

async fn samples_are_accepted(cx: &Cx) -> Result {
    let root = repository();
    let samples = root.join("config/samples");
    let autoscalers = ApiResource::erase::<PodAutoscaler>(&());
    for (api, folder, fewest) in wva_base::cases! {
        (objects(cx), samples.clone(), 6),
        (cx.namespace.erased(&autoscalers), samples.join("pod-autoscalers"), 9),
        // What the documentation of AIBrix shows.
        (cx.namespace.erased(&autoscalers), root.join("tests/cluster/samples"), 3),
    } {
        let mut accepted = 0;
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            if path.is_dir() {
                continue;
            }
            for document in serde_yaml::Deserializer::from_str(&fs::read_to_string(&path)?) {
                let sample = Value::deserialize(document)?;
                let kinds = ["VariantAutoscaling", "PodAutoscaler"];
                if !kinds.iter().any(|kind| sample["kind"] == *kind) {
                    continue;
                }
                let sample: DynamicObject = serde_json::from_value(sample)?;
                let created = api.create(&PostParams::default(), &sample).await;
                let refused = |error| Fault::new(format!("{} is refused: {error}", path.display()));
                created.map_err(refused)?;
                accepted += 1;
            }
        }
        assert!(accepted >= fewest, "{accepted} samples");
    }
    Ok(())
}
