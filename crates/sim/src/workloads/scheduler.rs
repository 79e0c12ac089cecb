//! The scheduler: a node for every pod that fits on one, and a reason for every other one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::event::{Volume, event};
use super::kubelet;
use super::object::{Object, Write, count, pod_path};
use super::replica_sets::is_active;
use super::sleepers;
use crate::milli::Milli;
use wva_base::moment::WallTime;

const COMPONENT: &str = "default-scheduler";

type Amounts = BTreeMap<String, u64>;

struct Room {
    nodes: Vec<(Object, Amounts)>,
}

/// Gives nodes to the pods that have none, oldest first.
pub(super) fn reconcile(nodes: &[Object], pods: &[Object], now: WallTime) -> Vec<Write> {
    let mut waiting: Vec<&Object> =
        pods.iter().filter(|pod| is_active(pod) && pod.text("/spec/nodeName").is_empty()).collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    waiting.sort_by_key(|pod| (pod.created(), pod.name().to_owned()));
    let mut room = Room::of(nodes, pods);
    let mut writes = Vec::new();
    for pod in waiting {
        match room.place(pod) {
            Ok((node, woken)) => {
                bind(pod, &node, &mut writes, now);
                writes.extend(woken);
            }
            Err(why) => refuse(pod, &why, &mut writes, now),
        }
    }
    writes
}

/// What a pod requests: for each resource its requests, limits where there are none, and itself.
fn requests(pod: &Object) -> Amounts {
    let mut total = Amounts::from([("pods".to_owned(), 1_000)]);
    for container in pod.list("/spec/containers") {
        let resources = &container["resources"];
        let mut wanted = amounts(&resources["limits"]);
        wanted.extend(amounts(&resources["requests"]));
        for (name, amount) in wanted {
            let sum = total.entry(name).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
    total
}

fn amounts(resources: &Value) -> Amounts {
    let resources = resources.as_object().into_iter().flatten();
    let parsed = resources.filter_map(|(name, value)| {
        let amount = Milli::parse(value.as_str()?)?;
        Some((name.clone(), amount.0))
    });
    parsed.collect()
}

impl Room {
    fn of(nodes: &[Object], pods: &[Object]) -> Self {
        let mut taken: BTreeMap<&str, Vec<Amounts>> = BTreeMap::new();
        for pod in pods {
            let ended = matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
            let node = pod.text("/spec/nodeName");
            if !ended && !node.is_empty() {
                taken.entry(node).or_default().push(requests(pod));
            }
        }
        let left = |node: &Object| {
            let mut left = amounts(node.at("/status/allocatable"));
            let taken = taken.get(node.name());
            for taken in taken.into_iter().flatten() {
                take(&mut left, taken);
            }
            (node.clone(), left)
        };
        Self { nodes: nodes.iter().map(left).collect() }
    }

    /// The emptiest node that takes the pod, of those with an engine to wake where there are any, and what wakes it;
    /// or the sentence of the real scheduler.
    fn place(&mut self, pod: &Object) -> Result<(String, Vec<Write>), String> {
        let wanted = requests(pod);
        let mut why: BTreeMap<String, usize> = BTreeMap::new();
        let mut best: Option<(usize, (bool, u64))> = None;
        for (at, (node, left)) in self.nodes.iter().enumerate() {
            if let Some(obstacle) = obstacle(pod, node, left, &wanted) {
                *why.entry(obstacle).or_default() += 1;
                continue;
            }
            let free = left.get("pods").copied().unwrap_or(0);
            let rank = (sleepers::asleep(node, pod) > 0, free);
            if best.is_none_or(|(_, highest)| rank > highest) {
                best = Some((at, rank));
            }
        }
        if let Some((node, left)) = best.and_then(|(at, _)| self.nodes.get_mut(at)) {
            take(left, &wanted);
            let woken = sleepers::wake(node, pod);
            return Ok((node.name().to_owned(), woken));
        }
        let all = count(self.nodes.len());
        let reasons: Vec<_> =
            why.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
        if reasons.is_empty() {
            return Err("no nodes available to schedule pods".to_owned());
        }
        Err(format!("0/{all} nodes are available: {}.", reasons.join(", ")))
    }
}

fn take(left: &mut Amounts, taken: &Amounts) {
    for (name, amount) in taken {
        if let Some(left) = left.get_mut(name) {
            *left = left.saturating_sub(*amount);
        }
    }
}

fn obstacle(pod: &Object, node: &Object, left: &Amounts, wanted: &Amounts) -> Option<String> {
    if node.at("/spec/unschedulable") == true {
        return Some("node(s) were unschedulable".to_owned());
    }
    let mut taints = node.list("/spec/taints").iter();
    if let Some(taint) = taints.find(|taint| taint["effect"] != "PreferNoSchedule") {
        let key = taint["key"].as_str().unwrap_or_default();
        let value = taint["value"].as_str().unwrap_or_default();
        return Some(format!("node(s) had untolerated taint {{{key}: {value}}}"));
    }
    let selector = pod.at("/spec/nodeSelector").as_object();
    let mut selector = selector.into_iter().flatten();
    if !selector.all(|(name, value)| node.label(name) == value.as_str()) {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    let mut wanted = wanted.iter();
    let short = wanted.find(|(name, amount)| left.get(*name).copied().unwrap_or(0) < **amount);
    short.map(|(name, _)| match &**name {
        "pods" => "Too many pods".to_owned(),
        name => format!("Insufficient {name}"),
    })
}

fn bind(pod: &Object, node: &str, writes: &mut Vec<Write>, now: WallTime) {
    let scheduled = json!({"type": "PodScheduled", "status": "True"});
    let conditions = pod.having([scheduled], now);
    let bound = json!({"spec": {"nodeName": node}});
    writes.push(Write::Merge(pod_path(pod), bound));
    writes.push(kubelet::write(pod, &json!({"conditions": conditions})));
    let (namespace, name) = (pod.namespace(), pod.name());
    let message = format!("Successfully assigned {namespace}/{name} to {node}");
    let what = (Volume::Normal, "Scheduled");
    writes.push(event(("v1", "Pod", pod), COMPONENT, what, &message, now));
}

/// Says once why a pod waits, and again when the reason changes.
fn refuse(pod: &Object, why: &str, writes: &mut Vec<Write>, now: WallTime) {
    let present = pod.condition("PodScheduled");
    if present.is_some_and(|present| present["message"] == why) {
        return;
    }
    let unscheduled = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
    });
    let conditions = pod.having([unscheduled], now);
    writes.push(kubelet::write(pod, &json!({"conditions": conditions})));
    let what = (Volume::Warning, "FailedScheduling");
    writes.push(event(("v1", "Pod", pod), COMPONENT, what, why, now));
}
