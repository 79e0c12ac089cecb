//! Groups of a LeaderWorkerSet.

use super::*;
use crate::world::objects::group_definition;

const SETS: &str = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets";
const LABELS: &str = "leaderworkerset.sigs.k8s.io";

/// Pods whose leader starts in five seconds, and whose workers take a minute.
fn groups(replicas: u32, size: u32) -> Value {
    let template = |seconds: &str, gpus: &str| {
        json!({
            "metadata": {"labels": {"app": "l"}, "annotations": {START_UP: seconds}},
            "spec": {"containers": [{
                "name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": gpus}},
            }]},
        })
    };
    json!({"metadata": {"name": "l"}, "spec": {
        "replicas": replicas, "leaderWorkerTemplate": {
            "size": size, "leaderTemplate": template("5", "2"), "workerTemplate": template("60", "1"),
        },
    }})
}

/// Four nodes, and these groups on them.
async fn grouped(groups: &Value) -> Stage {
    let stage = stage(&[h100(4)]).await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = group_definition();
    stage.server.create(definitions, &definition).await.unwrap();
    stage.server.create(SETS, groups).await.unwrap();
    stage
}

impl Stage {
    fn names(&self) -> Vec<String> {
        let pods = self.pods();
        pods.iter().map(|pod| pod.name().to_owned()).collect()
    }

    fn uids(&self) -> Vec<String> {
        let pods = self.pods();
        pods.iter().map(|pod| pod.uid().to_owned()).collect()
    }

    fn ready(&self) -> Vec<bool> {
        self.pods().iter().map(|pod| pod.holds("Ready")).collect()
    }

    /// Groups that there are, and those that are ready.
    fn groups(&self) -> (i64, i64) {
        let set = self.server.get(leader_worker_sets::RESOURCE, "default", "l");
        let set = Object(set.unwrap());
        (set.number("/status/replicas"), set.number("/status/readyReplicas"))
    }

    async fn scale_groups(&self, replicas: u32) {
        let change = json!({"spec": {"replicas": replicas}});
        let path = format!("{SETS}/l/scale");
        self.server.merge(&path, &change).await.unwrap();
    }

    async fn crash(&self, name: &str) {
        let pods = self.pods();
        let pod = pods.iter().find(|pod| pod.name() == name).unwrap();
        let death = kubelet::Death { code: 137, reason: "OOMKilled" };
        for write in kubelet::crash(pod, death, self.workloads.now()) {
            self.workloads.perform(write).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_is_ready_when_all_of_its_pods_are() {
    let stage = grouped(&groups(1, 3)).await;
    pass(20).await;
    assert_eq!(stage.names(), ["l-0", "l-0-1", "l-0-2"]);
    assert_eq!(stage.ready(), [true, false, false]);
    assert_eq!(stage.groups(), (1, 0), "its leader alone does not make it ready");
    pass(180).await;
    assert_eq!(stage.ready(), [true, true, true]);
    assert_eq!(stage.groups(), (1, 1));

    let pods = stage.pods();
    for (pod, (place, gpus)) in pods.iter().zip([("0", "2"), ("1", "1"), ("2", "1")]) {
        for (label, wanted) in [("name", "l"), ("group-index", "0"), ("worker-index", place)] {
            let found = pod.label(&format!("{LABELS}/{label}"));
            assert_eq!(found, Some(wanted), "{label} of {}", pod.name());
        }
        let size = pod.annotation(&format!("{LABELS}/size"));
        assert_eq!(size, Some("3"), "{}", pod.name());
        let limits = pod.at("/spec/containers/0/resources/limits");
        assert_eq!(limits["nvidia.com/gpu"], *gpus, "{}", pod.name());
    }
    let leader = pods[1].annotation(&format!("{LABELS}/leader-name"));
    assert_eq!(leader, Some("l-0"));
    let set = stage.server.get(leader_worker_sets::RESOURCE, "default", "l");
    assert_eq!(
        set.unwrap()["status"]["hpaPodSelector"],
        "leaderworkerset.sigs.k8s.io/name=l,leaderworkerset.sigs.k8s.io/worker-index=0"
    );
}

#[tokio::test(start_paused = true)]
async fn groups_come_and_go_as_a_whole() {
    let stage = grouped(&groups(0, 2)).await;
    pass(200).await;
    assert_eq!((stage.names(), stage.groups()), (Vec::new(), (0, 0)));
    stage.scale_groups(2).await;
    pass(200).await;
    assert_eq!(stage.names(), ["l-0", "l-0-1", "l-1", "l-1-1"]);
    assert_eq!(stage.groups(), (2, 2));
    stage.scale_groups(1).await;
    pass(70).await;
    assert_eq!(stage.names(), ["l-0", "l-0-1"], "the last one goes first");
    assert_eq!(stage.groups(), (1, 1));
    stage.server.delete(&format!("{SETS}/l"), &json!({})).await.unwrap();
    pass(70).await;
    assert!(stage.pods().is_empty() && stage.server.list("statefulsets.apps").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_group_of_one_has_no_workers() {
    let mut groups = groups(1, 1);
    let template = &mut groups["spec"]["leaderWorkerTemplate"];
    template["leaderTemplate"] = Value::Null;
    let stage = grouped(&groups).await;
    pass(20).await;
    assert_eq!((stage.names(), stage.groups()), (vec!["l-0".to_owned()], (1, 0)));
    pass(180).await;
    assert_eq!(stage.groups(), (1, 1), "made as workers are");
    assert_eq!(stage.server.list("statefulsets.apps").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_dies_takes_its_group_with_it() {
    let stage = grouped(&groups(2, 2)).await;
    pass(200).await;
    let before = stage.uids();
    assert_eq!(stage.groups(), (2, 2));
    stage.crash("l-1-1").await;
    pass(2).await;
    assert_eq!(stage.groups().1, 1);
    pass(300).await;
    assert_eq!(stage.names(), ["l-0", "l-0-1", "l-1", "l-1-1"]);
    let after = stage.uids();
    assert_eq!(after[..2], before[..2], "the other group is left alone");
    assert!(after[2] != before[2] && after[3] != before[3], "{after:?}");
    assert_eq!(stage.groups(), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_takes_its_group_with_it() {
    let stage = grouped(&groups(1, 2)).await;
    pass(200).await;
    let before = stage.uids();
    let worker = "/api/v1/namespaces/default/pods/l-0-1";
    stage.server.delete(worker, &json!({})).await.unwrap();
    pass(300).await;
    let after = stage.uids();
    assert!(after[0] != before[0] && after[1] != before[1], "{after:?}");
    assert_eq!(stage.groups(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_group_without_a_policy_for_restarts_keeps_its_pods() {
    let mut groups = groups(1, 2);
    groups["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "None".into();
    let stage = grouped(&groups).await;
    pass(200).await;
    let before = stage.uids();
    stage.crash("l-0-1").await;
    pass(2).await;
    assert_eq!(stage.groups(), (1, 0));
    pass(300).await;
    assert_eq!((stage.uids(), stage.groups()), (before, (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_new_template_reaches_every_group() {
    let stage = grouped(&groups(2, 2)).await;
    pass(200).await;
    let change = json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": {
        "metadata": {"labels": {"release": "2"}},
    }}}});
    let path = format!("{SETS}/l");
    stage.server.merge(&path, &change).await.unwrap();
    pass(900).await;
    assert_eq!(stage.groups(), (2, 2));
    let pods = stage.pods();
    let releases: Vec<_> = pods.iter().map(|pod| pod.label("release")).collect();
    assert_eq!(releases, [None, Some("2"), None, Some("2")]);
}
