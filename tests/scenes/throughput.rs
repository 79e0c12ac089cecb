//! The throughput analyzer with saturation, and alone.

use super::*;

const BOTH: &str = "analyzers: [{name: saturation}, {name: throughput}]";
const ALONE: &str = "analyzers: [{name: throughput}]";

#[tokio::test(start_paused = true)]
async fn with_both_analyzers_a_full_cache_grows_what_was_steady() {
    let full = MINUTE * 6;
    let mut scenario = small(posed(&[(Duration::ZERO, 0.5, 0.0), (full, 0.9, 0.0)]));
    scenario.config = policy(BOTH);
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(1)).await;
    stays(&world, full - MINUTE * 2, "v", 1).await;
    let grown = until(&world, MINUTE * 3, |frame| desired(frame, "v") != Some(1)).await;
    assert_eq!(desired(&grown, "v"), Some(2), "0.9 / 0.85 of a cache on replicas of 0.8");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn throughput_alone_publishes_a_count_and_follows_the_load() {
    let crossing = MINUTE * 12;
    let mut scenario = small(rates(&[(Duration::ZERO, 5.0), (crossing, 45.0)]));
    scenario.config = policy(ALONE);
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v").is_some()).await;
    throughout(&world, crossing - MINUTE * 2, |frame| {
        assert!(desired(frame, "v").is_some_and(|count| count > 0), "{frame:#?}");
    })
    .await;
    assert_eq!(desired(&world.frame(), "v"), Some(1));
    let figures = figures(&world, "m");
    assert!(figures.throughput.is_some() && figures.percentage.is_none(), "{figures:#?}");
    until(&world, MINUTE * 8, |frame| ready(frame, "v") >= 2).await;
    world.end().await;
}
