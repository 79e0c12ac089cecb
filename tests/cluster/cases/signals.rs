//! Samples that are old, missing or foreign.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, Load, Reading};
use crate::harness::exporter::{Exporter, Page};
use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::{MODEL, Variants};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(30);
/// A sample is found for a minute at least, however old it may be: peaks are taken over a minute.
const FORGOTTEN: Duration = Duration::from_secs(90);
/// Two replicas under it are neither too few nor, one of them taken away, enough.
const HALF: Reading = Reading { kv_cache: 0.5, ..Reading::IDLE };

pub(crate) fn cases() -> Vec<Case> {
    vec![case!(shared, signals::silent_replicas_age), case!(shared, signals::ghosts_do_not_count)]
}

/// A controller for which samples age within seconds.
async fn impatient(cx: &Cx) -> Result<Controller> {
    let age = |name: &'static str, seconds: u32| (name, format!("{seconds}s"));
    let spec = ControllerSpec {
        environment: vec![
            age("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", 4),
            age("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", 8),
            age("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", 12),
        ],
        ..ControllerSpec::scoped(cx)
    };
    Controller::start_ready(cx, &spec).await
}

/// A Deployment with an engine for each of its pods.
async fn serve(cx: &Cx, replicas: i32, model: &str, reading: Reading) -> Result<EngineFleet> {
    let pods = cx.namespace.run("llama", replicas, SOON).await?;
    let fleet = EngineFleet::start(cx, &pods, model, Load::Each(reading));
    let wanted = usize::try_from(replicas)?;
    eventually("each pod has an engine", SOON, async || seen(&fleet.pods().len(), &wanted)).await?;
    Ok(fleet)
}

/// What the replicas of a variant report: how many, of these too old to shrink on, and of all too
/// old to act on.
fn samples(reporting: u32, stale: u32, outdated: u32) -> [(&'static str, Value); 3] {
    [
        ("/figures/reporting", json!(reporting)),
        ("/figures/stale", json!(stale)),
        ("/figures/outdated", json!(outdated)),
    ]
}

/// Waits for a decision on these figures, and fails at once if the count leaves 2 on the way.
async fn holds_two(variants: Variants<'_>, figures: &[(&str, Value)]) -> Result {
    eventually("the figures, at 2 replicas", SOON, async || {
        if variants.desired("v").await? != Some(2.0) {
            let decision = variants.decision("v").await?;
            return Err(Fault::fatal(format!("2 replicas were given up: {decision}")));
        }
        let decision = variants.decision("v").await?;
        for (pointer, wanted) in figures {
            if decision.pointer(pointer) != Some(wanted) {
                return Err(Fault::new(format!("no {pointer} {wanted}: {decision}")));
            }
        }
        Ok(())
    })
    .await
}

async fn silent_replicas_age(cx: &Cx) -> Result {
    let fleet = serve(cx, 2, MODEL, HALF).await?;
    let controller = impatient(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply("v", "llama", json!({})).await?;
    variants.decides("v", &samples(2, 0, 0), SOON).await?;
    let metrics = |state| [("MetricsAvailable", state)];
    let found = metrics("True/MetricsFound");
    variants.says("v", &found, SOON).await?;

    for pod in fleet.pods() {
        fleet.set_silent(&pod, true);
    }
    holds_two(variants, &samples(2, 2, 0)).await?;
    holds_two(variants, &samples(0, 0, 2)).await?;
    let stale = metrics("False/MetricsStale");
    variants.says("v", &stale, SOON).await?;
    let outcome = [("/outcome", json!("SafetyNet"))];
    holds_two(variants, &outcome).await?;
    let missing = metrics("False/MetricsMissing");
    variants.says("v", &missing, FORGOTTEN).await?;
    holds_two(variants, &samples(0, 0, 0)).await?;

    for pod in fleet.pods() {
        fleet.set_silent(&pod, false);
    }
    holds_two(variants, &samples(2, 0, 0)).await?;
    variants.says("v", &found, SOON).await?;
    Ok(())
}

async fn ghosts_do_not_count(cx: &Cx) -> Result {
    let fleet = serve(cx, 1, MODEL, Reading::IDLE).await?;
    let controller = impatient(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply("v", "llama", json!({})).await?;
    variants.decides("v", &samples(1, 0, 0), SOON).await?;

    let page = format!(
        "vllm:kv_cache_usage_perc{{model_name=\"{MODEL}\"}} 0.99\n\
         vllm:num_requests_waiting{{model_name=\"{MODEL}\"}} 50\n"
    );
    let ghost = Exporter::start(move || Page::Text(page.clone())).await?;
    let namespace = &cx.namespace.name;
    let _target = cx.world.prometheus.scrape(namespace, "ghost", ghost.address)?;
    let discovered = [("namespace", namespace.as_str())];
    eventually("the ghost's samples are collected", SOON, async || {
        let pods = controller.value("wva_metrics_pods_discovered", &discovered);
        seen(&pods.await?, &Some(2.0))
    })
    .await?;
    after_cycles(variants, 2).await?;
    variants.decides("v", &samples(1, 0, 0), SOON).await?;
    assert_eq!(variants.desired("v").await?, Some(1.0));

    // The same figures of a pod that exists do count.
    fleet.set_load(Load::Each(Reading { kv_cache: 0.99, waiting: 50.0, ..Reading::IDLE }));
    variants.publishes("v", Some(2.0), SOON).await
}

/// Waits until so many planning cycles have begun and ended.
async fn after_cycles(variants: Variants<'_>, cycles: i64) -> Result {
    let first = variants.plan_cycle().await?;
    eventually("some cycles pass", SOON, async || {
        seen(&(variants.plan_cycle().await? > first + cycles), &true)
    })
    .await
}
