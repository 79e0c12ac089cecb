//! Scenarios by name or file, and the worlds that they describe.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::change::ScenarioChange;
use super::check::profile;
use super::loads::{ModelLoad, load_of};
use super::random::drawn;
use super::schema::{LabModel, LabScenario, LatencySlo, RouterSpec, VariantSpec};
use crate::engine::{Dialect, Profile, Sleepers, StartUp};
use crate::router::FlowControl;
use crate::threads::locked;
use crate::world::{
    ConfigMap, LoadSource, Replica, RequestLog, Scenario, ScenarioModel, ScenarioVariant, Slo,
};
use wva::settings::config_maps::ConfigMapNames;
use wva_base::yaml::check_bounds;

pub(super) const NAMESPACE: &str = "llm-d";

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("scenarios/", $name, ".yaml")))),+]
    };
}

/// The scenarios that come with the program, by name. Those of a study repeat published settings; they, those of the
/// gates and the one with sleepers are played by name alone.
pub(crate) const BUILT_IN: [(&str, &str); 22] = built_in![
    "step",
    "step-early",
    "steady",
    "ramp-slow",
    "ramp-fast",
    "azure-conversation",
    "azure-code",
    "mooncake-conversation",
    "servegen-m-large",
    "deepseek-r1",
    "aibrix-wave",
    "two-variants",
    "unlike-variants",
    "shape-swap",
    "to-zero",
    "prefill-decode",
    "study-step",
    "study-conversation",
    "study-mooncake",
    "gate-waves",
    "gate-conversation",
    "sleepers",
];

#[derive(Debug, Clone)]
pub(crate) struct LoadedScenario {
    /// Its text, a part of the key of its runs.
    pub text: Arc<str>,
    pub(super) spec: Arc<LabScenario>,
}

impl LoadedScenario {
    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(crate) fn about(&self) -> &str {
        &self.spec.about
    }

    /// Reads a text; `origin` names it in errors.
    pub(crate) fn read(text: &str, origin: &str) -> Result<Self, String> {
        check_bounds(text).map_err(|error| unreadable(origin, error))?;
        let spec: LabScenario =
            serde_yaml::from_str(text).map_err(|error| unreadable(origin, error))?;
        spec.check()?;
        Ok(Self { text: text.into(), spec: Arc::new(spec) })
    }
}

fn unreadable(file: &str, problem: impl Display) -> String {
    format!("scenario {file}: {problem}; docs/development/laboratory.md lists the fields")
}

/// Loads a built-in scenario by name, one that is drawn from a number, or a file.
pub(crate) fn load(name: &str) -> Result<LoadedScenario, String> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return LoadedScenario::read(text, name);
    }
    if let Some(text) = drawn(name) {
        return LoadedScenario::read(&text, name);
    }
    let text = std::fs::read_to_string(Path::new(name)).map_err(|error| {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        format!("scenario {name}: {name}: {error}; give a file, random-N or one of {names}")
    })?;
    LoadedScenario::read(&text, name)
}

/// The same with fields changed.
pub(crate) fn load_changed(
    name: &str,
    changes: &[ScenarioChange],
) -> Result<LoadedScenario, String> {
    let loaded = load(name)?;
    if changes.is_empty() {
        return Ok(loaded);
    }
    let document = serde_yaml::from_str(&loaded.text);
    let mut document = document.map_err(|error| unreadable(name, error))?;
    for change in changes {
        let applied = change.apply(&mut document);
        applied.map_err(|problem| unreadable(name, problem))?;
    }
    let text = serde_yaml::to_string(&document).map_err(|error| unreadable(name, error))?;
    LoadedScenario::read(&text, name)
}

/// A text that lives as long as the process. Worlds name things statically; there are as many texts as names in files.
fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = locked(&KNOWN);
    if let Some(text) = known.get(text) {
        return text;
    }
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(text);
    text
}

#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) scenario: Scenario,
    pub(super) loads: Vec<ModelLoad>,
    pub(super) logs: Vec<RequestLog>,
}

pub(super) fn prepare(
    spec: &LabScenario,
    traces: Option<&Path>,
    seed: u64,
) -> Result<Prepared, String> {
    let mut prepared = Prepared { scenario: world(spec), loads: Vec::new(), logs: Vec::new() };
    for (model, placed) in spec.models.iter().zip(&mut prepared.scenario.models) {
        let load = load_of(spec, model, traces, seed)?;
        let log = RequestLog::default();
        placed.load =
            LoadSource::Prepared { arrivals: Arc::clone(&load.arrivals), log: log.clone() };
        prepared.loads.push(load);
        prepared.logs.push(log);
    }
    Ok(prepared)
}

fn world(spec: &LabScenario) -> Scenario {
    Scenario {
        name: interned(&spec.name),
        about: interned(&spec.about),
        namespace: NAMESPACE,
        nodes: spec.nodes.clone(),
        models: spec.models.iter().map(model).collect(),
        autoscaled: Vec::new(),
        config: to_zero(spec).into_iter().collect(),
        troubles: Vec::new(),
        interval: spec.interval.0,
        scrape_interval: spec.scrape.0,
        missing: spec.missing.clone(),
        without: None,
    }
}

fn to_zero(spec: &LabScenario) -> Option<ConfigMap> {
    let data: Vec<(&'static str, String)> = spec
        .models
        .iter()
        .filter_map(|model| {
            let after = model.scale_to_zero_after?.0;
            let entry = ConfigMap::zero_entry(&model.id, true, after);
            Some((interned(&model.name), entry))
        })
        .collect();
    (!data.is_empty()).then_some(ConfigMap { name: ConfigMapNames::SCALE_TO_ZERO, data })
}

pub(super) fn slo(slo: LatencySlo) -> Slo {
    Slo { first_token: slo.ttft.0, per_token: slo.itl.0 }
}

fn model(spec: &LabModel) -> ScenarioModel {
    let RouterSpec { binding, order, max_requests, ttl, queue_depth, kv_usage, transfer } =
        spec.router;
    let ttl = ttl.0;
    ScenarioModel {
        name: interned(&spec.name),
        id: interned(&spec.id),
        slo: slo(spec.slo),
        load: LoadSource::Posed(Vec::new()),
        dialect: Dialect::Vllm,
        flow_control: Some(FlowControl { max_requests, ttl, queue_depth, kv_usage, order }),
        binding,
        handover: transfer.0 / 1000,
        variants: spec.variants.iter().map(variant).collect(),
    }
}

fn variant(spec: &VariantSpec) -> ScenarioVariant {
    ScenarioVariant {
        name: interned(&spec.name),
        role: spec.role,
        accelerator: interned(&spec.accelerator),
        product: interned(&spec.product),
        replica: Replica::Pod,
        gpus: spec.gpus,
        cost: spec.cost,
        profile: profile(&spec.profile).unwrap_or(Profile::QWEN3_8B_FP8_H100),
        limits: spec.limits,
        start_up: StartUp {
            image_pull: Duration::ZERO,
            median: spec.start_up.median(),
            p95: spec.start_up.p95(),
            asleep: spec
                .start_up
                .asleep
                .map(|asleep| Sleepers { most: asleep.count, wake: asleep.wake.0 }),
        },
        replicas: spec.replicas,
        bounds: (spec.min, spec.max),
    }
}
