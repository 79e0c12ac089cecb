//! The files of a run and of a folder of runs. Field names are part of their format.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fluid::GOAL;

pub(super) const VERSION: u32 = 2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LabRecord {
    pub(super) version: u32,
    pub(super) scenario: String,
    pub(super) policy: String,
    pub(super) family: String,
    pub(super) knob: Option<f64>,
    pub(super) seed: u64,
    /// Equal for runs that must be equal: a hash of the program, the scenario, the policy and the seed.
    pub(super) key: String,
    pub(super) virtual_seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) score: LabScore,
    pub(super) series: LabSeries,
    pub(super) decisions: Vec<ScaleChange>,
    /// What the controller's latency objectives were sized by, minute by minute.
    #[serde(default)]
    pub(super) terms: Vec<SizingTerms>,
    /// Times at which requests waited for long although the model could grow.
    #[serde(default)]
    pub(super) waits: Vec<LongWait>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LabScore {
    pub(super) from: f64,
    pub(super) requests: u64,
    pub(super) good: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) late: u64,
    pub(super) unfinished: u64,
    pub(super) attainment: f64,
    pub(super) gpu_seconds: GpuSeconds,
    pub(super) cost: f64,
    /// Output tokens of the good requests.
    pub(super) good_tokens: f64,
    pub(super) ttft_seconds: Quantiles,
    pub(super) itl_seconds: Quantiles,
    pub(super) e2e_seconds: Quantiles,
    pub(super) overload_seconds: f64,
    pub(super) scalings: u64,
    pub(super) reversals: u64,
    pub(super) classes: BTreeMap<String, GroupScore>,
    pub(super) models: BTreeMap<String, GroupScore>,
}

/// GPUs times seconds by the state of their pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GpuSeconds {
    pub(super) total: f64,
    pub(super) starting: f64,
    pub(super) serving: f64,
    pub(super) draining: f64,
}

/// Quantiles of the answered requests; none where nothing was answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Quantiles {
    pub(super) p50: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p99: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupScore {
    pub(super) requests: u64,
    pub(super) good: u64,
    pub(super) attainment: f64,
    /// Share of the minutes with requests in which the quantile of a class was within its objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) minutes: Option<f64>,
}

/// One value a sample; null where there was nothing to measure.
pub(super) type Samples = Vec<Option<f64>>;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LabSeries {
    pub(super) every: f64,
    pub(super) at: Vec<f64>,
    pub(super) models: BTreeMap<String, ModelSeries>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelSeries {
    /// Requests per second.
    pub(super) arrivals: Samples,
    pub(super) held: Samples,
    pub(super) queue: Samples,
    pub(super) running: Samples,
    pub(super) kv: Samples,
    pub(super) ttft_p95: Samples,
    pub(super) good: Samples,
    pub(super) variants: BTreeMap<String, VariantSeries>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct VariantSeries {
    pub(super) desired: Samples,
    pub(super) scale: Samples,
    pub(super) ready: Samples,
    pub(super) starting: Samples,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScaleChange {
    pub(super) at: f64,
    pub(super) variant: String,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) why: String,
}

/// The terms of one model at one moment, as `wva plan --explain` prints them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SizingTerms {
    pub(super) at: f64,
    pub(super) model: String,
    pub(super) lines: Vec<String>,
}

/// Requests that were held in the router without a break, while a variant of their model was below its maximum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LongWait {
    /// When it had lasted for long enough to be judged.
    pub(super) at: f64,
    pub(super) model: String,
    pub(super) seconds: f64,
    /// Whether replicas were ordered or started meanwhile.
    pub(super) grew: bool,
    /// Why the controller did not order any.
    pub(super) reason: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScenarioSummary {
    pub(super) about: String,
    /// None where prefill and decode are apart.
    pub(super) load_to_capacity: Option<f64>,
    pub(super) is_feasible: bool,
    pub(super) slo_ttft_seconds: f64,
    pub(super) slo_itl_seconds: f64,
    pub(super) seconds: f64,
    pub(super) from: f64,
    pub(super) best_static: Option<BestStatic>,
    pub(super) clairvoyant: Option<Clairvoyant>,
}

/// The smallest fixed fleet that meets the objective.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BestStatic {
    pub(super) replicas: BTreeMap<String, u32>,
    pub(super) gpu_hours: f64,
    pub(super) attainment: f64,
    /// Whether the largest fleet serves less than it is searched for: it is no best one then.
    #[serde(default)]
    pub(super) misses_goal: bool,
}

/// The bound of a policy that knows all arrivals, in a fluid model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Clairvoyant {
    pub(super) gpu_hours: f64,
    pub(super) attainment: f64,
}

impl LabRecord {
    /// Whether a search for the smallest fixed fleet has found none; seed 1 decides.
    pub(super) fn misses_goal(&self) -> bool {
        self.family == "static-best" && self.score.attainment < GOAL
    }
}

impl LabScore {
    pub(super) fn gpu_hours(&self) -> f64 {
        self.gpu_seconds.total / 3_600.0
    }

    /// Output tokens of good requests for each GPU and second.
    pub(super) fn goodput(&self) -> Option<f64> {
        Some(self.good_tokens / self.gpu_seconds.total).filter(|goodput| goodput.is_finite())
    }

    /// The share of requests within the SLO, of 1; `None` without requests.
    pub(super) fn share(&self) -> Option<f64> {
        (self.requests > 0).then_some(self.attainment)
    }
}
