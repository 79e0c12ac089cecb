//! What chaos is played in: a scenario with so many controllers, and which faults it draws.

pub(super) mod autoscaled;

use std::time::Duration;

use clap::ValueEnum as _;

use super::dice::Dice;
use super::fault::{ChaosFault, Class, ObjectFault, ProcessFault};
use super::scale_to_zero::ScaleToZeroModel;
use super::schedule::FaultSchedule;
use crate::chaos::Mutation;
use crate::engine::StartUp;
use crate::load::{RateProfile, RateStage};
use crate::world::{ConfigMap, LoadSource, Replica, Scenario, ScenarioModel, days, quiet};
use wva::cluster::kinds::WatchedKind;
use wva::policy::key::{ModelKey, ObjectKey, VariantKey};
use wva::roles::Role;
use wva::settings::config_maps::ConfigMapNames;
use wva_supervise::{KillAt, SeedTree};

const MINUTE: Duration = Duration::from_mins(1);

const CROWD: u32 = 10_000;

#[derive(Debug, Clone)]
pub(crate) struct ChaosWorkload {
    pub(crate) name: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) sleeper: Option<ScaleToZeroModel>,
    pub(crate) more_pools: u32,
    pub(crate) main: Vec<(&'static str, &'static str)>,
    pub(crate) instance: Option<&'static str>,
    pub(crate) declared: Option<&'static str>,
    pub(crate) chooses_pods: bool,
    pub(crate) controllers: usize,
    /// When everything is put back; one last fault on the way to the API server may follow.
    pub(crate) faults_until: Duration,
    /// How long the load lasts after that, higher than before, until it ends: what serves has to be enough
    /// then.
    pub(crate) climb: Duration,
    /// How long after the last fault everything is at rest at the latest.
    pub(crate) rest: Duration,
    /// How long everything has been at rest when a run ends before its time.
    pub(crate) stays: Duration,
    /// How long it is, if no fault follows after everything was put back.
    pub(crate) lasts: Duration,
    pub(crate) mutation: Option<Mutation>,
    /// What ends the first process of the first controller, or one of its roles.
    pub(crate) probe: Option<Probe>,
    /// Classes of faults, each with how far its faults are from each other on average.
    pub(super) rates: Vec<(Class, Duration)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    Role(Role, KillAt),
    /// Of the process, at the write of this number, the first being 1.
    Write(u64, ProcessFault),
}

pub(crate) const PLOTS: [(&str, &str); 6] = [
    ("storm", "Three models, one to three controllers, faults of every class."),
    ("leaders", "Three controllers; faults of processes, actors and the API server above all."),
    ("brief", "As storm, in half an hour with faults closer to each other: for a first look."),
    (
        "crowd",
        "As brief, with three minutes of faults, and ten thousand objects that come at once and go after one.",
    ),
    ("quiet", "As storm, without faults."),
    ("probe", "One model and one controller until it rests, without faults."),
];

pub(crate) fn plot(name: &str, seed: u64) -> Option<ChaosWorkload> {
    let (name, _) = PLOTS.iter().find(|(known, _)| *known == name)?;
    Some(drawn(name, seed))
}

/// The one that [`PLOTS`] calls so.
pub(super) fn drawn(name: &'static str, seed: u64) -> ChaosWorkload {
    let mut dice = Dice::new(SeedTree::new(seed).child("plot"));
    let (faults_until, climb) = match name {
        "brief" => (MINUTE * 14, MINUTE * 8),
        "crowd" => (MINUTE * 6, MINUTE * 8),
        "probe" => (MINUTE * 3, Duration::ZERO),
        // With the time that everything stays at rest, two hours at least.
        _ => (MINUTE * 107, MINUTE * 10),
    };
    let load_until = faults_until + climb;
    let controllers = match name {
        "leaders" => 3,
        "probe" => 1,
        // Each of them has a role for every object.
        "crowd" => dice.place(2) + 1,
        _ => dice.place(3) + 1,
    };
    let rates = Class::value_variants().iter().copied();
    let mut scenario = match name {
        "probe" => small(faults_until),
        _ => furnished(stage(name, (faults_until, load_until), seed), &mut dice),
    };
    if name != "probe" {
        autoscaled::add(&mut scenario, seed, (faults_until, load_until));
    }
    let has_autoscaled = !scenario.autoscaled.is_empty();
    let mean = |class| match (name, class) {
        ("quiet" | "probe", _) => None,
        (_, Class::Autoscalers) if !has_autoscaled => None,
        ("leaders", Class::Controllers | Class::Actors | Class::Api) => Some(MINUTE * 2),
        ("leaders", _) => Some(MINUTE * 15),
        ("brief", _) => Some(MINUTE),
        ("crowd", _) => Some(MINUTE * 3),
        (_, Class::Settings | Class::Workloads) => Some(MINUTE * 8),
        _ => Some(MINUTE * 5),
    };
    let sleeper = sleeper(&scenario);
    let sleeps = sleeper.as_ref().and_then(|one| scenario.models.get(one.number));
    let is_slow = sleeps.is_some_and(|model| {
        model.variants.iter().all(|variant| variant.replica == Replica::Single)
    });
    let rest = rest(&scenario);
    ChaosWorkload {
        name,
        sleeper,
        scenario,
        more_pools: if is_slow { MORE_POOLS } else { 0 },
        main: settings(name, is_slow, seed, &mut dice),
        // So that an object may belong to another one.
        instance: has("instance", 50, name, seed).then_some("here"),
        declared: has("declared", 33, name, seed).then_some(DECLARED),
        chooses_pods: has("marks", 33, name, seed),
        controllers,
        faults_until,
        climb,
        rest,
        stays: match name {
            "probe" => MINUTE,
            _ => MINUTE * 3,
        },
        lasts: load_until + rest + MINUTE * 3,
        mutation: None,
        probe: None,
        rates: rates.filter_map(|class| Some((class, mean(class)?))).collect(),
    }
}

/// How long after the last fault, and the last request, everything is at rest at the latest: a replica that
/// never gets ready is waited for for ten minutes, and autoscalers wait for two.
const REST: Duration = Duration::from_mins(15);
/// How long the percentage-based analysis takes to give one replica up: it gives up one of a model at a
/// time, waits two minutes for it to go, and looks every half minute.
const GIVEN_UP: Duration = Duration::from_secs(150);

fn rest(scenario: &Scenario) -> Duration {
    if is_by_tokens(scenario) {
        return REST;
    }
    let surplus = |model: &ScenarioModel| -> u32 {
        let bounds = model.variants.iter().map(|variant| variant.bounds);
        bounds.map(|(least, most)| most.saturating_sub(least)).sum()
    };
    let most = scenario.models.iter().map(surplus).max();
    REST + GIVEN_UP * most.unwrap_or(0)
}

/// Three models whose load ends some time after the faults, at its peak: then everything has one resting
/// point. By the seed one of them may go to zero, one variant is known by its scale subresource alone, and replicas of one are groups.
fn stage(name: &str, until: (Duration, Duration), seed: u64) -> Scenario {
    let mut scenario = days();
    let (interval, scrape_interval) = match name {
        "brief" | "crowd" => (10, 10),
        _ => (30, 15),
    };
    scenario.interval = Duration::from_secs(interval);
    scenario.scrape_interval = Duration::from_secs(scrape_interval);
    // In the other runs whatever goes to zero is an error; in most of them policy alone keeps one from it.
    scenario.config.clear();
    let mut dice = Dice::new(SeedTree::new(seed).child("plot/kinds"));
    let (has_sleeper, has_single) = (dice.chance(50), dice.chance(50));
    let (has_groups, sleeps_alone) = (dice.chance(33), dice.chance(33));
    let is_bounded = Dice::new(SeedTree::new(seed).child("plot/bounded")).chance(30);
    for model in &mut scenario.models {
        let sleeps = has_sleeper && model.name == SLEEPER;
        let has_policy = sleeps || !is_bounded && model.name == SLEEPER;
        if let LoadSource::Flow { shape, .. } = &mut model.load {
            if has_policy {
                *shape = visits(name);
            }
            *shape = steps(shape, until);
        }
        for variant in &mut model.variants {
            variant.bounds.0 = (variant.bounds.0).max(u32::from(!has_policy));
            if has_single && variant.name == SINGLE || sleeps && sleeps_alone {
                variant.replica = Replica::Single;
            }
            if has_groups && variant.name == GROUPED {
                (variant.gpus, variant.replica) = PAIR;
            }
        }
        if has_policy {
            scenario.config.push(to_zero(name, model, sleeps));
        }
    }
    scenario
}

/// The model that may go to zero in half of the seeds, and in most others has no minimum and may not.
const SLEEPER: &str = "llama-8b";

fn retention(name: &str) -> Duration {
    match name {
        "brief" | "crowd" => MINUTE * 2,
        _ => MINUTE * 3,
    }
}

/// Requests that come for a few minutes, and stay away for long enough that the last replica has gone: after
/// retention its autoscaler waits for two minutes more.
fn visits(name: &str) -> RateProfile {
    let (every, length) = match name {
        "brief" | "crowd" => (MINUTE * 7, MINUTE * 2),
        _ => (MINUTE * 13, MINUTE * 4),
    };
    RateProfile::Burst { base: 0.0, peak: 0.5, every, length }
}

pub(super) fn to_zero(name: &str, model: &ScenarioModel, may_sleep: bool) -> ConfigMap {
    let entry = ConfigMap::zero_entry(model.id, may_sleep, retention(name));
    ConfigMap::of(ConfigMapNames::SCALE_TO_ZERO, model.name, entry)
}

/// Whether the policy of a model allows it to go to zero; where bounds alone do, it keeps a replica.
pub(super) fn may_go_to_zero(scenario: &Scenario, model: &ScenarioModel) -> bool {
    let mut entries = scenario.config.iter().flat_map(|map| &map.data);
    entries.any(|(key, text)| *key == model.name && text.contains("enable_scale_to_zero: true"))
}

pub(super) fn sleeper(scenario: &Scenario) -> Option<ScaleToZeroModel> {
    let may_sleep = |model: &ScenarioModel| may_go_to_zero(scenario, model);
    let number = scenario.models.iter().position(may_sleep)?;
    let model = scenario.models.get(number)?;
    let variants = model.variants.iter();
    Some(ScaleToZeroModel {
        number,
        model: ModelKey::new(scenario.namespace, model.id),
        variants: variants
            .map(|variant| VariantKey::new(scenario.namespace, variant.name))
            .collect(),
    })
}

/// The variant that is a ReplicaSet without a Deployment in half of the seeds.
const SINGLE: &str = "qwen3-8b-bf16";

/// The variant whose replicas are groups of two pods in a third of the seeds, with as many GPUs together.
const GROUPED: &str = "llama-70b-a100";
const PAIR: (u32, Replica) = (2, Replica::Group { workers: 1, gpus: 2 });

/// The variant without an object of its own in a third of the seeds.
const DECLARED: &str = "llama-70b-h100";

/// When one more request comes for the model that may go to zero, once everything that was broken is put
/// back: when it has gone to zero in most runs.
const LAST_VISIT: Duration = Duration::from_mins(8);

/// Settings under which samples are soon too old to be used.
const FORGETFUL: [(&str, &str); 3] = [
    ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "20s"),
    ("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "40s"),
    ("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", "60s"),
];

/// With those of the models more than are asked in one step where routers are asked one by one. All pools
/// are asked for a model at zero that is known by its scale subresource alone.
const MORE_POOLS: u32 = 5;
const ONE_BY_ONE: (&str, &str) = ("SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY", "1");

/// A setting under which metrics are collected between cycles, too.
const CURIOUS: (&str, &str) = ("PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL", "12s");

fn settings(
    name: &str,
    is_slow: bool,
    seed: u64,
    dice: &mut Dice,
) -> Vec<(&'static str, &'static str)> {
    let mut main = Vec::new();
    if name == "probe" {
        return main;
    }
    if dice.chance(50) {
        main.extend(FORGETFUL);
    }
    if has("settings", 20, name, seed) {
        main.push(CURIOUS);
    }
    if is_slow {
        main.push(ONE_BY_ONE);
    }
    main
}

/// Whether a run has a property that so many of a hundred seeds have.
fn has(what: &str, percent: u64, name: &str, seed: u64) -> bool {
    let mut dice = Dice::new(SeedTree::new(seed).child(&format!("plot/{what}")));
    name != "probe" && dice.chance(percent)
}

/// Fewer GPUs than all variants may use together, within which growth is kept; and those of the nodes.
const QUOTA: &str = "\
enableLimiter: true
limiters:
- {name: budget, type: quota, scope: cluster, quotas: {H100: 12, A100: 12}}
";
pub(super) const BY_TOKENS: &str = "analyzerName: saturation\n";
pub(super) const BY_LATENCY: &str = "analyzerName: slo\n";

pub(super) fn is_by_tokens(scenario: &Scenario) -> bool {
    states(scenario, BY_TOKENS)
}

pub(super) fn is_by_latency(scenario: &Scenario) -> bool {
    states(scenario, BY_LATENCY)
}

fn states(scenario: &Scenario, analyzer: &str) -> bool {
    let mut config = scenario.config.iter().flat_map(|map| &map.data);
    config.any(|(_, text)| text.contains(analyzer))
}

pub(super) const INVENTORY: &str = "enableLimiter: true\n";

fn furnished(mut scenario: Scenario, dice: &mut Dice) -> Scenario {
    let mut entry = String::new();
    match dice.below(100) {
        0..50 => entry.push_str(BY_TOKENS),
        50..75 => entry.push_str(BY_LATENCY),
        _ => {}
    }
    match dice.below(4) {
        0 => entry.push_str(QUOTA),
        1 => entry.push_str(INVENTORY),
        _ => {}
    }
    if !entry.is_empty() {
        scenario.config.push(ConfigMap::saturation(entry));
    }
    scenario
}

fn small(until: Duration) -> Scenario {
    let mut scenario = quiet().coarse();
    scenario.interval = Duration::from_secs(10);
    scenario.scrape_interval = Duration::from_secs(10);
    for model in &mut scenario.models {
        if let LoadSource::Flow { shape, .. } = &mut model.load {
            *shape = steps(&RateProfile::Constant { rate: 5.0 }, (until, until));
        }
        for variant in &mut model.variants {
            variant.start_up = StartUp::WAKING;
            variant.limits.max_num_seqs = 4;
        }
    }
    scenario
}

/// How much higher the load is in the end than ever before: several replicas of each model.
const CLIMB: f64 = 2.0;

/// A shape as steps of a minute, more than its highest one up to the end, then nothing.
fn steps(shape: &RateProfile, (until, end): (Duration, Duration)) -> RateProfile {
    let minutes = u32::try_from(until.as_secs() / 60).unwrap_or(0);
    let stage = |minute: u32| RateStage { lasts: MINUTE, rate: shape.rate(MINUTE * minute) };
    let mut stages: Vec<RateStage> = (0..minutes).map(stage).collect();
    let peak = stages.iter().map(|stage| stage.rate).fold(0.0, f64::max);
    stages.push(RateStage { lasts: end.saturating_sub(until), rate: peak * CLIMB });
    RateProfile::Stages(stages)
}

impl ChaosWorkload {
    pub(super) fn climbed(&self) -> Duration {
        self.faults_until + self.climb
    }

    /// The world with one more visit for the model that may go to zero after these faults, and when that
    /// has ended.
    pub(super) fn visited(&self, schedule: &FaultSchedule) -> (Scenario, Duration) {
        let calm = self.climbed().max(schedule.end());
        let mut scenario = self.scenario.clone();
        let number = self.sleeper.as_ref().map(|sleeper| sleeper.number);
        let model = number.and_then(|number| scenario.models.get_mut(number));
        let Some(LoadSource::Flow { shape: RateProfile::Stages(stages), .. }) =
            model.map(|model| &mut model.load)
        else {
            return (scenario, calm);
        };
        let before: Duration = stages.iter().map(|stage| stage.lasts).sum();
        let at = calm + LAST_VISIT;
        stages.extend([
            RateStage { lasts: at.saturating_sub(before), rate: 0.0 },
            RateStage { lasts: MINUTE, rate: 0.5 },
        ]);
        (scenario, at + MINUTE)
    }

    pub(crate) fn variants(&self) -> Vec<VariantKey> {
        let variants = self.scenario.variants();
        variants.map(|variant| VariantKey::new(self.scenario.namespace, variant.name)).collect()
    }

    pub(crate) fn autoscalers(&self) -> Vec<ObjectKey> {
        let autoscaled = self.scenario.autoscaled.iter();
        let variants = autoscaled.flat_map(|one| &one.model.variants);
        variants.map(|variant| ObjectKey::new(self.scenario.namespace, variant.name)).collect()
    }

    pub(super) fn also(&self) -> Vec<Role> {
        let mut kinds = Vec::new();
        if self.scenario.has_groups() {
            kinds.push(WatchedKind::LeaderWorkerSet);
        }
        let mut config = self.scenario.config.iter().flat_map(|map| &map.data);
        if config.any(|(_, text)| text.contains(INVENTORY) && !text.contains(QUOTA)) {
            kinds.extend([WatchedKind::Node, WatchedKind::HoldingPod]);
        }
        let marker = self.chooses_pods.then_some(Role::PodMarker);
        kinds.into_iter().map(Role::Watcher).chain(marker).collect()
    }

    pub(crate) fn schedule(&self, seed: u64) -> FaultSchedule {
        let drawn = FaultSchedule::draw(seed, self);
        match self.name {
            "crowd" => {
                let crowd = ChaosFault::Object(0, ObjectFault::Crowd(CROWD));
                drawn.with(MINUTE * 4, MINUTE, crowd)
            }
            _ => drawn,
        }
    }
}
