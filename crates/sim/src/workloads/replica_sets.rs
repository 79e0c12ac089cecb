//! The ReplicaSet controller: as many pods as wanted, and which of them go first.
//!
//! Source of the order: `ActivePodsWithRanks` of Kubernetes 1.33, ages compared by powers of two.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::deployments::status_write;
use super::event::{self, Volume};
use super::object::{Object, Write, count, pod_path, wall_time};
use wva_base::moment::WallTime;

const COMPONENT: &str = "replicaset-controller";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Pods created at once; the rest follows in the next pass.
const BURST: usize = 500;

pub(super) fn is_active(pod: &Object) -> bool {
    !pod.is_deleted() && !matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
}

pub(super) fn reconcile(set: &Object, pods: &[Object], now: WallTime) -> Vec<Write> {
    if set.is_deleted() {
        return Vec::new();
    }
    let owned = pods.iter();
    let owned = owned.filter(|pod| pod.controller() == Some(set.uid()) && is_active(pod));
    let mut active: Vec<&Object> = owned.collect();
    let wanted = set.at("/spec/replicas").as_i64().unwrap_or(1);
    let mut writes = Vec::new();
    let missing = wanted - count(active.len());
    if missing > 0 {
        for _ in 0..usize::try_from(missing).unwrap_or(0).min(BURST) {
            writes.push(create(set));
        }
    } else if missing < 0 {
        let surplus = usize::try_from(-missing).unwrap_or(0);
        rank(&mut active, now);
        for pod in active.iter().take(surplus) {
            let options = json!({"preconditions": {"uid": pod.uid()}});
            writes.push(Write::Delete(pod_path(pod), options));
            let message = format!("Deleted pod: {}", pod.name());
            let (events, event) = news(set, ("SuccessfulDelete", &*message), now);
            writes.push(Write::Create(events, event));
        }
    }
    let least = set.number("/spec/minReadySeconds").saturating_mul(1000);
    let ready: Vec<&&Object> = active.iter().filter(|pod| pod.holds("Ready")).collect();
    let available = ready
        .iter()
        .filter(|pod| least == 0 || ready_since(pod).is_some_and(|since| now.0 - since.0 >= least));
    let status = json!({
        "replicas": count(active.len()), "fullyLabeledReplicas": count(active.len()),
        "readyReplicas": count(ready.len()), "availableReplicas": count(available.count()),
        "observedGeneration": set.number("/metadata/generation"),
    });
    writes.extend(status_write(set, ("apps/v1", "replicasets"), &status));
    writes
}

fn create(set: &Object) -> Write {
    let template = set.at("/spec/template");
    let mut pod = json!({"metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["generateName"] = format!("{}-", set.name()).into();
    pod["metadata"]["ownerReferences"] = set.as_owner("apps/v1", "ReplicaSet");
    Write::Spawn(set.clone(), pod)
}

pub(super) fn news(
    set: &Object,
    (reason, message): (&str, &str),
    now: WallTime,
) -> (String, Value) {
    let about = ("apps/v1", "ReplicaSet", set);
    event::document(about, COMPONENT, (Volume::Normal, reason), message, now)
}

fn ready_since(pod: &Object) -> Option<WallTime> {
    let ready = pod.condition("Ready")?;
    wall_time(&ready["lastTransitionTime"])
}

/// Orders pods so that those which should go come first.
pub(super) fn rank(pods: &mut [&Object], now: WallTime) {
    let nodes: Vec<String> = pods.iter().map(|pod| pod.text("/spec/nodeName").to_owned()).collect();
    let neighbours = |pod: &Object| {
        let node = pod.text("/spec/nodeName");
        nodes.iter().filter(|other| *other == node).count()
    };
    pods.sort_by(|one, other| compare(one, other, now, &neighbours));
}

fn compare(
    one: &Object,
    other: &Object,
    now: WallTime,
    neighbours: &dyn Fn(&Object) -> usize,
) -> Ordering {
    let assigned = |pod: &Object| !pod.text("/spec/nodeName").is_empty();
    let phase = |pod: &Object| match pod.text("/status/phase") {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let cost = |pod: &Object| -> i64 {
        let cost = pod.annotation(DELETION_COST);
        cost.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let by_state = assigned(one)
        .cmp(&assigned(other))
        .then_with(|| phase(one).cmp(&phase(other)))
        .then_with(|| one.holds("Ready").cmp(&other.holds("Ready")))
        .then_with(|| cost(one).cmp(&cost(other)))
        .then_with(|| neighbours(other).cmp(&neighbours(one)));
    by_state
        .then_with(|| match (ready_since(one), ready_since(other)) {
            (Some(first), Some(second)) if one.holds("Ready") && other.holds("Ready") => {
                younger(one, other, (first, second), now)
            }
            _ => Ordering::Equal,
        })
        .then_with(|| other.restarts().cmp(&one.restarts()))
        .then_with(|| younger(one, other, (one.created(), other.created()), now))
}

/// The younger comes first; ages within one power of two count as equal, and the unique id decides.
fn younger(one: &Object, other: &Object, (a, b): (WallTime, WallTime), now: WallTime) -> Ordering {
    let magnitude = |since: WallTime| {
        let age = u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0);
        age.saturating_mul(1_000_000).checked_ilog2()
    };
    magnitude(a).cmp(&magnitude(b)).then_with(|| one.uid().cmp(other.uid()))
}
