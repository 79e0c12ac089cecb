//! Deployments on fake nodes behave as on real ones.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;

use crate::harness::fault::Result;
use crate::harness::history::History;
use crate::harness::namespace::{Namespace, Replicas, Workload};
use crate::harness::servers::kwok;
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(30);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "workloads::pods_become_ready_and_go",
            pods_become_ready_and_go,
        ),
        Case::shared(
            "workloads::loading_time_is_set_per_pod",
            loading_time_is_set_per_pod,
        ),
        Case::shared(
            "workloads::pods_wait_for_free_gpus",
            pods_wait_for_free_gpus,
        ),
    ]
}

async fn pods_become_ready_and_go(cx: &Cx) -> Result {
    let workload = Workload::new("llama", 2);
    cx.namespace.deploy(&workload).await?;
    cx.namespace.settles("llama", 2, SOON).await?;
    for pod in cx.namespace.pods(&workload.selector()).await? {
        assert_eq!(phase(&pod), Some("Running"));
        let ip = pod
            .status
            .as_ref()
            .and_then(|status| status.pod_ip.as_deref());
        assert!(
            ip.is_some_and(|ip| ip.starts_with("127.10.")),
            "address {ip:?}"
        );
    }

    cx.namespace.scale("llama", 0).await?;
    cx.namespace.settles("llama", 0, SOON).await?;
    eventually("no pod is left", SOON, async || {
        seen(&cx.namespace.pods(&workload.selector()).await?.len(), &0)
    })
    .await
}

/// A pod that loads for an hour stays pending while one that loads for a moment is ready, and the
/// Deployment's history shows the way there.
async fn loading_time_is_set_per_pod(cx: &Cx) -> Result {
    let slow = Workload {
        loading: Duration::from_hours(1),
        ..Workload::new("slow", 1)
    };
    let quick = Workload {
        loading: Duration::from_secs(1),
        ..Workload::new("quick", 1)
    };
    cx.namespace.deploy(&slow).await?;
    eventually("the slow pod has a node", SOON, async || {
        let pods = cx.namespace.pods(&slow.selector()).await?;
        seen(&pods.iter().filter(|pod| node(pod).is_some()).count(), &1)
    })
    .await?;

    let history = History::follow(&cx.namespace, "quick");
    cx.namespace.deploy(&quick).await?;
    cx.namespace.settles("quick", 1, SOON).await?;
    let pending = Replicas {
        wanted: 1,
        present: 1,
        ready: 0,
    };
    eventually(
        "the way from pending to ready is recorded",
        SOON,
        async || {
            let steps = history.steps();
            let ends = steps.last().copied();
            seen(
                &(steps.contains(&pending), ends),
                &(true, Some(Replicas::settled(1))),
            )
        },
    )
    .await?;

    let deployments = cx.namespace.api::<Deployment>();
    assert_eq!(Replicas::of(&deployments.get("slow").await?), pending);
    Ok(())
}

/// A pod that takes all GPUs of the one L4 node leaves the next without a place until it goes.
async fn pods_wait_for_free_gpus(cx: &Cx) -> Result {
    let gpus = u32::try_from(kwok::GPUS_PER_NODE)?;
    let workload = Workload {
        gpus: Some((gpus, kwok::L4)),
        ..Workload::new("large", 1)
    };
    cx.namespace.deploy(&workload).await?;
    cx.namespace.settles("large", 1, SOON).await?;
    assert_eq!(placed(&cx.namespace, &workload).await?, (1, 0));

    cx.namespace.scale("large", 2).await?;
    eventually(
        "the second pod waits, because no GPU is free",
        SOON,
        async || seen(&placed(&cx.namespace, &workload).await?, &(1, 1)),
    )
    .await?;
    let pods = cx.namespace.pods(&workload.selector()).await?;
    let running = pods.iter().find(|pod| phase(pod) == Some("Running"));
    let running = running
        .and_then(|pod| pod.metadata.name.clone())
        .unwrap_or_default();

    let api: Api<Pod> = cx.namespace.api();
    api.delete(&running, &DeleteParams::default()).await?;
    eventually(
        "the freed GPUs are taken, and the next pod waits",
        SOON,
        async || {
            let pods = cx.namespace.pods(&workload.selector()).await?;
            let old_is_gone = pods
                .iter()
                .all(|pod| pod.metadata.name.as_ref() != Some(&running));
            seen(
                &(old_is_gone, placed(&cx.namespace, &workload).await?),
                &(true, (1, 1)),
            )
        },
    )
    .await
}

/// How many pods have a node, and how many the scheduler found none for.
async fn placed(namespace: &Namespace, workload: &Workload<'_>) -> Result<(usize, usize)> {
    let pods = namespace.pods(&workload.selector()).await?;
    let placed = pods.iter().filter(|pod| node(pod).is_some()).count();
    Ok((
        placed,
        pods.iter().filter(|pod| is_unschedulable(pod)).count(),
    ))
}

fn is_unschedulable(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.reason.as_deref() == Some("Unschedulable"))
}

fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}
