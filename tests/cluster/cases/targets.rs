//! Scale targets of every kind: looked for, found, counted, published.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Namespace;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::Variants;
use crate::harness::wait::{eventually, seen};
use crate::harness::world::Setup;

const SOON: Duration = Duration::from_secs(30);
/// Longer than the longest pause between two looks for a missing kind.
const LATER: Duration = Duration::from_mins(1);
const FOUND: [(&str, &str); 1] = [("TargetResolved", "True/TargetFound")];
const NOT_FOUND: [(&str, &str); 1] = [("TargetResolved", "False/TargetNotFound")];
const UNSUPPORTED: [(&str, &str); 1] = [("TargetResolved", "False/UnsupportedTargetKind")];
const GROUPS: &str = "leaderworkerset.x-k8s.io/v1";
const SERVERS: &str = "serving.example.com/v1beta1";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "targets::a_stateful_set_is_scaled",
            a_stateful_set_is_scaled,
        ),
        Case::shared("targets::a_group_is_one_replica", a_group_is_one_replica),
        Case::shared(
            "targets::a_scale_subresource_is_enough",
            a_scale_subresource_is_enough,
        ),
        Case::with_own_servers(
            "targets::a_kind_that_appears_is_resolved_without_restart",
            Setup::WithoutOptionalKinds,
            a_kind_that_appears_is_resolved_without_restart,
        ),
    ]
}

async fn controller(cx: &Cx) -> Result<Controller> {
    let controller = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
    controller.ready().await?;
    Ok(controller)
}

fn naming(version: &str, kind: &str, name: &str) -> Value {
    json!({ "scaleTargetRef": { "apiVersion": version, "kind": kind, "name": name } })
}

fn template(labels: &Value, resources: &Value) -> Value {
    json!({
        "metadata": { "labels": labels },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "vllm", "image": "vllm/vllm-openai:fake", "resources": resources,
                "args": ["--max-num-seqs=32", "--api-key=not-for-others"],
            }],
        },
    })
}

fn stateful_set(name: &str, replicas: i32, owner: Option<&Value>) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": name, "ownerReferences": owner.into_iter().collect::<Vec<_>>() },
        "spec": {
            "replicas": replicas, "serviceName": name, "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": labels },
            "template": template(&labels, &json!({})),
        },
    })
}

/// A reference to an owner that controls.
fn owner(version: &str, kind: &str, name: &str, uid: Option<&str>) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true,
    })
}

/// What the controller would plan from: its target's counts and the names of its pods.
async fn counts(controller: &Controller, name: &str) -> Result<(Value, Value, Vec<String>)> {
    let view = view(controller, name).await?;
    let pods = view["pods"].as_array().cloned().unwrap_or_default();
    let names = pods.iter().filter_map(|pod| pod["name"].as_str());
    let target = &view["target"];
    Ok((
        target["current"].clone(),
        target["ready"].clone(),
        names.map(str::to_owned).collect(),
    ))
}

async fn view(controller: &Controller, name: &str) -> Result<Value> {
    let snapshot = controller.debug("snapshot").await?;
    let variants = snapshot["variants"].as_array().cloned().unwrap_or_default();
    let found = variants.into_iter().find(|variant| variant["name"] == name);
    found.ok_or_else(|| Fault::new(format!("{name} is not in the snapshot")))
}

async fn counted(
    controller: &Controller,
    name: &str,
    (current, ready, pods): (u32, u32, &[&str]),
) -> Result {
    let pods: Vec<String> = pods.iter().map(|pod| (*pod).to_owned()).collect();
    let wanted = (json!(current), json!(ready), pods);
    eventually(format!("counts of {name}"), SOON, async || {
        seen(&counts(controller, name).await?, &wanted)
    })
    .await
}

async fn a_stateful_set_is_scaled(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let fields = naming("apps/v1", "StatefulSet", "set");
    variants.apply("v", "set", fields).await?;
    variants.says("v", &NOT_FOUND, SOON).await?;
    variants.publishes("v", None, SOON).await?;

    cx.namespace.apply(stateful_set("set", 2, None)).await?;
    variants.says("v", &FOUND, SOON).await?;
    variants.publishes("v", Some(2.0), SOON).await?;
    counted(&controller, "v", (2, 2, &["set-0", "set-1"])).await?;
    let view = view(&controller, "v").await?;
    assert_eq!(view["target"]["kind"], "StatefulSet");
    assert_eq!(view["containers"][0]["args"], json!(["--max-num-seqs=32"]));

    cx.namespace.apply(stateful_set("set", 3, None)).await?;
    counted(&controller, "v", (3, 3, &["set-0", "set-1", "set-2"])).await
}

fn groups(replicas: i32) -> Value {
    let gpus = |count: &str| json!({ "limits": { "nvidia.com/gpu": count } });
    json!({
        "apiVersion": GROUPS, "kind": "LeaderWorkerSet", "metadata": { "name": "lws" },
        "spec": { "replicas": replicas, "leaderWorkerTemplate": {
            "size": 2,
            "leaderTemplate": template(&json!({ "llm-d.ai/role": "decode" }), &gpus("4")),
            "workerTemplate": template(&json!({}), &gpus("8")),
        }},
    })
}

/// What the kind's own controller makes of it: a set of leaders, each with a set of workers.
async fn play_group_controller(namespace: &Namespace, uid: Option<&str>) -> Result {
    let set = owner(GROUPS, "LeaderWorkerSet", "lws", uid);
    namespace.apply(stateful_set("lws", 2, Some(&set))).await?;
    for leader in ["lws-0", "lws-1"] {
        let pods = namespace.api::<k8s_openapi::api::core::v1::Pod>();
        let uid = eventually(format!("{leader} exists"), SOON, async || {
            Ok(pods.get(leader).await?.metadata.uid)
        })
        .await?;
        let leads = owner("v1", "Pod", leader, uid.as_deref());
        namespace
            .apply(stateful_set(leader, 1, Some(&leads)))
            .await?;
    }
    let status = json!({ "status": { "replicas": 2, "readyReplicas": 2 } });
    let objects = namespace.dynamic(GROUPS, "LeaderWorkerSet").await?;
    objects
        .patch_status("lws", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

async fn a_group_is_one_replica(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let fields = naming(GROUPS, "LeaderWorkerSet", "lws");
    variants.apply("v", "lws", fields).await?;
    variants.says("v", &NOT_FOUND, SOON).await?;

    let object = cx.namespace.apply(groups(2)).await?;
    variants.says("v", &FOUND, SOON).await?;
    variants.publishes("v", Some(2.0), SOON).await?;
    // Nobody has made the groups yet.
    counted(&controller, "v", (2, 0, &[])).await?;

    play_group_controller(&cx.namespace, object.metadata.uid.as_deref()).await?;
    counted(&controller, "v", (2, 2, &["lws-0", "lws-1"])).await?;
    let view = view(&controller, "v").await?;
    assert_eq!(view["gpus"], json!({ "nvidia.com/gpu": 12 }));
    assert_eq!(view["role"], "decode");
    Ok(())
}

/// An object whose status counts as many replicas as its specification asks for.
async fn serve(namespace: &Namespace, count: i32) -> Result<Value> {
    let object = json!({
        "apiVersion": SERVERS, "kind": "ModelServer",
        "metadata": { "name": "server" }, "spec": { "count": count },
    });
    let object = namespace.apply(object).await?;
    let status = json!({ "status": { "count": count } });
    let objects = namespace.dynamic(SERVERS, "ModelServer").await?;
    objects
        .patch_status("server", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    let uid = object.metadata.uid.as_deref();
    Ok(owner(SERVERS, "ModelServer", "server", uid))
}

async fn a_scale_subresource_is_enough(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    let none = naming("v1", "ConfigMap", "kube-root-ca.crt");
    variants.apply("none", "kube-root-ca.crt", none).await?;
    let message = variants.says("none", &UNSUPPORTED, SOON).await?;
    assert!(message.contains("has no scale subresource"), "{message}");

    let fields = naming(SERVERS, "ModelServer", "server");
    variants.apply("v", "server", fields).await?;
    variants.says("v", &NOT_FOUND, SOON).await?;
    let server = serve(&cx.namespace, 2).await?;
    variants.says("v", &FOUND, SOON).await?;
    variants.publishes("v", Some(2.0), SOON).await?;
    counted(&controller, "v", (2, 0, &[])).await?;

    for name in ["one", "two"] {
        let mut pod = template(&json!({}), &json!({}));
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"] = json!({ "name": name, "ownerReferences": [server] });
        cx.namespace.apply(pod).await?;
    }
    counted(&controller, "v", (2, 2, &["one", "two"])).await?;
    serve(&cx.namespace, 3).await?;
    counted(&controller, "v", (3, 2, &["one", "two"])).await
}

async fn a_kind_that_appears_is_resolved_without_restart(cx: &Cx) -> Result {
    let controller = controller(cx).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    for (name, target, fields) in [
        ("groups", "lws", naming(GROUPS, "LeaderWorkerSet", "lws")),
        ("server", "server", naming(SERVERS, "ModelServer", "server")),
    ] {
        variants.apply(name, target, fields).await?;
        let message = variants.says(name, &UNSUPPORTED, SOON).await?;
        let remedy = "install the definition of that kind";
        assert!(message.contains(remedy), "{message}");
        variants.publishes(name, None, SOON).await?;
    }
    cx.world.define_optional_kinds().await?;
    cx.namespace.apply(groups(2)).await?;
    serve(&cx.namespace, 3).await?;
    for (name, count) in [("groups", 2.0), ("server", 3.0)] {
        variants.says(name, &FOUND, LATER).await?;
        variants.publishes(name, Some(count), SOON).await?;
    }
    Ok(())
}
