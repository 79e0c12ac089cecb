//! Servers that come back with less, older or more than they had: nothing is lowered, and all goes
//! on by itself.

use std::process::Command;
use std::time::Duration;

use kube::Api;
use serde_json::json;
use wva::api::variant_autoscaling::VariantAutoscaling;

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, Load, Reading};
use crate::harness::fault::{Fault, Result};
use crate::harness::scaling_loop::engines_report;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{MODEL, Variants};
use crate::harness::wait::{eventually, seen};
use crate::harness::world::Setup;

const NAME: &str = "llama";
const SOON: Duration = Duration::from_mins(1);
/// The controller reads peaks of a minute.
const LATER: Duration = Duration::from_mins(2);
/// A server that has not ended by then is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Samples are soon too old for a decision.
const BANDS: [(&str, &str); 3] = [
    ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "3s"),
    ("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "4s"),
    ("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", "5s"),
];

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::exclusive("restarts::of_prometheus_lower_nothing", prometheus)
            .within(Duration::from_mins(8)),
        Case::with_own_servers(
            "restarts::of_an_older_cluster_lower_nothing",
            Setup::Whole,
            older_cluster,
        )
        .within(Duration::from_mins(6)),
    ]
}

fn copy(from: &str, to: &str) -> Result {
    let copied = Command::new("cp").args(["-a", from, to]).status()?;
    seen(&copied.success(), &true)
}

/// What is true sooner or later, while the published count never is another one.
async fn while_it_shows(
    variants: Variants<'_>,
    count: f64,
    what: &str,
    within: Duration,
    holds: impl AsyncFn() -> Result,
) -> Result {
    eventually(what.to_owned(), within, async || {
        let shown = variants.desired(NAME).await?;
        if shown != Some(count) {
            let text = format!("{shown:?} is shown instead of {count}, waiting for: {what}");
            return Err(Fault::fatal(text));
        }
        holds().await
    })
    .await
}

fn reading(kv_cache: f64) -> Load {
    Load::Each(Reading { kv_cache, ..Reading::IDLE })
}

fn fleet(cx: &Cx, pods: &str, kv_cache: f64) -> EngineFleet {
    EngineFleet::start(cx, pods, MODEL, reading(kv_cache))
}

/// Gone, then empty, then with nothing but old samples, then with every series twice.
async fn prometheus(cx: &Cx) -> Result {
    let pods = cx.namespace.run(NAME, 3, SOON).await?;
    let server = &cx.world.prometheus;
    // What it will have when it comes back with old samples: engines that are idle.
    let idle = fleet(cx, &pods, 0.0);
    engines_report(cx, 3).await?;
    drop(idle);
    server.server.stop(GRACE).await?;
    let (data, old) = (cx.world.site.data("prometheus"), cx.world.site.data("idle"));
    copy(&data, &old)?;

    let wipe = || -> Result { Ok(std::fs::remove_dir_all(&data)?) };
    wipe()?;
    server.server.start()?;
    server.ready().await?;
    let busy = fleet(cx, &pods, 0.6);
    engines_report(cx, 3).await?;
    let spec = ControllerSpec {
        environment: BANDS.map(|(key, age)| (key, age.to_owned())).to_vec(),
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start(cx, &spec).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply(NAME, NAME, json!({})).await?;
    variants.publishes(NAME, Some(3.0), SOON).await?;
    let metrics = async |wanted: &str, within: Duration| {
        while_it_shows(variants, 3.0, wanted, within, async || {
            let (state, _) = variants.condition(NAME, "MetricsAvailable").await?;
            seen(&state.as_str(), &wanted)
        })
        .await
    };
    metrics("True/MetricsFound", SOON).await?;

    server.server.kill();
    metrics("False/PrometheusError", SOON).await?;
    // No pod is scraped when it is back.
    drop(busy);
    wipe()?;
    server.server.start()?;
    metrics("False/MetricsMissing", SOON).await?;

    server.server.stop(GRACE).await?;
    wipe()?;
    copy(&old, &data)?;
    server.server.start()?;
    server.ready().await?;
    metrics("False/MetricsMissing", SOON).await?;
    let busy = fleet(cx, &pods, 0.6);
    metrics("True/MetricsFound", SOON).await?;

    server.scrape_times(2).await?;
    engines_report(cx, 6).await?;
    metrics("True/MetricsFound", SOON).await?;
    // Two series of one engine are one engine: as many as before are wanted, and fewer when idle.
    busy.set_load(reading(0.0));
    variants.publishes(NAME, Some(2.0), LATER).await?;
    server.scrape_times(1).await
}

/// The API server comes back with what there was minutes ago: resource versions, specifications and
/// statuses go backwards.
async fn older_cluster(cx: &Cx) -> Result {
    cx.namespace.run(NAME, 3, SOON).await?;
    let controller = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply(NAME, NAME, json!({})).await?;
    variants.publishes(NAME, Some(3.0), SOON).await?;
    let stores = async |count: i64| seen(&variants.stored(NAME).await?, &Some(count));
    while_it_shows(variants, 3.0, "3 are stored", SOON, async || stores(3).await).await?;

    let (data, older) = (cx.world.site.data("etcd"), cx.world.site.data("older"));
    stop(cx).await?;
    copy(&data, &older)?;
    start(cx).await?;
    variants.apply(NAME, NAME, json!({ "minReplicas": 5 })).await?;
    variants.publishes(NAME, Some(5.0), SOON).await?;
    while_it_shows(variants, 5.0, "5 are stored", SOON, async || stores(5).await).await?;

    stop(cx).await?;
    std::fs::remove_dir_all(&data)?;
    copy(&older, &data)?;
    start(cx).await?;
    // The minimum is gone, and with it the reason for 5; the load is unknown, so they stay.
    let objects: Api<VariantAutoscaling> = cx.namespace.api();
    seen(&objects.get(NAME).await?.spec.min_replicas, &None)?;
    while_it_shows(variants, 5.0, "5 are stored again", LATER, async || stores(5).await).await?;
    while_it_shows(variants, 5.0, "every mirror is in sync", LATER, async || {
        let text = controller.readiness().await?;
        let silent = text.lines().find(|line| line.starts_with("[!] mirror/"));
        seen(&silent.map(ToOwned::to_owned), &None)
    })
    .await?;
    variants.apply(NAME, NAME, json!({ "minReplicas": 6 })).await?;
    variants.publishes(NAME, Some(6.0), SOON).await
}

async fn stop(cx: &Cx) -> Result {
    cx.world.api.server.stop(GRACE).await?;
    cx.world.etcd.server.stop(GRACE).await?;
    Ok(())
}

async fn start(cx: &Cx) -> Result {
    cx.world.etcd.server.start()?;
    cx.world.api.server.start()?;
    cx.world.api.ready(&cx.world.client).await
}
