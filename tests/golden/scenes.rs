//! Scenes of the embedded world: what the controller shows at `/metrics` and stores in statuses at
//! fixed virtual moments.

#[path = "../scenes/one_model.rs"]
mod one_model;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use wva_sim::apiserver::Insider;
use wva_sim::load::{RateProfile, RateStage};
use wva_sim::world::{
    ConfigMap, LoadSource, Pose, Scenario, ScenarioFault, ScenarioVariant, World,
};

use one_model::{A100, DATE, H100, MINUTE, MIX, model, node, small, variant};

use super::is_golden;
use super::page::{series, write_series, write_status};

const SEED: u64 = 1;
/// Moments lie between the cycles, which have whole seconds.
const BETWEEN: Duration = Duration::from_millis(7_500);

/// Requests at these rates per second, each for so many minutes.
fn rates(stages: &[(u32, f64)]) -> LoadSource {
    let stages =
        stages.iter().map(|(minutes, rate)| RateStage { lasts: MINUTE * *minutes, rate: *rate });
    LoadSource::Flow {
        shape: RateProfile::Stages(stages.collect()),
        mixes: vec![(Duration::ZERO, MIX)],
    }
}

fn config(name: &'static str, entry: &str) -> ConfigMap {
    ConfigMap { name, data: vec![("default", entry.to_owned())] }
}

/// By percentages: growth under load, and an outage of Prometheus that ends.
fn outage() -> Scenario {
    Scenario {
        troubles: vec![(MINUTE * 8, ScenarioFault::NoPrometheus(MINUTE * 7))],
        ..small(rates(&[(2, 4.0), (30, 40.0)]))
    }
}

/// By tokens: two variants of one model, and another model on the other kind of GPUs; the GPUs of the
/// first kind do not suffice.
fn limited() -> Scenario {
    let pose = |kv_usage, waiting| Pose { kv_usage, waiting };
    let full = LoadSource::Posed(vec![
        (Duration::ZERO, pose(0.5, 0.0)),
        (MINUTE * 3, pose(0.95, 8.0)),
        (MINUTE * 8, pose(0.05, 0.0)),
    ]);
    let even = LoadSource::Posed(vec![(Duration::ZERO, pose(0.4, 0.0))]);
    let better = ScenarioVariant { cost: 25.0, gpus: 2, ..variant("better") };
    let other =
        ScenarioVariant { accelerator: "A100", product: A100, replicas: 2, ..variant("other") };
    Scenario {
        nodes: vec![node("h100", 4, H100), node("a100", 4, A100)],
        models: vec![
            model("m", full.clone(), vec![better, variant("cheap")]),
            model("n", even, vec![other]),
        ],
        config: vec![config(
            "wva-saturation-scaling-config",
            "{analyzerName: saturation, enableLimiter: true}",
        )],
        ..small(full)
    }
}

/// To zero and back: a model wakes for requests, and rests after its retention.
fn rest() -> Scenario {
    let mut scenario = small(rates(&[(3, 0.0), (4, 2.0), (60, 0.0)]));
    scenario.config = vec![config(
        "wva-model-scale-to-zero-config",
        "{enable_scale_to_zero: true, retention_period: 3m}",
    )];
    let variant = &mut scenario.models[0].variants[0];
    (variant.replicas, variant.bounds) = (0, (0, 6));
    scenario
}

/// Plays a scene and describes it at these minutes.
fn play(scenario: &Scenario, minutes: &[u32]) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let began = tokio::time::Instant::now();
        let world = World::begin(scenario, SEED, DATE).await.unwrap();
        let objects = Insider::new(world.server.clone(), "golden");
        let mut pages: Vec<BTreeMap<String, String>> = Vec::new();
        let mut statuses = String::new();
        for minute in minutes {
            tokio::time::sleep_until(began + MINUTE * *minute + BETWEEN).await;
            pages.push(series(&world.metrics().await.unwrap()));
            writeln!(statuses, "\n## statuses, minute {minute}").unwrap();
            for object in objects.list("variantautoscalings.llmd.ai") {
                write_status(&mut statuses, &object);
            }
        }
        world.end().await;
        let mut text = format!("## /metrics, minutes {minutes:?}\n");
        write_series(&mut text, &pages);
        text + &statuses
    })
}

fn is_scene(name: &str, scenario: &Scenario, minutes: &[u32]) {
    let text = play(scenario, minutes);
    assert_eq!(text, play(scenario, minutes), "{name}: a second play differs");
    is_golden(&format!("scene-{name}.txt"), &text);
}

#[test]
fn scene_of_an_outage() {
    is_scene("outage", &outage(), &[1, 4, 7, 14, 20]);
}

#[test]
fn scene_of_limited_gpus() {
    is_scene("limited", &limited(), &[1, 4, 6, 14]);
}

#[test]
fn scene_of_rest() {
    is_scene("rest", &rest(), &[1, 4, 6, 12]);
}
