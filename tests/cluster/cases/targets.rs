//! Scale targets of kinds that a cluster may lack: looked for, found once they are served, counted, published.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Namespace;
use crate::harness::pod_autoscaler::workload;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::Variants;
use crate::harness::wait::{eventually, seen};
use crate::harness::world::Setup;

const SOON: Duration = Duration::from_secs(30);
/// Longer than the longest pause between two looks for a missing kind.
const LATER: Duration = Duration::from_mins(1);
const FOUND: [(&str, &str); 1] = [("TargetResolved", "True/TargetFound")];
const UNSUPPORTED: [(&str, &str); 1] = [("TargetResolved", "False/UnsupportedTargetKind")];
const GROUPS: &str = "leaderworkerset.x-k8s.io/v1";
const SERVERS: &str = "serving.example.com/v1beta1";
/// Kinds without which the controller is ready.
const OPTIONAL: [&str; 5] = [
    "InferencePool.v1",
    "InferencePool.v1alpha2",
    "InferencePool.gateway",
    "InferencePool.llm-d",
    "ServiceMonitor",
];

pub(crate) fn cases() -> Vec<Case> {
    vec![case!(
        with_own_servers(Setup::WithoutOptionalKinds),
        targets::a_kind_that_appears_is_resolved_without_restart
    )]
}

fn naming(version: &str, kind: &str, name: &str) -> Value {
    json!({ "scaleTargetRef": { "apiVersion": version, "kind": kind, "name": name } })
}

fn stateful_set(name: &str, replicas: i64) -> Value {
    let mut set = workload("StatefulSet", name, &json!({ "app": name }), replicas);
    let arguments = json!(["--max-num-seqs=32", "--api-key=not-for-others"]);
    set["spec"]["template"]["spec"]["containers"][0]["args"] = arguments;
    set
}

fn groups(replicas: i32) -> Value {
    json!({
        "apiVersion": GROUPS, "kind": "LeaderWorkerSet", "metadata": { "name": "lws" },
        "spec": { "replicas": replicas, "leaderWorkerTemplate": {
            "size": 2, "workerTemplate": stateful_set("lws", 1)["spec"]["template"],
        }},
    })
}

/// An object whose status counts as many replicas as its specification states.
async fn serve(namespace: &Namespace, count: i32) -> Result {
    let object = json!({
        "apiVersion": SERVERS, "kind": "ModelServer",
        "metadata": { "name": "server" }, "spec": { "count": count },
    });
    namespace.apply(object).await?;
    let status = json!({ "status": { "count": count } });
    let objects = namespace.dynamic(SERVERS, "ModelServer").await?;
    objects.patch_status("server", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// What the controller would plan from.
async fn view(controller: &Controller, name: &str) -> Result<Value> {
    let snapshot = controller.debug("snapshot").await?;
    let variants = snapshot["variants"].as_array().cloned().unwrap_or_default();
    let found = variants.into_iter().find(|variant| variant["name"] == name);
    found.ok_or_else(|| Fault::new(format!("{name} is not in the snapshot")))
}

/// Waits until each kind that a cluster may lack has this state on the readiness page.
async fn optional_kinds_are(controller: &Controller, mark: &str) -> Result {
    eventually(format!("optional kinds are {mark}"), LATER, async || {
        let text = controller.readiness().await?;
        let all = OPTIONAL.map(|kind| text.contains(&format!("[{mark}] mirror/{kind}: ")));
        seen(&all, &[true; OPTIONAL.len()])
    })
    .await
}

async fn a_kind_that_appears_is_resolved_without_restart(cx: &Cx) -> Result {
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    optional_kinds_are(&controller, "!").await?;
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
    let set = naming("apps/v1", "StatefulSet", "set");
    variants.apply("set", "set", set).await?;
    let missing = [("TargetResolved", "False/TargetNotFound")];
    variants.says("set", &missing, SOON).await?;

    cx.world.define_optional_kinds().await?;
    cx.namespace.apply(groups(2)).await?;
    serve(&cx.namespace, 3).await?;
    cx.namespace.apply(stateful_set("set", 2)).await?;
    for (name, count) in [("groups", 2.0), ("server", 3.0), ("set", 2.0)] {
        variants.says(name, &FOUND, LATER).await?;
        variants.publishes(name, Some(count), SOON).await?;
    }
    optional_kinds_are(&controller, "+").await?;
    let pods = eventually("the pods of the set are counted", SOON, async || {
        let view = view(&controller, "set").await?;
        seen(&view["target"]["ready"], &json!(2))?;
        Ok(view)
    })
    .await?;
    assert_eq!(pods["target"]["kind"], "StatefulSet");
    assert_eq!(pods["pods"][1]["name"], "set-1", "{pods}");
    assert_eq!(pods["containers"][0]["args"], json!(["--max-num-seqs=32"]));
    Ok(())
}
