//! A model on several hosts: a replica is a group of pods, whose leader alone takes requests.

use super::*;

const GROUPS: &str = "leaderworkersets.leaderworkerset.x-k8s.io";

/// Leaders with two GPUs and one worker with two more, on nodes of four.
fn on_two_hosts(load: LoadSource) -> Scenario {
    let mut scenario = small(load);
    scenario.nodes = vec![NodeGroup { count: 5, ..node("h100", 4, H100) }];
    let variant = &mut scenario.models[0].variants[0];
    (variant.gpus, variant.replica) = (2, Replica::Group { workers: 1, gpus: 2 });
    variant.bounds = (1, 8);
    scenario
}

/// Groups as the status of the set counts them: all, and the ready ones.
fn counted(world: &World) -> (i64, i64) {
    let person = Insider::new(world.server.clone(), "person");
    let set = person.get(GROUPS, "llm-d", "v").unwrap();
    let count = |field: &str| set["status"][field].as_i64().unwrap_or(0);
    (count("replicas"), count("readyReplicas"))
}

/// Pods by name, each with whether it is ready.
fn pods(world: &World) -> Vec<(String, bool)> {
    let person = Insider::new(world.server.clone(), "person");
    let pods = person.list("pods.");
    let ours = pods.iter().filter(|pod| pod["metadata"]["labels"]["app"] == "v");
    ours.map(|pod| {
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
        (pod["metadata"]["name"].as_str().unwrap().to_owned(), ready)
    })
    .collect()
}

/// A model at zero without requests until minute 3.
async fn starts_from_zero(replica: Replica, gpus: u32, names: &[&str]) {
    let load = rates(&[(Duration::ZERO, 0.0), (MINUTE * 3, 1.0)]);
    let mut scenario = on_two_hosts(load);
    scenario.config = vec![to_zero("default")];
    let variant = &mut scenario.models[0].variants[0];
    (variant.replica, variant.replicas, variant.bounds) = (replica, 0, (0, 4));
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(0)).await;
    throughout(&world, MINUTE * 2 - CYCLE, |frame| {
        assert_eq!((desired(frame, "v"), frame.gpus_used), (Some(0), 0));
    })
    .await;
    assert_eq!(pods(&world), []);

    let woken = until(&world, MINUTE * 2, |frame| desired(frame, "v") == Some(1)).await;
    assert!(woken.models[0].held > 0, "a request waits: {woken:#?}");
    assert_eq!(woken.totals.answered, 0);
    let served = until(&world, MINUTE * 2, |frame| frame.totals.answered > 0).await;
    assert_eq!((ready(&served, "v"), served.gpus_used), (1, gpus));
    let all = pods(&world);
    assert_eq!(all.len(), names.len(), "{all:?}");
    for ((pod, is_ready), name) in all.iter().zip(names) {
        assert!(pod.starts_with(name) && *is_ready, "{all:?}");
    }
    until(&world, MINUTE * 2, |frame| frame.models[0].held == 0).await;
    assert_eq!(world.frame().totals.failed, 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_and_groups_on_one_host_and_on_two_start_from_zero() {
    let group = |workers, gpus| Replica::Group { workers, gpus };
    for (replica, gpus, names) in [
        (Replica::Pod, 2, &["v-"][..]),
        (group(0, 0), 2, &["v-0"]),
        (group(1, 2), 4, &["v-0", "v-0-1"]),
    ] {
        starts_from_zero(replica, gpus, names).await;
    }
}

/// Whether one of the two pods of the second group is ready, and the other is not.
fn is_half_ready(world: &World) -> bool {
    let pods = pods(world);
    let ready: Vec<_> =
        pods.iter().filter(|(name, _)| name.starts_with("v-1")).map(|(_, ready)| *ready).collect();
    matches!(*ready, [true, false] | [false, true])
}

/// Ready replicas as the controller sees them, and those that report.
fn reporting(world: &World) -> (u32, u32) {
    let figures = decision(world, "v").figures;
    (figures.ready, figures.reporting)
}

#[tokio::test(start_paused = true)]
async fn a_group_counts_once_all_of_its_pods_are_ready() {
    let full = MINUTE * 15;
    let mut scenario = on_two_hosts(posed(&[(Duration::ZERO, 0.3, 0.0), (full, 0.95, 8.0)]));
    scenario.models[0].variants[0].start_up =
        StartUp { median: MINUTE, p95: MINUTE * 2, ..StartUp::WAKING };
    let world = begin(&scenario).await;
    until(&world, full - MINUTE * 3, |frame| ready(frame, "v") == 1).await;
    tokio::time::sleep(MINUTE).await;
    throughout(&world, MINUTE, |frame| {
        assert_eq!((desired(frame, "v"), frame.gpus_used), (Some(1), 4));
        assert_eq!(counted(&world), (1, 1));
        assert_eq!(reporting(&world), (1, 1), "its leader alone");
    })
    .await;
    let both = [("v-0".to_owned(), true), ("v-0-1".to_owned(), true)];
    assert_eq!(pods(&world), both);

    until(&world, full, |frame| desired(frame, "v") == Some(2)).await;
    until(&world, MINUTE * 10, |_| is_half_ready(&world)).await;
    let began = world.frame().seconds;
    let mut frames = world.frames.clone();
    while is_half_ready(&world) {
        let frame = frames.borrow_and_update().clone();
        let counts = (desired(&frame, "v"), ready(&frame, "v"));
        assert_eq!(counts, (Some(2), 1), "{:#?}", decision(&world, "v"));
        assert_eq!((counted(&world), frame.gpus_used), ((2, 1), 8));
        assert_eq!(reporting(&world), (1, 1), "{:#?}", decision(&world, "v"));
        frames.changed().await.unwrap();
    }
    let lasted = world.frame().seconds - began;
    assert!(lasted > CYCLE.as_secs_f64() * 2.0, "{lasted} s");
    until(&world, CYCLE * 2, |_| reporting(&world) == (2, 2)).await;
    assert_eq!(counted(&world), (2, 2));
    until(&world, MINUTE * 2, |frame| desired(frame, "v") == Some(3)).await;
    world.end().await;
}

/// Two groups fill eight GPUs, of which their leaders alone would hold four.
async fn overflowing(config: &str, holds: impl Fn(&Frame) -> bool) -> World {
    let mut scenario = on_two_hosts(posed(&[(Duration::ZERO, 0.95, 8.0)]));
    scenario.nodes[0].count = 2;
    scenario.config = policy(config);
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(1)).await;
    until(&world, MINUTE * 10, holds).await;
    world
}

#[tokio::test(start_paused = true)]
async fn without_a_limiter_groups_run_past_the_gpus() {
    let beyond = |frame: &Frame| desired(frame, "v") > Some(2);
    let world = overflowing("analyzerName: saturation", beyond).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn every_pod_of_a_group_counts_against_the_gpus() {
    let limited = "{analyzerName: saturation, enableLimiter: true}";
    let world = overflowing(limited, |frame| desired(frame, "v") == Some(2)).await;
    stays(&world, MINUTE * 10, "v", 2).await;
    assert_eq!((counted(&world), world.frame().gpus_used), ((2, 2), 8));
    let reason = decision(&world, "v").reason();
    assert!(reason.contains("GPU"), "{reason}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_group_that_loses_a_worker_starts_again_and_keeps_its_count() {
    let mut scenario = on_two_hosts(posed(&[(Duration::ZERO, 0.6, 0.0)]));
    scenario.models[0].variants[0].replicas = 2;
    let world = begin(&scenario).await;
    until(&world, MINUTE * 2, |frame| ready(frame, "v") == 2).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!((counted(&world), reporting(&world)), ((2, 2), (2, 2)));

    let person = Insider::new(world.server.clone(), "person");
    let worker = "/api/v1/namespaces/llm-d/pods/v-1-1";
    let leader = || person.get("pods.", "llm-d", "v-1").unwrap()["metadata"]["uid"].clone();
    let before = leader();
    person.delete(worker, &json!({})).await.unwrap();
    until(&world, MINUTE, |frame| ready(frame, "v") == 1).await;
    stays(&world, MINUTE * 3, "v", 2).await;
    assert_eq!((counted(&world), reporting(&world)), ((2, 2), (2, 2)));
    assert_ne!(leader(), before, "its leader as well");
    world.end().await;
}
