//! The StatefulSet controller: pods with numbers, one after the other, and the status.
//!
//! Left out: volumes, and partitions of an update.

use serde_json::{Value, json};

use super::deployments::{hash, status_write};
use super::event::{Volume, event};
use super::leader_worker_sets;
use super::object::{Object, Write, count, path, pod_path};
use wva_base::moment::WallTime;

const COMPONENT: &str = "statefulset-controller";
const REVISION: &str = "controller-revision-hash";
const NUMBER: &str = "apps.kubernetes.io/pod-index";
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

struct Ranks<'a> {
    set: &'a Object,
    pods: Vec<(i64, &'a Object)>,
    first: i64,
    wanted: i64,
    revision: String,
}

pub(super) fn reconcile(set: &Object, pods: &[Object], now: WallTime) -> Vec<Write> {
    if set.is_deleted() {
        return Vec::new();
    }
    let ranks = Ranks::of(set, pods);
    let mut writes = Vec::new();
    if ranks.set.text("/spec/podManagementPolicy") == "Parallel" {
        ranks.all_at_once(&mut writes, now);
    } else {
        ranks.next(&mut writes, now);
    }
    let status = ranks.status();
    writes.extend(status_write(set, ("apps/v1", "statefulsets"), &status));
    writes
}

fn has_ended(pod: &Object) -> bool {
    matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
}

fn serves(pod: &Object) -> bool {
    !pod.is_deleted() && pod.holds("Ready")
}

impl<'a> Ranks<'a> {
    fn of(set: &'a Object, pods: &'a [Object]) -> Self {
        let number = |pod: &Object| -> Option<i64> {
            let number = pod.name().strip_prefix(set.name())?.strip_prefix('-')?;
            number.parse().ok()
        };
        let owned = pods.iter().filter(|pod| pod.controller() == Some(set.uid()));
        let mut pods: Vec<_> = owned.filter_map(|pod| Some((number(pod)?, pod))).collect();
        pods.sort_by_key(|(number, _)| *number);
        Self {
            set,
            pods,
            first: set.number("/spec/ordinals/start"),
            wanted: set.at("/spec/replicas").as_i64().unwrap_or(1),
            revision: format!("{}-{}", set.name(), hash(set.at("/spec/template"))),
        }
    }

    fn pod(&self, number: i64) -> Option<&'a Object> {
        let place = self.pods.binary_search_by_key(&number, |(own, _)| *own).ok()?;
        self.pods.get(place).map(|(_, pod)| *pod)
    }

    fn numbers(&self) -> impl DoubleEndedIterator<Item = i64> + use<> {
        self.first..self.first.saturating_add(self.wanted)
    }

    fn surplus(&self) -> impl Iterator<Item = &'a Object> {
        let (first, end) = (self.first, self.first.saturating_add(self.wanted));
        let pods = self.pods.iter().rev();
        pods.filter(move |(number, _)| *number < first || *number >= end).map(|(_, pod)| *pod)
    }

    /// One step, and none while a pod is on its way.
    fn next(&self, writes: &mut Vec<Write>, now: WallTime) {
        for number in self.numbers() {
            match self.pod(number) {
                None => return self.create(number, writes, now),
                Some(pod) if has_ended(pod) && !pod.is_deleted() => {
                    return self.delete(pod, writes, now);
                }
                Some(pod) if !serves(pod) => return,
                Some(_) => {}
            }
        }
        if let Some(last) = self.surplus().next() {
            if !last.is_deleted() {
                self.delete(last, writes, now);
            }
            return;
        }
        self.renew(writes, now);
    }

    fn all_at_once(&self, writes: &mut Vec<Write>, now: WallTime) {
        for number in self.numbers() {
            match self.pod(number) {
                None => self.create(number, writes, now),
                Some(pod) if has_ended(pod) && !pod.is_deleted() => self.delete(pod, writes, now),
                Some(_) => {}
            }
        }
        for pod in self.surplus().filter(|pod| !pod.is_deleted()) {
            self.delete(pod, writes, now);
        }
        let mut wanted = self.numbers().map(|number| self.pod(number));
        if wanted.all(|pod| pod.is_some_and(serves)) {
            self.renew(writes, now);
        }
    }

    /// Replaces the last pod with an earlier template.
    fn renew(&self, writes: &mut Vec<Write>, now: WallTime) {
        let outdated = |pod: &&Object| pod.label(REVISION) != Some(&*self.revision);
        let mut pods = self.numbers().rev().filter_map(|number| self.pod(number));
        let on_delete = self.set.text("/spec/updateStrategy/type") == "OnDelete";
        if let Some(pod) = pods.find(outdated).filter(|_| !on_delete) {
            self.delete(pod, writes, now);
        }
    }

    fn create(&self, number: i64, writes: &mut Vec<Write>, now: WallTime) {
        let name = format!("{}-{number}", self.set.name());
        let template = self.set.at("/spec/template");
        let mut pod = json!({"metadata": template["metadata"], "spec": template["spec"]});
        pod["metadata"]["name"] = name.clone().into();
        pod["metadata"]["ownerReferences"] = self.set.as_owner("apps/v1", "StatefulSet");
        for (label, value) in [
            (REVISION, self.revision.clone()),
            (NUMBER, number.to_string()),
            (POD_NAME, name.clone()),
        ] {
            pod["metadata"]["labels"][label] = value.into();
        }
        leader_worker_sets::admit(&mut pod, self.set.namespace());
        let collection = path("v1", self.set.namespace(), "pods", "");
        writes.push(Write::Create(collection, pod));
        self.note("SuccessfulCreate", "create", &name, writes, now);
    }

    fn delete(&self, pod: &Object, writes: &mut Vec<Write>, now: WallTime) {
        let options = json!({"preconditions": {"uid": pod.uid()}});
        writes.push(Write::Delete(pod_path(pod), options));
        self.note("SuccessfulDelete", "delete", pod.name(), writes, now);
    }

    fn note(&self, reason: &str, verb: &str, pod: &str, writes: &mut Vec<Write>, now: WallTime) {
        let about = ("apps/v1", "StatefulSet", self.set);
        let message = format!("{verb} Pod {pod} in StatefulSet {} successful", self.set.name());
        let what = (Volume::Normal, reason);
        writes.push(event(about, COMPONENT, what, &message, now));
    }

    fn status(&self) -> Value {
        let live = self.pods.iter().map(|(_, pod)| *pod);
        let live: Vec<&Object> = live.filter(|pod| !pod.is_deleted() && !has_ended(pod)).collect();
        let ready = live.iter().filter(|pod| serves(pod)).count();
        let updated =
            live.iter().filter(|pod| pod.label(REVISION) == Some(&*self.revision)).count();
        let mut status = json!({
            "replicas": count(live.len()), "readyReplicas": count(ready),
            "availableReplicas": count(ready), "updatedReplicas": count(updated),
            "updateRevision": self.revision,
            "observedGeneration": self.set.number("/metadata/generation"),
        });
        if updated == live.len() {
            status["currentRevision"] = self.revision.clone().into();
            status["currentReplicas"] = count(updated).into();
        }
        status
    }
}
