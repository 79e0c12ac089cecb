//! A fleet that is written down in few words, and what the analyzer shows of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::accelerator::Accelerator;
use crate::capacity::{Assessment, ServingRole};
use crate::engine_args::{ContainerCommand, EngineArgs, KvTokens, parse};
use crate::key::{ModelKey, VariantKey};
use crate::params::{SaturationThresholds, UtilizationBand};
use crate::tokens::{
    InstanceInput, LearnedTokens, RouterQueue, TokenModelInput, TokenVariantInput, TokensReport,
    assess,
};
use crate::units::{Gpus, Replicas};
use wva_base::moment::{Moment, WallTime};

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Instance {
    #[serde(default = "one")]
    repeat: u32,
    #[serde(default = "usual_total")]
    total: f64,
    used: Option<f64>,
    kv: Option<f64>,
    waiting: Option<f64>,
    input: Option<f64>,
    output: Option<f64>,
    hit: Option<f64>,
}

fn one() -> u32 {
    1
}

fn usual_total() -> f64 {
    16_000.0
}

impl Instance {
    fn read(&self) -> InstanceInput {
        InstanceInput {
            kv_usage: self.kv.or_else(|| self.used.map(|used| used / self.total)),
            kv_capacity: Some(KvTokens(self.total)),
            waiting: self.waiting,
            input_tokens: self.input,
            output_tokens: self.output,
            hit_rate: self.hit,
        }
    }
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Variant {
    role: ServingRole,
    accelerator: Option<Arc<str>>,
    gpus: Option<u32>,
    args: Option<Vec<Arc<str>>>,
    ready: Option<u32>,
    pending: u32,
    instances: BTreeMap<String, Instance>,
}

pub(super) fn engine(args: &[Arc<str>]) -> EngineArgs {
    let parsed = parse(&[ContainerCommand { args: args.to_vec(), ..ContainerCommand::default() }]);
    assert_eq!(parsed.faults, []);
    parsed.args
}

impl Variant {
    fn read(&self) -> TokenVariantInput {
        let mut instances = BTreeMap::new();
        for (name, instance) in &self.instances {
            for copy in 0..instance.repeat {
                let name = if copy == 0 { name.clone() } else { format!("{name}{copy}") };
                instances.insert(Arc::from(name), instance.read());
            }
        }
        let count = u32::try_from(instances.len()).unwrap();
        TokenVariantInput {
            role: self.role,
            accelerator: Accelerator::Named(
                self.accelerator.clone().unwrap_or_else(|| Arc::from("H100")),
            ),
            gpus: Gpus(self.gpus.unwrap_or(1)),
            engine: self.args.as_deref().map(engine),
            fingerprint: None,
            ready: Replicas(self.ready.unwrap_or(count)),
            pending: Replicas(self.pending),
            instances: instances.into_iter().collect(),
        }
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cycle {
    /// Seconds since the one before.
    #[serde(default = "usual_interval")]
    after: u64,
    router: Option<RouterQueue>,
    #[serde(default)]
    default_output: Option<f64>,
    variants: BTreeMap<String, Variant>,
}

fn usual_interval() -> u64 {
    15
}

#[derive(Clone, Copy)]
pub(super) struct Policy {
    pub(super) thresholds: SaturationThresholds,
    pub(super) band: UtilizationBand,
}

impl Policy {
    pub(super) fn usual() -> Self {
        Self { thresholds: SaturationThresholds::default(), band: UtilizationBand::default() }
    }
}

/// Models by namespace; a variant without one is in `ns`.
pub(super) fn models(cycle: &Cycle, policy: Policy) -> BTreeMap<ModelKey, TokenModelInput> {
    let mut models = BTreeMap::new();
    for (name, variant) in &cycle.variants {
        let (namespace, name) = name.split_once('/').unwrap_or(("ns", name));
        let model = models.entry(ModelKey::new(namespace, "test-model")).or_insert_with(|| {
            TokenModelInput {
                thresholds: policy.thresholds,
                band: policy.band,
                router: cycle.router,
                default_output: cycle.default_output,
                variants: BTreeMap::new(),
            }
        });
        model.variants.insert(VariantKey::new(namespace, name), variant.read());
    }
    models
}

#[derive(Default)]
pub(super) struct Fleet {
    pub(super) learned: LearnedTokens,
    pub(super) seconds: u64,
}

impl Fleet {
    pub(super) fn now(&self) -> Moment {
        Moment {
            monotonic: Duration::from_secs(self.seconds),
            wall: WallTime(i64::try_from(self.seconds).unwrap() * 1_000),
        }
    }

    pub(super) fn step(
        &mut self,
        models: &BTreeMap<ModelKey, TokenModelInput>,
    ) -> Vec<(Assessment, TokensReport)> {
        let now = self.now();
        self.learned = std::mem::take(&mut self.learned).learn(models, now);
        models.iter().map(|(key, model)| assess(key, model, &self.learned, now)).collect()
    }

    pub(super) fn cycle(&mut self, cycle: &Cycle, policy: Policy) -> BTreeMap<String, Value> {
        self.seconds += cycle.after;
        let mut figures = BTreeMap::new();
        for (assessment, report) in self.step(&models(cycle, policy)) {
            let capacities = serde_json::to_value(&assessment.variants).unwrap();
            for (key, capacity) in capacities.as_object().unwrap() {
                let name = key.strip_prefix("ns/").unwrap_or(key);
                flatten(&format!("{name}.capacity"), capacity, &mut figures);
            }
            figures.insert("roles".to_owned(), Value::from(report.roles.len()));
            flatten("", &serde_json::to_value(&report).unwrap(), &mut figures);
        }
        figures
    }
}

/// Names that say nothing where every number has another one behind it.
const LEVELS: [&str; 4] = ["variants", "instances", "roles", "balance"];

fn flatten(prefix: &str, value: &Value, figures: &mut BTreeMap<String, Value>) {
    let Value::Object(map) = value else {
        figures.insert(prefix.to_owned(), value.clone());
        return;
    };
    for (key, value) in map {
        let key = key.strip_prefix("ns/").unwrap_or(key);
        let name = match (prefix, LEVELS.contains(&key)) {
            (_, true) => prefix.to_owned(),
            ("", false) => key.to_owned(),
            (prefix, false) => format!("{prefix}.{key}"),
        };
        flatten(&name, value, figures);
    }
}
