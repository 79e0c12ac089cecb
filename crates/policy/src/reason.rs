//! Why a stage did what it did, with the numbers that it compared. `Display` is what people read.

mod figures;
mod gap;
mod hold;
mod inputs;
mod text;
mod transition;
mod withheld;
mod zero;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::capacity::{AnalyzerName, ServingRole};
use super::gpu::{GpuPool, HeldGpus, NotCounted, PoolFigures};
use super::key::VariantKey;
use super::router_queue::{HeldQueue, QueueSource};
use super::spare::{Spare, SpareTrigger};
use super::units::{Gpus, Replicas};

pub use figures::BoundSource;
pub use hold::CapacitySource;
pub use inputs::{MetricsState, TargetProblem};
pub use withheld::Withheld;
pub use zero::{WakeCause, WakeObstacle, ZeroBlock};

pub(crate) use figures::{Basis, Method, ReleaseObstacle, Shrinking, Straggler, WantedAmount};
pub(crate) use gap::{Abstention, MissingInput, MissingSignal, ViewGap};
pub(crate) use hold::{Awaited, BlockReason};
pub(crate) use transition::TransitionReason;
pub(crate) use withheld::DemandGap;

/// Why a stage did what it did: in JSON a code with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code")]
pub enum Reason {
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
    /// The model lacks spare capacity by readings that may be older than its newest replica.
    GrowthWaits {
        /// The variant of that replica.
        landed: VariantKey,
        /// How long ago the replica became ready.
        ago: Duration,
    },
    /// At its maximum while the model lacks spare capacity.
    AtMaximum {
        /// The maximum.
        max: Replicas,
    },
    /// The model lacks spare capacity, and the published count would give it, but it is not applied.
    AwaitsScaler {
        /// The count published last.
        published: Replicas,
        /// Replicas that exist.
        current: Replicas,
    },
    /// Shrunk by one: the most expensive variant above its floor, and the rest carries the load.
    Shrunk {
        /// Spare capacity once the replica is gone.
        left: Spare,
    },
    /// The model could shrink, and another variant was shrunk.
    ShrunkElsewhere {
        /// The variant that was shrunk.
        chosen: VariantKey,
    },
    /// The model could shrink, and this variant stands at the count it keeps: its minimum, or one.
    AtFloor {
        /// The count.
        floor: Replicas,
    },
    /// The model could shrink, and waits for these variants.
    ShrinkWaits {
        /// Variants in transition, silent or unseen.
        transitions: Arc<[VariantKey]>,
    },
    /// The model could shrink by its load, but some samples are too old to shrink on.
    ShrinkOnStale {
        /// Replicas with these samples.
        replicas: u32,
    },
    /// The model could shrink by its load, but what its router says is too old to shrink on.
    ShrinkOnStaleRouter,
    /// The model could shrink by its load, but some replicas report only half of it.
    ShrinkOnPartial {
        /// Replicas without a usable KV sample.
        without_kv: u32,
        /// Replicas without a usable queue sample.
        without_queue: u32,
    },
    /// The model could shrink, but not by this variant: not every replica of it reports.
    ShrinkOnSilent {
        /// Replicas with usable metrics.
        reporting: Replicas,
        /// Replicas that exist.
        current: Replicas,
    },
    /// Neither short of capacity nor over-provisioned.
    Steady {
        /// Spare capacity of the model.
        spare: Spare,
    },
    /// No replicas, none wanted, nothing to measure.
    NoReplicas,
    /// In transition: keeps its own target.
    InTransition {
        /// All causes that hold it.
        causes: Vec<TransitionReason>,
    },
    /// A cause of transition lasted longer than its limit and no longer holds growth back.
    TransitionExpired {
        /// The causes that expired.
        causes: Vec<TransitionReason>,
    },
    /// No usable metrics: nothing is lowered.
    NoUsableMetrics {
        /// What is wrong with them.
        state: MetricsState,
        /// Requests that wait in the router, and raise nothing either.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<HeldQueue>,
    },
    /// No analyzer can say what the role of the variant needs.
    NoView {
        /// The role.
        role: ServingRole,
        /// What its instances do not say.
        missing: Vec<MissingSignal>,
        /// Why analyzers have no view whatever the instances say.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        abstaining: Vec<Abstention>,
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
    /// Cut to the most replicas that a scale subresource holds.
    CutToCeiling {
        /// That count.
        ceiling: Replicas,
    },
    /// The minimum is above the maximum: the maximum holds.
    BoundsConflict {
        /// The minimum.
        min: Replicas,
        /// The maximum.
        max: Replicas,
    },
    /// Inside its bounds.
    WithinBounds {
        /// The minimum.
        min: Replicas,
        /// The maximum, if there is one.
        max: Option<Replicas>,
    },
    /// Added by the optimizer, for what the role needs.
    ScaledUp {
        /// How variants were chosen.
        method: Method,
        /// What its role needed.
        required: Vec<WantedAmount>,
    },
    /// Others of the role meet the claims at less cost, or none of it was needed.
    NotChosen {
        /// How variants were chosen.
        method: Method,
    },
    /// It misses the objectives at the load that the others of its role carry.
    Straggles {
        /// How slow it is.
        straggler: Straggler,
    },
    /// Replicas of it wait behind scheduling gates. That moves no count.
    Gated {
        /// How many, and for how long.
        cause: TransitionReason,
    },
    /// Others of the role meet the claims, since its own starts are stalled.
    StartsStalled,
    /// Its role needs more, and counts on replicas that it has on order.
    Ordered {
        /// Replicas that it will have then, by its minimum or by what was published.
        standing: Replicas,
    },
    /// At its maximum while its role needs more.
    NeedAtMaximum {
        /// The maximum.
        max: Replicas,
    },
    /// Its role grows no further than prefill, which is at its maximum, can feed it.
    FedByPrefill {
        /// The share of its need that prefill reaches.
        reached: f64,
    },
    /// No analyzer knows what one replica of it supplies.
    NotSized,
    /// Taken away by the optimizer.
    ScaledDown {
        /// How variants were chosen.
        method: Method,
        /// What its role may lose.
        releasable: Vec<WantedAmount>,
    },
    /// Its role could shrink, and this one stays.
    NotReleased {
        /// What its role may lose.
        releasable: Vec<WantedAmount>,
        /// Why it stays.
        #[serde(default)]
        obstacle: ReleaseObstacle,
    },
    /// Another role of the model needs capacity, so nothing of the model shrinks.
    ModelGrows,
    /// Its role stays as it is.
    Held {
        /// Why.
        hold: BlockReason,
    },
    /// The queueing model has no opinion on it, or none that may be followed: in hybrid mode,
    /// saturation decides alone.
    LeftToSaturation,
    /// Neither growth nor release is due by what decides while the chosen analyzer has measured no replica.
    NotMeasured {
        /// The chosen analyzer.
        analyzer: AnalyzerName,
        /// The analyzer that decides; absent where percentages do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AnalyzerName>,
        /// A few signals that the chosen analyzer lacks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<MissingSignal>,
        /// Why nothing is due.
        because: Box<Reason>,
    },
    /// It got GPUs for all that it was to add.
    Granted {
        /// How many.
        gpus: Gpus,
        /// Replicas added.
        added: Replicas,
    },
    /// It got GPUs for a part of that, or for none.
    Limited {
        /// GPUs.
        gpus: Gpus,
        /// Replicas added.
        added: Replicas,
        /// Replicas that were to be added.
        wanted: Replicas,
        /// The pools that could not have granted it all, the credited one first.
        by: Vec<GpuPool>,
    },
    /// Of scarce GPUs that models share, it got those for a part of what it was to add, or for none.
    ShareLimited {
        /// GPUs.
        gpus: Gpus,
        /// Replicas added.
        added: Replicas,
        /// Replicas that were to be added.
        wanted: Replicas,
        /// The pools that could not grant the rest.
        by: Vec<PoolFigures>,
    },
    /// A budget is not known: no growth above the floor.
    BudgetUnknown {
        /// Replicas added, up to the floor.
        added: Replicas,
        /// Replicas that were to be added.
        wanted: Replicas,
        /// The pools whose GPUs are not known.
        pools: Vec<GpuPool>,
    },
    /// Its GPUs cannot be counted: no growth above the floor.
    GpusNotCounted(NotCounted),
    /// No GPUs are to be granted: it does not grow.
    NotGrowing {
        /// Replicas that are wanted.
        target: Replicas,
        /// Replicas that exist.
        current: Replicas,
    },
    /// Models share scarce GPUs, and its role counts on replicas that it has on order, or that are late.
    CountedOn {
        /// Replicas that it will have then.
        standing: Replicas,
    },
    /// What its role needs went to others.
    ServedByOthers,
    /// Its role holds more than its share of a budget that is shared by priority.
    Reclaimed {
        /// GPUs that the role holds.
        held: Gpus,
        /// Its share of the budget.
        share: Gpus,
    },
    /// Its role holds less than that share, and GPUs are free.
    Filled {
        /// GPUs taken.
        gpus: Gpus,
        /// Its share of the budget.
        share: Gpus,
    },
    /// It stays, while the budget is shared by priority.
    ShareKept {
        /// GPUs that the role holds.
        held: Gpus,
        /// Its share of the budget.
        share: Gpus,
    },
    /// A budget that it draws from is not shared by priority.
    Withheld(Arc<Withheld>),
    /// A release is cut short: as few replicas did not last at what is held now.
    Relapsed {
        /// Replicas of the variant then.
        replicas: Replicas,
        /// KV caches in use before that release, summed over replicas.
        occupancy: f64,
        /// KV caches in use now; `None` if that is not known.
        now: Option<f64>,
    },
    /// Requests stand in the router of its model: nothing of it is released.
    QueueHoldsRelease {
        /// How many do.
        requests: f64,
        /// How long they have.
        lasts: Duration,
    },
    /// Requests stand in the router of its model, nothing is on its way, and no analyzer adds a replica: one is added.
    QueueStands {
        /// How many do.
        requests: f64,
        /// The fewest of `lasts`.
        fewest: f64,
        /// How long they have not become fewer.
        lasts: Duration,
    },
    /// Its role needs more, and a release of it is published and not applied: the replicas stay.
    ReleaseCancelled {
        /// The count published last.
        published: Replicas,
        /// Replicas that exist.
        current: Replicas,
    },
    /// Requests have waited for its model for long, it could grow, and does not.
    Unserved {
        /// How long they have.
        lasts: Duration,
        /// Why it does not grow.
        because: Box<Reason>,
    },
    /// Its minimum holds, and its pools hold fewer GPUs.
    MinimumAboveGpus {
        /// The minimum.
        min: Replicas,
        /// The pools with more in use than they hold.
        by: Vec<PoolFigures>,
    },
    /// GPUs that its growth lacks are kept for starts from zero.
    HeldForStart {
        /// For which, and where.
        by: Vec<HeldGpus>,
    },
    /// To zero: no request for the model came in its retention period.
    NoRequests {
        /// How long it has been idle.
        idle: Duration,
        /// How long it must have been.
        retention: Duration,
    },
    /// The model does not go to zero.
    ZeroBlocked {
        /// Why.
        block: ZeroBlock,
    },
    /// Started from zero.
    Woken {
        /// Why.
        cause: WakeCause,
        /// Where the requests that wait were seen.
        source: Option<QueueSource>,
    },
    /// Prefill at zero, whose decode is started and not ready yet.
    AwaitsDecode {
        /// The decode variant.
        decode: VariantKey,
    },
    /// It stays at zero, since it is not known whether requests wait for it.
    WakeSignalFailed {
        /// Why its routers said nothing.
        why: Arc<str>,
    },
    /// A model at zero is to be started, and nothing that serves it may start.
    WakeRefused {
        /// Why it is to be.
        cause: WakeCause,
        /// What keeps this variant.
        obstacle: WakeObstacle,
        /// GPUs of one replica.
        gpus: Gpus,
        /// The pools that cannot grant them, or that are not known.
        by: Vec<PoolFigures>,
        /// Resource claims whose GPUs are not counted.
        #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
        claims: Arc<[Arc<str>]>,
    },
    /// Saturation and the queueing model were arbitrated.
    Arbitrated {
        /// Whose opinion was followed.
        basis: Basis,
        /// The count before either had its say.
        current: Replicas,
        /// Saturation's wish.
        saturation: Replicas,
        /// The queueing model's wish.
        model: Replicas,
        /// What saturation reports about one replica less.
        shrinking: Shrinking,
        /// In words.
        reason: Arc<str>,
    },
    /// The target cannot be scaled by this variant, or is not known.
    TargetUnusable {
        /// What is wrong with it.
        problem: TargetProblem,
    },
}

impl Reason {
    pub(crate) fn no_view(gap: &ViewGap, role: ServingRole) -> Self {
        let ViewGap { missing, abstaining } = gap.clone();
        Self::NoView { role, missing, abstaining }
    }

    pub(crate) fn is_rescale(&self) -> bool {
        matches!(self, Self::Reclaimed { .. } | Self::Filled { .. } | Self::ShareKept { .. })
    }

    pub(super) fn is_balance(&self) -> bool {
        match self {
            Self::Steady { .. }
            | Self::AtFloor { .. }
            | Self::NotChosen { .. }
            | Self::NotReleased { .. } => true,
            Self::Held { hold } => {
                matches!(hold, BlockReason::Vetoed { .. } | BlockReason::Waiting { .. })
            }
            _ => false,
        }
    }

    /// Whether it states what a role needs. Where it does not, the count that was published stays, not
    /// the one that exists.
    pub(super) fn is_opinion(&self) -> bool {
        match self {
            Self::NoView { .. }
            | Self::NoUsableMetrics { .. }
            | Self::LastDesired
            | Self::CurrentReplicas
            | Self::NotSized
            | Self::LeftToSaturation => false,
            Self::Held { hold } => {
                matches!(hold, BlockReason::Vetoed { .. } | BlockReason::Waiting { .. })
            }
            _ => true,
        }
    }
}
