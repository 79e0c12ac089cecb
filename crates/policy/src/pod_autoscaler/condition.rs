//! The conditions of a `PodAutoscaler`. Messages hold sources, counts of pods and reasons, never measurements, so that
//! they stay the same while the situation does.

use std::fmt::Write as _;
use std::sync::Arc;

use super::decide::{AutoscalerAlgorithm, AutoscalerDecision};
use super::demand::{PodCounts, SourceGap};
use super::reason::{AutoscalerReason, AutoscalerStage, SourceFigures};
use super::record::{AutoscalerRecord, AutoscalerVerdict, TargetOwner};
use super::status::{Judgement, ScaleOutcome, StatusCondition, compute_failure, is_delegated};
use crate::condition::ConditionStatus::{self, False, True, Unknown};
use crate::key::TargetKey;
use crate::signal::Failure;
use crate::units::Replicas;
use wva_base::moment::WallTime;
use wva_base::text::{bounded, counted};

pub(crate) const VALID_SPEC: &str = "ValidSpec";
/// Another object scales the target: `False` while one does, absent while none does.
pub const CONFLICT: &str = "MultiPodAutoscalerConflict";
/// The target does not have the desired count yet.
pub(crate) const SCALING_ACTIVE: &str = "ScalingActive";
pub(crate) const ABLE_TO_SCALE: &str = "AbleToScale";
/// The target can be scaled and has the desired count.
pub const READY: &str = "Ready";
pub(crate) const METRICS_AVAILABLE: &str = "MetricsAvailable";
/// Annotations have an effect; absent while all have.
pub(crate) const ANNOTATIONS_ACCEPTED: &str = "AnnotationsAccepted";
/// The target is at zero because the object scaled it there; absent while it is not at zero.
pub const ASLEEP: &str = "Asleep";
/// Other objects name the target, and give way; absent while none does.
pub(crate) const TARGET_SHARED: &str = "TargetShared";

/// The types that are judged here; others are copies from a generated object.
const OWN: [&str; 9] = [
    VALID_SPEC,
    CONFLICT,
    SCALING_ACTIVE,
    ABLE_TO_SCALE,
    READY,
    METRICS_AVAILABLE,
    ANNOTATIONS_ACCEPTED,
    ASLEEP,
    TARGET_SHARED,
];

const LONGEST_MESSAGE: usize = 1000;

impl Judgement {
    fn new(
        kind: &str,
        status: ConditionStatus,
        reason: &str,
        message: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            kind: kind.into(),
            status: status.as_str().into(),
            reason: reason.into(),
            message: message.into(),
        }
    }

    fn copy(&self) -> Self {
        let mut copy = self.clone();
        // The reason of a condition must not be empty; that of the generated object may be.
        if copy.reason.is_empty() {
            copy.reason = "Unspecified".into();
        }
        copy
    }

    fn keep(stored: &StatusCondition) -> Self {
        Self {
            kind: Arc::clone(&stored.kind),
            status: Arc::clone(&stored.status),
            reason: Arc::clone(&stored.reason),
            message: Arc::clone(&stored.message),
        }
    }

    fn stored(self, before: &[StatusCondition], generation: i64, now: WallTime) -> StatusCondition {
        let mut same = before.iter();
        let same = same.find(|old| old.kind == self.kind && old.status == self.status);
        StatusCondition {
            kind: self.kind,
            status: self.status,
            reason: self.reason,
            message: bounded(&self.message, LONGEST_MESSAGE).into(),
            last_transition_time: same.map_or_else(|| now.into(), |old| old.last_transition_time),
            observed_generation: Some(generation),
        }
    }
}

pub(super) fn next(
    record: &AutoscalerRecord,
    before: &[StatusCondition],
    outcome: &ScaleOutcome,
    scales: (Replicas, Replicas),
    now: WallTime,
) -> Vec<StatusCondition> {
    let (copied, kept) = copies(record, before, outcome);
    let able = able_to_scale(record, outcome);
    let is_able = |one: &Judgement| &*one.status == True.as_str();
    let copy_is_unable = copied.iter().any(|one| &*one.kind == ABLE_TO_SCALE && !is_able(one));
    let is_ready = is_able(&able) && !copy_is_unable && scales.0 == scales.1;
    let mut judged = vec![valid_spec(record)];
    judged.extend(conflict(record));
    let (status, reason) =
        if is_ready { (True, "AsExpected") } else { (False, "ReconcilingScaleDiff") };
    let ready = Judgement::new(READY, status, reason, "");
    judged.extend([scaling_active(scales), able, ready]);
    judged.extend(metrics_available(record, before));
    judged.extend(annotations_accepted(record));
    judged.extend(asleep(record, before));
    let shared = shared_text(record.target.as_ref(), &record.yielding);
    let shared = shared.map(|why| Judgement::new(TARGET_SHARED, True, CONFLICT, why));
    judged.extend(shared);
    for copy in copied {
        match judged.iter_mut().find(|one| one.kind == copy.kind) {
            Some(own) => *own = copy,
            None => judged.push(copy),
        }
    }
    let store = |one: Judgement| one.stored(before, record.generation, now);
    let mut next: Vec<StatusCondition> = judged.into_iter().map(store).collect();
    next.extend(kept);
    next
}

/// What comes from a generated object: new copies, and stored ones that stay as they are.
fn copies(
    record: &AutoscalerRecord,
    before: &[StatusCondition],
    outcome: &ScaleOutcome,
) -> (Vec<Judgement>, Vec<StatusCondition>) {
    let decided = matches!(record.verdict, AutoscalerVerdict::Decided(_));
    // There is no generated object while another has its name, another scales the target or the strategy is direct.
    if !decided || !is_delegated(record) || matches!(outcome, ScaleOutcome::HpaRefused { .. }) {
        return (Vec::new(), Vec::new());
    }
    let copied: Vec<Judgement> = match outcome {
        ScaleOutcome::HpaApplied(hpa) => hpa.conditions.iter().map(Judgement::copy).collect(),
        _ => before.iter().filter(|old| is_copy(old)).map(Judgement::keep).collect(),
    };
    let is_copied = |kind: &str| copied.iter().any(|copy| &*copy.kind == kind);
    let others = before.iter().filter(|old| !OWN.contains(&&*old.kind));
    let kept = others.filter(|old| !is_copied(&old.kind)).cloned();
    let kept = kept.collect();
    (copied, kept)
}

/// Whether a stored condition of a shared type was copied from a generated object. Of those that are judged here, a
/// delegated target has these reasons.
fn is_copy(stored: &StatusCondition) -> bool {
    let own = [
        "Configured",
        "InvalidSpec",
        "HpaNotOwned",
        "FailedUpdateScale",
        "Stable",
        "ReconcilingScaleDiff",
    ];
    [ABLE_TO_SCALE, SCALING_ACTIVE].contains(&&*stored.kind) && !own.contains(&&*stored.reason)
}

fn valid_spec(record: &AutoscalerRecord) -> Judgement {
    match &record.verdict {
        AutoscalerVerdict::Invalid { problem, why } => {
            Judgement::new(VALID_SPEC, False, problem.as_str(), why.as_str())
        }
        _ => Judgement::new(VALID_SPEC, True, "AsExpected", ""),
    }
}

fn conflict(record: &AutoscalerRecord) -> Option<Judgement> {
    let AutoscalerVerdict::Conflict(owner) = &record.verdict else {
        return None;
    };
    let why = conflict_text(record.target.as_ref(), owner);
    Some(Judgement::new(CONFLICT, False, CONFLICT, why))
}

/// Message for a target that another object scales.
pub fn conflict_text(target: Option<&TargetKey>, owner: &TargetOwner) -> String {
    let target = target.map_or_else(|| "the target".to_owned(), ToString::to_string);
    format!("{target} is scaled by {owner}; remove one of them")
}

fn scaling_active((desired, actual): (Replicas, Replicas)) -> Judgement {
    let (status, reason) =
        if desired == actual { (False, "Stable") } else { (True, "ReconcilingScaleDiff") };
    let message = format!("desired={desired}, actual={actual}");
    Judgement::new(SCALING_ACTIVE, status, reason, message)
}

fn able_to_scale(record: &AutoscalerRecord, outcome: &ScaleOutcome) -> Judgement {
    let (status, reason, why) = match (&record.verdict, outcome) {
        (AutoscalerVerdict::Invalid { .. } | AutoscalerVerdict::Conflict(_), _) => {
            (False, "InvalidSpec", "")
        }
        (AutoscalerVerdict::Unseen { why } | AutoscalerVerdict::Unread { why }, _) => {
            (False, "FailedGetScale", &**why)
        }
        (AutoscalerVerdict::Uncounted { why }, _) => (False, "FailedGetReplicas", &**why),
        (AutoscalerVerdict::Decided(_), ScaleOutcome::Failed { why }) => {
            (False, "FailedUpdateScale", &**why)
        }
        (AutoscalerVerdict::Decided(_), ScaleOutcome::HpaRefused { why }) => {
            (False, "HpaNotOwned", &**why)
        }
        (AutoscalerVerdict::Decided(_), _) if is_delegated(record) => (True, "Configured", ""),
        (AutoscalerVerdict::Decided(_), _) => (True, "SucceededGetScale", ""),
    };
    Judgement::new(ABLE_TO_SCALE, status, reason, why)
}

fn annotations_accepted(record: &AutoscalerRecord) -> Option<Judgement> {
    let faults = &record.policy.as_ref()?.faults;
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let why = texts.join("; ");
    (!faults.is_empty())
        .then(|| Judgement::new(ANNOTATIONS_ACCEPTED, False, "AnnotationsWithoutEffect", why))
}

/// Message for a target that other objects name as well; `None` if none does.
pub fn shared_text(target: Option<&TargetKey>, yielding: &[TargetOwner]) -> Option<String> {
    let others: Vec<String> = yielding.iter().map(ToString::to_string).collect();
    let target = target?;
    (!others.is_empty()).then(|| {
        let others = others.join(", ");
        format!("{target} is also named by {others}; this object scales it, remove the others")
    })
}

/// Who put the target to zero. What was known stays while the target is not judged: a restart rests on it.
fn asleep(record: &AutoscalerRecord, before: &[StatusCondition]) -> Option<Judgement> {
    let AutoscalerVerdict::Decided(decision) = &record.verdict else {
        return stored_condition(before, ASLEEP);
    };
    let is_zero =
        decision.current == Replicas::ZERO && (!is_delegated(record) || record.state.asleep);
    if record.state.asleep {
        let why = "without demand the target was scaled to 0; demand or a minimum above 0 wakes it";
        return is_zero.then(|| Judgement::new(ASLEEP, True, "ScaledToZero", why));
    }
    let lost = AutoscalerReason::ZeroNeedsTotal;
    let is_lost = decision.steps.iter().any(|step| step.why == lost);
    let what = if is_lost {
        format!("{lost}; or scale it to 1")
    } else if decision.bounds.bounds.min == Replicas::ZERO {
        "demand wakes it".to_owned()
    } else {
        "while its minimum is above 0, scale it to 1 to go on, unless scale-to-zero allows 0 by a stated or scheduled \
         minimum: then the minimum wakes it"
            .to_owned()
    };
    let why = format!("the target was not scaled to 0 by this object; {what}");
    is_zero.then(|| Judgement::new(ASLEEP, False, "ScaledElsewhere", why))
}

fn stored_condition(before: &[StatusCondition], kind: &str) -> Option<Judgement> {
    let stored = before.iter().find(|old| &*old.kind == kind);
    stored.map(Judgement::keep)
}

/// What is known of the samples of a source, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SampleState {
    /// Every pod reported zero throughout the long window.
    Zero,
    Fresh,
    /// Some pods have no fresh sample.
    Partial,
    /// There is no pod that could be measured.
    NoPod,
    /// Every pod waits for admission.
    Gated,
    Absent,
    Stale,
    Failed,
}

impl SampleState {
    fn of_pods(pods: PodCounts) -> Self {
        match pods {
            PodCounts { failed: 1.., .. } => Self::Failed,
            PodCounts { stale: 1.., .. } => Self::Stale,
            _ => Self::Absent,
        }
    }

    fn of_gap(gap: SourceGap) -> Self {
        match gap {
            SourceGap::NoServingPod(_) => Self::NoPod,
            SourceGap::NoSample(pods) => Self::of_pods(pods),
            SourceGap::NoPodsPerReplica | SourceGap::NoTotal(Failure::Absent) => Self::Absent,
            SourceGap::NoTotal(Failure::TooOld) => Self::Stale,
            SourceGap::NoTotal(Failure::QueryFailed | Failure::Invalid) => Self::Failed,
        }
    }

    fn of_figures(figures: &SourceFigures) -> Self {
        let pods = figures.pods.unwrap_or_default();
        if figures.is_old || pods.stale + pods.failed + pods.missing > 0 {
            Self::Partial
        } else if figures.now.high.max(figures.stable.high) <= 0.0 {
            Self::Zero
        } else {
            Self::Fresh
        }
    }

    /// Status and reason. Pods that had their time and do not serve are no longer on their way.
    fn condition(self, has_failed: bool) -> (ConditionStatus, &'static str) {
        let unserved = if has_failed { False } else { Unknown };
        match self {
            Self::Zero => (True, "MetricsZero"),
            Self::Fresh => (True, "MetricsFound"),
            Self::Partial => (True, "MetricsPartial"),
            Self::NoPod => (unserved, "NoServingPod"),
            Self::Gated => (unserved, "PodsGated"),
            Self::Absent => (False, "MetricsAbsent"),
            Self::Stale => (False, "MetricsStale"),
            Self::Failed => (False, "MetricsFailed"),
        }
    }
}

/// What a source that has a demand reports, in words that do not follow its load.
fn report(figures: &SourceFigures, state: SampleState) -> String {
    let mut text = format!("{}: ", figures.source);
    match (figures.pods, state) {
        (None, SampleState::Partial) => text.push_str("its total is old"),
        (None, SampleState::Zero) => text.push_str("its total is 0"),
        (None, _) => text.push_str("its total is known"),
        (Some(pods), SampleState::Zero) => {
            write!(text, "{} at 0", counted(pods.zero, "pod")).unwrap_or_default();
        }
        (Some(pods), _) => {
            let fresh = pods.loaded + pods.zero;
            write!(text, "{} measured", counted(fresh, "pod")).unwrap_or_default();
            let others = PodCounts { loaded: 0, zero: 0, ..pods };
            if others != PodCounts::default() {
                write!(text, ", {others}").unwrap_or_default();
            }
        }
    }
    text
}

/// A text with the first failed read.
pub(super) fn with_note(text: String, record: &AutoscalerRecord) -> String {
    match record.notes.first() {
        None => text,
        Some(note) => format!("{text}; {note}"),
    }
}

fn metrics_available(record: &AutoscalerRecord, before: &[StatusCondition]) -> Option<Judgement> {
    let AutoscalerVerdict::Decided(decision) = &record.verdict else {
        return None;
    };
    match decision.algorithm {
        AutoscalerAlgorithm::Hpa => None,
        AutoscalerAlgorithm::BoundaryCheck => Some(Judgement::new(
            METRICS_AVAILABLE,
            Unknown,
            "NotMeasured",
            "bounds decide alone: metrics are not read",
        )),
        AutoscalerAlgorithm::Kpa | AutoscalerAlgorithm::Apa => {
            let (state, message) = measured(record, decision);
            let (status, reason) = state.condition(compute_failure(record, decision).is_some());
            // What was known stays until reads say otherwise: a restart changes nothing.
            if status == False && record.awaits_first_reads() {
                return stored_condition(before, METRICS_AVAILABLE);
            }
            Some(Judgement::new(METRICS_AVAILABLE, status, reason, message))
        }
    }
}

fn measured(record: &AutoscalerRecord, decision: &AutoscalerDecision) -> (SampleState, String) {
    let steps = decision.steps.iter();
    let steps = steps.filter(|step| step.stage == AutoscalerStage::Metric);
    let sources: Vec<(SampleState, String)> = steps
        .filter_map(|step| match &step.why {
            AutoscalerReason::Measured { figures } => {
                let state = SampleState::of_figures(figures);
                Some((state, report(figures, state)))
            }
            AutoscalerReason::Unmeasured { why, .. } => {
                Some((SampleState::of_gap(*why), step.why.to_string()))
            }
            _ => None,
        })
        .collect();
    // At zero there is no pod to measure: what totals report is all that there can be.
    let is_asleep =
        |state: &SampleState| decision.current == Replicas::ZERO && *state == SampleState::NoPod;
    let known = sources.iter().map(|(state, _)| *state);
    let worst = known.filter(|state| !is_asleep(state)).max();
    let worst = worst.unwrap_or(SampleState::NoPod);
    let gates = record.gates().filter(|_| worst == SampleState::NoPod);
    let worst = gates.as_ref().map_or(worst, |_| SampleState::Gated);
    let texts = sources.into_iter().map(|(_, text)| text);
    let texts: Vec<String> = texts.chain(gates).collect();
    let text = texts.join("; ");
    let message = if worst > SampleState::Fresh { with_note(text, record) } else { text };
    (worst, message)
}
