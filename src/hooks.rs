//! Points at which a simulation changes what the controller does, to see whether its checkers notice.
//!
//! The controller itself runs with [`NoHooks`]: every method keeps its default, which changes nothing.

use std::borrow::Cow;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::request::Parts;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::cluster::kinds::WatchedKind;
use crate::cluster::permit::WritePermit;
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::scale::ScaleReading;
use crate::cluster::status::StatusPatch;
use crate::policy::learned::Learned;
use crate::policy::lease::LeaseRecord;
use crate::policy::params::DynamicSettings;
use crate::policy::plan::Plan;
use crate::policy::pod_autoscaler::{AutoscalerDecision, AutoscalerState};
use crate::policy::snapshot::{ClusterSnapshot, MetricsSnapshot};
use crate::policy::units::Replicas;
use crate::roles::Role;
use crate::serve::answer::HttpResponse;
use crate::settings::Sources;
use crate::settings::generation::Generation;
use crate::state::PlanProposal;
use crate::state::claim::ClaimReader;
use wva_base::moment::{Moment, WallTime};
use wva_supervise::ActorRegistry;

/// Hooks that each answer no.
macro_rules! answers_no {
    ($($(#[$doc:meta])* $hook:ident;)+) => {
        $($(#[$doc])* fn $hook(&self) -> bool {
            false
        })+
    };
}

/// What a simulation changes in one controller. By default nothing.
pub trait ControllerHooks: fmt::Debug + Send + Sync {
    answers_no! {
        /// Whether leading begins without a fresh list of what is stored.
        leads_without_reading;
        /// Whether an orderly end leaves the lease held.
        keeps_lease;
        /// Whether something other than the metrics server serves the decisions in memory.
        serves_history;
        /// Whether decisions are shown without a claim.
        shows_without_claim;
        /// Whether the series of a variant that is gone stay.
        keeps_series;
        /// Whether the series of a `PodAutoscaler` that is gone is kept.
        keeps_autoscaler_series;
        /// Whether the current count and the ratio stay under the former labels of a variant.
        keeps_labels;
        /// Whether a status that failed to be written is forgotten.
        drops_failed_status;
        /// Whether a deletion that only a list shows is not passed on.
        hides_relisted_deletion;
        /// Whether a new life of a variant begins without the clocks of the one before.
        forgets_clocks;
        /// Whether a new life of the collector begins without what was learned.
        forgets_learned;
        /// Whether a later life of the collector sets no timer when it starts.
        skips_collector_timer;
        /// Whether a timer of an earlier epoch starts a cycle.
        accepts_old_timers;
    }

    /// Answers a request for a path that the metrics server does not have.
    fn answer(&self, _head: &Parts, _actors: &ActorRegistry<Role>) -> Option<HttpResponse> {
        None
    }

    /// Ready when the process is to end for a reason of its own.
    fn process_end(&self, _claim: &ClaimReader) -> BoxFuture<'static, ()> {
        pending().boxed()
    }

    /// Returns a permit of this term that the claim has not granted.
    fn ungranted_permit(&self, _term: u64) -> Option<WritePermit> {
        None
    }

    /// Whether the lease of another holder is taken.
    fn takes_lease(&self, _record: &LeaseRecord, _now: WallTime) -> bool {
        false
    }

    /// Returns the end of a claim, which is `end` by the rules of the lease.
    fn claim_end(&self, end: Duration, _lease_duration: Duration) -> Duration {
        end
    }

    /// Returns the shown count of existing replicas.
    fn current_replicas(&self, current: Replicas) -> f64 {
        current.to_f64()
    }

    /// Returns the shown ratio of desired to existing replicas.
    fn ratio(&self, ratio: f64, _desired: Replicas, _current: Replicas) -> f64 {
        ratio
    }

    /// Returns the plan whose counts are shown.
    fn shown_plan(&self, proposal: PlanProposal) -> PlanProposal {
        proposal
    }

    /// Changes a status before it is applied.
    fn status(&self, _object: &VariantRecord, _patch: &mut StatusPatch) {}

    /// Returns the delay before a failed write is tried again.
    fn retry_delay(&self, delay: Duration) -> Duration {
        delay
    }

    /// Returns the honoured part of a Retry-After.
    fn retry_after(&self, retry_after: Option<Duration>) -> Option<Duration> {
        retry_after
    }

    /// Whether a change of a known object is missed.
    fn misses_change(&self, _kind: WatchedKind, _metadata: &ObjectMeta) -> bool {
        false
    }

    /// Whether deleted objects of a kind stay in its mirror.
    fn keeps_deleted(&self, _kind: WatchedKind) -> bool {
        false
    }

    /// Whether the first reading of a scale is kept for good.
    fn keeps_scale(&self, _known: Option<&ScaleReading>) -> bool {
        false
    }

    /// Whether the given life of the config role ignores its sources.
    fn ignores_sources(&self, _epoch: u64) -> bool {
        false
    }

    /// Returns the generation that replaces the current one.
    fn next_generation(
        &self,
        _current: &Generation,
        next: Option<Generation>,
        _sources: &Sources,
    ) -> Option<Generation> {
        next
    }

    /// Returns the settings that decide what is collected and learned.
    fn learning_settings<'a>(&self, settings: &'a DynamicSettings) -> Cow<'a, DynamicSettings> {
        Cow::Borrowed(settings)
    }

    /// Receives every collection.
    fn collected(&self, _snapshot: &Arc<MetricsSnapshot>) {}

    /// Returns the time at which a collection is learned from.
    fn learned_at(&self, _known: &Learned, now: Moment) -> Moment {
        now
    }

    /// Returns the number of a cycle, which is `counted` for the process and `of_life` for the optimizer's life.
    fn cycle(&self, counted: u64, _of_life: u64) -> u64 {
        counted
    }

    /// Returns the snapshot that a cycle decides on.
    fn snapshot(&self, snapshot: ClusterSnapshot) -> ClusterSnapshot {
        snapshot
    }

    /// Returns the settings that a cycle decides by.
    fn planning_settings<'a>(&self, settings: &'a DynamicSettings) -> Cow<'a, DynamicSettings> {
        Cow::Borrowed(settings)
    }

    /// Changes a plan before it is proposed.
    fn plan(&self, plan: Plan) -> Plan {
        plan
    }

    /// Returns what a `PodAutoscaler` remembers when it decides.
    fn autoscaler_state(&self, state: AutoscalerState, _now: Moment) -> AutoscalerState {
        state
    }

    /// Changes the decision of a `PodAutoscaler` before it is recorded.
    fn autoscaler_decision(&self, decision: AutoscalerDecision) -> AutoscalerDecision {
        decision
    }

    /// Returns the proposal that the emitter receives.
    fn proposal(&self, proposal: PlanProposal) -> PlanProposal {
        proposal
    }
}

/// Hooks that change nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl ControllerHooks for NoHooks {}
