//! Variants and their targets come, change and go, and what is shown of them follows at once.

use std::fs;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::servers::kwok;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{DESIRED, Variants};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(30);
/// What is promised for the reaction to a change. No cycle comes in this time: see [`controller`].
const PROMPT: Duration = Duration::from_secs(1);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        // Alone, because it measures.
        Case::exclusive(
            "lifecycle::target_comes_goes_and_comes_back",
            target_comes_goes_and_comes_back,
        ),
        Case::shared(
            "lifecycle::variant_goes_and_comes_back",
            variant_goes_and_comes_back,
        ),
        Case::shared(
            "lifecycle::accelerator_changes_without_gap_or_double",
            accelerator_changes_without_gap_or_double,
        ),
        Case::shared(
            "lifecycle::nobody_scales_a_contested_target",
            nobody_scales_a_contested_target,
        ),
        Case::shared("lifecycle::changes_are_told", changes_are_told),
        Case::shared(
            "lifecycle::restarts_keep_what_is_stored",
            restarts_keep_what_is_stored,
        ),
    ]
}

/// A controller whose cycles are too far apart to be what a test sees.
async fn controller(cx: &Cx) -> Result<Controller> {
    let spec = ControllerSpec {
        environment: vec![("GLOBAL_OPT_INTERVAL", "10m".to_owned())],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start(cx, &spec).await?;
    controller.ready().await?;
    Ok(controller)
}

async fn target_comes_goes_and_comes_back(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let gone = [
        ("TargetResolved", "False/TargetNotFound"),
        ("Ready", "False/DeploymentNotFound"),
    ];
    variants.apply("early", "llama", json!({})).await?;
    variants.says("early", &gone, SOON).await?;
    assert_eq!(variants.desired("early").await?, None);
    assert_eq!(variants.stored("early").await?, None);

    cx.namespace.deploy(&Workload::new("llama", 2)).await?;
    variants.publishes("early", Some(2.0), PROMPT).await?;
    let found = [("TargetResolved", "True/TargetFound")];
    variants.says("early", &found, PROMPT).await?;
    assert_eq!(variants.stored("early").await?, Some(2));
    // In an early cycle, since the next regular one is minutes away.
    let planned = [("/target", json!(2)), ("/outcome", json!("SafetyNet"))];
    variants.decides("early", &planned, SOON).await?;
    cx.namespace.settles("llama", 2, SOON).await?;

    variants.delete_target("llama").await?;
    let message = variants.says("early", &gone, PROMPT).await?;
    assert_eq!(message, "Target deployment 'llama' no longer exists");
    assert_eq!(variants.stored("early").await?, None);
    variants.publishes("early", None, PROMPT).await?;

    cx.namespace.deploy(&Workload::new("llama", 3)).await?;
    variants.publishes("early", Some(3.0), PROMPT).await?;
    variants.says("early", &found, PROMPT).await?;
    assert_eq!(variants.stored("early").await?, Some(3));
    Ok(())
}

async fn variant_goes_and_comes_back(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    cx.namespace.deploy(&Workload::new("llama", 2)).await?;
    assert_eq!(variants.desired("v").await?, None);
    variants.apply("v", "llama", json!({})).await?;
    variants.publishes("v", Some(2.0), SOON).await?;

    variants.delete("v").await?;
    variants.publishes("v", None, SOON).await?;
    let left = controller.series().await?;
    let left: Vec<_> = left
        .iter()
        .filter(|series| series.labels.contains_key("variant_name"))
        .collect();
    assert!(left.is_empty(), "{left:?}");

    variants.apply("v", "llama", json!({})).await?;
    variants.publishes("v", Some(2.0), SOON).await
}

async fn accelerator_changes_without_gap_or_double(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let workload = Workload {
        gpus: Some((0, kwok::H100)),
        ..Workload::new("llama", 1)
    };
    cx.namespace.deploy(&workload).await?;
    variants.apply("v", "llama", json!({})).await?;
    variants.publishes("v", Some(1.0), SOON).await?;

    let deployments: Api<Deployment> = cx.namespace.api();
    let mut scrapes = 0;
    for (old, new) in [(kwok::H100, kwok::A100), (kwok::A100, kwok::H100)] {
        assert_eq!(accelerator(&controller).await?, old);
        let selector = json!({ "nvidia.com/gpu.product": new });
        let patch = json!({ "spec": { "template": { "spec": { "nodeSelector": selector } } } });
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let change = deployments.patch("llama", &parameters, &patch);
        let scrape = async {
            loop {
                scrapes += 1;
                let shown = accelerator(&controller).await?;
                if shown == new {
                    return Ok::<_, Fault>(());
                }
                seen(&shown.as_str(), &old)?;
            }
        };
        let (changed, seen_new) =
            futures::join!(change, async { tokio::time::timeout(SOON, scrape).await });
        changed?;
        seen_new??;
    }
    assert!(scrapes > 2, "{scrapes} scrapes");
    Ok(())
}

/// The accelerator of the one series that there is, of each name.
async fn accelerator(controller: &Controller) -> Result<String> {
    let series = controller.series().await?;
    let of = |name: &str| -> Vec<&str> {
        let matching = series.iter().filter(|series| series.name == name);
        matching
            .map(|series| series.labels["accelerator_type"].as_str())
            .collect()
    };
    let shown = of(DESIRED);
    for name in [DESIRED, "wva_current_replicas", "wva_desired_ratio"] {
        let found = of(name);
        if found.len() != 1 || found != shown {
            return Err(Fault::fatal(format!("{name} for {found:?}, not one")));
        }
    }
    Ok(shown.concat())
}

async fn nobody_scales_a_contested_target(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    cx.namespace.deploy(&Workload::new("llama", 2)).await?;
    variants.apply("first", "llama", json!({})).await?;
    variants.publishes("first", Some(2.0), SOON).await?;

    variants.apply("second", "llama", json!({})).await?;
    let contested = [
        ("Ready", "False/TargetContested"),
        ("TargetResolved", "False/TargetContested"),
    ];
    for name in ["first", "second"] {
        let message = variants.says(name, &contested, SOON).await?;
        for rival in ["first", "second"] {
            let rival = format!("{}/{rival}", cx.namespace.name);
            assert!(message.contains(&rival), "{message}");
        }
        variants.publishes(name, None, SOON).await?;
    }

    // One comes and one goes: those that are left are named.
    variants.apply("third", "llama", json!({})).await?;
    variants.says("third", &contested, SOON).await?;
    variants.delete("first").await?;
    for name in ["second", "third"] {
        // Other words for the same condition are stored every half a minute at most.
        eventually(format!("{name} names its rivals"), SOON * 2, async || {
            let (_, message) = variants.condition(name, "TargetResolved").await?;
            let named = ["first", "second", "third"]
                .map(|rival| message.contains(&format!("{}/{rival}", cx.namespace.name)));
            seen(&named, &[false, true, true])
        })
        .await?;
    }
    variants.delete("third").await?;
    variants.publishes("second", Some(2.0), SOON).await?;
    let found = [("TargetResolved", "True/TargetFound")];
    variants.says("second", &found, SOON).await?;
    Ok(())
}

async fn changes_are_told(cx: &Cx) -> Result {
    let controller = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
    controller.ready().await?;
    let variants = Variants::new(&cx.namespace, &controller);
    cx.namespace.deploy(&Workload::new("llama", 1)).await?;
    variants.apply("v", "llama", json!({})).await?;
    variants.publishes("v", Some(1.0), SOON).await?;
    let events: Api<Event> = cx.namespace.api();
    let fields = "regarding.kind=VariantAutoscaling,regarding.name=v";
    let told = async || -> Result<Vec<(String, String)>> {
        let found = events.list(&ListParams::default().fields(fields)).await?;
        let texts = found.items.into_iter().map(|event| {
            let (reason, note) = (event.reason, event.note);
            (reason.unwrap_or_default(), note.unwrap_or_default())
        });
        // That nobody scales the target, and that nothing is measured, is told as well.
        Ok(texts
            .filter(|(reason, _)| reason.starts_with("Scaled"))
            .collect())
    };
    assert_eq!(told().await?, []);

    variants
        .apply("v", "llama", json!({ "minReplicas": 3 }))
        .await?;
    variants.publishes("v", Some(3.0), SOON).await?;
    eventually("the event", SOON, async || {
        // The event names the cycle that the status names.
        let cycle = variants.cycle("v").await?;
        let note = "Desired replicas 3: raised to the minimum of 3 (minReplicas)";
        let note = format!("{note} (cycle {cycle})");
        seen(&told().await?, &vec![("ScaledUp".to_owned(), note)])
    })
    .await?;
    let cycle = variants.cycle("v").await?;
    let snapshot = controller.debug("snapshot").await?;
    let records = snapshot.pointer("/context/records").cloned();
    let record = records.unwrap_or_default()[format!("{}/v", cx.namespace.name)].clone();
    assert_eq!(record["decided"]["cycle"], json!(cycle), "{record}");
    let span = json!({ "name": "cycle", "cycle": cycle });
    let log = fs::read_to_string(controller.server.log())?;
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
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

/// What was published last outlives the process, at every moment of its start: five were wanted of
/// a target that has two, nothing is measured, and the mirrors fill in any order.
async fn restarts_keep_what_is_stored(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new("llama", 2)).await?;
    let mut last = controller(cx).await?;
    {
        let variants = Variants::new(&cx.namespace, &last);
        variants
            .apply("v", "llama", json!({ "minReplicas": 5 }))
            .await?;
        variants.publishes("v", Some(5.0), SOON).await?;
        let stored = async || seen(&variants.stored("v").await?, &Some(5));
        eventually("five are stored", SOON, stored).await?;
        variants.apply("v", "llama", json!({})).await?;
    }
    for _restart in 0..3 {
        last.crash();
        last = controller(cx).await?;
        let variants = Variants::new(&cx.namespace, &last);
        let shown = async || {
            let stored = variants.stored("v").await?;
            assert_eq!(stored, Some(5), "lost by a restart");
            seen(&variants.desired("v").await?, &Some(5.0))
        };
        eventually("five are shown again", SOON, shown).await?;
    }
    Ok(())
}
