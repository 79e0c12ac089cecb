//! Engines that stay asleep when their pods end.

use super::super::object::wall_time;
use super::*;

const FIRST_NODE: &str = "/api/v1/nodes/h100-0";

/// Two nodes, the first one closed at first, and replicas that start in a minute and wake in five seconds where so
/// many may sleep.
async fn sleeping(replicas: u32, most: Option<u32>) -> Stage {
    let stage = stage(&[h100(2)]).await;
    stage.close_first_node(true).await;
    let mut object = deployment(replicas);
    let mut annotations = json!({START_UP: "60", START_UP_P95: "60"});
    if let Some(most) = most {
        annotations[MOST_ASLEEP] = most.to_string().into();
        annotations[WAKE] = "5".into();
    }
    object["spec"]["template"]["metadata"]["annotations"] = annotations;
    stage.server.create(DEPLOYMENTS, &object).await.unwrap();
    stage
}

impl Stage {
    async fn close_first_node(&self, closed: bool) {
        let change = json!({"spec": {"unschedulable": closed}});
        self.server.merge(FIRST_NODE, &change).await.unwrap();
    }

    /// Seconds from creation to readiness of every pod that is ready, the shortest first.
    fn starts(&self) -> Vec<i64> {
        let pods = self.pods();
        let ready = pods.iter().filter(|pod| pod.holds("Ready"));
        let seconds = ready.map(|pod| {
            let ready = &pod.condition("Ready").unwrap()["lastTransitionTime"];
            (wall_time(ready).unwrap().0 - pod.created().0) / 1000
        });
        let mut seconds: Vec<i64> = seconds.collect();
        seconds.sort_unstable();
        seconds
    }

    /// Ends all pods, opens both nodes, and starts so many.
    async fn restart(&self, replicas: u32) -> Vec<i64> {
        self.scale(0).await;
        pass(40).await;
        assert!(self.pods().is_empty());
        self.close_first_node(false).await;
        self.scale(replicas).await;
        pass(90).await;
        self.starts()
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_wakes_an_engine_as_long_as_one_sleeps() {
    for (released, most, started, expected) in [
        (1, None, 2, vec![60, 60]),
        (1, Some(2), 2, vec![5, 60]),
        (2, Some(1), 2, vec![5, 60]),
        // Both nodes are empty: the first one would take it without a sleeper on the other.
        (1, Some(1), 1, vec![5]),
        (2, Some(2), 3, vec![5, 5, 60]),
    ] {
        let stage = sleeping(released, most).await;
        pass(90).await;
        let cold: Vec<i64> = (0..released).map(|_| 60).collect();
        assert_eq!(stage.starts(), cold);
        let pods = stage.pods();
        assert!(pods.iter().all(|pod| pod.text("/spec/nodeName") == "h100-1"));
        let starts = stage.restart(started).await;
        assert_eq!(starts, expected, "{released} {most:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_was_loaded_sleeps_or_wakes() {
    let stage = sleeping(1, Some(1)).await;
    pass(30).await;
    assert!(stage.starts().is_empty());
    assert_eq!(stage.restart(1).await, [60], "it had not been ready");
    assert_eq!(stage.restart(1).await, [5]);
    let crash = WorkloadFault::Crash(one_pod());
    stage.workloads.strike(&crash).await.unwrap();
    pass(40).await;
    assert!(stage.starts().is_empty(), "a new container loads all of it");
    pass(40).await;
    assert_eq!(stage.status("readyReplicas"), 1);
}
