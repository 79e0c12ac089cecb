//! What a planning cycle decided, and why: the same record becomes gauge, status, log and debug page.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::accelerator::Accelerator;
use super::capacity::ServingRole;
use super::combine::Consensus;
use super::gpu::PoolFigures;
use super::key::{ModelKey, VariantKey};
use super::limit::{BudgetClaim, HeadroomShare};
use super::params::ActuationMode;
use super::queueing::assess as queueing;
use super::reason::{Basis, ReleaseObstacle, ZeroBlock};
use super::slo::SloReport;
use super::snapshot::CycleId;
use super::startup::StartEstimate;
use super::throughput::ThroughputReport;
use super::tokens::TokensReport;
use super::units::{Cost, Replicas};
use wva_base::moment::Moment;

pub use super::reason::{MetricsState, Reason, TargetProblem};
pub use super::spare::Spare;

/// The outcome of one planning cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The cycle that made it.
    pub cycle: CycleId,
    /// The settings generation it was made with.
    pub generation: u64,
    /// When it was made.
    pub at: Moment,
    /// One decision for every variant of the snapshot, exactly.
    pub decisions: BTreeMap<VariantKey, Decision>,
    /// Figures of each model that was analysed.
    pub models: BTreeMap<ModelKey, ModelFigures>,
    /// The pools of GPUs that the variants draw from, where they limit growth.
    #[serde(default)]
    pub pools: Vec<PoolFigures>,
}

/// The decision for one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The variant.
    pub key: VariantKey,
    /// Unique id of the object that it was made for. One for another object of this name is not published.
    #[serde(skip)]
    pub uid: Arc<str>,
    /// Its model.
    pub model: ModelKey,
    /// The part of a request that it serves.
    pub role: ServingRole,
    /// Its accelerator.
    pub accelerator: Accelerator,
    /// Cost of one replica.
    pub cost: Cost,
    /// Replicas that the target has now; `None` if the target is not resolved.
    pub current: Option<Replicas>,
    /// The count to publish; `None` if there is nothing to publish (no resolved target).
    pub target: Option<Replicas>,
    /// What kind of decision it is.
    pub outcome: DecisionOutcome,
    /// Whether the metrics behind it were usable.
    pub metrics: MetricsState,
    /// What the variant's own replicas reported.
    pub figures: VariantFigures,
    /// Every stage that touched it, in order.
    pub steps: Vec<Step>,
    /// Who writes the count of its target.
    #[serde(default, skip_serializing_if = "ActuationMode::is_scaler")]
    pub actuation: ActuationMode,
    /// What its object states and cannot act, with the remedy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Decision {
    /// What the target means for the replicas that exist.
    pub fn action(&self) -> Action {
        match (self.current, self.target) {
            (Some(current), Some(target)) if target > current => Action::ScaleUp,
            (Some(current), Some(target)) if target < current => Action::ScaleDown,
            _ => Action::NoChange,
        }
    }

    /// The step that says most: the last one that changed the count, else the one that judged it. That a budget
    /// is not shared is no judgement. A minimum above its GPUs says more than the raise to it, and less than
    /// missing metrics. What keeps a model from zero says more than load only where load keeps nothing.
    pub fn decisive(&self) -> Option<&Step> {
        decisive(&self.steps)
    }

    /// Why the variant does not grow although requests wait for its model; `None` where they do not, or
    /// it does.
    pub fn unserved(&self) -> Option<&Reason> {
        self.steps.iter().find_map(|step| match &step.why {
            Reason::Unserved { because, .. } => Some(&**because),
            _ => None,
        })
    }

    /// Whether it is to be started from zero and may not.
    pub fn is_refused_wake(&self) -> bool {
        let refused = |step: &Step| matches!(step.why, Reason::WakeRefused { .. });
        self.steps.iter().any(refused)
    }

    /// The decisive step's reason, in words and with its numbers.
    pub fn reason(&self) -> String {
        self.decisive().map_or_else(|| "no step was taken".to_owned(), |step| step.why.to_string())
    }
}

/// See [`Decision::decisive`].
pub(super) fn decisive(steps: &[Step]) -> Option<&Step> {
    let is_above = |step: &&Step| matches!(step.why, Reason::MinimumAboveGpus { .. });
    let is_raise = |step: &&Step| matches!(step.why, Reason::RaisedToMinimum { .. });
    let is_blind = steps.iter().any(|step| step.stage == PlanStage::SafetyNet);
    let judges = |step: &&Step| {
        step.stage != PlanStage::Bounds
            && !matches!(step.why, Reason::Withheld(_))
            && !(is_blind && is_above(step))
    };
    let mut latest = steps.iter().rev();
    match latest.clone().find(|step| step.from != step.to) {
        Some(raise) if is_raise(&raise) => latest.find(is_above).or(Some(raise)),
        Some(changed) => Some(changed),
        None => {
            let mut judging = latest.filter(judges);
            let last = judging.next()?;
            let load = judging.next();
            load.filter(|load| !keeps_from_zero(last, load)).or(Some(last))
        }
    }
}

/// Whether `last` says more than `load`, the judgement before it. What keeps a model from zero does where load keeps
/// nothing, and where load cannot judge the last replica.
fn keeps_from_zero(last: &Step, load: &Step) -> bool {
    let Reason::ZeroBlocked { block } = &last.why else {
        return true;
    };
    let is_last = last.to == Replicas::ONE;
    let is_busy = *block == ZeroBlock::Busy;
    let is_idle = matches!(block, ZeroBlock::Retained { .. });
    let is_woken = matches!(block, ZeroBlock::Woken { .. });
    let why = match &load.why {
        Reason::NotMeasured { because, .. } => &**because,
        why => why,
    };
    match why {
        _ if load.stage == PlanStage::Base => true,
        Reason::NoReplicas => !is_busy && !is_idle,
        // Nothing else keeps an idle model.
        _ if is_idle => last.to > Replicas::ZERO,
        Reason::NotReleased { obstacle, .. } => {
            matches!(obstacle, ReleaseObstacle::LastOfRole | ReleaseObstacle::Minimum(_))
        }
        Reason::AtFloor { .. } => is_last,
        Reason::Steady { .. } | Reason::Arbitrated { basis: Basis::Neither, .. } => {
            is_last && !is_busy
        }
        // A replica that has just started reports nothing yet.
        Reason::NoUsableMetrics { .. } | Reason::InTransition { .. } => is_last && is_woken,
        _ => false,
    }
}

/// Whether load needs more than `granted`: what was published and what exists. A minimum may ask for more yet.
pub(super) fn grows_by_load(steps: &[Step], granted: Replicas) -> bool {
    let stages =
        [PlanStage::Saturation, PlanStage::Optimizer, PlanStage::Hybrid, PlanStage::Backlog];
    let mut steps = steps.iter();
    steps.any(|step| stages.contains(&step.stage) && step.to > granted.max(step.from))
}

wva_base::named! {
    shown
    /// Direction of a decision, as in logs, reasons and the `direction` label.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Action {
        /// More replicas than now.
        ScaleUp = "scale-up",
        /// Fewer replicas than now.
        ScaleDown = "scale-down",
        /// As many as now.
        NoChange = "no-change",
    }
}

/// How a decision came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DecisionOutcome {
    /// An analyzer decided on usable metrics, or there are no replicas to measure.
    Analyzed,
    /// The safety net kept the last desired value, else the current one.
    SafetyNet,
    /// The target cannot be scaled by this variant; nothing is published.
    Unmanaged,
}

/// One stage that looked at a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The stage.
    pub stage: PlanStage,
    /// The count before.
    pub from: Replicas,
    /// The count after.
    pub to: Replicas,
    /// Why, with its numbers.
    pub why: Reason,
}

wva_base::named! {
    listed
    /// Stages of the pipeline, by name; `planner::plan` has the order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum PlanStage {
        /// Where the count started from.
        Base = "base",
        /// Percentage-based saturation analysis (V1).
        Saturation = "saturation",
        /// Votes of analyzers, and the choice among variants.
        Optimizer = "optimizer",
        /// Arbitration between saturation and the queueing model.
        Hybrid = "hybrid",
        /// Releases that did not last before.
        Relapse = "relapse",
        /// Requests that stand in the router, whatever load says.
        Backlog = "backlog",
        /// Releases that are published, not applied, and no longer wanted.
        CancelRelease = "cancel-release",
        /// GPUs and quotas.
        Limit = "limit",
        /// The boundary between no replicas and some.
        Zero = "zero",
        /// Fallback without usable metrics.
        SafetyNet = "safety-net",
        /// Bounds of the object.
        Bounds = "bounds",
    }
}

/// Figures of one model, by what measured it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelFigures {
    /// Percentage-based saturation (V1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage: Option<SaturationFigures>,
    /// The same for each part of a request, where variants share the work: each is decided by itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub percentage_by_role: BTreeMap<ServingRole, SaturationFigures>,
    /// Saturation by tokens (V2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokensReport>,
    /// The queueing model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing: Option<queueing::QueueingModelFigures>,
    /// The throughput analyzer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<ThroughputReport>,
    /// The SLO analyzer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slo: Option<SloReport>,
    /// Demands of tokens in the place of latency objectives, as they were before an order was limited to as many
    /// replicas again.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limited: BTreeMap<ServingRole, f64>,
    /// What the analyzers agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consensus: Option<Consensus>,
    /// What it claimed and got of a contended budget that is shared by priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescale: Option<BudgetClaim>,
    /// What each role would hold if the GPUs that are shared by priority were shared by headroom.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headroom: BTreeMap<ServingRole, HeadroomShare>,
    /// What could not be read of the arguments of the engines of each variant, and what is assumed
    /// instead; at most 8 each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<VariantKey, Vec<String>>,
    /// What is expected of the next start of each variant.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub starts: BTreeMap<VariantKey, StartEstimate>,
}

/// Figures of the V1 analysis of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SaturationFigures {
    /// Replicas with usable metrics.
    pub replicas: u32,
    /// Of these, not saturated.
    pub non_saturated: u32,
    /// Of these, with a sample too old to shrink on.
    pub stale: u32,
    /// Of these, without a usable KV sample; counted as 0.
    pub without_kv: u32,
    /// Of these, without a usable queue sample; counted as 0.
    pub without_queue: u32,
    /// Mean of threshold minus KV share over the non-saturated.
    pub spare_kv: f64,
    /// Mean of threshold minus queue length over the non-saturated.
    pub spare_queue: f64,
    /// Whether spare capacity is below a trigger.
    pub scale_up: bool,
    /// Whether the load of one replica fits on the others.
    pub scale_down_safe: bool,
}

/// What the replicas of one variant reported. The figures of a variant that was not measured are
/// all zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantFigures {
    /// Ready pods.
    pub ready: u32,
    /// Of these, with usable metrics.
    pub reporting: u32,
    /// Of the ready pods, with a sample too old to act on.
    pub outdated: u32,
    /// Of the reporting, with a sample too old to shrink on.
    pub stale: u32,
    /// Of the reporting, without a usable KV sample; counted as 0.
    pub without_kv: u32,
    /// Of the reporting, without a usable queue sample; counted as 0.
    pub without_queue: u32,
    /// Of the reporting, not saturated.
    pub non_saturated: u32,
    /// The saturated pods, by name.
    pub saturated: Vec<Arc<str>>,
    /// Highest KV share.
    pub max_kv: f64,
    /// Longest queue.
    pub max_queue: f64,
    /// Mean of threshold minus KV share over the non-saturated: the variant's free capacity.
    pub spare_kv: f64,
    /// Mean of threshold minus queue length over the non-saturated.
    pub spare_queue: f64,
}
