//! Watches on a real API server.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use serde_json::json;
use tokio::time::timeout;
use wva::api::service_monitor::ServiceMonitor;
use wva::api::variant_autoscaling::VariantAutoscaling;
use wva::cluster::watch::{Guarded, Watch, WatchError, WatchEvent, WatchOptions};

use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::eventually;
use crate::harness::world::Setup;

const SOON: Duration = Duration::from_secs(40);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared("watching::follows_objects", follows_objects),
        Case::exclusive(
            "watching::a_malformed_object_disturbs_no_other",
            a_malformed_object_disturbs_no_other,
        ),
        Case::with_own_servers(
            "watching::waits_for_a_missing_kind",
            Setup::WithoutOptionalKinds,
            waits_for_a_missing_kind,
        ),
    ]
}

async fn create(cx: &Cx, name: &str) -> Result {
    let object = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"a": "b"}},
        "spec": {"scaleTargetRef": {"name": "d"}, "modelID": "m"},
    }))?;
    let objects: Api<VariantAutoscaling> = cx.namespace.api();
    objects.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// The next event apart from signs of life and requests for patience, in words.
async fn next<K>(watch: &mut Watch<K>) -> Result<String>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug,
    K: serde::de::DeserializeOwned + Send + 'static,
{
    let name = |object: &K| object.meta().name.clone().unwrap_or_default();
    loop {
        let event = timeout(SOON, watch.next()).await?;
        return Ok(match &event {
            WatchEvent::Alive => continue,
            // A server that takes in a new definition asks for patience.
            WatchEvent::Failed {
                error: WatchError::List(refusal) | WatchError::Open(refusal),
                ..
            } if refusal.code() == Some(429) => continue,
            WatchEvent::Restarted => "restarted".to_owned(),
            WatchEvent::Listed(object) => format!("listed {}", name(object)),
            WatchEvent::ListDone => "list done".to_owned(),
            WatchEvent::Applied(object) => format!("applied {}", name(object)),
            WatchEvent::Deleted(key) => format!("deleted {}", key.name),
            WatchEvent::Malformed(malformed) => format!("malformed {}", malformed.key()),
            WatchEvent::Absent { .. } => "absent".to_owned(),
            WatchEvent::Failed { error, .. } => return Err(Fault::new(error.to_string())),
        });
    }
}

async fn follows_objects(cx: &Cx) -> Result {
    create(cx, "one").await?;
    create(cx, "two").await?;
    let api: Api<Guarded<VariantAutoscaling>> = cx.namespace.api();
    let options = WatchOptions {
        labels: Some("a=b".to_owned()),
        page_size: 1,
        watch_length: Duration::from_secs(1),
        ..WatchOptions::default()
    };
    let mut watch = Watch::new(api, options, |delay| delay);
    for expected in ["restarted", "listed one", "listed two", "list done"] {
        assert_eq!(next(&mut watch).await?, expected);
    }
    create(cx, "three").await?;
    assert_eq!(next(&mut watch).await?, "applied three");
    let objects: Api<VariantAutoscaling> = cx.namespace.api();
    objects.delete("one", &DeleteParams::default()).await?;
    assert_eq!(next(&mut watch).await?, "deleted one");

    // Past the end of the watch request, twice, and still nothing is lost.
    assert!(
        timeout(Duration::from_millis(2_500), next(&mut watch))
            .await
            .is_err()
    );
    create(cx, "four").await?;
    assert_eq!(next(&mut watch).await?, "applied four");
    Ok(())
}

/// The definition keeps such objects out, but an older one may have let them in.
async fn a_malformed_object_disturbs_no_other(cx: &Cx) -> Result {
    let definitions: Api<CustomResourceDefinition> = Api::all(cx.world.client.clone());
    let name = "variantautoscalings.llmd.ai";
    let current = definitions.get(name).await?;
    let mut loose = serde_json::to_value(&current)?;
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let loose: CustomResourceDefinition = serde_json::from_value(loose)?;
    definitions
        .replace(name, &PostParams::default(), &loose)
        .await?;
    let outcome = see_malformed(cx).await;
    let mut restored = current.clone();
    restored.metadata = definitions.get(name).await?.metadata;
    definitions
        .replace(name, &PostParams::default(), &restored)
        .await?;
    outcome
}

async fn see_malformed(cx: &Cx) -> Result {
    let kind = GroupVersionKind::gvk("llmd.ai", "v1alpha1", "VariantAutoscaling");
    let objects: Api<DynamicObject> = Api::namespaced_with(
        cx.world.client.clone(),
        &cx.namespace.name,
        &ApiResource::from_gvk(&kind),
    );
    let bad: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": {"name": "bad"}, "spec": {"scaleTargetRef": {"name": "d"}, "modelID": 7},
    }))?;
    eventually(
        "the loose definition is in force",
        Duration::from_secs(10),
        async || Ok(objects.create(&PostParams::default(), &bad).await?),
    )
    .await?;
    create(cx, "good").await?;
    let api: Api<Guarded<VariantAutoscaling>> = cx.namespace.api();
    let mut watch = Watch::new(api, WatchOptions::default(), |delay| delay);
    let malformed = format!("malformed {}/bad", cx.namespace.name);
    for expected in ["restarted", &malformed, "listed good", "list done"] {
        assert_eq!(next(&mut watch).await?, expected);
    }
    objects.delete("bad", &DeleteParams::default()).await?;
    create(cx, "better").await?;
    for expected in ["deleted bad", "applied better"] {
        assert_eq!(next(&mut watch).await?, expected);
    }
    Ok(())
}

async fn waits_for_a_missing_kind(cx: &Cx) -> Result {
    let api: Api<Guarded<PartialObjectMeta<ServiceMonitor>>> = cx.namespace.api();
    let mut watch = Watch::new(api, WatchOptions::default(), |delay| delay);
    assert_eq!(next(&mut watch).await?, "absent");
    cx.world.define_optional_kinds().await?;
    loop {
        match next(&mut watch).await?.as_str() {
            "absent" => {}
            event => {
                assert_eq!(event, "restarted");
                break;
            }
        }
    }
    assert_eq!(next(&mut watch).await?, "list done");

    let definitions: Api<CustomResourceDefinition> = Api::all(cx.world.client.clone());
    let name = "servicemonitors.monitoring.coreos.com";
    definitions.delete(name, &DeleteParams::default()).await?;
    loop {
        // The server ends the watch, which counts as a broken connection and brings a list.
        match next(&mut watch).await {
            Ok(event) if event == "absent" => return Ok(()),
            Ok(_) | Err(_) => {}
        }
    }
}
