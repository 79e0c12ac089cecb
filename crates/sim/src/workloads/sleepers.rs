//! Engines that stay asleep on a node when their pods end, with the weights in host memory. A pod of the same owner
//! that is placed there wakes one. Pods of a Deployment belong to the ReplicaSet of their template.
//!
//! They hold no GPU: it goes back to the node, as with the fast model actuation of llm-d. How many sleep is an
//! annotation of the node, one for each owner.

use serde_json::{Value, json};

use super::nodes;
use super::object::{Object, Write, pod_path};

/// How many engines of the owner of a pod may sleep, on all nodes together.
pub(crate) const MOST_ASLEEP: &str = "simulation.wva.llmd.ai/most-asleep";
/// Seconds in which one of them wakes up, in half of all cases at most.
pub(crate) const WAKE: &str = "simulation.wva.llmd.ai/wake-seconds";
const WOKE: &str = "simulation.wva.llmd.ai/woke";

fn key(pod: &Object) -> Option<String> {
    pod.annotation(MOST_ASLEEP)?;
    let owner = pod.controller()?;
    Some(format!("asleep.simulation.wva.llmd.ai/{owner}"))
}

/// Engines on a node that the pod could wake.
pub(super) fn asleep(node: &Object, pod: &Object) -> u32 {
    let count = key(pod).and_then(|key| node.annotation(&key)?.parse().ok());
    count.unwrap_or(0)
}

/// Whether the pod starts by waking an engine. A container that died starts as any other does.
pub(super) fn wakes(pod: &Object) -> bool {
    pod.annotation(WOKE).is_some() && pod.restarts() == 0
}

/// Lets a pod that is placed on a node wake an engine, if one sleeps there.
pub(super) fn wake(node: &mut Object, pod: &Object) -> Vec<Write> {
    let Some(left) = asleep(node, pod).checked_sub(1) else {
        return Vec::new();
    };
    let woke = json!({"metadata": {"annotations": {WOKE: "true"}}});
    let mut writes = vec![Write::Merge(pod_path(pod), woke)];
    writes.extend(set(node, pod, left));
    writes
}

/// What stays of a pod that ends: an engine asleep, if it was ready and no more sleep than may.
pub(super) fn fall_asleep(pod: &Object, nodes: &[Object]) -> Option<Write> {
    let most: u32 = pod.annotation(MOST_ASLEEP)?.parse().ok()?;
    let all: u32 = nodes.iter().map(|node| asleep(node, pod)).sum();
    if !pod.holds("Ready") || all >= most {
        return None;
    }
    let name = pod.text("/spec/nodeName");
    let node = nodes.iter().find(|node| node.name() == name)?;
    set(&mut node.clone(), pod, asleep(node, pod) + 1)
}

/// Changes the count on a node, in this view of it as well.
fn set(node: &mut Object, pod: &Object, count: u32) -> Option<Write> {
    let key = key(pod)?;
    let mut document = Value::clone(&node.0);
    document["metadata"]["annotations"][&*key] = count.to_string().into();
    *node = Object(document.into());
    let change = json!({"metadata": {"annotations": {key: count.to_string()}}});
    Some(Write::Merge(nodes::path(node.name()), change))
}
