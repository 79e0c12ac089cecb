//! A scenario of the laboratory as a file. docs/development/laboratory.md documents the fields.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::number;
use crate::engine::Limits;
use crate::load::Sharing;
use crate::router::{Binding, QueueOrder};
use crate::workloads::NodeGroup;
use crate::world::HiddenSignal;
use wva::policy::capacity::ServingRole;

/// A length of time as text, for example `150s`, `20m` or `1h 30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct TimeSpan(pub(super) Duration);

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text).map(Self).map_err(|error| {
            let wanted = "give a time, for example 150s, 20m or 2h";
            serde::de::Error::custom(format!("{text:?} is not a time ({error}); {wanted}"))
        })
    }
}

impl TimeSpan {
    pub(super) const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    const fn default_of<const SECONDS: u64>() -> Self {
        Self::seconds(SECONDS)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LabScenario {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) duration: TimeSpan,
    #[serde(default = "TimeSpan::default_of::<1_200>")]
    pub(super) prelude: TimeSpan,
    #[serde(default = "TimeSpan::default_of::<300>")]
    pub(super) tail: TimeSpan,
    #[serde(default = "TimeSpan::default_of::<30>")]
    pub(super) interval: TimeSpan,
    #[serde(default = "TimeSpan::default_of::<15>")]
    pub(super) scrape: TimeSpan,
    #[serde(default)]
    pub(super) missing: Vec<HiddenSignal>,
    #[serde(default)]
    pub(super) actuation: ActuationSpec,
    pub(super) nodes: Vec<NodeGroup>,
    pub(super) models: Vec<LabModel>,
}

/// One of three ways from a decision to the scale of a workload.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ActuationSpec {
    pub(super) hpa: Option<HpaActuation>,
    pub(super) direct: Option<Empty>,
    pub(super) keda: Option<KedaActuation>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Empty {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct HpaActuation {
    pub(super) sync: TimeSpan,
    pub(super) up: TimeSpan,
    pub(super) down: TimeSpan,
    /// Pods that may be added in 15 s, where that is not the default of Kubernetes: 4 or as many as there are.
    pub(super) pods: Option<u32>,
}

impl Default for HpaActuation {
    fn default() -> Self {
        Self {
            sync: TimeSpan::seconds(15),
            up: TimeSpan::seconds(0),
            down: TimeSpan::seconds(120),
            pods: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct KedaActuation {
    /// Time between two looks for activation.
    pub(super) poll: TimeSpan,
    /// How long a metric stays at zero before the last replica goes.
    pub(super) cooldown: TimeSpan,
    pub(super) down: TimeSpan,
}

impl Default for KedaActuation {
    fn default() -> Self {
        Self {
            poll: TimeSpan::seconds(30),
            cooldown: TimeSpan::seconds(300),
            down: TimeSpan::seconds(300),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LabModel {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) slo: LatencySlo,
    #[serde(default)]
    pub(super) router: RouterSpec,
    /// Idle time before the model goes to zero; it never does without.
    pub(super) scale_to_zero_after: Option<TimeSpan>,
    pub(super) variants: Vec<VariantSpec>,
    pub(super) load: Vec<LoadPart>,
}

/// The router of a model.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct RouterSpec {
    pub(super) binding: Binding,
    pub(super) order: QueueOrder,
    pub(super) max_requests: usize,
    pub(super) ttl: TimeSpan,
    pub(super) queue_depth: f64,
    pub(super) kv_usage: f64,
    pub(super) transfer: TimeSpan,
}

impl Default for RouterSpec {
    fn default() -> Self {
        Self {
            binding: Binding::Late,
            order: QueueOrder::Fcfs,
            max_requests: 10_000,
            ttl: TimeSpan::seconds(600),
            queue_depth: 5.0,
            kv_usage: 0.8,
            transfer: TimeSpan(Duration::from_millis(10)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LatencySlo {
    pub(super) ttft: TimeSpan,
    /// Longest mean time between the tokens of a request.
    pub(super) itl: TimeSpan,
    /// Share of the requests of a minute that is to be within each of both.
    pub(super) quantile: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct VariantSpec {
    pub(super) name: String,
    pub(super) accelerator: String,
    pub(super) product: String,
    #[serde(default)]
    pub(super) role: ServingRole,
    pub(super) gpus: u32,
    pub(super) cost: f64,
    pub(super) profile: String,
    #[serde(default = "Limits::of_api_server")]
    pub(super) limits: Limits,
    pub(super) start_up: StartUpSpec,
    pub(super) replicas: u32,
    pub(super) min: u32,
    pub(super) max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StartUpKind {
    /// The image and the weights come over the network.
    Cold,
    /// Both are on the node.
    Cached,
}

/// The log-normal time from the start of a container to its readiness.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StartUpSpec {
    pub(super) kind: StartUpKind,
    /// Its median; by default 240 s cold and 120 s cached.
    #[serde(default)]
    pub(super) median: Option<TimeSpan>,
    /// Standard deviation of its logarithm.
    #[serde(default = "sigma")]
    pub(super) sigma: f64,
    pub(super) asleep: Option<AsleepSpec>,
}

/// Replicas that stay asleep when they are released, in vLLM's sleep mode, level 1.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct AsleepSpec {
    /// How many of the variant at most.
    pub(super) count: u32,
    /// The median of the time in which one wakes up; its `sigma` is that of a start.
    pub(super) wake: TimeSpan,
}

fn sigma() -> f64 {
    0.175
}

impl StartUpSpec {
    pub(super) fn median(&self) -> Duration {
        let measured = match self.kind {
            StartUpKind::Cold => TimeSpan::seconds(240),
            StartUpKind::Cached => TimeSpan::seconds(120),
        };
        self.median.unwrap_or(measured).0
    }

    /// The time that 95 % of all starts need at most.
    pub(super) fn p95(&self) -> Duration {
        const P95: f64 = 1.644_853_626_951;
        number::duration(self.median().as_secs_f64() * (P95 * self.sigma).exp())
    }
}

/// One part of a load: a generator with lengths, or a trace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct LoadPart {
    pub(super) class: Option<String>,
    /// The objective of its requests, where it is not the model's.
    pub(super) slo: Option<LatencySlo>,
    pub(super) constant: Option<ConstantRate>,
    pub(super) step: Option<StepRate>,
    pub(super) ramp: Option<RampRate>,
    pub(super) wave: Option<WaveRate>,
    pub(super) burst: Option<BurstRate>,
    pub(super) stages: Option<Vec<StageRate>>,
    pub(super) lengths: Option<LengthSpec>,
    pub(super) sharing: Option<Sharing>,
    pub(super) trace: Option<TraceSpec>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ConstantRate {
    pub(super) rate: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StepRate {
    pub(super) before: f64,
    pub(super) after: f64,
    /// When it changes, from the beginning of the scored part.
    pub(super) at: TimeSpan,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RampRate {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) start: TimeSpan,
    pub(super) over: TimeSpan,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WaveRate {
    pub(super) mean: f64,
    pub(super) swing: f64,
    pub(super) period: TimeSpan,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct BurstRate {
    pub(super) base: f64,
    pub(super) peak: f64,
    /// From the end of one peak to the end of the next.
    pub(super) every: TimeSpan,
    pub(super) length: TimeSpan,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StageRate {
    pub(super) lasts: TimeSpan,
    pub(super) rate: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LengthSpec {
    pub(super) prompt: TokenSpec,
    pub(super) output: TokenSpec,
}

/// A log-normal number of tokens; a `sigma` of 0 makes it constant.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TokenSpec {
    pub(super) median: f64,
    /// Standard deviation of the logarithm.
    #[serde(default)]
    pub(super) sigma: f64,
    #[serde(default = "default_count::<8_192>")]
    pub(super) most: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TraceSpec {
    /// The file, below the folder of traces; `.gz` files are unpacked.
    pub(super) file: String,
    /// Factor on the rate. Requests are copied or left out; time is never compressed.
    #[serde(default = "one")]
    pub(super) scale: f64,
    #[serde(default)]
    pub(super) from: TimeSpan,
    /// Where it ends; the end of the trace without.
    pub(super) to: Option<TimeSpan>,
    /// Every request moves by up to this much, by seed.
    #[serde(default = "TimeSpan::default_of::<5>")]
    pub(super) jitter: TimeSpan,
    #[serde(default = "default_count::<1>")]
    pub(super) repeat: u32,
}

fn one() -> f64 {
    1.0
}

fn default_count<const COUNT: u32>() -> u32 {
    COUNT
}
