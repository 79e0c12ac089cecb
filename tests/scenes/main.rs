//! Whole stories in virtual time: a controller among a cluster, its servers and users, and what
//! follows from its settings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction,
    missing_docs,
    reason = "test code"
)]

mod accelerators;
mod analyzers;
mod deletion_cost;
mod direct;
mod groups;
mod incidents;
mod one_model;
mod pairs;
mod pod_autoscalers;
mod rebalance;
mod refused_wake;
mod sglang;
mod shapes;
mod thresholds;
mod throughput;
mod waking;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use wva::policy::capacity::ServingRole;
use wva::policy::plan::{Decision, ModelFigures};
use wva_sim::apiserver::Insider;
use wva_sim::engine::{Dialect, Mix, StartUp};
use wva_sim::load::{RateProfile, RateStage};
use wva_sim::workloads::NodeGroup;
use wva_sim::world::{
    ConfigMap, Frame, LoadSource, Pose, Replica, Scenario, ScenarioFault, ScenarioVariant, World,
};

use one_model::{A100, CYCLE, DATE, H100, MINUTE, MIX, model, node, small, variant};

/// The ConfigMap that chooses analyzers, thresholds and limits.
const SATURATION: &str = "wva-saturation-scaling-config";

/// Requests at these rates per second, each from its moment on.
fn rates(steps: &[(Duration, f64)]) -> LoadSource {
    let mut stages = Vec::new();
    for (place, (from, rate)) in steps.iter().enumerate() {
        let next = steps.get(place + 1).map_or(Duration::from_hours(24), |(at, _)| *at);
        let lasts = next - *from;
        stages.push(RateStage { lasts, rate: *rate });
    }
    LoadSource::Flow { shape: RateProfile::Stages(stages), mixes: vec![(Duration::ZERO, MIX)] }
}

/// Servers that show these shares of their KV caches and queues, each from its moment on.
fn posed(poses: &[(Duration, f64, f64)]) -> LoadSource {
    let pose = |(from, kv_usage, waiting): &(Duration, f64, f64)| {
        let (kv_usage, waiting) = (*kv_usage, *waiting);
        (*from, Pose { kv_usage, waiting })
    };
    LoadSource::Posed(poses.iter().map(pose).collect())
}

/// The `default` entry of the policy for saturation.
fn policy(text: &str) -> Vec<ConfigMap> {
    vec![ConfigMap { name: SATURATION, data: vec![("default", text.to_owned())] }]
}

/// An entry that lets a model, or all by `default`, go to zero after five idle minutes.
fn to_zero(model: &'static str) -> ConfigMap {
    let whom = if model == "default" { String::new() } else { format!("model_id: {model}\n") };
    ConfigMap {
        name: "wva-model-scale-to-zero-config",
        data: vec![(model, format!("{whom}enable_scale_to_zero: true\nretention_period: 5m"))],
    }
}

async fn begin(scenario: &Scenario) -> World {
    World::begin(scenario, 1, DATE).await.unwrap()
}

/// Changes the `default` entry of the policy; an empty text takes it away.
async fn change_policy(world: &World, text: &str) {
    let person = Insider::new(world.server.clone(), "person");
    let path = format!("/api/v1/namespaces/wva-system/configmaps/{SATURATION}");
    let entry = if text.is_empty() { json!(null) } else { json!(text) };
    let change = json!({"data": {"default": entry}});
    person.merge(&path, &change).await.unwrap();
}

/// The first frame for which something holds, which it must within `limit`.
async fn until(world: &World, limit: Duration, holds: impl Fn(&Frame) -> bool) -> Arc<Frame> {
    let mut frames = world.frames.clone();
    let seen = frames.wait_for(|frame| holds(frame));
    if let Ok(seen) = tokio::time::timeout(limit, seen).await {
        return Arc::clone(&seen.unwrap());
    }
    panic!("not within {limit:?}: {:#?}", world.frame())
}

/// Looks at every frame of a time.
async fn throughout(world: &World, lasts: Duration, look: impl Fn(&Frame)) {
    let mut frames = world.frames.clone();
    let every = async {
        loop {
            frames.changed().await.unwrap();
            look(&frames.borrow_and_update().clone());
        }
    };
    let over: Result<(), _> = tokio::time::timeout(lasts, every).await;
    assert!(over.is_err());
}

/// What the controller publishes for a variant is this count in every frame of a time.
async fn stays(world: &World, lasts: Duration, variant: &str, count: u32) {
    throughout(world, lasts, |frame| {
        assert_eq!(desired(frame, variant), Some(count), "{frame:#?}");
    })
    .await;
}

/// What the controller publishes for a variant.
fn desired(frame: &Frame, variant: &str) -> Option<u32> {
    let mut variants = frame.models.iter().flat_map(|model| &model.variants);
    variants.find(|one| one.name == variant)?.desired
}

/// Replicas that the Deployment of variant `v` states.
fn stated(frame: &Frame) -> u32 {
    scaled_to(frame, "v")
}

fn scaled_to(frame: &Frame, variant: &str) -> u32 {
    let mut variants = frame.models.iter().flat_map(|model| &model.variants);
    let found = variants.find(|one| one.name == variant);
    found.map_or(0, |one| one.scaled_to)
}

fn ready(frame: &Frame, variant: &str) -> u32 {
    let mut variants = frame.models.iter().flat_map(|model| &model.variants);
    let found = variants.find(|one| one.name == variant);
    found.map_or(0, |one| one.ready)
}

fn decision(world: &World, variant: &str) -> Decision {
    let plan = world.plan().unwrap();
    let mut decisions = plan.decisions.values();
    decisions.find(|one| &*one.key.name == variant).unwrap().clone()
}

/// What was measured of a model last.
fn figures(world: &World, model: &str) -> ModelFigures {
    let plan = world.plan().unwrap();
    let mut models = plan.models.iter();
    let found = models.find(|(key, _)| &*key.model == model);
    found.map(|(_, figures)| figures.clone()).unwrap_or_default()
}
