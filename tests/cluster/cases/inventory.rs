//! GPUs of the cluster: looked at where settings ask for it, and followed.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::rights::{names, takes_away};
use super::settings::SATURATION;
use crate::harness::account::Account;
use crate::harness::controller::{ACCOUNT, Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::namespace::Workload;
use crate::harness::pod_autoscaler::workload;
use crate::harness::servers::kwok;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::Variants;
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(40);
/// The only node of its kind.
const NODE: &str = "l4-1";
const CLAIMER: &str = "claimer";
/// A node whose GPUs only a driver lists, and the resource of their class.
const DRIVEN: &str = "driven-1";
const DEVICES: &str = "deviceclass.resource.kubernetes.io/gpu.nvidia.com";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(exclusive, inventory::follows_nodes_and_pods),
        case!(shared, inventory::counts_claims_where_quotas_limit),
        case!(exclusive, inventory::counts_devices_of_slices_and_claims),
        case!(shared, inventory::a_right_that_is_removed_is_named),
    ]
}

async fn gpus(controller: &Controller) -> Result<Value> {
    Ok(controller.debug("snapshot").await?["inventory"].clone())
}

async fn cordon(cx: &Cx, cordoned: bool) -> Result {
    let nodes: Api<Node> = Api::all(cx.world.client.clone());
    let patch = Patch::Merge(json!({ "spec": { "unschedulable": cordoned } }));
    nodes.patch(NODE, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn follows_nodes_and_pods(cx: &Cx) -> Result {
    let plain = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    assert_eq!(gpus(&plain).await?, Value::Null);
    let text = plain.readiness().await?;
    assert!(!text.contains("mirror/Node"), "{text}");
    drop(plain);

    let spec = ControllerSpec {
        name: "wva-limited",
        environment: vec![("WVA_LIMITED_MODE", "true".to_owned())],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start_ready(cx, &spec).await?;
    let outcome = see_nodes_and_pods(cx, &controller).await;
    cordon(cx, false).await?;
    outcome
}

async fn see_nodes_and_pods(cx: &Cx, controller: &Controller) -> Result {
    let schedulable = async |wanted: bool| {
        eventually(format!("schedulable: {wanted}"), SOON, async || {
            let node = &gpus(controller).await?["nodes"][NODE];
            let gpus = node["allocatable"]["nvidia.com/gpu"].clone();
            seen(&(gpus, &node["schedulable"]), &(json!(8), &json!(wanted)))
        })
        .await
    };
    schedulable(true).await?;
    cordon(cx, true).await?;
    schedulable(false).await?;
    cordon(cx, false).await?;
    schedulable(true).await?;

    // Another namespace than the one that is watched.
    let system = cx.system().await?;
    let holders = async |wanted: usize| {
        eventually(format!("{wanted} pods on the node"), SOON, async || {
            let pods = gpus(controller).await?["pods"].as_array().cloned();
            let pods = pods.ok_or_else(|| Fault::new("no pods are known"))?;
            let on_it = pods
                .iter()
                .filter(|pod| pod["node"] == NODE && pod["containers"][0]["nvidia.com/gpu"] == 3);
            seen(&on_it.count(), &wanted)
        })
        .await
    };
    holders(0).await?;
    let workload = Workload { gpus: Some((3, kwok::L4)), ..Workload::new("elsewhere", 2) };
    system.deploy(&workload).await?;
    holders(2).await?;
    system.scale("elsewhere", 0).await?;
    holders(0).await
}

/// Settings come to need nodes after the right to see them is gone.
async fn a_right_that_is_removed_is_named(cx: &Cx) -> Result {
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let system = cx.system().await?;
    let account = Account::create(system, ACCOUNT).await?;
    takes_away(&account, "nodes").await?;

    let limited = json!({ "default": "enableLimiter: true" });
    system.configure(SATURATION, limited).await?;
    let right = "cannot list resource \"nodes\"";
    names(&controller, "[!] mirror/Node: ", right).await?;
    let unknown = gpus(&controller).await?["unknown"].clone();
    let why = unknown.as_str().unwrap_or_default();
    assert!(why.contains(right), "{unknown}");

    account.bind_shipped("rbac/role.yaml").await?;
    eventually("nodes are seen", SOON, async || {
        let nodes = gpus(&controller).await?["nodes"].clone();
        seen(&nodes.get(NODE).is_some(), &true)
    })
    .await
}

/// A pod of the target holds four GPUs by a claim that is made from a template, once the template is there.
async fn counts_claims_where_quotas_limit(cx: &Cx) -> Result {
    let quotas = "enableLimiter: true\nlimiters:\n- {name: q, type: quota, scope: cluster, quotas: {H100: 8}}";
    let system = cx.system().await?;
    let limited = json!({ "default": quotas });
    system.configure(SATURATION, limited).await?;
    cx.namespace.deploy(&Workload::new(CLAIMER, 1)).await?;
    let deployments: Api<Deployment> = cx.namespace.api();
    let claims = json!([{ "name": "gpu", "resourceClaimTemplateName": "four" }]);
    let patch = json!({ "spec": { "template": { "spec": { "resourceClaims": claims } } } });
    let params = PatchParams::default();
    deployments.patch(CLAIMER, &params, &Patch::Strategic(patch)).await?;
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply(CLAIMER, CLAIMER, json!({})).await?;
    let held = async |gpus: Value, claims: Value| {
        eventually(format!("{gpus} by claims"), SOON, async || {
            let snapshot = controller.debug("snapshot").await?;
            let all = snapshot["variants"].as_array().cloned().unwrap_or_default();
            let found = all.into_iter().find(|one| one["name"] == CLAIMER);
            let found = found.unwrap_or_default();
            let seen_now = (found["gpus"].clone(), found["resourceClaims"].clone());
            seen(&seen_now, &(gpus.clone(), claims.clone()))
        })
        .await
    };
    held(Value::Null, json!(["gpu"])).await?;
    cx.namespace.apply(claim_template("four", 4)).await?;
    held(json!({ DEVICES: 4 }), Value::Null).await
}

fn claim_template(name: &str, count: u32) -> Value {
    let request =
        json!({ "name": "r", "exactly": { "deviceClassName": "gpu.nvidia.com", "count": count } });
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "name": name },
        "spec": { "spec": { "devices": { "requests": [request] } } },
    })
}

/// Four devices of a pool that has so many slices at a generation.
fn slice(name: &str, generation: i64, slices: i64) -> Value {
    let devices = (0..4).map(|number| {
        json!({ "name": format!("{name}-{number}"), "attributes": {
            "type": { "string": "gpu" }, "productName": { "string": "NVIDIA B200" },
        }})
    });
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": name },
        "spec": {
            "driver": "gpu.nvidia.com", "nodeName": DRIVEN,
            "pool": { "name": DRIVEN, "generation": generation, "resourceSliceCount": slices },
            "devices": devices.collect::<Vec<_>>(),
        },
    })
}

/// A driver publishes a pool in two generations, and the real scheduler allocates devices of it.
async fn counts_devices_of_slices_and_claims(cx: &Cx) -> Result {
    let client = &cx.world.client;
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": DRIVEN, "labels": { "driven": "yes" } },
        "spec": { "taints": [{ "key": "example.com/driven", "effect": "NoSchedule" }] },
    });
    let class = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": { "name": "gpu.nvidia.com" },
        "spec": { "selectors": [{ "cel": { "expression": "device.driver == 'gpu.nvidia.com'" } }] },
    });
    for object in [&node, &class] {
        manifest::apply(client, object.clone(), None).await?;
    }
    let room = json!({ "cpu": "64", "memory": "512Gi", "pods": "250" });
    let status = Patch::Merge(json!({ "status": { "capacity": room, "allocatable": room } }));
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::default();
    nodes.patch_status(DRIVEN, &params, &status).await?;
    let outcome = see_devices(cx).await;
    let slices = [slice("a", 2, 2), slice("b", 2, 2)];
    for object in [&node, &class].into_iter().chain(&slices) {
        let [version, kind, name] = ["/apiVersion", "/kind", "/metadata/name"]
            .map(|path| object.pointer(path).and_then(Value::as_str).unwrap_or_default());
        let (resource, _) = manifest::resource(client, version, kind).await?;
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        objects.delete(name, &DeleteParams::default()).await.ok();
    }
    outcome
}

async fn see_devices(cx: &Cx) -> Result {
    let spec = ControllerSpec::scoped(cx).with("WVA_LIMITED_MODE", "true");
    let controller = Controller::start_ready(cx, &spec).await?;
    see_slices(cx, &controller).await?;
    see_claims(cx, &controller).await
}

async fn see_slices(cx: &Cx, controller: &Controller) -> Result {
    let client = &cx.world.client;
    let offers = async |wanted: Value, uncounted: Value| {
        eventually(format!("devices {wanted} {uncounted}"), SOON, async || {
            let node = &gpus(controller).await?["nodes"][DRIVEN];
            let seen_now = (node["allocatable"][DEVICES].clone(), node["uncounted"].clone());
            seen(&seen_now, &(wanted.clone(), uncounted.clone()))
        })
        .await
    };
    eventually("other nodes are known", SOON, async || {
        let nodes = gpus(controller).await?["nodes"].clone();
        seen(&nodes.get(NODE).is_some(), &true)
    })
    .await?;
    offers(Value::Null, Value::Null).await?;
    manifest::apply(client, slice("a", 1, 1), None).await?;
    offers(json!(4), Value::Null).await?;
    let product =
        gpus(controller).await?["nodes"][DRIVEN]["labels"]["nvidia.com/gpu.product"].take();
    assert_eq!(product, "NVIDIA-B200");
    manifest::apply(client, slice("a", 2, 2), None).await?;
    offers(Value::Null, json!([DEVICES])).await?;
    manifest::apply(client, slice("b", 2, 2), None).await?;
    offers(json!(8), Value::Null).await
}

async fn see_claims(cx: &Cx, controller: &Controller) -> Result {
    cx.namespace.apply(claim_template("two", 2)).await?;
    let labels = json!({ "app": CLAIMER });
    let mut workload = workload("Deployment", CLAIMER, &labels, 0);
    let pod = &mut workload["spec"]["template"]["spec"];
    pod["nodeSelector"] = json!({ "driven": "yes" });
    pod["tolerations"] = json!([{ "key": "example.com/driven", "operator": "Exists" }]);
    pod["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimTemplateName": "two" }]);
    pod["containers"][0]["resources"] = json!({ "claims": [{ "name": "gpu" }] });
    cx.namespace.apply(workload).await?;
    let holders = async |wanted: usize| {
        eventually(format!("{wanted} pods hold two"), SOON, async || {
            let pods = gpus(controller).await?["pods"].as_array().cloned();
            let pods = pods.ok_or_else(|| Fault::new("no pods are known"))?;
            let of_case = format!("{}/{CLAIMER}-", cx.namespace.name);
            let holding = pods.iter().filter(|pod| {
                let name = pod["name"].as_str().unwrap_or_default();
                let holds_two = pod["containers"][0][DEVICES] == 2;
                pod["node"] == DRIVEN && name.starts_with(&of_case) && holds_two
            });
            seen(&holding.count(), &wanted)
        })
        .await
    };
    holders(0).await?;
    cx.namespace.scale(CLAIMER, 3).await?;
    holders(3).await?;

    let variants = Variants::new(&cx.namespace, controller);
    variants.apply(CLAIMER, CLAIMER, json!({})).await?;
    eventually("a replica is counted", SOON, async || {
        let snapshot = controller.debug("snapshot").await?;
        let all = snapshot["variants"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|one| one["name"] == CLAIMER);
        seen(&found.unwrap_or_default()["gpus"], &json!({ DEVICES: 2 }))
    })
    .await?;
    cx.namespace.scale(CLAIMER, 0).await?;
    holders(0).await
}
