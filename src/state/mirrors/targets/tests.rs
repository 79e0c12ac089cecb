//! Which pods a target of each kind has, and whom a change concerns.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};

use super::{TargetLookup, label_key};
use crate::api::leader_worker_set::LeaderWorkerSet;
use crate::api::pod::SlimPod;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::kinds::WatchedKind;
use crate::cluster::mirror::ObjectKey;
use crate::cluster::project::{Interner, Projected as _};
use crate::cluster::scale::{ReadTarget, ScaleReading};
use crate::policy::capacity::ServingRole;
use crate::policy::engine_args::parse;
use crate::policy::gpu::GpuCount;
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::object::{ControllerRef, TargetObject};
use crate::policy::params::LabelSelector;
use crate::policy::snapshot::Readiness;
use crate::policy::units::{Gpus, Replicas};
use crate::policy::workload::ReplicaTemplate;
use crate::roles::Role;
use crate::settings::pool_group::PoolGroup;
use crate::state::mirrors::Mirrors;
use crate::state::mirrors::tests::{TestMirrors, list, mirrors};
use wva_supervise::Epoch;

/// An object with its controller, as `apiVersion`, kind and name; its uid is its kind and name.
fn object(kind: &str, name: &str, owner: Option<(&str, &str, &str)>) -> Value {
    let owners: Vec<Value> = owner
        .into_iter()
        .map(|(version, kind, name)| {
            json!({
                "apiVersion": version, "kind": kind, "name": name,
                "uid": format!("{kind}/{name}"), "controller": true,
            })
        })
        .collect();
    json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": format!("{kind}/{name}"),
            "ownerReferences": owners,
        },
        "spec": { "selector": {}, "template": {}, "serviceName": "" },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }], "replicas": 1 },
    })
}

fn pod(name: &str, owner: (&str, &str, &str)) -> Value {
    object("Pod", name, Some(owner))
}

const LWS: &str = "leaderworkerset.x-k8s.io/v1";

/// Deployment, StatefulSet and LeaderWorkerSet `a`, the latter with two groups of two pods, and
/// Rollout `a`, which has a pod of its own and another by a Deployment.
fn world() -> TestMirrors {
    let mirrors = mirrors(PoolGroup::default());
    let rollout = ("argoproj.io/v1alpha1", "Rollout", "a");
    list::<Deployment>(
        &mirrors.writers.deployments,
        [object("Deployment", "a", None), object("Deployment", "of-rollout", Some(rollout))],
    );
    list::<PartialObjectMeta<ReplicaSet>>(
        &mirrors.writers.replica_sets,
        [
            object("ReplicaSet", "a", Some(("apps/v1", "Deployment", "a"))),
            object("ReplicaSet", "r", Some(("apps/v1", "Deployment", "of-rollout"))),
        ],
    );
    list::<StatefulSet>(
        &mirrors.writers.stateful_sets,
        [
            object("StatefulSet", "a", Some((LWS, "LeaderWorkerSet", "a"))),
            object("StatefulSet", "a-0", Some(("v1", "Pod", "a-0"))),
            object("StatefulSet", "b", None),
        ],
    );
    list::<LeaderWorkerSet>(
        &mirrors.writers.leader_worker_sets,
        [object("LeaderWorkerSet", "a", None)],
    );
    list::<SlimPod>(
        &mirrors.writers.pods,
        [
            pod("d-1", ("apps/v1", "ReplicaSet", "a")),
            pod("a-0", ("apps/v1", "StatefulSet", "a")),
            pod("a-0-1", ("apps/v1", "StatefulSet", "a-0")),
            pod("a-1", ("apps/v1", "StatefulSet", "a")),
            pod("b-0", ("apps/v1", "StatefulSet", "b")),
            pod("r-1", ("apps/v1", "ReplicaSet", "r")),
            pod("own", rollout),
        ],
    );
    mirrors
}

fn key(kind: TargetKind, name: &str) -> TargetKey {
    TargetKey::new("ns", kind, name)
}

fn rollout() -> TargetKey {
    let kind = TargetKind::of(&"argoproj.io".into(), &"Rollout".into());
    key(kind, "a")
}

fn pods(mirrors: &Mirrors, key: &TargetKey) -> Vec<String> {
    let TargetLookup::Found(target) = mirrors.sight(key) else { panic!("{key} is not seen") };
    let pods = mirrors.pods(&target).unwrap();
    pods.iter().map(|pod| pod.name.to_string()).collect()
}

/// What the reader of scale subresources publishes.
fn read(mirrors: &TestMirrors, reading: ScaleReading) {
    let epoch = Epoch::for_test(Role::ScaleReader, 1);
    let scales = BTreeMap::from([(rollout(), reading)]);
    mirrors.scales.publish(&epoch, Arc::new(scales)).unwrap();
}

#[test]
fn pods_are_found_below_their_target_and_of_a_group_its_leader() {
    let mirrors = world();
    assert_eq!(pods(&mirrors, &key(TargetKind::Deployment, "a")), ["d-1"]);
    assert_eq!(pods(&mirrors, &key(TargetKind::StatefulSet, "b")), ["b-0"]);
    assert_eq!(pods(&mirrors, &key(TargetKind::LeaderWorkerSet, "a")), ["a-0", "a-1"]);
}

/// A pod of the same model that waits without a GPU, as one of a pool of warm pods.
#[test]
fn a_parked_pod_is_a_replica_of_its_own_target_alone() {
    let set = |name| Some(("apps/v1", "ReplicaSet", name));
    for (owner, expected) in
        [(set("a"), &["d-1", "parked"][..]), (set("pool"), &["d-1"]), (None, &["d-1"])]
    {
        let mirrors = world();
        let labelled = |name, owner| {
            let mut pod = object("Pod", name, owner);
            pod["metadata"]["labels"] = json!({ "llm-d.ai/model": "m" });
            pod
        };
        let mut serving = labelled("d-1", set("a"));
        serving["spec"]["containers"] =
            json!([{ "name": "vllm", "resources": { "limits": { "nvidia.com/gpu": "1" } } }]);
        let fleet = [serving, labelled("parked", owner)];
        list::<SlimPod>(&mirrors.writers.pods, fleet);
        let found = pods(&mirrors, &key(TargetKind::Deployment, "a"));
        assert_eq!(found, expected, "{owner:?}");
    }
}

#[test]
fn a_leader_is_ready_when_its_workers_are() {
    let mirrors = world();
    let key = key(TargetKind::LeaderWorkerSet, "a");
    let target = mirrors.sight(&key);
    let readiness = || -> Vec<(String, Readiness)> {
        let pods = mirrors.pods(target.found().unwrap()).unwrap();
        let pods = pods.iter();
        pods.map(|pod| (pod.name.to_string(), pod.readiness)).collect()
    };
    let both = |first| {
        [("a-0", first), ("a-1", Readiness::Ready)].map(|(name, ready)| (name.to_owned(), ready))
    };
    assert_eq!(readiness(), both(Readiness::NotReady));
    let mut workers = object("StatefulSet", "a-0", Some(("v1", "Pod", "a-0")));
    workers["status"]["readyReplicas"] = 1.into();
    let leaders = object("StatefulSet", "a", Some((LWS, "LeaderWorkerSet", "a")));
    let sets = [leaders, workers];
    list::<StatefulSet>(&mirrors.writers.stateful_sets, sets);
    assert_eq!(readiness(), both(Readiness::Ready));
}

fn found(object: TargetObject) -> ScaleReading {
    ScaleReading::Found(Arc::new(ReadTarget { object, selector: None, service: None }))
}

#[test]
fn ready_replicas_of_a_kind_without_a_watcher_are_its_ready_pods() {
    let mirrors = world();
    assert!(matches!(mirrors.sight(&rollout()), TargetLookup::Unsynced));
    let why: Arc<str> = "install it".into();
    read(&mirrors, ScaleReading::Unscalable(Arc::clone(&why)));
    assert!(matches!(mirrors.sight(&rollout()), TargetLookup::Unscalable(found) if found == why));

    let deployment = mirrors.sight(&key(TargetKind::Deployment, "a"));
    let scale = TargetObject {
        key: rollout(),
        uid: "Rollout/a".into(),
        ..(**deployment.found().unwrap()).clone()
    };
    read(&mirrors, found(scale.clone()));
    let sighting = mirrors.sight(&rollout());
    assert_eq!(sighting.found().unwrap().ready_replicas, Replicas(2));
    assert_eq!(pods(&mirrors, &rollout()), ["own", "r-1"]);

    let recreated = TargetObject { uid: "another".into(), ..scale };
    read(&mirrors, found(recreated));
    let sighting = mirrors.sight(&rollout());
    assert_eq!(sighting.found().unwrap().ready_replicas, Replicas(0));
}

fn role_scaler() -> TargetKey {
    let group = "disaggregatedset.x-k8s.io".into();
    let kind = TargetKind::of(&group, &"DisaggregatedSetRoleScaler".into());
    key(kind, "pd-decode")
}

/// A group of two pods with eight GPUs each, which a role of a set has under a name of its own.
fn role() -> TestMirrors {
    let mirrors = mirrors(PoolGroup::default());
    let holding = json!({ "spec": { "containers": [{
        "name": "engine", "resources": { "limits": { "nvidia.com/gpu": "8" } },
    }] } });
    let mut groups = object("LeaderWorkerSet", "pd-1", None);
    groups["spec"]["leaderWorkerTemplate"] = json!({ "size": 2, "workerTemplate": holding });
    list::<LeaderWorkerSet>(&mirrors.writers.leader_worker_sets, [groups]);
    let workers = object("StatefulSet", "pd-1-0", Some(("v1", "Pod", "pd-1-0")));
    let leaders = object("StatefulSet", "pd-1", Some((LWS, "LeaderWorkerSet", "pd-1")));
    list::<StatefulSet>(&mirrors.writers.stateful_sets, [leaders, workers]);
    list::<Deployment>(&mirrors.writers.deployments, []);
    list::<PartialObjectMeta<ReplicaSet>>(&mirrors.writers.replica_sets, []);
    let labelled = |name: &str, owner: &str| {
        let mut pod = pod(name, ("apps/v1", "StatefulSet", owner));
        pod["metadata"]["labels"] = json!({ "disaggregatedset.x-k8s.io/role": "decode" });
        pod
    };
    let pods = [labelled("pd-1-0", "pd-1"), labelled("pd-1-0-1", "pd-1-0")];
    list::<SlimPod>(&mirrors.writers.pods, pods);
    mirrors
}

fn publish(mirrors: &TestMirrors, target: &TargetKey, selector: Option<&str>) {
    let scale = TargetObject {
        key: target.clone(),
        uid: "scaler".into(),
        template: ReplicaTemplate { gpu_count: GpuCount::Unknown, ..ReplicaTemplate::default() },
        ..bare_target()
    };
    let reading = ScaleReading::Found(Arc::new(ReadTarget {
        object: scale,
        selector: selector.map(LabelSelector::parse),
        service: None,
    }));
    let epoch = Epoch::for_test(Role::ScaleReader, 1);
    let scales = BTreeMap::from([(target.clone(), reading)]);
    mirrors.scales.publish(&epoch, Arc::new(scales)).unwrap();
}

fn bare_target() -> TargetObject {
    let deployment: Deployment = serde_json::from_value(object("Deployment", "x", None)).unwrap();
    deployment.project(&mut Interner::default())
}

#[test]
fn what_a_scale_selects_shows_pods_part_and_gpus_of_a_replica() {
    let (mirrors, scaler) = (role(), role_scaler());
    publish(&mirrors, &scaler, None);
    assert_eq!(pods(&mirrors, &scaler), [""; 0]);
    let sighting = mirrors.sight(&scaler);
    let template = &sighting.found().unwrap().template;
    assert_eq!(template.gpu_count, GpuCount::Unknown);
    assert_eq!(template.role, ServingRole::Both);

    publish(&mirrors, &scaler, Some("disaggregatedset.x-k8s.io/role=decode"));
    assert_eq!(pods(&mirrors, &scaler), ["pd-1-0"], "its leader alone");
    let sighting = mirrors.sight(&scaler);
    let target = sighting.found().unwrap();
    assert_eq!(target.ready_replicas, Replicas(0), "its worker is not ready");
    assert!(target.template.gpu_count.is_counted());
    assert_eq!(target.template.gpus_per_replica(), Gpus(16));
    assert_eq!(target.template.role, ServingRole::Decode);
}

/// With a hundred targets in one namespace, going over all of its pods for each would be over a million.
#[test]
fn a_look_at_a_scale_goes_over_the_pods_with_its_rarest_label() {
    let mirrors = world();
    let fleet = (0..40).map(|at| {
        let mut pod = pod(&format!("p-{at}"), ("ray.io/v1", "RayCluster", "c"));
        let role = if at % 8 == 0 { "decode" } else { "prefill" };
        pod["metadata"]["labels"] =
            json!({ "app": "x", "set": format!("s{}", at % 4), "role": role });
        pod
    });
    list::<SlimPod>(&mirrors.writers.pods, fleet);
    let count = |label: &str, value: &str| {
        let key = label_key(&"ns".into(), label, value);
        mirrors.pods.count_naming(&key)
    };
    assert_eq!((count("app", "x"), count("set", "s0"), count("role", "decode")), (40, 10, 5));
    for (selector, expected) in [
        ("app=x", 40),
        ("app=x,set=s0", 10),
        ("app=x,set=s0,role=decode", 5),
        ("app=x,set=s1,role=decode", 0),
        ("set in (s0,s1)", 20),
        ("app=x,set notin (s0)", 30),
        ("app=y", 0),
    ] {
        publish(&mirrors, &rollout(), Some(selector));
        assert_eq!(pods(&mirrors, &rollout()).len(), expected, "{selector}");
    }
    // Labels are forgotten with their pods.
    list::<SlimPod>(&mirrors.writers.pods, []);
    assert_eq!(count("app", "x"), 0);
}

#[test]
fn a_pod_that_may_be_one_of_several_shows_no_gpus_and_no_arguments() {
    let mirrors = world();
    for (owner, gpus) in [
        (("apps/v1", "ReplicaSet", "of-rollout"), Some(Gpus(4))),
        (("argoproj.io/v1alpha1", "scaler", ""), Some(Gpus(4))),
        (("ray.io/v1", "RayCluster", "c"), None),
    ] {
        let mut pod = pod("x", owner);
        if owner.1 == "scaler" {
            pod["metadata"]["ownerReferences"][0]["uid"] = json!("scaler");
        }
        pod["metadata"]["labels"] = json!({ "app": "x", "llm-d.ai/role": "prefill" });
        pod["spec"]["containers"] = json!([{
            "args": ["--max-num-seqs=16"],
            "resources": { "requests": { "nvidia.com/gpu": "4" } },
        }]);
        list::<SlimPod>(&mirrors.writers.pods, [pod]);
        publish(&mirrors, &rollout(), Some("app=x"));
        let sighting = mirrors.sight(&rollout());
        let template = &sighting.found().unwrap().template;
        assert_eq!(template.role, ServingRole::Prefill, "{owner:?}");
        let counted = template.gpu_count.is_counted();
        let counted = counted.then(|| template.gpus_per_replica());
        assert_eq!(counted, gpus, "{owner:?}");
        let limits = parse(&template.containers).args.max_num_seqs;
        assert_eq!(limits == 16, gpus.is_some(), "{owner:?}: {limits}");
    }
}

#[test]
fn a_change_of_a_pod_concerns_the_scale_that_selects_it_or_its_leader() {
    let (mirrors, scaler) = (role(), role_scaler());
    let named = |name: &str| mirrors.pods.get(&ObjectKey::new("ns", name)).unwrap();
    let controller = named("pd-1-0-1").controller.clone().unwrap();
    let concerns = || mirrors.concerned(&"ns".into(), &controller).contains(&scaler);
    publish(&mirrors, &scaler, None);
    assert!(!concerns() && mirrors.selecting(&named("pd-1-0")).is_empty());
    publish(&mirrors, &scaler, Some("disaggregatedset.x-k8s.io/role=decode"));
    assert!(concerns());
    assert_eq!(mirrors.selecting(&named("pd-1-0")), std::slice::from_ref(&scaler));
}

#[test]
fn a_change_of_a_pod_concerns_everything_above_it() {
    let mirrors = world();
    let above = |group: &str, kind: &str, name: &str| -> Vec<String> {
        let controller = ControllerRef {
            group: group.into(),
            kind: kind.into(),
            name: name.into(),
            uid: "".into(),
        };
        let targets = mirrors.targets_above(&"ns".into(), &controller);
        targets.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        above("apps", "ReplicaSet", "r"),
        ["ReplicaSet ns/r", "Deployment ns/of-rollout", "Rollout ns/a"]
    );
    assert_eq!(above("apps", "StatefulSet", "a"), ["StatefulSet ns/a", "LeaderWorkerSet ns/a"]);
    assert_eq!(
        above("apps", "StatefulSet", "a-0"),
        ["StatefulSet ns/a-0", "Pod ns/a-0", "StatefulSet ns/a", "LeaderWorkerSet ns/a"],
        "from a worker by way of its leader"
    );
}

#[test]
fn a_kind_that_is_not_served_is_named_with_the_remedy() {
    let mirrors = mirrors(PoolGroup::default());
    let target = key(TargetKind::LeaderWorkerSet, "a");
    assert!(matches!(mirrors.sight(&target), TargetLookup::Unsynced));
    let epoch = Epoch::for_test(Role::Watcher(WatchedKind::LeaderWorkerSet), 1);
    mirrors.writers.leader_worker_sets.kind_absent(&epoch).unwrap();
    let TargetLookup::Unscalable(why) = mirrors.sight(&target) else { panic!("it is not named") };
    assert!(why.contains("does not serve LeaderWorkerSet"), "{why}");
    list::<LeaderWorkerSet>(&mirrors.writers.leader_worker_sets, []);
    assert!(matches!(mirrors.sight(&target), TargetLookup::Missing));
}

#[test]
fn targets_of_one_name_differ_by_kind() {
    let mirrors = mirrors(PoolGroup::default());
    list::<PartialObjectMeta<Namespace>>(&mirrors.writers.namespaces, []);
    let variant = |name: &str, kind: &str| {
        json!({
            "metadata": { "namespace": "ns", "name": name, "uid": name },
            "spec": { "modelID": "m", "scaleTargetRef": { "kind": kind, "name": "a" } },
        })
    };
    list::<VariantAutoscaling>(
        &mirrors.writers.variants,
        [variant("one", "Deployment"), variant("two", "StatefulSet")],
    );
    let claimants = |kind| -> Vec<String> {
        let claimants = mirrors.claimants(&key(kind, "a"));
        claimants.iter().map(|key| key.name.to_string()).collect()
    };
    assert_eq!(claimants(TargetKind::Deployment), ["one"]);
    assert_eq!(claimants(TargetKind::StatefulSet), ["two"]);
    assert_eq!(claimants(TargetKind::LeaderWorkerSet), [""; 0]);
}
