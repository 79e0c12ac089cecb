//! A model on SGLang, by the names and arguments of that engine.

use super::*;

async fn grows_with_a_full_cache_and_a_queue(config: Vec<ConfigMap>) {
    let full = MINUTE * 5;
    let mut scenario = small(posed(&[(Duration::ZERO, 0.3, 0.0), (full, 0.85, 3.0)]));
    scenario.models[0].dialect = Dialect::Sglang;
    scenario.config = config;
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(1)).await;
    stays(&world, full - MINUTE * 2, "v", 1).await;
    until(&world, MINUTE * 4, |frame| ready(frame, "v") >= 2).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn percentages_grow_on_sglang() {
    grows_with_a_full_cache_and_a_queue(Vec::new()).await;
}

#[tokio::test(start_paused = true)]
async fn tokens_grow_on_sglang() {
    grows_with_a_full_cache_and_a_queue(policy("analyzerName: saturation")).await;
}
