//! A decision in the making: one resolved variant on its way through the stages.

use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use super::bounds::Bounds;
use super::key::{TargetKind, VariantKey};
use super::params::ActuationMode;
use super::plan::{
    Decision, DecisionOutcome, PlanStage, Step, VariantFigures, decisive, grows_by_load,
};
use super::reason::{MetricsState, Reason, TransitionReason};
use super::snapshot::{ResolvedTarget, VariantView};
use super::spare::SpareTrigger;
use super::startup::{StartEstimate, StartProspect};
use super::transition::Transitions;
use super::units::Replicas;

/// Stages of an ordinary decision: base, analysis, expired limits, bounds.
const USUAL_STEPS: usize = 4;

/// Which replicas of a variant started within the time that peaks reach back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecentStarts {
    /// How long ago the last one became ready, if any did.
    pub(super) last: Option<Duration>,
    /// Whether a ready replica is older than that time.
    pub(super) has_older: bool,
}

#[derive(Debug)]
pub(super) struct PendingDecision<'a> {
    pub(super) view: &'a VariantView,
    pub(super) scale: &'a ResolvedTarget,
    pub(super) figures: VariantFigures,
    pub(super) transitions: Transitions,
    pub(super) bounds: Bounds,
    pub(super) outcome: DecisionOutcome,
    pub(super) metrics: MetricsState,
    pub(super) recent_starts: RecentStarts,
    pub(super) prospect: StartProspect,
    /// What is expected of its next start.
    pub(super) start: StartEstimate,
    /// Replicas beyond those that exist whose GPUs are taken from the pools already.
    pub(super) reserved: Replicas,
    count: Replicas,
    steps: Vec<Step>,
}

impl<'a> PendingDecision<'a> {
    /// Starts from the published count, else from what exists and stays.
    pub(super) fn new(
        view: &'a VariantView,
        scale: &'a ResolvedTarget,
        figures: VariantFigures,
        transitions: Transitions,
        bounds: Bounds,
        start: StartEstimate,
    ) -> Self {
        let (base, why) = match view.desired {
            Some(desired) => (desired, Reason::LastDesired),
            None => (scale.current_excluding_surge(), Reason::CurrentReplicas),
        };
        let mut draft = Self {
            view,
            scale,
            figures,
            transitions,
            bounds,
            outcome: DecisionOutcome::Analyzed,
            metrics: MetricsState::Available,
            recent_starts: RecentStarts::default(),
            prospect: StartProspect::Open,
            start,
            reserved: Replicas::ZERO,
            count: base,
            steps: Vec::with_capacity(USUAL_STEPS),
        };
        draft.step(PlanStage::Base, base, why);
        draft
    }

    pub(super) fn base(&self) -> Replicas {
        self.steps.first().map_or(self.count, |step| step.to)
    }

    pub(super) fn is_rescaled(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.why.is_rescale())
    }

    pub(super) fn is_cut(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| {
            let is_limit = step.stage == PlanStage::Limit;
            step.why.is_rescale() || is_limit && !matches!(step.why, Reason::Withheld(_))
        })
    }

    pub(super) fn lacks_gpus(&self) -> bool {
        self.steps.iter().any(|step| match &step.why {
            Reason::Limited { .. } | Reason::ShareLimited { .. } => true,
            Reason::ShareKept { held, share } => share > held,
            _ => false,
        })
    }

    /// Why it was to grow by a step, where GPUs refused that.
    pub(super) fn refused_step(&self) -> Option<SpareTrigger> {
        let mut steps = self.steps.iter();
        let (from, trigger) = steps.find_map(|step| match step.why {
            Reason::Grown { trigger } => Some((step.from, trigger)),
            _ => None,
        })?;
        (self.lacks_gpus() && self.count <= from).then_some(trigger)
    }

    /// Why it was to grow for requests that stand in the router, if it was.
    pub(super) fn added_for_queue(&self) -> Option<&Reason> {
        let mut reasons = self.steps.iter().map(|step| &step.why);
        reasons.find(|why| matches!(why, Reason::QueueStands { .. }))
    }

    /// The variant that was to grow in its place, if that was the last word on it.
    pub(super) fn stood_back_for(&self) -> Option<&VariantKey> {
        match &self.steps.last()?.why {
            Reason::GrownElsewhere { chosen } => Some(chosen),
            _ => None,
        }
    }

    /// The replicas that it will have whatever else is decided: those that exist, its minimum, and
    /// what was published, unless that was not applied for too long.
    pub(super) fn committed(&self) -> Replicas {
        let is_ignored = self
            .transitions
            .expired
            .iter()
            .any(|cause| matches!(cause, TransitionReason::Unapplied { .. }));
        let asked = if is_ignored { self.scale.current } else { self.base() };
        self.bounds.clamp(asked).0.max(self.scale.current)
    }

    /// The replicas of a Deployment that have not been ready for longer than their limit. They serve nothing, and
    /// a ReplicaSet that shrinks gives them up first; other kinds give up the newest, ready or not.
    pub(super) fn overdue(&self) -> Replicas {
        if self.scale.key.kind != TargetKind::Deployment {
            return Replicas::ZERO;
        }
        let waiting = self.view.gated().map_or(Replicas::ZERO, |(count, _)| count);
        let overdue = self.transitions.expired.iter().map(|cause| match cause {
            TransitionReason::Pending { .. } => self.scale.pending().saturating_sub(waiting),
            TransitionReason::Gated { gated, .. } => self.scale.pending().min(*gated),
            TransitionReason::Unapplied { .. } | TransitionReason::Silent { .. } => Replicas::ZERO,
        });
        Replicas(overdue.map(|count| count.0).sum())
    }

    /// The replicas that it will have if nothing of its growth is granted.
    pub(super) fn guaranteed(&self) -> Replicas {
        let kept = self.base().min(self.count);
        self.bounds.clamp(kept).0.max(self.scale.current_excluding_surge())
    }

    pub(super) fn started(&self) -> Replicas {
        let is_start = |step: &Step| matches!(step.why, Reason::Woken { .. });
        Replicas(u32::from(self.steps.iter().any(is_start)))
    }

    pub(super) fn count(&self) -> Replicas {
        self.count
    }

    /// Whether there is nothing to measure and nothing is wanted.
    pub(super) fn is_idle(&self) -> bool {
        self.scale.current == Replicas::ZERO
            && self.count == Replicas::ZERO
            && self.figures.ready == 0
    }

    pub(super) fn metrics_state(&self, is_reporting: bool) -> MetricsState {
        if is_reporting {
            MetricsState::Available
        } else if self.is_idle() {
            MetricsState::NoReplicas
        } else if self.figures.outdated > 0 {
            MetricsState::Stale
        } else {
            MetricsState::Missing
        }
    }

    /// Whether load needs more than what was published and what exists, whatever GPUs grant.
    pub(super) fn grows(&self) -> bool {
        grows_by_load(&self.steps, self.base().max(self.scale.current_excluding_surge()))
    }

    /// The replicas that it keeps once its release is cancelled; `None` where no release is unapplied.
    pub(super) fn unapplied_release(&self) -> Option<Replicas> {
        let kept = self.bounds.clamp(self.scale.current_excluding_surge()).0;
        let published = self.count.max(self.base());
        (published < kept && published < self.scale.current_excluding_surge()).then_some(kept)
    }

    /// Keeps the replicas of a release that is published and not applied. Returns whether there was one.
    pub(super) fn cancel_release(&mut self) -> bool {
        let Some(kept) = self.unapplied_release() else {
            return false;
        };
        let why = Reason::ReleaseCancelled {
            published: self.base(),
            current: self.scale.current_excluding_surge(),
        };
        self.step(PlanStage::CancelRelease, kept, why);
        true
    }

    pub(super) fn judgement(&self) -> Option<(PlanStage, &Reason)> {
        decisive(&self.steps).map(|step| (step.stage, &step.why))
    }

    /// The last reason that load gave and that counts.
    pub(super) fn last_of_load(&self, counts: impl Fn(&Reason) -> bool) -> Option<&Reason> {
        let stages =
            [PlanStage::Saturation, PlanStage::Optimizer, PlanStage::Hybrid, PlanStage::SafetyNet];
        let steps = self.steps.iter().rev();
        let mut reasons = steps.filter(|step| stages.contains(&step.stage)).map(|step| &step.why);
        reasons.find(|why| counts(why) && !matches!(why, Reason::Withheld(_)))
    }

    pub(super) fn has_cancelled_release(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| step.stage == PlanStage::CancelRelease)
    }

    pub(super) fn keep(&mut self, stage: PlanStage, why: Reason) {
        self.step(stage, self.count, why);
    }

    /// Records a stage that looks again and keeps the count, in place of its last look if that came to
    /// a reason of the same kind.
    pub(super) fn keep_still(&mut self, stage: PlanStage, why: Reason) {
        let is_same = |step: &mut Step| {
            step.stage == stage
                && step.from == step.to
                && discriminant(&step.why) == discriminant(&why)
        };
        self.steps.pop_if(is_same);
        self.keep(stage, why);
    }

    pub(super) fn step(&mut self, stage: PlanStage, to: Replicas, why: Reason) {
        self.steps.push(Step { stage, from: self.count, to, why });
        self.count = to;
    }

    pub(super) fn finish(mut self) -> Decision {
        let (count, why) = self.bounds.clamp(self.count);
        self.step(PlanStage::Bounds, count, why);
        Decision {
            key: self.view.key.clone(),
            uid: Arc::clone(&self.view.uid),
            model: self.view.model.clone(),
            role: self.view.template.role,
            accelerator: self.view.accelerator.clone(),
            cost: self.view.cost,
            current: Some(self.scale.current),
            target: Some(count),
            outcome: self.outcome,
            metrics: self.metrics,
            figures: self.figures,
            steps: self.steps,
            actuation: ActuationMode::default(),
            notes: Vec::new(),
        }
    }
}
