//! What is known of one `PodAutoscaler` after a tick: what was decided, why, and what the next tick needs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::check::{AutoscalerPolicy, SpecProblem};
use super::decide::{AutoscalerDecision, AutoscalerOutcome};
use super::demand::{AutoscaledPod, SourceGap};
use super::reason::{AutoscalerReason, AutoscalerStep};
use super::samples::PROGRESS_DEADLINE;
use super::schedule::ReplicaBounds;
use super::state::AutoscalerState;
use super::storm_service::ReplicaField;
use crate::key::{ModelKey, ObjectKey, TargetKey};
use wva_base::moment::Moment;
use wva_base::text::counted;

/// First reads take at most so long: a counter needs two, and a latency without requests is zero after 50 s. After
/// it, what was not read is a failure.
const FIRST_READS: Duration = Duration::from_secs(90);

/// One object after a tick.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoscalerRecord {
    /// The object.
    pub key: ObjectKey,
    /// Its identity.
    pub uid: Arc<str>,
    /// The generation of its specification.
    pub generation: i64,
    /// The term of the claim that it was decided in.
    pub term: u64,
    /// When.
    pub decided: Moment,
    /// Its specification; `None` if that does not hold together.
    pub policy: Option<Arc<AutoscalerPolicy>>,
    /// What it scales; `None` if that cannot be named.
    pub target: Option<TargetKey>,
    /// Its model, where the routers in front of the target are read for requests that wait.
    pub model: Option<ModelKey>,
    /// Where the target holds the count that was read, and that is written.
    pub field: ReplicaField,
    /// The pods of its target, without those that ended.
    pub pods: Arc<BTreeMap<Arc<str>, MeasuredPod>>,
    /// The bounds as the specification states them, whether it holds together or not.
    pub base: ReplicaBounds,
    /// Objects that name the target as well, and give way to this one.
    pub yielding: Vec<TargetOwner>,
    /// The first failed read of each source, in words; empty while all reads succeed.
    pub notes: Vec<Arc<str>>,
    /// Since when no count can be decided because something was not read yet; `None` if that is not why.
    pub unread_since: Option<Moment>,
    /// Since when no count can be decided because pods do not serve yet or are first read; `None` if that is not why.
    pub starting_since: Option<Moment>,
    /// What is remembered for the next tick.
    pub state: AutoscalerState,
    /// What came of it.
    pub verdict: AutoscalerVerdict,
}

impl AutoscalerRecord {
    /// When the bounds change next.
    pub fn next_boundary(&self) -> Option<Timestamp> {
        self.decision()?.next_boundary
    }

    /// Whether first reads are on their way: what lacks is no failure yet.
    pub fn awaits_first_reads(&self) -> bool {
        let since = self.unread_since;
        let is_early = since.is_some_and(|since| self.decided.since(since) < FIRST_READS);
        is_early && !self.is_overdue()
    }

    /// Whether no count is decided because no pod serves, and there is one that may: it starts, waits behind a gate,
    /// reshards, or drains while another takes its place.
    pub fn is_cold(&self) -> bool {
        let Some(decision) = self.decision() else {
            return false;
        };
        let lacks_pods_alone = |step: &AutoscalerStep| match &step.why {
            AutoscalerReason::Unmeasured { why, .. } => matches!(why, SourceGap::NoServingPod(_)),
            _ => true,
        };
        decision.outcome == AutoscalerOutcome::FailedComputeScale
            && !self.pods.is_empty()
            && decision.steps.iter().all(lacks_pods_alone)
    }

    /// Whether pods start: that none serves is no failure yet.
    pub(super) fn awaits_pods(&self) -> bool {
        self.is_cold() && !self.is_overdue()
    }

    /// The pods that wait for admission, in words, where no other pod keeps the target from serving.
    pub(super) fn gates(&self) -> Option<String> {
        let pods = self.pods.values().map(|one| one.pod);
        let mut lacking = pods.filter(|pod| *pod != AutoscaledPod::Draining);
        let gated = lacking.clone().count();
        let is_cause = gated > 0 && lacking.all(|pod| pod == AutoscaledPod::Gated);
        is_cause.then(|| {
            let gated = counted(gated, "pod");
            format!(
                "{gated} behind a scheduling gate: see what is to remove it, like the queue of Kueue"
            )
        })
    }

    /// Whether pods take too long to serve. One that turns ready and unready by turns gains no time, unless it was
    /// measured in between.
    fn is_overdue(&self) -> bool {
        let since = self.starting_since;
        since.is_some_and(|since| self.decided.since(since) >= PROGRESS_DEADLINE)
    }

    /// The decision, if one was possible.
    pub fn decision(&self) -> Option<&AutoscalerDecision> {
        match &self.verdict {
            AutoscalerVerdict::Decided(decision) => Some(decision),
            _ => None,
        }
    }
}

/// A pod of the target, with where it is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredPod {
    /// What it does.
    pub pod: AutoscaledPod,
    /// Its address; `None` until it has one.
    pub address: Option<IpAddr>,
    /// The label `model.aibrix.ai/engine`.
    pub engine: Option<Arc<str>>,
}

/// What came of one tick.
#[derive(Debug, Clone, PartialEq)]
pub enum AutoscalerVerdict {
    /// The specification does not hold together.
    Invalid {
        /// The first check that fails.
        problem: SpecProblem,
        /// All that is wrong.
        why: String,
    },
    /// An older object scales the target.
    Conflict(TargetOwner),
    /// The target is not seen.
    Unseen {
        /// Why.
        why: Arc<str>,
    },
    /// The target, its pods or what may scale it have not been read yet.
    Unread {
        /// What is missing.
        why: Arc<str>,
    },
    /// The target is seen, and it states no count.
    Uncounted {
        /// Why.
        why: Arc<str>,
    },
    /// A count was decided.
    Decided(Box<AutoscalerDecision>),
}

/// An object that scales a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetOwner {
    /// Its kind.
    pub kind: Arc<str>,
    /// Its name.
    pub key: ObjectKey,
}

wva_base::display_of! { TargetOwner: Self { kind, key } => "{kind} {key}"; }
