//! Scalers that are variants by annotation: no object of this project is in the namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::external_metrics_door::{hpa, reads};
use super::leadership::{QUICK, candidate, gauge};
use crate::harness::bridge::Bridge;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::door::Door;
use crate::harness::engine::{EngineFleet, FleetSpec, Load, Reading};
use crate::harness::fault::Result;
use crate::harness::history::History;
use crate::harness::namespace::Workload;
use crate::harness::ports;
use crate::harness::scaled_object::ScaledObject;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{MODEL, Variants, variant};
use crate::harness::wait::{eventually, seen};
use crate::harness::world::Setup;

const NAME: &str = "llama";
const SOON: Duration = Duration::from_mins(1);
/// The controller reads peaks of a minute.
const LATER: Duration = Duration::from_mins(2);
/// Wants 3 replicas: 2.0 / 3 is 0.67, and 2 of them are saturated.
const LOAD_OF_3: f64 = 2.0;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "annotations::a_trigger_with_a_model_follows_while_the_leader_dies",
            a_trigger_with_a_model_follows,
        )
        .within(Duration::from_mins(6)),
        Case::shared(
            "annotations::what_is_wrong_is_said_and_lowers_nothing",
            what_is_wrong_is_said,
        ),
        Case::with_own_servers("annotations::an_hpa_follows", Setup::Whole, an_hpa_follows)
            .within(Duration::from_mins(6)),
    ]
}

fn switched_on(cx: &Cx) -> ControllerSpec<'_> {
    let mut spec = ControllerSpec::scoped(cx);
    spec.environment.push(switch());
    spec
}

fn switch() -> (&'static str, String) {
    ("ANNOTATED_SCALERS_ENABLED", "true".to_owned())
}

fn annotated(mut scaler: Value) -> Value {
    scaler["metadata"]["annotations"] = json!({
        "llm-d.ai/managed": "true", "llm-d.ai/model-id": MODEL, "llm-d.ai/variant-cost": "10",
    });
    scaler
}

async fn deployed(cx: &Cx, replicas: i32) -> Result<(History, EngineFleet)> {
    let workload = Workload {
        loading: Duration::from_secs(1),
        ..Workload::new(NAME, replicas)
    };
    cx.namespace.deploy(&workload).await?;
    cx.namespace.settles(NAME, replicas, SOON).await?;
    let history = History::follow(&cx.namespace, NAME);
    let spec = FleetSpec {
        namespace: cx.namespace.name.clone(),
        selector: workload.selector(),
        model: MODEL.to_owned(),
    };
    let fleet = EngineFleet::start(&cx.world, spec, Load::Shared(Reading::IDLE));
    Ok((history, fleet))
}

fn load(kv_cache: f64) -> Load {
    Load::Shared(Reading {
        kv_cache,
        ..Reading::IDLE
    })
}

async fn replica(cx: &Cx, name: &str) -> Result<(Arc<Controller>, u16)> {
    let port = ports::free()?;
    let mut spec = candidate(cx, name, QUICK);
    spec.environment.push(switch());
    spec.arguments.extend([
        format!("--external-scaler-bind-address=127.0.0.1:{port}"),
        "--external-scaler-secure=false".to_owned(),
    ]);
    let controller = Controller::start(cx, &spec).await?;
    controller.ready().await?;
    Ok((Arc::new(controller), port))
}

/// No annotation, and a trigger that names the model. 1 → 3 → 1; the leader dies on the way up, and nothing is lowered.
async fn a_trigger_with_a_model_follows(cx: &Cx) -> Result {
    let (history, fleet) = deployed(cx, 1).await?;
    let (leader, first) = replica(cx, "wva-0").await?;
    eventually("the first one leads", SOON, async || {
        let text = leader.readiness().await?;
        seen(&text.contains("[+] leadership: leading"), &true)
    })
    .await?;
    let (_follower, second) = replica(cx, "wva-1").await?;
    let service = Bridge::to(second).await?;
    let object = ScaledObject {
        target: NAME,
        variant: NAME,
        min: 1,
        max: 10,
    };
    let trigger = json!({
        "type": "external-push",
        "metricType": "AverageValue",
        "metadata": {
            "scalerAddress": format!("127.0.0.1:{}", service.port), "modelID": MODEL, "variantCost": "10",
        },
    });
    cx.namespace.apply(object.following(&trigger)).await?;
    object.is_read(cx, "1").await?;
    service.leads_to(&[first, second]);

    fleet.set_load(load(LOAD_OF_3));
    eventually("it grows", LATER, async || {
        let wanted = history.wanted().last().copied();
        seen(&(wanted > Some(1)), &true)
    })
    .await?;
    leader.server.kill();
    service.leads_to(&[second]);
    cx.namespace.settles(NAME, 3, LATER).await?;
    assert!(history.wanted().is_sorted(), "{:?}", history.wanted());

    fleet.set_load(load(0.0));
    cx.namespace.settles(NAME, 1, LATER).await?;
    history.went(&[1, 2, 3, 2, 1]).await
}

async fn an_hpa_follows(cx: &Cx) -> Result {
    let (history, fleet) = deployed(cx, 1).await?;
    let door = Door::open(cx, switched_on(cx)).await?;
    let scaler = annotated(hpa(&cx.namespace.name, 10)?);
    cx.namespace.apply(scaler).await?;
    door.register(cx).await?;
    reads(cx, Some("1")).await?;
    fleet.set_load(load(LOAD_OF_3));
    cx.namespace.settles(NAME, 3, LATER).await?;
    fleet.set_load(load(0.0));
    cx.namespace.settles(NAME, 1, LATER).await?;
    history.went(&[1, 2, 3, 2, 1]).await
}

/// The kinds of the objects that an event of this reason is about, of those whose note has all parts.
async fn objects_of(cx: &Cx, reason: &str, parts: &[&str]) -> Result<BTreeSet<String>> {
    let events: Api<Event> = cx.namespace.api();
    let all = events.list(&ListParams::default()).await?.items;
    let found = all.into_iter().filter(|event| {
        let note = event.note.as_deref().unwrap_or_default();
        event.reason.as_deref() == Some(reason) && parts.iter().all(|part| note.contains(part))
    });
    Ok(found.filter_map(|event| event.regarding?.kind).collect())
}

async fn what_is_wrong_is_said(cx: &Cx) -> Result {
    // Without metrics of any engine two replicas are kept.
    cx.namespace.deploy(&Workload::new(NAME, 2)).await?;
    cx.namespace.settles(NAME, 2, SOON).await?;
    let controller = Controller::start(cx, &switched_on(cx)).await?;
    controller.ready().await?;
    let hpas: Api<HorizontalPodAutoscaler> = cx.namespace.api();
    cx.namespace
        .apply(annotated(hpa(&cx.namespace.name, 10)?))
        .await?;
    let shows_two = async || {
        eventually("the gauge is 2", SOON, async || {
            seen(&gauge(cx, &controller).await?, &Some(2.0))
        })
        .await
    };
    let annotations = async || -> Result<BTreeMap<String, String>> {
        let metadata = hpas.get(NAME).await?.metadata;
        Ok(metadata.annotations.unwrap_or_default())
    };
    let holds_two = async || {
        eventually("2 are stored", SOON, async || {
            let annotations = annotations().await?;
            let count = annotations.get("llm-d.ai/desired-replicas");
            seen(&count.map(String::as_str), &Some("2"))
        })
        .await
    };
    shows_two().await?;
    holds_two().await?;

    let annotate = async |name: &str, value: Value| -> Result {
        let patch = json!({ "metadata": { "annotations": { name: value } } });
        let parameters = PatchParams::default();
        hpas.patch(NAME, &parameters, &Patch::Merge(patch)).await?;
        Ok(())
    };
    annotate("llm-d.ai/variant-cost", json!("cheap")).await?;
    eventually("the wrong value is an event", SOON, async || {
        let parts = ["llm-d.ai/variant-cost=\"cheap\"", "at least 0"];
        let kinds = objects_of(cx, "MalformedObject", &parts).await?;
        seen(&kinds, &["HorizontalPodAutoscaler".to_owned()].into())
    })
    .await?;
    shows_two().await?;
    holds_two().await?;
    annotate("llm-d.ai/variant-cost", json!("5")).await?;

    cx.namespace
        .apply(variant("other", NAME, &json!({ "maxReplicas": 4 })))
        .await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let malformed = [("TargetResolved", "False/MalformedObject")];
    let message = variants.says("other", &malformed, SOON).await?;
    assert!(message.contains("HorizontalPodAutoscaler"), "{message}");
    eventually("there is an event on each", SOON, async || {
        let kinds = objects_of(cx, "MalformedObject", &["scale target Deployment"]).await?;
        let both = ["HorizontalPodAutoscaler", "VariantAutoscaling"];
        seen(&kinds, &both.map(str::to_owned).into())
    })
    .await?;
    shows_two().await?;
    holds_two().await?;

    annotate("llm-d.ai/managed", Value::Null).await?;
    let found = [("TargetResolved", "True/TargetFound")];
    variants.says("other", &found, SOON).await?;
    eventually("no count stays", SOON, async || {
        let names = annotations().await?.into_keys();
        seen(&names.filter(|name| name.ends_with("replicas")).count(), &0)
    })
    .await
}
