//! Deployments of their own that PodAutoscalers scale.

use std::time::Duration;

use crate::chaos::dice::Dice;
use crate::engine::{Mix, Profile, StartUp};
use crate::load::{RateProfile, RateStage};
use crate::workloads::NodeGroup;
use crate::world::{AutoscaledModel, LoadSource, Replica, Scenario};
use wva::policy::pod_autoscaler::check::ScalingStrategy;
use wva_supervise::SeedTree;

const MINUTE: Duration = Duration::from_mins(1);
const PRODUCT: &str = "NVIDIA-L40S";
/// Requests that each of them serves at once in the small scenario.
const SEQUENCES: u32 = 48;
const SHARE: u64 = 50;
const MIX: Mix = Mix { prompt_tokens: 1_000, output_tokens: 200, cached: 0.0 };

pub(super) fn add(scenario: &mut Scenario, seed: u64, until: (Duration, Duration)) {
    let mut dice = Dice::new(SeedTree::new(seed).child("plot/autoscalers"));
    if !dice.chance(SHARE) {
        return;
    }
    let kinds: &[ScalingStrategy] = match dice.below(3) {
        0 => &[ScalingStrategy::Kpa],
        1 => &[ScalingStrategy::Apa],
        _ => &[ScalingStrategy::Kpa, ScalingStrategy::Apa],
    };
    add_each(scenario, kinds, &bursts((MINUTE * 6, MINUTE * 4), until));
}

pub(in crate::chaos) fn add_one(scenario: &mut Scenario, until: Duration) {
    let shape = bursts((MINUTE, MINUTE * 2), (until, until));
    add_each(scenario, &[ScalingStrategy::Kpa], &shape);
    let models = scenario.autoscaled.iter_mut().map(|one| &mut one.model);
    for variant in models.flat_map(|model| &mut model.variants) {
        // More than the target: a server that is full early never shows that it needs help.
        variant.limits.max_num_seqs = SEQUENCES;
    }
}

fn add_each(scenario: &mut Scenario, kinds: &[ScalingStrategy], shape: &RateProfile) {
    let models = kinds.iter().filter_map(|kind| model(scenario, *kind, shape));
    let models: Vec<AutoscaledModel> = models.collect();
    scenario.autoscaled = models;
    scenario.nodes.push(NodeGroup {
        name: "l40s".to_owned(),
        count: 1,
        gpus: 16,
        product: PRODUCT.to_owned(),
    });
}

fn model(
    scenario: &Scenario,
    strategy: ScalingStrategy,
    shape: &RateProfile,
) -> Option<AutoscaledModel> {
    let mut model = scenario.models.first()?.clone();
    let name = match strategy {
        ScalingStrategy::Kpa => "autoscaled-kpa",
        ScalingStrategy::Apa | ScalingStrategy::Hpa => "autoscaled-apa",
    };
    (model.name, model.id) = (name, name);
    model.load = LoadSource::Flow { shape: shape.clone(), mixes: vec![(Duration::ZERO, MIX)] };
    model.variants.truncate(1);
    for variant in &mut model.variants {
        variant.name = name;
        (variant.accelerator, variant.product) = ("L40S", PRODUCT);
        (variant.replica, variant.gpus) = (Replica::Pod, 1);
        (variant.profile, variant.start_up) = (Profile::QWEN3_8B_BF16_H100, StartUp::WAKING);
        (variant.replicas, variant.bounds) = (1, (1, 6));
    }
    Some(AutoscaledModel {
        model,
        strategy,
        metric: "num_requests_running",
        per_replica: 8.0,
        windows: (120, 30),
        // A release waits for nothing but a full window.
        annotations: vec![("scale-down-cooldown-window", "10s")],
    })
}

fn bursts((quiet, busy): (Duration, Duration), (until, end): (Duration, Duration)) -> RateProfile {
    let stage = |lasts, rate| RateStage { lasts, rate };
    let mut stages = Vec::new();
    let mut at = Duration::ZERO;
    while at < until {
        for (lasts, rate) in [(quiet, 1.0), (busy, 12.0)] {
            let lasts = lasts.min(until.saturating_sub(at));
            stages.push(stage(lasts, rate));
            at += lasts;
        }
    }
    stages.push(stage(end.saturating_sub(until), 12.0));
    RateProfile::Stages(stages)
}
