//! What an object says about itself: its conditions, and the bounds that it sets.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{Variants, variant};
use crate::harness::wait::eventually;

const SOON: Duration = Duration::from_secs(30);
const DEFINITION: &str = "variantautoscalings.llmd.ai";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared("conditions::bounds_hold", bounds_hold),
        Case::shared(
            "conditions::an_absent_minimum_is_one",
            an_absent_minimum_is_one,
        ),
        Case::shared(
            "conditions::stored_defaults_are_named",
            stored_defaults_are_named,
        ),
        Case::exclusive(
            "conditions::a_malformed_object_disturbs_no_other",
            a_malformed_object_disturbs_no_other,
        ),
    ]
}

async fn controller(cx: &Cx) -> Result<Controller> {
    let controller = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
    controller.ready().await?;
    Ok(controller)
}

/// The last step of a decision, which is that of the bounds.
fn bound(step: &Value) -> [(&'static str, Value); 1] {
    [("/steps/2/why", step.clone())]
}

async fn bounds_hold(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    cx.namespace.deploy(&Workload::new("llama", 1)).await?;
    variants.apply("v", "llama", json!({})).await?;
    variants.publishes("v", Some(1.0), SOON).await?;

    variants
        .apply("v", "llama", json!({ "minReplicas": 3 }))
        .await?;
    variants.publishes("v", Some(3.0), SOON).await?;
    let within = json!({ "code": "WithinBounds", "min": 3, "max": null });
    variants.decides("v", &bound(&within), SOON).await?;

    let fields = json!({ "minReplicas": 1, "maxReplicas": 2 });
    variants.apply("v", "llama", fields).await?;
    variants.publishes("v", Some(2.0), SOON).await?;
    variants.decides("v", &[("/target", json!(2))], SOON).await
}

async fn an_absent_minimum_is_one(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    cx.namespace.deploy(&Workload::new("llama", 0)).await?;
    variants
        .apply("v", "llama", json!({ "minReplicas": 0 }))
        .await?;
    let idle = [
        ("Ready", "True/VariantReady"),
        ("MetricsAvailable", "False/NoReplicas"),
    ];
    variants.says("v", &idle, SOON).await?;
    variants.publishes("v", Some(0.0), SOON).await?;

    variants.apply("v", "llama", json!({})).await?;
    variants.publishes("v", Some(1.0), SOON).await
}

async fn stored_defaults_are_named(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let note = "the original's schema defaults";
    for (name, fields, is_named) in [
        (
            "chosen",
            json!({ "minReplicas": 1, "maxReplicas": 3 }),
            false,
        ),
        ("absent", json!({}), false),
        (
            "stored",
            json!({ "minReplicas": 1, "maxReplicas": 2 }),
            true,
        ),
    ] {
        cx.namespace.deploy(&Workload::new(name, 1)).await?;
        variants.apply(name, name, fields).await?;
        let silent = [("OptimizationReady", "False/SafetyNetActivated")];
        let message = variants.says(name, &silent, SOON).await?;
        assert_eq!(message.contains(note), is_named, "{name}: {message}");
    }
    Ok(())
}

/// The definition keeps such objects out, but an older one may have let them in.
async fn a_malformed_object_disturbs_no_other(cx: &Cx) -> Result {
    let definitions: Api<CustomResourceDefinition> = Api::all(cx.world.client.clone());
    let current = definitions.get(DEFINITION).await?;
    let mut loose = serde_json::to_value(&current)?;
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let loose: CustomResourceDefinition = serde_json::from_value(loose)?;
    let parameters = PostParams::default();
    definitions.replace(DEFINITION, &parameters, &loose).await?;
    let outcome = see_malformed(cx).await;
    let mut restored = current.clone();
    restored.metadata = definitions.get(DEFINITION).await?.metadata;
    definitions
        .replace(DEFINITION, &parameters, &restored)
        .await?;
    outcome
}

async fn see_malformed(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    for name in ["good", "bad"] {
        cx.namespace.deploy(&Workload::new(name, 2)).await?;
        variants.apply(name, name, json!({})).await?;
        variants.publishes(name, Some(2.0), SOON).await?;
    }
    let found = [("TargetResolved", "True/TargetFound")];
    variants.says("bad", &found, SOON).await?;

    let broken = variant("bad", "bad", &json!({ "modelID": 7 }));
    eventually("the loose definition is in force", SOON, async || {
        cx.namespace.apply(broken.clone()).await
    })
    .await?;
    let malformed = [
        ("Ready", "False/MalformedObject"),
        ("TargetResolved", "False/MalformedObject"),
    ];
    let message = variants.says("bad", &malformed, SOON).await?;
    let wanted = "spec.modelID: invalid type: integer `7`, expected a string";
    assert_eq!(message, wanted);
    // What it asked for while it could be read still stands.
    assert_eq!(variants.desired("bad").await?, Some(2.0));

    let first_seen_broken = variant("new", "new", &json!({ "scaleTargetRef": "new" }));
    cx.namespace.apply(first_seen_broken).await?;
    let message = variants.says("new", &malformed, SOON).await?;
    assert!(message.contains("scaleTargetRef"), "{message}");
    assert_eq!(variants.desired("new").await?, None);

    variants
        .apply("good", "good", json!({ "minReplicas": 3 }))
        .await?;
    variants.publishes("good", Some(3.0), SOON).await?;
    variants.says("good", &found, SOON).await?;

    variants.apply("bad", "bad", json!({})).await?;
    variants.says("bad", &found, SOON).await?;
    variants
        .delete("new")
        .await
        .map_err(|fault| Fault::new(format!("a malformed object stays: {}", fault.text())))
}
