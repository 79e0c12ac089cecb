//! What a planning cycle decided, and why: the same record becomes gauge, status, log and debug page.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::{ModelKey, VariantKey};
use super::moment::Moment;
use super::snapshot::{Accelerator, CycleId};
use super::units::{Cost, Replicas};

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
    /// Measurements of each model that was analysed.
    pub models: BTreeMap<ModelKey, SaturationFigures>,
}

/// The decision for one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The variant.
    pub key: VariantKey,
    /// Its model.
    pub model: ModelKey,
    /// Its accelerator.
    pub accelerator: Accelerator,
    /// Cost of one replica.
    pub cost: Cost,
    /// Replicas that the target has now; `None` if the target is not resolved.
    pub current: Option<Replicas>,
    /// The count to publish; `None` if there is nothing to publish (no resolved target).
    pub target: Option<Replicas>,
    /// What kind of decision it is.
    pub outcome: Outcome,
    /// Whether the metrics behind it were usable.
    pub metrics: MetricsState,
    /// Every stage that touched it, in order.
    pub steps: Vec<Step>,
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

    /// The last step's reason, in words.
    pub fn reason(&self) -> String {
        self.steps.last().map_or_else(
            || "no step was taken".to_owned(),
            |step| step.why.to_string(),
        )
    }
}

/// Direction of a decision, as in logs, reasons and the `direction` label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// More replicas than now.
    ScaleUp,
    /// Fewer replicas than now.
    ScaleDown,
    /// As many as now.
    NoChange,
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ScaleUp => "scale-up",
            Self::ScaleDown => "scale-down",
            Self::NoChange => "no-change",
        })
    }
}

/// How a decision came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// An analyzer decided on usable metrics.
    Analyzed,
    /// The safety net kept the last desired value, else the current one.
    SafetyNet,
    /// The target cannot be scaled by this variant; nothing is published.
    Unmanaged,
}

/// State of a variant's metrics in one cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MetricsState {
    /// Its model was analysed and at least one replica of the variant reported.
    Available,
    /// Its model was analysed, and none of the variant's own replicas reported.
    Missing,
    /// Only samples too old to act on.
    Stale,
    /// The query failed.
    QueryFailed,
}

/// One stage that looked at a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The stage.
    pub stage: Stage,
    /// The count before.
    pub from: Replicas,
    /// The count after.
    pub to: Replicas,
    /// Why, with its numbers.
    pub why: Why,
}

/// Stages of the pipeline, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// Where the count started from.
    Base,
    /// Percentage-based saturation analysis (V1).
    Saturation,
    /// Fallback without usable metrics.
    SafetyNet,
    /// Bounds of the object.
    Bounds,
}

/// Why a stage did what it did. `Display` is the text that people read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Why {
    /// Starts from the count published last.
    LastDesired,
    /// Starts from what exists, since nothing was ever published.
    CurrentReplicas,
    /// Grown by one: the cheapest eligible variant of a model that lacks spare capacity.
    Grown {
        /// Which spare capacity is low.
        trigger: SpareTrigger,
    },
    /// The model lacks spare capacity, and another variant was grown.
    GrownElsewhere {
        /// The variant that was grown.
        chosen: VariantKey,
    },
    /// The model lacks spare capacity, and no variant can grow.
    NothingCanGrow,
    /// At its maximum while the model lacks spare capacity.
    AtMaximum,
    /// Shrunk by one: the dearest variant with more than one replica, and the rest carries the load.
    Shrunk,
    /// The model could shrink, and another variant was shrunk.
    ShrunkElsewhere {
        /// The variant that was shrunk.
        chosen: VariantKey,
    },
    /// The model could shrink, and waits for these variants.
    ShrinkWaits {
        /// Variants in transition.
        transitions: Vec<VariantKey>,
    },
    /// The model could shrink by its load, but some samples are too old to shrink on.
    ShrinkOnStale,
    /// Neither short of capacity nor over-provisioned.
    Steady,
    /// In transition: keeps its own target.
    InTransition {
        /// All causes that hold it.
        causes: Vec<Transition>,
    },
    /// A cause of transition lasted longer than its limit and no longer holds growth back.
    TransitionExpired {
        /// The causes that expired.
        causes: Vec<Transition>,
    },
    /// No usable metrics: nothing is lowered.
    NoUsableMetrics {
        /// What is wrong with them.
        state: MetricsState,
    },
    /// Raised to the minimum.
    RaisedToMinimum {
        /// The minimum.
        min: Replicas,
        /// Where it comes from.
        source: BoundSource,
    },
    /// Cut to the maximum.
    CutToMaximum {
        /// The maximum.
        max: Replicas,
    },
    /// The target is not there, is contested, or is of an unsupported kind.
    TargetUnusable,
}

/// Where a bound comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BoundSource {
    /// Written on the object.
    Object,
    /// `minReplicas` absent, scale to zero not enabled for the model: 1.
    ScaleToZeroDisabled,
    /// `minReplicas` absent, scale to zero enabled for the model: 0.
    ScaleToZeroEnabled,
}

/// Why a variant is in transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Transition {
    /// Replicas exist that are not ready, or the target's status lags behind its specification.
    Pending {
        /// How long.
        since: Duration,
        /// Replicas that exist.
        current: Replicas,
        /// Replicas that are ready.
        ready: Replicas,
    },
    /// The published count is not the current one.
    Unapplied {
        /// How long.
        since: Duration,
        /// The published count.
        desired: Replicas,
        /// Replicas that exist.
        current: Replicas,
    },
    /// Not every replica reports.
    Silent {
        /// How long.
        since: Duration,
        /// Replicas with usable metrics.
        reporting: Replicas,
        /// Replicas that exist.
        current: Replicas,
    },
}

/// Which spare capacity triggered growth, with the figures compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpareTrigger {
    /// Mean spare KV share and its trigger, where it is below.
    pub kv: Option<(f64, f64)>,
    /// Mean spare queue and its trigger, where it is below.
    pub queue: Option<(f64, f64)>,
}

/// Figures of the V1 analysis of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SaturationFigures {
    /// Replicas with usable metrics.
    pub replicas: u32,
    /// Of these, not saturated.
    pub non_saturated: u32,
    /// Mean of threshold minus KV share over the non-saturated.
    pub spare_kv: f64,
    /// Mean of threshold minus queue length over the non-saturated.
    pub spare_queue: f64,
    /// Whether spare capacity is below a trigger.
    pub scale_up: bool,
    /// Whether the load of one replica fits on the others.
    pub scale_down_safe: bool,
}

/// What a stage could not do, for the log; never a reason to stop the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The model it concerns.
    pub model: ModelKey,
    /// What happened, in words.
    pub text: Arc<str>,
}

impl fmt::Display for SpareTrigger {
    /// The reason texts of the original's analysis.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kv, self.queue) {
            (Some((kv, kv_trigger)), Some((queue, queue_trigger))) => write!(
                formatter,
                "both KV spare ({kv:.3} < {kv_trigger:.3}) and queue spare ({queue:.1} < {queue_trigger:.1})"
            ),
            (Some((kv, trigger)), None) => {
                write!(
                    formatter,
                    "KV spare Saturation low ({kv:.3} < {trigger:.3})"
                )
            }
            (None, Some((queue, trigger))) => {
                write!(
                    formatter,
                    "queue spare Saturation low ({queue:.1} < {trigger:.1})"
                )
            }
            (None, None) => formatter.write_str("spare capacity is sufficient"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }
}
