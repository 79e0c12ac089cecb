//! Variants and their targets come, change and go, and what is shown of them follows at once.

use std::fs;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::Variants;
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(30);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, lifecycle::target_comes_goes_and_comes_back),
        case!(shared, lifecycle::changes_are_published),
    ]
}

/// A controller whose cycles are too far apart to be what a test sees.
async fn controller(cx: &Cx) -> Result<Controller> {
    let spec = ControllerSpec::scoped(cx).with("GLOBAL_OPT_INTERVAL", "10m");
    Controller::start_ready(cx, &spec).await
}

async fn target_comes_goes_and_comes_back(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let gone = [("TargetResolved", "False/TargetNotFound"), ("Ready", "False/DeploymentNotFound")];
    variants.apply("early", "llama", json!({})).await?;
    variants.says("early", &gone, SOON).await?;
    assert_eq!(variants.desired("early").await?, None);
    assert_eq!(variants.stored("early").await?, None);

    cx.namespace.deploy(&Workload::new("llama", 2)).await?;
    variants.publishes("early", Some(2.0), SOON).await?;
    let found = [("TargetResolved", "True/TargetFound")];
    variants.says("early", &found, SOON).await?;
    assert_eq!(variants.stored("early").await?, Some(2));
    // In an early cycle, since the next regular one is minutes away.
    let planned = [("/target", json!(2)), ("/outcome", json!("SafetyNet"))];
    variants.decides("early", &planned, SOON).await?;
    cx.namespace.settles("llama", 2, SOON).await?;

    variants.delete_target("llama").await?;
    let message = variants.says("early", &gone, SOON).await?;
    assert_eq!(message, "Target deployment 'llama' no longer exists");
    assert_eq!(variants.stored("early").await?, None);
    variants.publishes("early", None, SOON).await?;

    cx.namespace.deploy(&Workload::new("llama", 3)).await?;
    variants.publishes("early", Some(3.0), SOON).await?;
    variants.says("early", &found, SOON).await?;
    assert_eq!(variants.stored("early").await?, Some(3));
    Ok(())
}

async fn changes_are_published(cx: &Cx) -> Result {
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    cx.namespace.deploy(&Workload::new("llama", 1)).await?;
    variants.apply("v", "llama", json!({})).await?;
    variants.publishes("v", Some(1.0), SOON).await?;
    let events: Api<Event> = cx.namespace.api();
    let fields = "regarding.kind=VariantAutoscaling,regarding.name=v";
    let said = async || -> Result<Vec<(String, String)>> {
        let found = events.list(&ListParams::default().fields(fields)).await?;
        let texts = found.items.into_iter().map(|event| {
            let (reason, note) = (event.reason, event.note);
            (reason.unwrap_or_default(), note.unwrap_or_default())
        });
        // That nothing scales the target, and that nothing is measured, is said as well.
        Ok(texts.filter(|(reason, _)| reason.starts_with("Scaled")).collect())
    };
    assert_eq!(said().await?, []);

    variants.apply("v", "llama", json!({ "minReplicas": 3 })).await?;
    variants.publishes("v", Some(3.0), SOON).await?;
    eventually("the event", SOON, async || {
        // The event names the cycle that the status names.
        let cycle = variants.cycle("v").await?;
        let note = "Desired replicas 3: raised to the minimum of 3 (minReplicas)";
        let note = format!("{note} (cycle {cycle})");
        seen(&said().await?, &vec![("ScaledUp".to_owned(), note)])
    })
    .await?;
    let cycle = variants.cycle("v").await?;
    let snapshot = controller.debug("snapshot").await?;
    let records = snapshot.pointer("/context/records").cloned();
    let record = records.unwrap_or_default()[format!("{}/v", cx.namespace.name)].clone();
    assert_eq!(record["decided"]["cycle"], json!(cycle), "{record}");
    let span = json!({ "name": "cycle", "cycle": cycle });
    let log = fs::read_to_string(controller.server.log())?;
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut decisions = lines.filter(|line| line["message"] == "scaling-decision");
    let decision = decisions.next().unwrap_or_default();
    assert_eq!(decision["span"], span, "{decision}");
    let spans = decision["spans"].as_array().map(Vec::as_slice);
    let Some([actor, innermost]) = spans else {
        return Err(Fault::new(decision.to_string()));
    };
    assert_eq!((&actor["role"], innermost), (&json!("emitter"), &span));
    assert_eq!(decision["desired"], json!(3), "{decision}");
    Ok(())
}
