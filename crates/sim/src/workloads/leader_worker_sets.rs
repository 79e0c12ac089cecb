//! The LeaderWorkerSet controller: groups of pods that live and die together, and the status.
//!
//! A StatefulSet holds the leaders, and each leader owns a StatefulSet with the workers of its group.
//! Names of labels are those of LeaderWorkerSet 0.7.
//!
//! Left out: workers that wait for a ready leader, subgroups, placement of a whole group, services,
//! the environment of containers, partitions and surges of an update, and conditions.

use serde_json::{Value, json};

use super::deployments::{hash, status_write};
use super::object::{Object, Write, count, path, pod_path};

pub(crate) const API_VERSION: &str = "leaderworkerset.x-k8s.io/v1";
pub(crate) const PLURAL: &str = "leaderworkersets";
pub(crate) const RESOURCE: &str = "leaderworkersets.leaderworkerset.x-k8s.io";
const NAME: &str = "leaderworkerset.sigs.k8s.io/name";
const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
const GROUP_KEY: &str = "leaderworkerset.sigs.k8s.io/group-key";
const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
const REVISION: &str = "leaderworkerset.sigs.k8s.io/template-revision-hash";
const SIZE: &str = "leaderworkerset.sigs.k8s.io/size";
const LEADER_NAME: &str = "leaderworkerset.sigs.k8s.io/leader-name";
const LEADER: &str = "0";

struct Groups<'a> {
    set: &'a Object,
    size: i64,
    revision: String,
    stateful_sets: &'a [Object],
    pods: &'a [Object],
}

pub(super) fn reconcile(set: &Object, stateful_sets: &[Object], pods: &[Object]) -> Vec<Write> {
    if set.is_deleted() {
        return Vec::new();
    }
    let size = set.at("/spec/leaderWorkerTemplate/size").as_i64();
    let groups = Groups {
        set,
        size: size.unwrap_or(1),
        revision: hash(set.at("/spec/leaderWorkerTemplate")),
        stateful_sets,
        pods,
    };
    let mut writes = Vec::new();
    groups.keep_leaders(&mut writes);
    for leader in groups.leaders() {
        if groups.must_start_again(leader) {
            let options = json!({
                "propagationPolicy": "Foreground", "preconditions": {"uid": leader.uid()},
            });
            writes.push(Write::Delete(pod_path(leader), options));
        } else {
            groups.keep_workers(leader, &mut writes);
        }
    }
    writes.extend(status_write(set, (API_VERSION, PLURAL), &groups.status()));
    writes
}

pub(crate) fn leads(pod: &Object) -> bool {
    pod.label(WORKER_INDEX).is_none_or(|index| index == LEADER)
}

/// Whether all pods of the group that a pod leads are ready; a pod outside any group is one by itself.
pub(crate) fn is_whole(leader: &Object, pods: &[Object]) -> bool {
    let Some(size) = leader.annotation(SIZE) else {
        return leader.holds("Ready");
    };
    let ready = pods.iter().filter(|pod| is_in_group(pod, leader) && pod.holds("Ready"));
    leader.holds("Ready") && size.parse() == Ok(count(ready.count()))
}

/// The labels that a pod of a group is given when it is admitted: its place follows from its name.
pub(super) fn admit(pod: &mut Value, namespace: &str) {
    let label = |name: &str| pod["metadata"]["labels"][name].as_str();
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let (Some(_), Some((_, number))) = (label(NAME), name.rsplit_once('-')) else {
        return;
    };
    let key = hash(&json!(format!("{namespace}/{name}")));
    let place = if label(WORKER_INDEX) == Some(LEADER) {
        json!({GROUP_INDEX: number, GROUP_KEY: key})
    } else {
        json!({WORKER_INDEX: number})
    };
    extend(&mut pod["metadata"]["labels"], &place);
}

/// Whether a pod has the same place as those of a group, be it of an earlier leader.
fn has_place(pod: &Object, leader: &Object) -> bool {
    pod.namespace() == leader.namespace() && pod.label(GROUP_KEY) == leader.label(GROUP_KEY)
}

fn is_in_group(pod: &Object, leader: &Object) -> bool {
    has_place(pod, leader) && pod.created() >= leader.created()
}

fn has_broken(pod: &Object) -> bool {
    let mut containers = pod.list("/status/containerStatuses").iter();
    pod.is_deleted() || containers.any(|container| container["restartCount"].as_i64() > Some(0))
}

fn extend(object: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
}

impl<'a> Groups<'a> {
    fn stateful_set(&self, name: &str) -> Option<&'a Object> {
        let mut sets = self.stateful_sets.iter();
        sets.find(|one| one.namespace() == self.set.namespace() && one.name() == name)
    }

    fn leaders(&self) -> impl Iterator<Item = &'a Object> + use<'a> {
        let set = self.stateful_set(self.set.name());
        let set = set.filter(|one| one.controller() == Some(self.set.uid()));
        let owner = set.map(Object::uid);
        let pods = self.pods.iter();
        pods.filter(move |pod| owner.is_some() && pod.controller() == owner && !pod.is_deleted())
    }

    /// As many leaders as there are to be groups, of the present template.
    fn keep_leaders(&self, writes: &mut Vec<Write>) {
        let (namespace, name) = (self.set.namespace(), self.set.name());
        let wanted = self.set.at("/spec/replicas").as_i64().unwrap_or(1);
        let template = match self.set.at("/spec/leaderWorkerTemplate/leaderTemplate") {
            Value::Null => self.set.at("/spec/leaderWorkerTemplate/workerTemplate"),
            own => own,
        };
        let labels = json!({NAME: name, WORKER_INDEX: LEADER});
        let mut made = self.made_of(template, &labels, &json!({SIZE: self.size.to_string()}));
        made["metadata"] = json!({
            "name": name, "labels": {NAME: name, REVISION: self.revision},
            "ownerReferences": self.set.as_owner(API_VERSION, "LeaderWorkerSet"),
        });
        made["spec"]["replicas"] = wanted.into();
        let Some(present) = self.stateful_set(name) else {
            let collection = path("apps/v1", namespace, "statefulsets", "");
            writes.push(Write::Create(collection, made));
            return;
        };
        let is_ours = present.controller() == Some(self.set.uid()) && !present.is_deleted();
        let mut change = json!({});
        if present.number("/spec/replicas") != wanted {
            change["spec"]["replicas"] = wanted.into();
        }
        if present.label(REVISION) != Some(&*self.revision) {
            change["metadata"]["labels"] = made["metadata"]["labels"].clone();
            change["spec"]["template"] = made["spec"]["template"].clone();
        }
        if is_ours && change != json!({}) {
            let place = path("apps/v1", namespace, "statefulsets", name);
            writes.push(Write::Merge(place, change));
        }
    }

    /// The workers of a group, once those of an earlier one of its name are gone.
    fn keep_workers(&self, leader: &Object, writes: &mut Vec<Write>) {
        let others = |pod: &Object| has_place(pod, leader) && pod.uid() != leader.uid();
        let is_taken = self.stateful_set(leader.name()).is_some() || self.pods.iter().any(others);
        if self.size < 2 || is_taken {
            return;
        }
        let name = self.set.name();
        let labels = json!({
            NAME: name, GROUP_INDEX: leader.label(GROUP_INDEX), GROUP_KEY: leader.label(GROUP_KEY),
        });
        let template = self.set.at("/spec/leaderWorkerTemplate/workerTemplate");
        let notes = json!({SIZE: self.size.to_string(), LEADER_NAME: leader.name()});
        let mut made = self.made_of(template, &labels, &notes);
        made["metadata"] = json!({
            "name": leader.name(), "labels": labels,
            "ownerReferences": leader.as_owner("v1", "Pod"),
        });
        made["spec"]["replicas"] = (self.size - 1).into();
        made["spec"]["ordinals"] = json!({"start": 1});
        let collection = path("apps/v1", self.set.namespace(), "statefulsets", "");
        writes.push(Write::Create(collection, made));
    }

    /// A StatefulSet whose pods have these labels and annotations as well.
    fn made_of(&self, template: &Value, labels: &Value, annotations: &Value) -> Value {
        let mut template = template.clone();
        let metadata = &mut template["metadata"];
        extend(&mut metadata["labels"], labels);
        metadata["labels"][REVISION] = self.revision.clone().into();
        extend(&mut metadata["annotations"], annotations);
        json!({"spec": {
            "serviceName": self.set.name(), "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels}, "template": template,
        }})
    }

    /// Whether a group has lost a pod or a container, and is to begin anew as a whole.
    fn must_start_again(&self, leader: &Object) -> bool {
        let policy = self.set.text("/spec/leaderWorkerTemplate/restartPolicy");
        let mut group = self.pods.iter().filter(|pod| is_in_group(pod, leader));
        matches!(policy, "" | "RecreateGroupOnPodRestart") && group.any(has_broken)
    }

    fn status(&self) -> Value {
        let leaders: Vec<&Object> = self.leaders().collect();
        let ready = leaders.iter().filter(|leader| is_whole(leader, self.pods));
        let updated =
            leaders.iter().filter(|leader| leader.label(REVISION) == Some(&*self.revision));
        json!({
            "replicas": count(leaders.len()), "readyReplicas": count(ready.count()),
            "updatedReplicas": count(updated.count()),
            "hpaPodSelector": format!("{NAME}={},{WORKER_INDEX}={LEADER}", self.set.name()),
            "observedGeneration": self.set.number("/metadata/generation"),
        })
    }
}
