//! Between no replicas and some: a model wakes for a request, serves, rests, and wakes again.

use super::*;

const RETENTION: Duration = Duration::from_mins(5);

/// One model at zero that may stay there.
fn sleeping(load: LoadSource) -> Scenario {
    let mut scenario = small(load);
    scenario.config = vec![to_zero("default")];
    let variant = &mut scenario.models[0].variants[0];
    (variant.replicas, variant.bounds) = (0, (0, 6));
    scenario
}

/// Requests from minute 3 to 10, and from minute 25 on.
fn twice() -> LoadSource {
    let at = |minute, rate| (MINUTE * minute, rate);
    rates(&[at(0, 0.0), at(3, 2.0), at(10, 0.0), at(25, 2.0)])
}

/// Serves what is queued, rests after its retention, and does the same again.
async fn makes_the_round_trip(scenario: &Scenario) {
    let world = begin(scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(0)).await;
    throughout(&world, MINUTE * 2 - CYCLE, |frame| {
        assert_eq!((desired(frame, "v"), ready(frame, "v")), (Some(0), 0));
    })
    .await;

    let woken = until(&world, MINUTE * 2, |frame| desired(frame, "v") == Some(1)).await;
    assert!(woken.seconds >= 180.0 && woken.models[0].held > 0, "{woken:#?}");
    assert_eq!(woken.totals.answered, 0);
    until(&world, MINUTE, |frame| frame.totals.answered > 0).await;

    let rested = until(&world, MINUTE * 16, |frame| desired(frame, "v") == Some(0)).await;
    let silent = MINUTE * 10 + RETENTION;
    assert!(rested.seconds >= silent.as_secs_f64(), "not before its retention: {rested:#?}");
    assert!(rested.seconds <= (silent + MINUTE * 2).as_secs_f64(), "{rested:#?}");
    assert!(decision(&world, "v").reason().contains("retention"));
    until(&world, MINUTE * 4, |frame| ready(frame, "v") == 0).await;

    let again = until(&world, MINUTE * 8, |frame| desired(frame, "v") == Some(1)).await;
    assert!(again.seconds >= 1_500.0, "{again:#?}");
    until(&world, MINUTE, |frame| ready(frame, "v") == 1).await;
    throughout(&world, RETENTION, |frame| {
        assert!(desired(frame, "v") >= Some(1), "woken, and not put to rest at once: {frame:#?}");
    })
    .await;
    let totals = world.frame().totals.clone();
    assert_eq!(totals.failed, 0, "{totals:?}");
    assert!(totals.requests - totals.answered < 40, "all but the running ones: {totals:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_on_vllm_wakes_serves_rests_and_wakes() {
    makes_the_round_trip(&sleeping(twice())).await;
}

#[tokio::test(start_paused = true)]
async fn a_model_on_sglang_wakes_serves_rests_and_wakes() {
    let mut scenario = sleeping(twice());
    scenario.models[0].dialect = Dialect::Sglang;
    scenario.config.extend(policy("analyzerName: saturation"));
    makes_the_round_trip(&scenario).await;
}

/// One request is enough to start a model, and it is kept without another one.
#[tokio::test(start_paused = true)]
async fn a_model_that_one_request_woke_is_kept_for_its_retention() {
    let pulse = Duration::from_secs(200);
    let load = rates(&[(Duration::ZERO, 0.0), (pulse, 1.0), (pulse + Duration::from_secs(1), 0.0)]);
    let world = begin(&sleeping(load)).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(0)).await;
    until(&world, MINUTE * 4, |frame| desired(frame, "v") == Some(1)).await;
    until(&world, MINUTE, |frame| frame.totals.answered == 1).await;
    stays(&world, RETENTION - MINUTE, "v", 1).await;
    until(&world, MINUTE * 4, |frame| desired(frame, "v") == Some(0)).await;
    world.end().await;
}

/// Its router shows the controller itself what it holds.
#[tokio::test(start_paused = true)]
async fn a_model_wakes_while_prometheus_is_down() {
    let load = rates(&[(Duration::ZERO, 0.0), (MINUTE * 4, 2.0)]);
    let mut scenario = sleeping(load);
    scenario.troubles = vec![(MINUTE * 2, ScenarioFault::NoPrometheus(MINUTE * 8))];
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(0)).await;
    stays(&world, MINUTE * 3, "v", 0).await;
    until(&world, MINUTE * 2, |frame| desired(frame, "v") == Some(1)).await;
    let reason = decision(&world, "v").reason();
    assert!(reason.contains("as it says itself"), "{reason}");
    stays(&world, MINUTE * 4, "v", 1).await;
    // Its HPA reads it from Prometheus.
    until(&world, MINUTE * 4, |frame| frame.totals.answered > 0).await;
    world.end().await;
}
