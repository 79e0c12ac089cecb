//! Which analyzer decides follows from the settings, while the controller runs.

use super::*;
use wva::policy::plan::PlanStage;

const TOKENS: &str = "analyzerName: saturation";

/// Stages that judged a variant.
fn judges(world: &World) -> Vec<PlanStage> {
    let steps = decision(world, "v").steps;
    let judges = steps.iter().map(|step| step.stage);
    judges.filter(|stage| matches!(stage, PlanStage::Saturation | PlanStage::Optimizer)).collect()
}

#[tokio::test(start_paused = true)]
async fn naming_the_analyzer_switches_to_tokens_and_back_without_a_restart() {
    let mut scenario = small(rates(&[(Duration::ZERO, 2.0)]));
    scenario.config = policy("kvCacheThreshold: 0.8");
    let world = begin(&scenario).await;
    until(&world, MINUTE, |frame| desired(frame, "v") == Some(1)).await;
    tokio::time::sleep(MINUTE).await;
    let unset = figures(&world, "m");
    assert!(unset.percentage.is_some() && unset.tokens.is_none(), "{unset:#?}");
    assert_eq!(judges(&world), [PlanStage::Saturation]);

    change_policy(&world, TOKENS).await;
    tokio::time::sleep(CYCLE * 2).await;
    let named = figures(&world, "m");
    assert!(named.percentage.is_none() && named.tokens.is_some(), "{named:#?}");
    assert_eq!(judges(&world), [PlanStage::Optimizer]);

    change_policy(&world, "").await;
    tokio::time::sleep(CYCLE * 2).await;
    let back = figures(&world, "m");
    assert!(back.percentage.is_some() && back.tokens.is_none(), "{back:#?}");
    assert_eq!(judges(&world), [PlanStage::Saturation]);
    assert_eq!(world.frame().totals.scalings, 0, "a switch alone moves nothing");
    world.end().await;
}
