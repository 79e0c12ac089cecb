//! Everything one decision is made from: sorted values that can be printed, stored and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::accelerator::Accelerator;
use super::key::{ModelKey, TargetKey, VariantKey};
use super::router_queue::DirectQueues;
use super::scaler::Scalers;
use super::signal::SignalName;
use super::units::{Cost, Replicas};
use wva_base::moment::{Moment, Since, WallTime};

pub use super::samples::{PodSamples, RankSamples, RouterSamples, Sample};
pub use super::workload::{GpuInventory, ReplicaTemplate};

/// The whole input of one planning cycle, apart from settings and learned state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterSnapshot {
    /// Number of the cycle, for the decision record.
    pub cycle: CycleId,
    /// What every variant's actor published last.
    pub variants: BTreeMap<VariantKey, Arc<VariantView>>,
    /// What the collector read last.
    pub metrics: Arc<MetricsSnapshot>,
    /// What routers themselves said of the requests that they hold, where they were asked.
    pub direct: Arc<DirectQueues>,
    /// GPUs of the cluster; `None` if they are not watched.
    pub gpus: Option<Arc<GpuInventory>>,
}

/// Number of a planning cycle; grows within one process.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CycleId(pub u64);

wva_base::display_of! { CycleId: Self(number) => "{number}"; }

/// One variant as its actor sees it: the object, its target and its pods, joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantView {
    /// The object.
    pub key: VariantKey,
    /// Unique id of the object that declares it; empty in a recording, which holds no two of one name.
    #[serde(skip)]
    pub uid: Arc<str>,
    /// `metadata.generation` of the object that this view was made from.
    pub generation: i64,
    /// The model it serves.
    pub model: ModelKey,
    /// Cost of one replica.
    pub cost: Cost,
    /// Accelerator of one replica.
    pub accelerator: Accelerator,
    /// Bounds as written on the object; `None` where the object says nothing.
    pub bounds: DeclaredBounds,
    /// What the object states for its own policy.
    #[serde(default, skip_serializing_if = "VariantPolicy::is_empty")]
    pub policy: VariantPolicy,
    /// The replica count published last (`status.desiredOptimizedAlloc.numReplicas`); `None` if
    /// none ever was.
    pub desired: Option<Replicas>,
    /// The scale target.
    pub target: TargetView,
    /// Live pods of the target, by name: those in the pod mirror that are not being deleted.
    pub pods: Arc<[PodView]>,
    /// Since when `current > ready`, gated replicas aside, or the target lags behind its own specification. Starts anew
    /// when replicas are added: those deserve the whole limit.
    pub pending_since: Option<Since>,
    /// Since when the published count differs from the current one. Starts anew when either
    /// changes: a new count deserves the whole limit, and a moving one is being applied.
    pub unapplied_since: Option<Since>,
    /// What had to be read differently from how the object says it, in words.
    pub notes: Arc<[Arc<str>]>,
    /// What scales the target. No plan reads it, so that a recording leaves it out.
    #[serde(skip)]
    pub scalers: Scalers,
    /// Whether a router may hold requests for it.
    #[serde(default, skip_serializing_if = "RouterPresence::is_possible")]
    pub router: RouterPresence,
    /// One replica, as the target describes it.
    pub template: ReplicaTemplate,
}

/// Whether a router may hold requests for a variant although none says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RouterPresence {
    /// An `InferencePool` selects its pods, or it is not known whether one does.
    #[default]
    Possible,
    /// No `InferencePool` selects its pods.
    Absent,
}

impl RouterPresence {
    /// Whether one may hold requests.
    pub fn is_possible(&self) -> bool {
        *self == Self::Possible
    }
}

impl VariantView {
    /// A variant of which no more is known.
    pub fn new(key: VariantKey, model: ModelKey, target: TargetView) -> Self {
        Self {
            key,
            uid: Arc::default(),
            generation: 1,
            model,
            cost: Cost::DEFAULT,
            accelerator: Accelerator::Unresolved,
            bounds: DeclaredBounds::default(),
            policy: VariantPolicy::default(),
            desired: None,
            target,
            pods: Arc::default(),
            pending_since: None,
            unapplied_since: None,
            notes: Arc::default(),
            scalers: Scalers::Unknown,
            router: RouterPresence::Possible,
            template: ReplicaTemplate::default(),
        }
    }

    /// Where every step starts: the count published last, else the replicas that exist and stay; `None`
    /// if neither is known.
    pub fn base(&self) -> Option<Replicas> {
        let exist = || Some(self.target.resolved()?.current_excluding_surge());
        self.desired.or_else(exist)
    }

    /// Its replicas that wait behind a scheduling gate, and when the newest one was created.
    pub fn gated(&self) -> Option<(Replicas, WallTime)> {
        gated(&self.pods)
    }
}

/// Those of some pods that wait behind a scheduling gate, and when the newest one was created: each that is
/// added deserves the whole limit.
pub(crate) fn gated(pods: &[PodView]) -> Option<(Replicas, WallTime)> {
    let gated = (pods.iter()).filter(|pod| pod.readiness == Readiness::Gated);
    let newest = gated.clone().map(|pod| pod.created).max()?;
    Some((Replicas::from_len(gated.count()), newest))
}

/// Bounds on the replica count, as the object states them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BoundsDocument")]
pub struct DeclaredBounds {
    /// `spec.minReplicas`. Left out: 0 where the model may go to zero, else 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub min: Option<Replicas>,
    /// `spec.maxReplicas`. Left out: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub max: Option<Replicas>,
}

/// What the object of a variant states for its own policy. Source: wva-next 16.1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VariantPolicy {
    /// The tier, an entry of the saturation ConfigMap without `modelId`. Left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling_policy: Option<Arc<str>>,
    /// Tokens of an answer by which a router's queue is priced as long as no answer has been measured. Left out: it is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_output_tokens: Option<u32>,
    /// Seconds that a replica takes to be ready, until its first start was measured. Left out:
    /// `WVA_REPLICA_START_TIME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_start_seconds: Option<u32>,
}

impl VariantPolicy {
    /// The most tokens of an answer: longer ones are no guess.
    pub const MOST_OUTPUT_TOKENS: u32 = 1_000_000;
    /// The longest start, a day.
    pub const MOST_START_SECONDS: u32 = 86_400;

    /// Whether the object states nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is known about a scale target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetView {
    /// Found, and this variant alone claims it.
    Resolved(ResolvedTarget),
    /// The mirror of its kind is synced and does not hold it.
    NotFound {
        /// The target looked for.
        target: TargetKey,
        /// Whether it ever was there.
        past: TargetPast,
    },
    /// The mirror of its kind has not been synced yet, or was just found without it.
    Unknown {
        /// The target looked for.
        target: TargetKey,
    },
    /// Several variants name the target, and none of them scales it; or an older object of another kind scales it.
    Contested {
        /// The target.
        target: TargetKey,
        /// All variants that name it, sorted, this one included.
        claimants: Arc<[VariantKey]>,
        /// The older object of another kind, like `PodAutoscaler ns/name`.
        owner: Option<Arc<str>>,
    },
    /// The object names a kind that cannot be scaled.
    UnsupportedKind {
        /// The kind as written.
        kind: Arc<str>,
        /// The name as written.
        name: Arc<str>,
        /// Why not, and what helps.
        why: Arc<str>,
    },
    /// The object itself breaks its schema; what it last said in good order stays in force.
    Malformed {
        /// The field, its value and the remedy.
        why: Arc<str>,
    },
}

/// Whether a target that is not found was there before, as far as is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetPast {
    /// It was: it is gone.
    #[default]
    Existed,
    /// It was not: it is still to come, or its name is wrong.
    Unseen,
}

impl TargetView {
    /// The resolved target, if this variant may scale one.
    pub fn resolved(&self) -> Option<&ResolvedTarget> {
        match self {
            Self::Resolved(target) => Some(target),
            _ => None,
        }
    }

    /// Whether it is known that the variant has no target to scale, so that nothing is published.
    pub(crate) fn is_unmanaged(&self) -> bool {
        matches!(
            self,
            Self::NotFound { .. } | Self::Contested { .. } | Self::UnsupportedKind { .. }
        )
    }
}

/// Replica state of a target that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedTarget {
    /// The target.
    pub key: TargetKey,
    /// `status.replicas`, or `spec.replicas` where the status says 0.
    pub current: Replicas,
    /// Those among them that a rollout has beyond what is asked for: they are on their way out.
    pub surge: Replicas,
    /// `status.readyReplicas`.
    pub ready: Replicas,
    /// Whether the workload controller has seen the newest specification.
    pub generation: GenerationState,
}

impl ResolvedTarget {
    /// Replicas that exist and stay without another decision.
    pub fn current_excluding_surge(&self) -> Replicas {
        self.current.saturating_sub(self.surge)
    }
}

/// Whether a status belongs to the newest specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GenerationState {
    /// `status.observedGeneration` has caught up.
    Observed,
    /// The status is older than the specification: the target counts as pending.
    Lagging,
}

impl ResolvedTarget {
    /// Whether this count is applied: what exists, or what stays of it.
    pub(crate) fn is_applied(&self, count: Replicas) -> bool {
        count == self.current || count == self.current_excluding_surge()
    }

    /// Replicas that exist and are not ready.
    pub fn pending(&self) -> Replicas {
        self.current.saturating_sub(self.ready)
    }

    /// Whether replicas are on their way up or asked for.
    pub(crate) fn is_pending(&self) -> bool {
        self.is_starting(None)
    }

    /// Whether replicas are on their way up, besides those that wait behind a scheduling gate.
    pub(crate) fn is_starting(&self, gated: Option<(Replicas, WallTime)>) -> bool {
        let gated = gated.map_or(Replicas::ZERO, |(count, _)| count);
        self.pending() > gated || self.generation == GenerationState::Lagging
    }
}

/// One live pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodView {
    /// Name of the pod.
    pub name: Arc<str>,
    /// Whether its Ready condition is true.
    pub readiness: Readiness,
    /// When it was created, by the API server's clock.
    pub created: WallTime,
    /// When its Ready condition became true, by the same clock; `None` while it is not, or where
    /// not known.
    pub ready_since: Option<WallTime>,
    /// Its node; `None` while it has none, or where not known.
    pub node: Option<Arc<str>>,
}

/// Readiness of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Readiness {
    /// Serves.
    Ready,
    /// Loads, or is unhealthy.
    NotReady,
    /// Waits behind a scheduling gate, as of Kueue or of a gang: it is asked for, and no start has begun.
    Gated,
}

/// One collection: raw samples with their ages, and one error per query that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricsSnapshot {
    /// When the collection ended; `None` before the first one.
    pub collected: Option<Moment>,
    /// Samples by model, then pod.
    pub models: BTreeMap<ModelKey, BTreeMap<Arc<str>, PodSamples>>,
    /// Samples of the router in front of each model.
    pub routers: BTreeMap<ModelKey, RouterSamples>,
    /// Queries that failed, with the error.
    pub failures: BTreeMap<SignalName, Arc<str>>,
    /// How many pods each source name supplied, per signal: the resolver's choice.
    pub sources: BTreeMap<SignalName, BTreeMap<Arc<str>, u64>>,
    /// Models with series that cannot be attributed to a pod.
    pub unlabelled: Unlabelled,
}

/// Names of models of which series lack a label that says what they are of. At most
/// [`Unlabelled::MOST`] names in each list, the first ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlabelled {
    /// Models with series without a usable namespace.
    pub without_namespace: BTreeSet<Arc<str>>,
    /// Models with series without a usable pod, by namespace.
    pub without_pod: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl Unlabelled {
    /// Most names of one list.
    pub const MOST: usize = 5;

    /// Adds a model with series without a usable namespace.
    pub fn add_without_namespace(&mut self, model: &Arc<str>) {
        add_first(&mut self.without_namespace, model);
    }

    /// Adds a model with series without a usable pod.
    pub fn add_without_pod(&mut self, namespace: &Arc<str>, model: &Arc<str>) {
        let models = self.without_pod.entry(Arc::clone(namespace)).or_default();
        add_first(models, model);
    }
}

/// Keeps the first names in their order, so that the order of arrival does not show.
fn add_first(names: &mut BTreeSet<Arc<str>>, name: &Arc<str>) {
    names.insert(Arc::clone(name));
    if names.len() > Unlabelled::MOST {
        names.pop_last();
    }
}

impl MetricsSnapshot {
    /// A collection without samples and without failures.
    pub fn empty(collected: Option<Moment>) -> Self {
        Self {
            collected,
            models: BTreeMap::new(),
            routers: BTreeMap::new(),
            failures: BTreeMap::new(),
            sources: BTreeMap::new(),
            unlabelled: Unlabelled::default(),
        }
    }

    /// The state before anything was collected: every signal has failed.
    pub fn never() -> Self {
        let why: Arc<str> = Arc::from("nothing has been collected yet");
        let signals = SignalName::ALL.iter();
        Self {
            failures: signals.map(|name| (*name, Arc::clone(&why))).collect(),
            ..Self::empty(None)
        }
    }
}
