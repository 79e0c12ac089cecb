//! Loads and occupancies on either side of a threshold.

use super::*;

#[tokio::test(start_paused = true)]
async fn percentages_keep_a_bounded_load_and_grow_by_one_beyond_it() {
    let crossing = MINUTE * 10;
    let load = rates(&[(Duration::ZERO, 0.0), (MINUTE, 4.0), (crossing, 34.0)]);
    let world = begin(&small(load)).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(1)).await;
    stays(&world, crossing - MINUTE * 2, "v", 1).await;
    assert!(world.frame().totals.answered > 1_500, "{:?}", world.frame().totals);

    let grown = until(&world, MINUTE * 6, |frame| desired(frame, "v") != Some(1)).await;
    assert_eq!(desired(&grown, "v"), Some(2), "one step at a time");
    let why = &grown.models[0].variants[0].why;
    assert!(why.contains("the cheapest eligible variant grows"), "{why}");
    until(&world, MINUTE * 2, |frame| ready(frame, "v") >= 2).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn tokens_grow_and_shrink_with_the_thresholds_at_one_occupancy() {
    let mut scenario = small(posed(&[(Duration::ZERO, 0.3, 0.0)]));
    scenario.config =
        policy("{analyzerName: saturation, scaleUpThreshold: 0.85, scaleDownBoundary: 0.7}");
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(1)).await;
    stays(&world, MINUTE * 3, "v", 1).await;

    // A third of the cache is 0.375 of its usable share.
    change_policy(
        &world,
        "{analyzerName: saturation, scaleUpThreshold: 0.30, scaleDownBoundary: 0.20}",
    )
    .await;
    let grown = until(&world, CYCLE * 3, |frame| desired(frame, "v") != Some(1)).await;
    assert_eq!(desired(&grown, "v"), Some(2), "0.3 / 0.30 of a cache on replicas of 0.8");
    let tokens = figures(&world, "m").tokens.unwrap();
    assert!((tokens.model.utilisation - 0.375).abs() < 1e-3, "{tokens:#?}");
    until(&world, MINUTE * 2, |frame| ready(frame, "v") >= 2).await;

    change_policy(
        &world,
        "{analyzerName: saturation, scaleUpThreshold: 0.95, scaleDownBoundary: 0.85}",
    )
    .await;
    until(&world, MINUTE * 5, |frame| desired(frame, "v") == Some(1)).await;
    until(&world, MINUTE * 5, |frame| ready(frame, "v") == 1).await;
    stays(&world, MINUTE * 3, "v", 1).await;
    world.end().await;
}
