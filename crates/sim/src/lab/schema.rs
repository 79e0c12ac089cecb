//! A scenario of the laboratory as a file. docs/development/laboratory.md documents the fields.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::number;
use super::router_spec::RouterSpec;
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
}

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LabScenario {
    /// Its name, the first part of file names.
    pub(super) name: String,
    /// One sentence.
    pub(super) about: String,
    /// Length of the scored part.
    pub(super) duration: TimeSpan,
    /// Length of the part before it, which is played and not scored.
    #[serde(default = "prelude")]
    pub(super) prelude: TimeSpan,
    /// How long the play goes on after the scored part, at most, until its requests have ended.
    #[serde(default = "tail")]
    pub(super) tail: TimeSpan,
    /// How often the controller decides.
    #[serde(default = "interval")]
    pub(super) interval: TimeSpan,
    /// How often Prometheus scrapes.
    #[serde(default = "scrape")]
    pub(super) scrape: TimeSpan,
    /// Signals that no page shows.
    #[serde(default)]
    pub(super) missing: Vec<HiddenSignal>,
    /// How counts reach the workloads.
    #[serde(default)]
    pub(super) actuation: ActuationSpec,
    /// The nodes.
    pub(super) nodes: Vec<NodeSpec>,
    /// The models.
    pub(super) models: Vec<LabModel>,
}

fn prelude() -> TimeSpan {
    TimeSpan::seconds(1_200)
}

fn tail() -> TimeSpan {
    TimeSpan::seconds(300)
}

fn interval() -> TimeSpan {
    TimeSpan::seconds(30)
}

fn scrape() -> TimeSpan {
    TimeSpan::seconds(15)
}

/// One of three ways from a decision to the scale of a workload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ActuationSpec {
    /// An HPA on the published count.
    pub(super) hpa: Option<HpaActuation>,
    /// The published count is written to the scale at once.
    pub(super) direct: Option<Empty>,
    /// An HPA that KEDA owns, and KEDA's own step between zero and one.
    pub(super) keda: Option<KedaActuation>,
}

impl ActuationSpec {
    /// Whether none of the three is stated.
    pub(super) fn is_unstated(&self) -> bool {
        self.hpa.is_none() && self.direct.is_none() && self.keda.is_none()
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Empty {}

/// The times of an HPA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct HpaActuation {
    /// Time between two looks.
    pub(super) sync: TimeSpan,
    /// Stabilization window upwards.
    pub(super) up: TimeSpan,
    /// Stabilization window downwards.
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

/// The times of KEDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct KedaActuation {
    /// Time between two looks for activation.
    pub(super) poll: TimeSpan,
    /// How long a metric stays at zero before the last replica goes.
    pub(super) cooldown: TimeSpan,
    /// Stabilization window downwards of its HPA.
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

/// Nodes of one type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NodeSpec {
    /// The names are this and a number from 0.
    pub(super) name: String,
    /// How many.
    pub(super) count: u32,
    /// GPUs of each.
    pub(super) gpus: u32,
    /// The label `nvidia.com/gpu.product`.
    pub(super) product: String,
}

/// A model, the ways to serve it, and its load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LabModel {
    /// A short name, for pools and labels.
    pub(super) name: String,
    /// The name that requests and series carry.
    pub(super) id: String,
    /// The objective of every request of a class without its own.
    pub(super) slo: LatencySlo,
    /// How requests wait.
    #[serde(default)]
    pub(super) router: RouterSpec,
    /// Idle time before the model goes to zero; it never does without.
    pub(super) scale_to_zero_after: Option<TimeSpan>,
    /// The ways to serve it.
    pub(super) variants: Vec<VariantSpec>,
    /// Its load: parts that are added up.
    pub(super) load: Vec<LoadPart>,
}

/// Latency objective of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LatencySlo {
    /// Longest time to the first token.
    pub(super) ttft: TimeSpan,
    /// Longest mean time between the tokens of a request.
    pub(super) itl: TimeSpan,
}

/// One way to serve a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct VariantSpec {
    /// The name of its workload, VariantAutoscaling and HPA.
    pub(super) name: String,
    /// The accelerator, as the controller names it.
    pub(super) accelerator: String,
    /// The label `nvidia.com/gpu.product` of nodes that it needs.
    pub(super) product: String,
    /// The part of every request that it does.
    #[serde(default)]
    pub(super) role: ServingRole,
    /// GPUs of a replica.
    pub(super) gpus: u32,
    /// Cost of a replica per hour.
    pub(super) cost: f64,
    /// Name of a measured profile.
    pub(super) profile: String,
    /// How the server is set up.
    #[serde(default)]
    pub(super) limits: ServerLimits,
    /// How long it takes to start.
    pub(super) start_up: StartUpSpec,
    /// Replicas at the start of the prelude.
    pub(super) replicas: u32,
    /// Fewest replicas.
    pub(super) min: u32,
    /// Most replicas.
    pub(super) max: u32,
}

/// Limits by vLLM's names; the defaults are vLLM's for an API server.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct ServerLimits {
    /// Sequences in a batch.
    pub(super) max_num_seqs: u32,
    /// Tokens computed in one step.
    pub(super) max_num_batched_tokens: u32,
    /// Prompt and answer of one request, in tokens.
    pub(super) max_model_len: u32,
    /// Tokens of a KV block.
    pub(super) block_size: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_num_seqs: 256,
            max_num_batched_tokens: 8_192,
            max_model_len: 40_960,
            block_size: 16,
        }
    }
}

/// What a start begins with.
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
    /// What it begins with.
    pub(super) kind: StartUpKind,
    /// Its median; by default 240 s cold and 120 s cached.
    #[serde(default)]
    pub(super) median: Option<TimeSpan>,
    /// Standard deviation of its logarithm.
    #[serde(default = "sigma")]
    pub(super) sigma: f64,
}

fn sigma() -> f64 {
    0.175
}

impl StartUpSpec {
    /// Half of all starts need at most this.
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
    /// The class of its requests.
    pub(super) class: Option<String>,
    /// The objective of its requests, where it is not the model's.
    pub(super) slo: Option<LatencySlo>,
    /// A constant rate.
    pub(super) constant: Option<ConstantRate>,
    /// One rate, then another.
    pub(super) step: Option<StepRate>,
    /// From one rate to another along a straight line.
    pub(super) ramp: Option<RampRate>,
    /// A sine around a mean.
    pub(super) wave: Option<WaveRate>,
    /// A base rate that ends in a peak, over and over.
    pub(super) burst: Option<BurstRate>,
    /// One constant rate after another, then nothing.
    pub(super) stages: Option<Vec<StageRate>>,
    /// Tokens of prompts and answers of a generator.
    pub(super) lengths: Option<LengthSpec>,
    /// What prompts of a generator share.
    pub(super) sharing: Option<SharingSpec>,
    /// A trace file.
    pub(super) trace: Option<TraceSpec>,
}

/// A constant rate, in requests per second.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ConstantRate {
    /// The rate.
    pub(super) rate: f64,
}

/// One rate, then another.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StepRate {
    /// The rate at first.
    pub(super) before: f64,
    /// The rate from `at` on.
    pub(super) after: f64,
    /// When it changes, from the beginning of the scored part.
    pub(super) at: TimeSpan,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RampRate {
    /// The rate up to `start`.
    pub(super) from: f64,
    /// The rate after the ramp.
    pub(super) to: f64,
    /// When it begins, from the beginning of the scored part.
    pub(super) start: TimeSpan,
    /// How long it takes.
    pub(super) over: TimeSpan,
}

/// A sine.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WaveRate {
    /// The mean rate.
    pub(super) mean: f64,
    /// How far it goes up and down.
    pub(super) swing: f64,
    /// From peak to peak.
    pub(super) period: TimeSpan,
}

/// Peaks.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct BurstRate {
    /// The rate between peaks.
    pub(super) base: f64,
    /// The rate of a peak.
    pub(super) peak: f64,
    /// From the end of one peak to the end of the next.
    pub(super) every: TimeSpan,
    /// How long a peak lasts.
    pub(super) length: TimeSpan,
}

/// A constant rate for some time.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StageRate {
    /// How long.
    pub(super) lasts: TimeSpan,
    /// The rate.
    pub(super) rate: f64,
}

/// Tokens of a prompt and of an answer.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LengthSpec {
    /// The prompt.
    pub(super) prompt: TokenSpec,
    /// The answer.
    pub(super) output: TokenSpec,
}

/// A log-normal number of tokens; a `sigma` of 0 makes it constant.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TokenSpec {
    /// The median.
    pub(super) median: f64,
    /// Standard deviation of the logarithm.
    #[serde(default)]
    pub(super) sigma: f64,
    /// The most.
    #[serde(default = "most_tokens")]
    pub(super) most: u32,
}

fn most_tokens() -> u32 {
    8_192
}

/// Prompts that begin alike.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SharingSpec {
    /// Share of all requests that begin with a shared text, 0 to 1.
    pub(super) share: f64,
    /// Number of texts.
    pub(super) texts: u32,
    /// Tokens of a text.
    pub(super) tokens: u32,
}

/// A trace and how it is played.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TraceSpec {
    /// The file, below the folder of traces; `.gz` files are unpacked.
    pub(super) file: String,
    /// Factor on the rate. Requests are copied or left out; time is never compressed.
    #[serde(default = "one")]
    pub(super) scale: f64,
    /// Where the clip begins in the trace.
    #[serde(default)]
    pub(super) from: TimeSpan,
    /// Where it ends; the end of the trace without.
    pub(super) to: Option<TimeSpan>,
    /// Every request moves by up to this much, by seed.
    #[serde(default = "jitter")]
    pub(super) jitter: TimeSpan,
    /// How often the clip is played.
    #[serde(default = "once")]
    pub(super) repeat: u32,
}

fn one() -> f64 {
    1.0
}

fn jitter() -> TimeSpan {
    TimeSpan::seconds(5)
}

fn once() -> u32 {
    1
}
