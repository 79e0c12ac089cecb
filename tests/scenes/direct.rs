//! A target that the controller scales itself, without an HPA.

use super::*;
use wva::roles::Role;

const HPA: &str = "/apis/autoscaling/v2/namespaces/llm-d/horizontalpodautoscalers/v";

/// Few requests, from minute 4 on more and more, then few again; what is published is written.
fn scaled_directly() -> Scenario {
    let at = |minute, rate| (MINUTE * minute, rate);
    let mut scenario =
        small(rates(&[at(0, 1.0), at(4, 40.0), at(8, 65.0), at(12, 150.0), at(16, 1.0)]));
    scenario.config = policy("analyzerName: slo\nactuation: direct");
    scenario
}

/// Reason of the condition about what follows.
fn actuation(world: &World) -> String {
    let reader = Insider::new(world.server.clone(), "reader");
    let variant = reader.get("variantautoscalings.llmd.ai", "llm-d", "v");
    let conditions = variant.unwrap()["status"]["conditions"].clone();
    let mut conditions = conditions.as_array().into_iter().flatten();
    let found = conditions.find(|one| one["type"] == "ActuationReady");
    found.map_or_else(String::new, |found| found["reason"].as_str().unwrap().to_owned())
}

/// The target has what is published within seconds, up and down, whichever role dies at a change.
#[tokio::test(start_paused = true)]
async fn the_target_follows_what_is_published_through_deaths() {
    let world = begin(&scaled_directly()).await;
    let user = Insider::new(world.server.clone(), "user");
    user.delete(HPA, &json!({})).await.unwrap();
    until(&world, MINUTE, |_| actuation(&world) == "ScaledDirectly").await;
    throughout(&world, MINUTE * 2, |frame| {
        assert_eq!(stated(frame), 1, "{frame:#?}");
    })
    .await;
    for roles in [[Role::TargetScaler, Role::Emitter], [Role::StatusWriter, Role::TargetScaler]] {
        let before = desired(&world.frame(), "v");
        until(&world, MINUTE * 9, |frame| desired(frame, "v") > before).await;
        for role in roles {
            assert!(world.kill(&role), "{role} does not run");
        }
        let soon = Duration::from_secs(5);
        until(&world, soon, |frame| Some(stated(frame)) >= desired(frame, "v")).await;
    }
    until(&world, MINUTE * 60, |frame| desired(frame, "v") == Some(1)).await;
    assert!(world.kill(&Role::TargetScaler));
    until(&world, Duration::from_secs(10), |frame| stated(frame) == 1).await;
    world.end().await;
}

/// What a person writes is taken back, once; while a scaler is attached nothing is written.
#[tokio::test(start_paused = true)]
async fn it_rests_while_a_scaler_is_attached() {
    let mut scenario = scaled_directly();
    scenario.models[0].load = rates(&[(Duration::ZERO, 1.0)]);
    let world = begin(&scenario).await;
    let user = Insider::new(world.server.clone(), "user");
    let deployment = "/apis/apps/v1/namespaces/llm-d/deployments/v";
    let three = json!({"spec": {"replicas": 3}});

    until(&world, MINUTE, |_| actuation(&world) == "ScalerFollows").await;
    let paused = json!({"spec": {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}});
    user.merge(HPA, &paused).await.unwrap();
    user.merge(deployment, &three).await.unwrap();
    until(&world, CYCLE, |frame| stated(frame) == 3).await;
    throughout(&world, MINUTE * 3, |frame| {
        assert_ne!(stated(frame), 1, "{frame:#?}");
    })
    .await;

    user.delete(HPA, &json!({})).await.unwrap();
    until(&world, MINUTE, |_| actuation(&world) == "ScaledDirectly").await;
    until(&world, MINUTE * 30, |frame| stated(frame) == 1).await;
    user.merge(deployment, &three).await.unwrap();
    until(&world, Duration::from_secs(15), |frame| stated(frame) == 1).await;
    world.end().await;
}
