//! Deployments that PodAutoscalers scale: by demand, within bounds, and down only with evidence.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use wva::policy::key::ObjectKey;
use wva::policy::pod_autoscaler::check::ScalingStrategy;
use wva::roles::Role;
use wva_sim::world::AutoscaledModel;

/// When a day has as many replicas as it needs, and until when it keeps them: its busy time, and the stabilisation.
const GROWN: usize = 330;
const KEPT: usize = 840;
const HPAS: &str = "horizontalpodautoscalers.autoscaling";
/// Seconds of the long window.
const STABLE: u32 = 60;

/// One model whose replicas are to serve eight requests each.
fn autoscaled(strategy: ScalingStrategy, load: LoadSource) -> Scenario {
    let mut scenario = small(posed(&[]));
    scenario.models.clear();
    scenario.autoscaled = vec![AutoscaledModel {
        model: model("m", load, vec![variant("v")]),
        strategy,
        metric: match strategy {
            ScalingStrategy::Hpa => "vllm:num_requests_running",
            _ => "num_requests_running",
        },
        per_replica: 8.0,
        windows: (STABLE, 20),
        annotations: vec![("scale-down-cooldown-window", "2m")],
    }];
    scenario
}

/// Few requests, many from minute 3 to 12, then few again.
fn day() -> LoadSource {
    let at = |minute, rate| (MINUTE * minute, rate);
    rates(&[at(0, 1.0), at(3, 15.0), at(12, 1.0)])
}

fn stored(world: &World, resource: &str, name: &str) -> Option<Arc<Value>> {
    let reader = Insider::new(world.server.clone(), "reader");
    reader.get(resource, "llm-d", name)
}

fn object(world: &World) -> Arc<Value> {
    stored(world, "podautoscalers.autoscaling.aibrix.ai", "v").unwrap()
}

/// Those who wrote the scale subresource of the Deployment.
fn scalers(world: &World) -> BTreeSet<String> {
    let deployment = stored(world, "deployments.apps", "v").unwrap();
    let managers = deployment["metadata"]["managedFields"].as_array().unwrap();
    let scales = managers.iter().filter(|one| one["subresource"] == "scale");
    scales.map(|one| one["manager"].as_str().unwrap().to_owned()).collect()
}

/// Follows the load up and down again.
async fn follows_the_load(strategy: ScalingStrategy) -> World {
    let world = begin(&autoscaled(strategy, day())).await;
    until(&world, MINUTE, |frame| ready(frame, "v") == 1).await;
    throughout(&world, MINUTE * 2 - CYCLE, |frame| {
        assert_eq!(stated(frame), 1, "{frame:#?}");
    })
    .await;

    let grown = until(&world, MINUTE * 5, |frame| ready(frame, "v") >= 3).await;
    assert!(grown.seconds >= 180.0, "{grown:#?}");
    until(&world, MINUTE * 10, |frame| {
        assert!((1..=6).contains(&stated(frame)), "{frame:#?}");
        frame.seconds >= 720.0
    })
    .await;
    assert!(stated(&world.frame()) >= 3, "{:#?}", world.frame());

    let lowered = until(&world, MINUTE * 12, |frame| stated(frame) == 1).await;
    let kept = 720.0 + 120.0;
    assert!(lowered.seconds >= kept, "not before its window: {lowered:#?}");
    throughout(&world, MINUTE * 3, |frame| {
        assert_eq!(stated(frame), 1, "{frame:#?}");
    })
    .await;
    world
}

/// Its status says what it did, in five entries at most.
fn status_agrees(world: &World) {
    let object = object(world);
    let status = &object["status"];
    assert_eq!(
        (&status["actualScale"], &status["desiredScale"]),
        (&json!(1), &json!(1)),
        "{status:#}"
    );
    let history = status["scalingHistory"].as_array().unwrap();
    assert!((2..=5).contains(&history.len()), "{status:#}");
    assert!(history.iter().all(|entry| entry["success"] == true), "{status:#}");
}

#[tokio::test(start_paused = true)]
async fn kpa_and_apa_follow_the_load_by_writing_the_scale() {
    for strategy in [ScalingStrategy::Kpa, ScalingStrategy::Apa] {
        let world = follows_the_load(strategy).await;
        status_agrees(&world);
        assert_eq!(scalers(&world).len(), 1, "{:?}", scalers(&world));
        assert_eq!(stored(&world, HPAS, "v-hpa"), None);
        world.end().await;
    }
}

/// The generated object scales, and ends with its owner or with the strategy.
#[tokio::test(start_paused = true)]
async fn hpa_follows_the_load_by_a_generated_object() {
    let world = follows_the_load(ScalingStrategy::Hpa).await;
    let generated = stored(&world, HPAS, "v-hpa").unwrap();
    let owner = &generated["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], object(&world)["metadata"]["uid"], "{generated:#}");

    let user = Insider::new(world.server.clone(), "user");
    let path = "/apis/autoscaling.aibrix.ai/v1alpha1/namespaces/llm-d/podautoscalers/v";
    user.delete(path, &json!({})).await.unwrap();
    assert_eq!(stored(&world, HPAS, "v-hpa"), None);
    world.end().await;
}

/// No scrape succeeds for ten minutes while the load stays.
#[tokio::test(start_paused = true)]
async fn without_any_page_nothing_is_lowered() {
    for strategy in [ScalingStrategy::Kpa, ScalingStrategy::Apa] {
        let load = rates(&[(Duration::ZERO, 15.0)]);
        let mut scenario = autoscaled(strategy, load);
        scenario.troubles = vec![(MINUTE * 6, ScenarioFault::NoPages(MINUTE * 10))];
        let world = begin(&scenario).await;
        // What was read before may lower it while it is fresh.
        until(&world, MINUTE * 8, |frame| frame.seconds >= 420.0).await;
        let before = stated(&world.frame());
        assert!(before >= 3, "{before}");
        throughout(&world, MINUTE * 9 - CYCLE, |frame| {
            assert!(stated(frame) >= before, "{strategy:?}: {frame:#?}");
        })
        .await;
        let object = object(&world);
        let conditions = object["status"]["conditions"].as_array().unwrap();
        let active = conditions.iter().find(|one| one["type"] == "ScalingActive");
        assert_eq!(active.unwrap()["status"], "False", "{conditions:#?}");
        world.end().await;
    }
}

/// Four replicas at 180 % of their target cannot grow, and never shrink.
#[tokio::test(start_paused = true)]
async fn overloaded_replicas_at_their_maximum_are_kept() {
    for strategy in [ScalingStrategy::Kpa, ScalingStrategy::Apa] {
        let mut scenario = autoscaled(strategy, posed(&[(Duration::ZERO, 0.5, 9.0)]));
        let autoscaled = &mut scenario.autoscaled[0];
        (autoscaled.metric, autoscaled.per_replica) = ("num_requests_waiting", 5.0);
        let variant = &mut autoscaled.model.variants[0];
        (variant.replicas, variant.bounds) = (4, (1, 4));
        let world = begin(&scenario).await;
        until(&world, MINUTE, |frame| ready(frame, "v") == 4).await;
        throughout(&world, MINUTE * 20, |frame| {
            assert_eq!(stated(frame), 4, "{strategy:?}: {frame:#?}");
        })
        .await;
        world.end().await;
    }
}

/// The counts that a Deployment has at each second of a day, with roles that end at some of them.
async fn counts_with_ends(strategy: ScalingStrategy, ends: &[(u64, Role)]) -> Vec<u32> {
    let world = begin(&autoscaled(strategy, day())).await;
    let mut frames = world.frames.clone();
    let mut counts = Vec::new();
    for second in 0..1_200 {
        frames.changed().await.unwrap();
        counts.push(stated(&frames.borrow_and_update().clone()));
        let due = ends.iter().filter(|(at, _)| *at == second);
        for (_, role) in due {
            assert!(world.kill(role), "{role} does not run");
        }
    }
    world.end().await;
    counts
}

/// A role that ends lowers nothing that stays without its end: what it knew outlives it, or is measured again first.
#[tokio::test(start_paused = true)]
async fn roles_that_end_lower_nothing() {
    let autoscaler = Role::PodAutoscaler(ObjectKey::new("llm-d", "v"));
    let roles = [
        autoscaler,
        Role::PodAutoscalers,
        Role::PodScraper,
        Role::AutoscalerWriter,
        Role::MetricsReader,
        Role::Leadership,
    ];
    let strategy = ScalingStrategy::Kpa;
    let usual = counts_with_ends(strategy, &[]).await;
    assert_eq!((usual.first(), usual.last()), (Some(&1), Some(&1)));
    let least = usual[GROWN..KEPT].iter().min().unwrap();
    assert!(*least >= 3, "{least}");
    for role in &roles {
        // While the load rises, in its middle, and while its windows empty. One more ends the process.
        let ends = [230, 420, 800].map(|at| (at, role.clone()));
        let counts = counts_with_ends(strategy, &ends).await;
        for (second, count) in counts.iter().enumerate().take(KEPT).skip(GROWN) {
            assert!(count >= least, "{strategy:?} {role} at {second} s: {count} of {least}");
        }
        assert_eq!(counts.last(), Some(&1), "{strategy:?} {role}");
    }
}
