//! Incidents that users of other autoscalers met, under the policy that chart and kustomization choose.

use super::*;

const SIZED: &str = "analyzerName: slo";

/// Long answers at these rates per second: a server of sixteen slots takes about 1.5 of them.
fn answers(steps: &[(Duration, f64)]) -> LoadSource {
    let mix = Mix { prompt_tokens: 2_000, output_tokens: 1_000, cached: 0.0 };
    match rates(steps) {
        LoadSource::Flow { shape, .. } => {
            LoadSource::Flow { shape, mixes: vec![(Duration::ZERO, mix)] }
        }
        other => other,
    }
}

/// One model of up to eight replicas.
fn sized(steps: &[(Duration, f64)]) -> Scenario {
    let mut scenario = small(answers(steps));
    scenario.config = policy(SIZED);
    let variant = &mut scenario.models[0].variants[0];
    variant.bounds = (1, 8);
    variant.limits.max_num_seqs = 16;
    scenario
}

/// A cheap variant on A100 whose node has one GPU, and one on H100 with room; both serve one model.
fn short_of_a100(steps: &[(Duration, f64)]) -> Scenario {
    let mut scenario = sized(steps);
    scenario.nodes.push(node("a100", 1, A100));
    let model = &mut scenario.models[0];
    let cheap = ScenarioVariant {
        name: "on-a100",
        accelerator: "A100",
        product: A100,
        cost: 4.0,
        bounds: (1, 40),
        ..model.variants[0].clone()
    };
    model.variants.push(cheap);
    scenario
}

/// The cheap variant is given what a fourfold load needs, of which no node takes a pod. Once they are late,
/// the other one grows to the need; those that never served are the first to go.
#[tokio::test(start_paused = true)]
async fn pods_that_no_node_takes_hold_back_neither_growth_nor_release() {
    let load = [(Duration::ZERO, 1.5), (MINUTE * 15, 6.0), (MINUTE * 60, 1.5)];
    let world = begin(&short_of_a100(&load)).await;
    let is_ordered = |frame: &Frame| desired(frame, "on-a100") > Some(4);
    let ordered = until(&world, MINUTE * 20, is_ordered).await;
    assert_eq!((ready(&ordered, "v"), ready(&ordered, "on-a100")), (1, 1));
    until(&world, MINUTE * 7, |frame| ready(frame, "v") >= 4).await;
    let is_served = |frame: &Frame| frame.models[0].first_token_p95_ms.is_some_and(|p95| p95 < 1e3);
    let served = until(&world, MINUTE * 5, is_served).await;
    assert_eq!(ready(&served, "on-a100"), 1);
    let is_withdrawn = |frame: &Frame| desired(frame, "on-a100") == Some(1);
    let withdrawn = until(&world, MINUTE * 15, is_withdrawn).await;
    assert!(ready(&withdrawn, "v") >= 4, "{withdrawn:#?}");
    throughout(&world, MINUTE * 25, |frame| {
        assert_eq!(desired(frame, "on-a100"), Some(1), "{frame:#?}");
        assert!(is_served(frame), "{frame:#?}");
    })
    .await;
    let is_at_rest = |frame: &Frame| ready(frame, "v") == 1 && ready(frame, "on-a100") == 1;
    until(&world, MINUTE * 60, is_at_rest).await;
    world.end().await;
}

/// Whether a pod of the cheap variant waits for a node.
fn has_unplaced_pod(frame: &Frame) -> bool {
    ready(frame, "on-a100") == 1 && desired(frame, "on-a100") >= Some(2)
}

/// The minimum of the cheap variant takes a second GPU, which no node has. The other variant grows with the load and
/// shrinks after it, although a pod waits for more than an hour.
#[tokio::test(start_paused = true)]
async fn a_pod_that_no_node_takes_for_an_hour_holds_back_neither_growth_nor_release() {
    let hour = MINUTE * 60;
    let load = [(Duration::ZERO, 1.5), (MINUTE * 15, 6.0), (hour, 1.5)];
    let mut scenario = short_of_a100(&load);
    scenario.models[0].variants[1].bounds = (2, 40);
    let world = begin(&scenario).await;
    until(&world, MINUTE * 5, has_unplaced_pod).await;
    throughout(&world, MINUTE * 9, |frame| {
        assert!(has_unplaced_pod(frame), "{frame:#?}");
        assert!(ready(frame, "v") < 3, "{frame:#?}");
    })
    .await;
    let grown = until(&world, MINUTE * 45, |frame| {
        assert!(has_unplaced_pod(frame), "{frame:#?}");
        ready(frame, "v") >= 3
    })
    .await;
    assert!(grown.seconds < hour.as_secs_f64(), "{grown:#?}");
    let shrunk = until(&world, MINUTE * 120, |frame| {
        assert!(has_unplaced_pod(frame), "{frame:#?}");
        ready(frame, "v") == 1
    })
    .await;
    assert!(shrunk.seconds > hour.as_secs_f64(), "{shrunk:#?}");
    world.end().await;
}

/// A cycle every five minutes: the one at minute 15 sees no reason to grow, the next is at minute 20.
#[tokio::test(start_paused = true)]
async fn a_jump_is_answered_before_the_next_cycle() {
    let mut scenario = sized(&[(Duration::ZERO, 1.0), (MINUTE * 16, 6.0)]);
    scenario.interval = MINUTE * 5;
    let world = begin(&scenario).await;
    until(&world, MINUTE * 6, |frame| desired(frame, "v") == Some(1)).await;
    let rest = MINUTE.mul_f64(15.9) - Duration::from_secs_f64(world.frame().seconds);
    stays(&world, rest, "v", 1).await;
    let grown = until(&world, MINUTE * 2, |frame| desired(frame, "v") >= Some(3)).await;
    assert!(grown.seconds < 17.0 * 60.0, "{grown:#?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_any_request_a_model_shrinks_to_its_minimum() {
    let world = begin(&sized(&[(Duration::ZERO, 6.0), (MINUTE * 20, 0.0)])).await;
    tokio::time::sleep(MINUTE * 20).await;
    let busy = world.frame();
    assert!(ready(&busy, "v") > 3, "{busy:#?}");
    until(&world, MINUTE * 60, |frame| ready(frame, "v") == 1).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_constant_load_is_served_by_a_constant_count() {
    for (rate, expected) in [(1.0, 1), (1.5, 2), (3.0, 3), (4.0, 4)] {
        let world = begin(&sized(&[(Duration::ZERO, rate)])).await;
        tokio::time::sleep(MINUTE * 30).await;
        throughout(&world, MINUTE * 30, |frame| {
            assert_eq!(desired(frame, "v"), Some(expected), "{rate}: {frame:#?}");
        })
        .await;
        world.end().await;
    }
}

/// What a person writes under a scaler that writes back lowers no decision, and raises it only for what waits
/// since too few replicas served.
#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_scaled_by_hand_goes_back_to_the_decision() {
    let world = begin(&sized(&[(Duration::ZERO, 3.0)])).await;
    tokio::time::sleep(MINUTE * 20).await;
    assert_eq!(desired(&world.frame(), "v"), Some(3));
    let person = Insider::new(world.server.clone(), "person");
    let path = "/apis/apps/v1/namespaces/llm-d/deployments/v";
    for (count, most) in [(8, 3), (1, 4)] {
        let change = json!({"spec": {"replicas": count}});
        let stored = person.merge(path, &change).await.unwrap();
        assert_eq!(stored["spec"]["replicas"], count);
        tokio::time::sleep(MINUTE).await;
        until(&world, MINUTE * 5, |frame| stated(frame) == 3).await;
        throughout(&world, MINUTE * 10, |frame| {
            let decided = desired(frame, "v").unwrap();
            assert!((3..=most).contains(&decided), "{frame:#?}");
        })
        .await;
    }
    world.end().await;
}
