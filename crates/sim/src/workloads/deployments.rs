//! The deployment controller: rolling updates through ReplicaSets, and the status.

use serde_json::{Value, json};

use super::event::{Volume, event};
use super::object::{Object, Write, count, path, stamp};
use crate::number;
use wva_base::moment::WallTime;

const COMPONENT: &str = "deployment-controller";
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Empty ReplicaSets kept where the object does not say. Source: default of `revisionHistoryLimit`.
const HISTORY: i64 = 10;

/// A deployment with the ReplicaSets that it controls.
struct Rollout<'a> {
    deployment: &'a Object,
    /// The set with the present template.
    new: Option<&'a Object>,
    /// All others, oldest first.
    old: Vec<&'a Object>,
    desired: i64,
    surge: i64,
    unavailable: i64,
}

pub(super) fn reconcile(deployment: &Object, sets: &[Object], now: WallTime) -> Vec<Write> {
    if deployment.is_deleted() {
        return Vec::new();
    }
    let rollout = Rollout::of(deployment, sets);
    let mut writes = Vec::new();
    match rollout.new {
        None => rollout.found(&mut writes, now),
        Some(new) => {
            let next = rollout.next_new(replicas(new));
            rollout.scale(new, next, &mut writes, now);
            rollout.scale_old(new, &mut writes, now);
            rollout.forget(&mut writes);
        }
    }
    rollout.status(&mut writes, now);
    writes
}

fn replicas(set: &Object) -> i64 {
    set.number("/spec/replicas")
}

fn available(set: &Object) -> i64 {
    set.number("/status/availableReplicas")
}

fn sum(sets: &[&Object], number: fn(&Object) -> i64) -> i64 {
    sets.iter().map(|set| number(set)).sum()
}

/// A count or a share of the desired replicas.
fn share(value: &Value, desired: i64, up: bool) -> i64 {
    if let Some(count) = value.as_i64() {
        return count;
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let percent: i64 = percent.and_then(|text| text.parse().ok()).unwrap_or(25);
    let hundredths = desired.saturating_mul(percent);
    if up { hundredths.saturating_add(99).div_euclid(100) } else { hundredths.div_euclid(100) }
}

pub(super) fn hash(template: &Value) -> String {
    // A document always has a text.
    let text = serde_json::to_vec(template).unwrap_or_default();
    number::letters(number::hash(number::HASH_OF_NOTHING, text), 10)
}

impl<'a> Rollout<'a> {
    fn of(deployment: &'a Object, sets: &'a [Object]) -> Self {
        let hash = hash(deployment.at("/spec/template"));
        let owned = sets
            .iter()
            .filter(|set| set.controller() == Some(deployment.uid()) && !set.is_deleted());
        let (new, mut old): (Vec<_>, Vec<_>) =
            owned.partition(|set| set.label(HASH) == Some(&*hash));
        old.sort_by_key(|set| (set.created(), set.name().to_owned()));
        let desired = deployment.at("/spec/replicas").as_i64().unwrap_or(1);
        let rolling = "/spec/strategy/rollingUpdate";
        let surge = share(deployment.at(&format!("{rolling}/maxSurge")), desired, true);
        let unavailable = deployment.at(&format!("{rolling}/maxUnavailable"));
        let unavailable = share(unavailable, desired, false);
        Self {
            deployment,
            new: new.first().copied(),
            old,
            desired,
            surge,
            // Both zero would never get on.
            unavailable: if surge == 0 { unavailable.max(1) } else { unavailable },
        }
    }

    /// Replicas that the new set should have now.
    fn next_new(&self, present: i64) -> i64 {
        let others = sum(&self.old, replicas);
        if others == 0 {
            return self.desired;
        }
        let room = (self.desired + self.surge - others).max(0);
        self.desired.min(room.max(present))
    }

    fn found(&self, writes: &mut Vec<Write>, now: WallTime) {
        let first = self.next_new(0);
        let template = self.deployment.at("/spec/template");
        let hash = hash(template);
        let name = format!("{}-{hash}", self.deployment.name());
        let mut template = template.clone();
        template["metadata"]["labels"][HASH] = hash.clone().into();
        let mut selector = self.deployment.at("/spec/selector").clone();
        selector["matchLabels"][HASH] = hash.into();
        let revisions = self.old.iter().filter_map(|set| set.annotation(REVISION));
        let last = revisions.filter_map(|text| text.parse::<u64>().ok()).max();
        let revision = last.unwrap_or(0) + 1;
        let set = json!({
            "metadata": {
                "name": name, "labels": template["metadata"]["labels"],
                "annotations": {REVISION: revision.to_string()},
                "ownerReferences": self.deployment.as_owner("apps/v1", "Deployment"),
            },
            "spec": {"replicas": first, "selector": selector, "template": template,
                "minReadySeconds": self.deployment.number("/spec/minReadySeconds")},
        });
        let namespace = self.deployment.namespace();
        writes.push(Write::Create(path("apps/v1", namespace, "replicasets", ""), set));
        writes.push(Write::Merge(
            path("apps/v1", namespace, "deployments", self.deployment.name()),
            json!({"metadata": {"annotations": {REVISION: revision.to_string()}}}),
        ));
        if first > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {first}");
            self.announce(&message, writes, now);
        }
    }

    fn scale(&self, set: &Object, to: i64, writes: &mut Vec<Write>, now: WallTime) {
        let from = replicas(set);
        if from == to {
            return;
        }
        writes.push(Write::Merge(
            path("apps/v1", set.namespace(), "replicasets", set.name()),
            json!({"spec": {"replicas": to}}),
        ));
        let direction = if to > from { "up" } else { "down" };
        let message = format!("Scaled {direction} replica set {} from {from} to {to}", set.name());
        self.announce(&message, writes, now);
    }

    /// Takes from old sets what is not needed any more: first what never became available.
    fn scale_old(&self, new: &Object, writes: &mut Vec<Write>, now: WallTime) {
        let least = self.desired - self.unavailable;
        let others = sum(&self.old, replicas);
        let starting = (replicas(new) - available(new)).max(0);
        let mut removable = others + replicas(new) - least - starting;
        let mut spare = sum(&self.old, available) + available(new) - least;
        if self.desired == 0 {
            (removable, spare) = (others, others);
        }
        for set in &self.old {
            let unhealthy = (replicas(set) - available(set)).max(0);
            let useless = unhealthy.min(removable.max(0));
            let healthy = available(set).min(spare.max(0)).min((removable - useless).max(0));
            removable -= useless + healthy;
            spare -= healthy;
            self.scale(set, replicas(set) - useless - healthy, writes, now);
        }
    }

    /// Deletes empty sets beyond the history, oldest first.
    fn forget(&self, writes: &mut Vec<Write>) {
        let limit = self.deployment.at("/spec/revisionHistoryLimit");
        let limit = limit.as_i64().unwrap_or(HISTORY);
        let surplus = (count(self.old.len()) - limit).max(0);
        let empty =
            self.old.iter().filter(|set| replicas(set) == 0 && set.number("/status/replicas") == 0);
        for set in empty.take(usize::try_from(surplus).unwrap_or(0)) {
            let path = path("apps/v1", set.namespace(), "replicasets", set.name());
            writes.push(Write::Delete(path, json!({})));
        }
    }

    fn announce(&self, message: &str, writes: &mut Vec<Write>, now: WallTime) {
        let about = ("apps/v1", "Deployment", self.deployment);
        let what = (Volume::Normal, "ScalingReplicaSet");
        writes.push(event(about, COMPONENT, what, message, now));
    }

    fn status(&self, writes: &mut Vec<Write>, now: WallTime) {
        let sets: Vec<&Object> = self.old.iter().copied().chain(self.new).collect();
        let number = |field: &'static str| -> i64 {
            sets.iter().map(|set| set.number(&format!("/status/{field}"))).sum()
        };
        let (total, available) = (number("replicas"), number("availableReplicas"));
        let updated = self.new.map_or(0, |set| set.number("/status/replicas"));
        let complete = updated == self.desired && total == updated && available == updated;
        let status = json!({
            "observedGeneration": self.deployment.number("/metadata/generation"),
            "replicas": total, "updatedReplicas": updated,
            "readyReplicas": number("readyReplicas"), "availableReplicas": available,
            "unavailableReplicas": (sum(&sets, replicas) - available).max(0),
            "conditions": self.conditions(available, complete, now),
        });
        let place = ("apps/v1", "deployments");
        writes.extend(status_write(self.deployment, place, &status));
    }

    fn conditions(&self, available: i64, complete: bool, now: WallTime) -> Value {
        let enough = available >= self.desired - self.unavailable;
        let (reason, message) = if enough {
            ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        let is_available = json!({
            "type": "Available", "status": if enough { "True" } else { "False" },
            "reason": reason, "message": message, "lastUpdateTime": stamp(now),
        });
        let name = self.new.map_or("", Object::name);
        let (reason, what) = if complete {
            ("NewReplicaSetAvailable", "has successfully progressed")
        } else {
            ("ReplicaSetUpdated", "is progressing")
        };
        let progressing = json!({
            "type": "Progressing", "status": "True", "reason": reason,
            "message": format!("ReplicaSet \"{name}\" {what}."), "lastUpdateTime": stamp(now),
        });
        let is_news = |condition: &Value| {
            let present = self.deployment.condition(condition["type"].as_str().unwrap_or_default());
            let differs = |present: &Value| {
                ["status", "reason", "message"].iter().any(|one| present[*one] != condition[*one])
            };
            present.is_none_or(differs)
        };
        self.deployment.having([is_available, progressing].into_iter().filter(is_news), now)
    }
}

/// A write of the status of an object, if it differs.
pub(super) fn status_write(
    object: &Object,
    (group_version, plural): (&str, &str),
    status: &Value,
) -> Option<Write> {
    let present = object.at("/status");
    let mut fields = status.as_object()?.iter();
    let differs = fields.any(|(name, value)| match &present[name] {
        Value::Null => *value != 0,
        other => other != value,
    });
    differs.then(|| {
        let path = path(group_version, object.namespace(), plural, object.name());
        Write::Merge(format!("{path}/status"), json!({"status": status}))
    })
}
