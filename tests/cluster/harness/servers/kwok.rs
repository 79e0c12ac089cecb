//! kwok: the kubelets. Nodes with GPUs that do not exist, pods that become ready without running.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::fault::{Fault, Result};
use crate::harness::process::Server;
use crate::harness::site::Site;
use crate::harness::wait::eventually;

/// The pod annotation that sets how long a pod loads before it is ready, as a Go duration.
pub(crate) const LOADING_TIME: &str = "fake.kwok.x-k8s.io/loading-time";

/// The kinds of GPU, as the labels of the GPU operator's feature discovery name them.
pub(crate) const H100: &str = "NVIDIA-H100-80GB-HBM3";
pub(crate) const A100: &str = "NVIDIA-A100-PCIE-80GB";
/// One node of it, for the one case that uses all there is of a kind.
pub(crate) const L4: &str = "NVIDIA-L4";
/// Short name, product, memory in MiB, and number of nodes.
const INVENTORY: [(&str, &str, &str, usize); 3] =
    [("h100", H100, "81559", 8), ("a100", A100, "81920", 2), ("l4", L4, "23034", 1)];
pub(crate) const GPUS_PER_NODE: usize = 8;

const STAGES: &str = include_str!("kwok-stages.yaml");

pub(crate) fn place(site: &Site, admin: &str) -> Result<Arc<Server>> {
    let stages = site.write("kwok-stages.yaml", STAGES)?;
    let program = site
        .program("kwok")?
        .flag("kubeconfig", admin)
        .flag("config", stages.display())
        .flag("manage-all-nodes", true)
        .flag("cidr", "127.10.0.1/16")
        .flag("node-ip", "127.10.0.1")
        .flag("node-lease-duration-seconds", 40)
        .flag("v", "WARN");
    Ok(site.server("kwok", program))
}

/// Creates the nodes with their GPUs; kwok makes them Ready.
pub(crate) async fn create_nodes(client: &kube::Client) -> Result {
    let nodes: Api<Node> = Api::all(client.clone());
    let wanted = INVENTORY.iter().flat_map(|(short, product, memory, count)| {
        (1..=*count).map(move |number| (format!("{short}-{number}"), node(product, memory)))
    });
    try_join_all(wanted.map(async |(name, (labels, capacity))| {
        let apply = PatchParams::apply("cluster-tests");
        let object = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": labels },
        });
        nodes.patch(&name, &apply, &Patch::Apply(object)).await?;
        let status = json!({
            "apiVersion": "v1", "kind": "Node",
            "status": { "capacity": capacity, "allocatable": capacity },
        });
        nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok::<(), Fault>(())
    }))
    .await?;
    Ok(())
}

fn node(product: &str, memory: &str) -> (Value, Value) {
    let labels = json!({
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.memory": memory,
    });
    let capacity = json!({
        "cpu": "64", "memory": "512Gi", "pods": "250", "nvidia.com/gpu": GPUS_PER_NODE.to_string(),
    });
    (labels, capacity)
}

/// Waits until every node can take pods.
pub(crate) async fn nodes_ready(client: &kube::Client, kwok: &Server) -> Result {
    let nodes: Api<Node> = Api::all(client.clone());
    eventually("every node is ready", Duration::from_secs(30), async || {
        kwok.check()?;
        for node in nodes.list(&ListParams::default()).await? {
            let name = node.metadata.name.clone().unwrap_or_default();
            if !is_ready(&node) {
                return Err(Fault::new(format!("{name} is not ready")));
            }
            let tainted = node.spec.is_some_and(|spec| spec.taints.is_some_and(|t| !t.is_empty()));
            if tainted {
                return Err(Fault::new(format!("{name} is tainted")));
            }
        }
        Ok(())
    })
    .await
}

pub(crate) fn is_ready(node: &Node) -> bool {
    let status = node.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
