//! What is reported as events on a `PodAutoscaler`.

use super::check::AutoscalerPolicy;
use super::condition::{conflict_text, shared_text, with_note};
use super::decide::AutoscalerDecision;
use super::record::{AutoscalerRecord, AutoscalerVerdict};
use super::status::{ScaleOutcome, compute_failure};

wva_base::named! {
    /// Whether an event is a problem.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum EventType {
        /// As it should be.
        Normal,
        /// It needs attention.
        Warning,
    }
}

wva_base::named! {
    listed
    /// Why an event is written.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum AutoscalerEventReason {
        /// Another count was decided.
        AlgorithmRun,
        /// It was written.
        SuccessfulRescale,
        /// The target cannot be read.
        FailedGetScale,
        /// The target states no count.
        FailedGetReplicas,
        /// No count can be decided.
        FailedComputeScale,
        /// The write failed.
        FailedRescale,
        /// Other objects name the target.
        MultiPodAutoscalerConflict,
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoscalerEvent {
    /// Whether it is a problem.
    pub severity: EventType,
    /// Why it is written.
    pub reason: AutoscalerEventReason,
    /// What happened.
    pub note: String,
}

/// The events of a tick. `before` is the tick before it: what lasts is reported when it begins and when its text
/// changes. A rescale is reported each time.
pub fn events(
    before: Option<(&AutoscalerRecord, &ScaleOutcome)>,
    record: &AutoscalerRecord,
    outcome: &ScaleOutcome,
) -> Vec<AutoscalerEvent> {
    let lasting = before.map(|(record, outcome)| all(record, outcome));
    let lasting = lasting.unwrap_or_default();
    let is_new = |event: &AutoscalerEvent| {
        event.reason == AutoscalerEventReason::SuccessfulRescale || !lasting.contains(event)
    };
    let mut found = all(record, outcome);
    found.retain(is_new);
    found
}

fn all(record: &AutoscalerRecord, outcome: &ScaleOutcome) -> Vec<AutoscalerEvent> {
    let mut found = Vec::new();
    let mut warn = |reason, note: String| {
        found.push(AutoscalerEvent { severity: EventType::Warning, reason, note });
    };
    // Each of the objects reports it, and the one that is not at fault may belong to another team.
    let decision = match &record.verdict {
        AutoscalerVerdict::Invalid { .. } => return found,
        AutoscalerVerdict::Conflict(owner) => {
            let why = conflict_text(record.target.as_ref(), owner);
            warn(AutoscalerEventReason::MultiPodAutoscalerConflict, why);
            return found;
        }
        AutoscalerVerdict::Unread { .. } if record.awaits_first_reads() => return found,
        AutoscalerVerdict::Unseen { why } | AutoscalerVerdict::Unread { why } => {
            warn(AutoscalerEventReason::FailedGetScale, why.to_string());
            return found;
        }
        AutoscalerVerdict::Uncounted { why } => {
            warn(AutoscalerEventReason::FailedGetReplicas, why.to_string());
            return found;
        }
        AutoscalerVerdict::Decided(decision) => decision,
    };
    if let Some(why) = shared_text(record.target.as_ref(), &record.yielding) {
        warn(AutoscalerEventReason::MultiPodAutoscalerConflict, why);
    }
    if let Some(why) = compute_failure(record, decision) {
        let note = with_note(why, record);
        warn(AutoscalerEventReason::FailedComputeScale, note);
    }
    if let ScaleOutcome::Failed { why } | ScaleOutcome::HpaRefused { why } = outcome {
        warn(AutoscalerEventReason::FailedRescale, why.to_string());
    }
    if decision.should_scale() {
        found.extend(scaled(record.policy.as_deref(), decision, outcome));
    }
    found
}

fn scaled(
    policy: Option<&AutoscalerPolicy>,
    decision: &AutoscalerDecision,
    outcome: &ScaleOutcome,
) -> Vec<AutoscalerEvent> {
    let normal = |reason, note| AutoscalerEvent { severity: EventType::Normal, reason, note };
    let (current, desired) = (decision.current, decision.desired);
    let strategy = policy.map_or("", |policy| policy.strategy.as_str());
    let why = decision.reason();
    let run = format!("{strategy}: {current} replicas, {desired} desired: {why}");
    let mut found = vec![normal(AutoscalerEventReason::AlgorithmRun, run)];
    if outcome.is_written() {
        let changed = decision.steps.iter().filter(|step| step.from != step.to);
        let steps: Vec<String> = changed
            .map(|step| {
                let stage = step.stage.as_str();
                format!("; {stage} {} -> {}: {}", step.from, step.to, step.why)
            })
            .collect();
        let size = format!("New size: {desired}; reason: {why}{}", steps.concat());
        found.push(normal(AutoscalerEventReason::SuccessfulRescale, size));
    }
    found
}
