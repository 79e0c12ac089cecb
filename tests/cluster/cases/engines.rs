//! The fake model servers come and go with their pods, and so do their series.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::harness::engine::{EngineFleet, FleetSpec, Load, Reading};
use crate::harness::fault::Result;
use crate::harness::namespace::Workload;
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(30);
const MODEL: &str = "meta-llama/Llama-3.1-8B";
const KV_CACHE: &str = "vllm:kv_cache_usage_perc";
const WAITING: &str = "vllm:num_requests_waiting";
const RUNNING: &str = "vllm:num_requests_running";
const FINISHED: &str = "vllm:request_success_total";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared("engines::series_follow_the_pods", series_follow_the_pods),
        Case::shared("engines::load_is_shared", load_is_shared),
        Case::shared("engines::one_pod_can_differ", one_pod_can_differ),
        Case::shared("engines::requests_are_counted", requests_are_counted),
    ]
}

/// A Deployment with an engine for each pod, and the names of the pods.
async fn fleet(cx: &Cx, replicas: usize, load: Load) -> Result<(EngineFleet, Vec<String>)> {
    let workload = Workload::new("llama", i32::try_from(replicas)?);
    cx.namespace.deploy(&workload).await?;
    let spec = FleetSpec {
        namespace: cx.namespace.name.clone(),
        selector: workload.selector(),
        model: MODEL.to_owned(),
    };
    let fleet = EngineFleet::start(&cx.world, spec, load);
    eventually("each pod has an engine", SOON, async || {
        seen(&fleet.pods().len(), &replicas)
    })
    .await?;
    let pods = fleet.pods();
    Ok((fleet, pods))
}

/// The value of each pod's series of a metric.
async fn values(cx: &Cx, metric: &str) -> Result<BTreeMap<String, f64>> {
    let query = format!(
        "{metric}{{namespace=\"{}\",model_name=\"{MODEL}\",engine=\"0\"}}",
        cx.namespace.name
    );
    let samples = cx.world.prometheus.query(&query).await?;
    let by_pod = samples.into_iter().map(|mut sample| {
        let pod = sample.labels.remove("pod").unwrap_or_default();
        (pod, sample.value)
    });
    Ok(by_pod.collect())
}

/// Waits until a metric has exactly these series.
async fn shows(cx: &Cx, metric: &str, wanted: &[(&String, f64)]) -> Result {
    let wanted = wanted.iter().map(|(pod, value)| ((*pod).clone(), *value));
    let wanted: BTreeMap<String, f64> = wanted.collect();
    eventually(format!("{metric} in Prometheus"), SOON, async || {
        seen(&values(cx, metric).await?, &wanted)
    })
    .await
}

async fn series_follow_the_pods(cx: &Cx) -> Result {
    shows(cx, KV_CACHE, &[]).await?;
    let reading = Reading {
        kv_cache: 0.25,
        waiting: 3.0,
        running: 7.0,
        finished: 0.0,
    };
    let (fleet, pods) = fleet(cx, 2, Load::Each(reading)).await?;
    let listed = cx.namespace.pods("app=llama").await?;
    let mut listed: Vec<_> = listed
        .into_iter()
        .filter_map(|pod| pod.metadata.name)
        .collect();
    listed.sort();
    assert_eq!(pods, listed);
    let each = |value| [(&pods[0], value), (&pods[1], value)];
    shows(cx, KV_CACHE, &each(0.25)).await?;
    shows(cx, WAITING, &each(3.0)).await?;
    shows(cx, RUNNING, &each(7.0)).await?;

    let namespace = &cx.namespace.name;
    let cache = format!("vllm:cache_config_info{{namespace=\"{namespace}\",model_name=\"\"}}");
    let shapes = cx.world.prometheus.query(&cache).await?;
    assert_eq!(shapes.len(), 2, "the shape of a cache names no model");
    assert_eq!(shapes[0].labels["num_gpu_blocks"], "8192");

    cx.namespace.scale("llama", 0).await?;
    shows(cx, KV_CACHE, &[]).await?;
    assert_eq!(fleet.pods(), [""; 0]);
    Ok(())
}

async fn load_is_shared(cx: &Cx) -> Result {
    let (fleet, pods) = fleet(cx, 1, Load::Each(Reading::IDLE)).await?;
    shows(cx, KV_CACHE, &[(&pods[0], 0.0)]).await?;

    fleet.set_load(Load::Shared(Reading {
        kv_cache: 1.5,
        waiting: 3.0,
        ..Reading::IDLE
    }));
    shows(cx, KV_CACHE, &[(&pods[0], 1.0)]).await?;
    shows(cx, WAITING, &[(&pods[0], 3.0)]).await?;

    cx.namespace.scale("llama", 2).await?;
    cx.namespace.settles("llama", 2, SOON).await?;
    eventually("each of the two pods has an engine", SOON, async || {
        seen(&fleet.pods().len(), &2)
    })
    .await?;
    let pods = fleet.pods();
    shows(cx, KV_CACHE, &[(&pods[0], 0.75), (&pods[1], 0.75)]).await?;
    shows(cx, WAITING, &[(&pods[0], 2.0), (&pods[1], 2.0)]).await
}

async fn one_pod_can_differ(cx: &Cx) -> Result {
    let (fleet, pods) = fleet(cx, 2, Load::Each(Reading::IDLE)).await?;
    let [first, second] = [&pods[0], &pods[1]];
    shows(cx, KV_CACHE, &[(first, 0.0), (second, 0.0)]).await?;

    let busy = Reading {
        kv_cache: 0.9,
        ..Reading::IDLE
    };
    fleet.set_pod_load(first, Some(busy));
    shows(cx, KV_CACHE, &[(first, 0.9), (second, 0.0)]).await?;

    fleet.set_silent(second, true);
    shows(cx, KV_CACHE, &[(first, 0.9)]).await?;

    fleet.set_pod_load(first, None);
    fleet.set_silent(second, false);
    shows(cx, KV_CACHE, &[(first, 0.0), (second, 0.0)]).await
}

async fn requests_are_counted(cx: &Cx) -> Result {
    let (fleet, pods) = fleet(cx, 1, Load::Each(Reading::IDLE)).await?;
    shows(cx, FINISHED, &[(&pods[0], 0.0)]).await?;

    fleet.set_load(Load::Each(Reading {
        finished: 50.0,
        ..Reading::IDLE
    }));
    let namespace = &cx.namespace.name;
    let rate = format!("round(rate({FINISHED}{{namespace=\"{namespace}\"}}[5s]))");
    eventually("50 requests are finished a second", SOON, async || {
        let rates = cx.world.prometheus.query(&rate).await?;
        let rates: Vec<f64> = rates.into_iter().map(|sample| sample.value).collect();
        seen(&rates, &vec![50.0])
    })
    .await
}
