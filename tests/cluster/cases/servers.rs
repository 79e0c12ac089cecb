//! The servers themselves: that they are the ones that the other cases rely on.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::servers::kwok;
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::{eventually, seen};
use crate::harness::web;
use crate::harness::world::Setup;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared("servers::are_recent_enough", are_recent_enough),
        Case::shared("servers::nobody_is_anonymous", nobody_is_anonymous),
        Case::shared(
            "servers::nodes_are_ready_and_have_gpus",
            nodes_are_ready_and_have_gpus,
        ),
        Case::exclusive(
            "servers::prometheus_can_go_and_come_back",
            prometheus_can_go,
        ),
        Case::with_own_servers(
            "servers::optional_kinds_can_appear_late",
            Setup::WithoutOptionalKinds,
            optional_kinds_can_appear_late,
        )
        .within(Duration::from_mins(1)),
    ]
}

/// Older ones fail in ways that look like faults of the controller: before Kubernetes 1.35 the HPA's
/// tolerance cannot be set, before etcd 3.6 streamed lists fail and clients loop.
async fn are_recent_enough(cx: &Cx) -> Result {
    let stopped: Vec<_> = cx
        .world
        .running()
        .into_iter()
        .filter(|(_, pid)| pid.is_none())
        .collect();
    assert_eq!(stopped, [], "every server runs");

    let kubernetes = cx.world.client.apiserver_version().await?;
    let version = numbers(&kubernetes.git_version);
    assert!(
        version >= vec![1, 35],
        "Kubernetes {}",
        kubernetes.git_version
    );

    let version = format!("{}/version", cx.world.etcd.url);
    let answer = web::client()?.get(version).send().await?.text().await?;
    let answer: Value = serde_json::from_str(&answer)?;
    let etcd = answer["etcdserver"].as_str().unwrap_or_default();
    assert!(numbers(etcd) >= vec![3, 6], "etcd {etcd}");
    Ok(())
}

/// `v1.36.3` as 1, 36, 3.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.trim_start_matches('v').split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

async fn nobody_is_anonymous(cx: &Cx) -> Result {
    let known = cx
        .world
        .client
        .request_text(Request::get("/api").body(Vec::new())?)
        .await;
    known.map_err(|error| Fault::new(format!("the admin is refused: {error}")))?;

    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let answer = http.get(format!("{}/api", cx.world.api.url)).send().await?;
    assert_eq!(answer.status(), reqwest::StatusCode::UNAUTHORIZED);
    Ok(())
}

async fn nodes_are_ready_and_have_gpus(cx: &Cx) -> Result {
    let nodes: Api<Node> = Api::all(cx.world.client.clone());
    for (product, count) in [(kwok::H100, 8), (kwok::A100, 2), (kwok::L4, 1)] {
        let selector = ListParams::default().labels(&format!("nvidia.com/gpu.product={product}"));
        let found = nodes.list(&selector).await?.items;
        assert_eq!(found.len(), count, "nodes with {product}");
        for node in found {
            assert!(kwok::is_ready(&node), "{node:?}");
            let allocatable = node.status.and_then(|status| status.allocatable);
            let gpus = allocatable.and_then(|free| free.get("nvidia.com/gpu").cloned());
            assert_eq!(
                gpus.map(|gpus| gpus.0),
                Some(kwok::GPUS_PER_NODE.to_string())
            );
        }
    }
    Ok(())
}

async fn prometheus_can_go(cx: &Cx) -> Result {
    let prometheus = &cx.world.prometheus;
    assert_eq!(
        prometheus.query("vector(7)").await?[0].value.to_string(),
        "7"
    );

    prometheus.server.stop(Duration::from_secs(10)).await?;
    let refused = prometheus.query("vector(7)").await;
    assert!(refused.is_err(), "a stopped Prometheus answers {refused:?}");

    prometheus.server.start()?;
    prometheus.ready().await?;
    assert_eq!(
        prometheus.query("vector(7)").await?[0].value.to_string(),
        "7"
    );
    Ok(())
}

async fn optional_kinds_can_appear_late(cx: &Cx) -> Result {
    let kinds = [
        ("inference.networking.k8s.io/v1", "InferencePool"),
        ("inference.networking.x-k8s.io/v1alpha2", "InferencePool"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ];
    for (version, kind) in kinds {
        let served = manifest::resource(&cx.world.client, version, kind).await;
        assert!(served.is_err(), "{kind} of {version} is served already");
    }
    cx.world.define_optional_kinds().await?;
    for (version, kind) in kinds {
        let what = format!("{kind} of {version} is served");
        eventually(what, Duration::from_secs(10), async || {
            let (resource, _) = manifest::resource(&cx.world.client, version, kind).await?;
            seen(&resource.kind.as_str(), &kind)
        })
        .await?;
    }
    Ok(())
}
