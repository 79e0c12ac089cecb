//! Pods that go first, from a decision to shrink until it is done, or off.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use wva::roles::Role;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// When the load returns: the HPA, which waits for two minutes, has not shrunk anything by then.
const RETURN: Duration = Duration::from_secs(330);

/// Three replicas with little to do from minute 4 on.
fn shrinking(then: &[(Duration, f64, f64)]) -> Scenario {
    let mut poses = vec![(Duration::ZERO, 0.6, 0.0), (MINUTE * 4, 0.02, 0.0)];
    poses.extend(then);
    let mut scenario = small(posed(&poses));
    let switch = ("POD_DELETION_COST_ENABLED", "true".to_owned());
    scenario.config = vec![ConfigMap { name: "wva-variantautoscaling-config", data: vec![switch] }];
    scenario.models[0].variants[0].replicas = 3;
    scenario.models[0].variants[0].bounds = (2, 6);
    scenario
}

/// Costs of the pods of the variant that are not on their way out.
fn costs(world: &World) -> BTreeMap<String, Option<String>> {
    let reader = Insider::new(world.server.clone(), "reader");
    let pods = reader.list("pods.").into_iter();
    let live = pods.filter(|pod| {
        let metadata = &pod["metadata"];
        let is_of_variant = metadata["name"].as_str().unwrap().starts_with("v-");
        is_of_variant && metadata["deletionTimestamp"].is_null()
    });
    let cost = |pod: &Value| {
        let cost = pod["metadata"]["annotations"][COST].as_str();
        cost.map(ToOwned::to_owned)
    };
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
    live.map(|pod| (name(&pod), cost(&pod))).collect()
}

fn chosen(world: &World) -> Vec<String> {
    let marked = costs(world).into_iter().filter(|(_, cost)| cost.is_some());
    marked.map(|(name, _)| name).collect()
}

/// Begins, and goes on until one pod of three is chosen.
async fn chosen_one(scenario: &Scenario) -> (World, String) {
    let world = begin(scenario).await;
    until(&world, MINUTE * 2, |frame| ready(frame, "v") == 3).await;
    throughout(&world, MINUTE * 2 - CYCLE, |_| {
        let costs = costs(&world);
        assert_eq!(costs.len(), 3, "{costs:?}");
        assert!(costs.values().all(Option::is_none), "{costs:?}");
    })
    .await;
    until(&world, MINUTE * 5, |frame| desired(frame, "v") == Some(2)).await;
    until(&world, CYCLE, |_| chosen(&world).len() == 1).await;
    let pod = chosen(&world).pop().unwrap();
    assert_eq!(costs(&world)[&pod].as_deref(), Some("-1"));
    (world, pod)
}

/// The chosen pod goes, with roles killed on the way, and those that stay are as they were.
#[tokio::test(start_paused = true)]
async fn the_chosen_pod_goes_and_the_others_have_no_cost() {
    let (world, pod) = chosen_one(&shrinking(&[])).await;
    for role in [Role::PodMarker, Role::Leadership] {
        assert!(world.kill(&role), "{role} does not run");
    }
    until(&world, MINUTE * 5, |_| costs(&world).len() == 2).await;
    let left = costs(&world);
    assert!(!left.contains_key(&pod), "{pod} of {left:?}");
    throughout(&world, MINUTE * 2, |_| {
        assert_eq!(costs(&world), left);
    })
    .await;
    assert!(left.values().all(Option::is_none), "{left:?}");
    world.end().await;
}

/// Load returns before the HPA has shrunk anything.
#[tokio::test(start_paused = true)]
async fn a_scale_down_that_is_off_leaves_every_pod_as_it_was() {
    let (world, _) = chosen_one(&shrinking(&[(RETURN, 0.9, 3.0)])).await;
    let before: Vec<String> = costs(&world).into_keys().collect();
    until(&world, MINUTE * 4, |frame| desired(frame, "v") >= Some(3)).await;
    until(&world, CYCLE, |_| chosen(&world).is_empty()).await;
    let after = costs(&world);
    assert!(before.iter().all(|pod| after.contains_key(pod)), "{after:?}");
    world.end().await;
}
