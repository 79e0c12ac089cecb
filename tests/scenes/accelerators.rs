//! Two kinds of accelerators, each with fewer GPUs than its model needs.

use super::*;

/// Two models that overflow whatever they get, each on a node of two GPUs of its own kind.
fn crowded() -> Scenario {
    let load = || posed(&[(Duration::ZERO, 0.95, 8.0)]);
    let small_one = ScenarioVariant { accelerator: "A100", product: A100, ..variant("on-a100") };
    Scenario {
        nodes: vec![node("h100", 2, H100), node("a100", 2, A100)],
        models: vec![
            model("m", load(), vec![variant("on-h100")]),
            model("n", load(), vec![small_one]),
        ],
        ..small(load())
    }
}

fn both(frame: &Frame) -> [Option<u32>; 2] {
    [desired(frame, "on-h100"), desired(frame, "on-a100")]
}

#[tokio::test(start_paused = true)]
async fn without_a_limiter_counts_run_past_the_gpus() {
    let mut scenario = crowded();
    scenario.config = policy("analyzerName: saturation");
    let world = begin(&scenario).await;
    let beyond =
        |frame: &Frame| both(frame).iter().all(|count| count.is_some_and(|count| count > 2));
    until(&world, MINUTE * 10, beyond).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn with_one_each_kind_grows_to_its_own_gpus_and_no_further() {
    let mut scenario = crowded();
    scenario.config = policy("{analyzerName: saturation, enableLimiter: true}");
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| both(frame) == [Some(1), Some(1)]).await;
    until(&world, MINUTE * 5, |frame| both(frame) == [Some(2), Some(2)]).await;
    throughout(&world, MINUTE * 10, |frame| {
        assert_eq!(both(frame), [Some(2), Some(2)], "{frame:#?}");
        assert!(frame.gpus_used <= 4, "{frame:#?}");
    })
    .await;
    for (variant, accelerator) in [("on-h100", H100), ("on-a100", A100)] {
        let decision = decision(&world, variant);
        assert_eq!(decision.accelerator.label(), accelerator);
        assert!(decision.reason().contains("GPU"), "{}", decision.reason());
    }
    world.end().await;
}
