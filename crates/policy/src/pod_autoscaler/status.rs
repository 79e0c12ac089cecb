//! The status of a `PodAutoscaler`: what is stored, and what is stored next.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::check::ScalingStrategy;
use super::condition;
use super::decide::{AutoscalerDecision, AutoscalerOutcome};
use super::reason::{AutoscalerReason, AutoscalerStage, amount};
use super::record::{AutoscalerRecord, AutoscalerVerdict};
use crate::units::Replicas;
use wva_base::moment::WallTime;

const HISTORY: usize = 5;

/// Equal entries of the history are at least so far apart.
const ENTRY_GAP: Duration = Duration::from_secs(5);

/// Figures of a forecast alone are written at most this often.
const FORECAST_GAP: Duration = Duration::from_mins(1);

/// A time as Kubernetes stores it: whole seconds, in RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusTime(i64);

impl From<WallTime> for StatusTime {
    fn from(at: WallTime) -> Self {
        Self(at.0.div_euclid(1000))
    }
}

impl StatusTime {
    /// The time.
    pub fn wall(self) -> WallTime {
        WallTime(self.0.saturating_mul(1000))
    }
}

impl Serialize for StatusTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let end = if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        serializer.collect_str(&Timestamp::from_second(self.0).unwrap_or(end))
    }
}

impl<'de> Deserialize<'de> for StatusTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let at = Timestamp::deserialize(deserializer)?;
        Ok(WallTime(at.as_millisecond()).into())
    }
}

/// `status`. What is stored is read leniently: a part that is malformed counts as left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAutoscalerStatus {
    /// When the history grew last; with strategy `HPA` when the generated object scaled last.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub last_scale_time: Option<StatusTime>,
    /// The count that was decided last.
    #[serde(deserialize_with = "lenient")]
    pub desired_scale: Replicas,
    /// The count before the last write.
    #[serde(deserialize_with = "lenient")]
    pub actual_scale: Replicas,
    /// Conditions, one of each type.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "each_read")]
    pub conditions: Vec<StatusCondition>,
    /// The last decisions to scale and failures, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "each_read")]
    pub scaling_history: Vec<ScalingHistoryEntry>,
    /// The bounds in force.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub scheduled_bounds: Option<ScheduledBounds>,
    /// The last forecast.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub predictive: Option<PredictiveStatus>,
}

/// One standard condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Arc<str>,
    /// Why, in one word.
    #[serde(default)]
    pub reason: Arc<str>,
    /// Why, in words.
    #[serde(default)]
    pub message: Arc<str>,
    /// When `status` changed last.
    pub last_transition_time: StatusTime,
    /// The generation that it was judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// One decision to scale, or one failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalingHistoryEntry {
    /// When.
    pub timestamp: StatusTime,
    /// Replicas before.
    pub previous_scale: Replicas,
    /// Replicas wanted.
    pub new_scale: Replicas,
    /// Why.
    pub reason: String,
    /// Whether it was possible, and was written.
    pub success: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `status.scheduledBounds`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledBounds {
    /// The schedule that is active; left out while the base bounds apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_schedule: Option<Arc<str>>,
    /// Fewest replicas.
    pub effective_min_replicas: Replicas,
    /// Most replicas.
    pub effective_max_replicas: Replicas,
}

/// `status.predictive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictiveStatus {
    /// `Preview` or `Auto`.
    pub mode: Arc<str>,
    /// `targetMetric` of the source with the largest expected need.
    pub metric: Arc<str>,
    /// Its demand over the long window, of all replicas together.
    pub observed_value: String,
    /// Its demand at the horizon, of all replicas together.
    pub predicted_value: String,
    /// Replicas that the forecast alone needs.
    pub predicted_replicas: Replicas,
    /// Replicas that measured demand needs, before rate limits and bounds.
    pub reactive_replicas: Replicas,
    /// Replicas that mode `Auto` decides, after rate limits and bounds.
    pub would_be_replicas: Replicas,
    /// When it was computed.
    pub last_updated: StatusTime,
}

fn lenient<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

fn each_read<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = match Value::deserialize(deserializer)? {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let items = items.into_iter();
    Ok(items.filter_map(|item| serde_json::from_value(item).ok()).collect())
}

/// What became of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleOutcome {
    /// Nothing was to be written.
    NotWritten,
    /// It was written.
    Written,
    /// The write failed.
    Failed {
        /// Why.
        why: Arc<str>,
    },
    /// The generated object is in place.
    HpaApplied(GeneratedHpaStatus),
    /// Another object has the name of the generated one.
    HpaRefused {
        /// Which, and the remedy.
        why: Arc<str>,
    },
}

impl ScaleOutcome {
    pub(super) fn is_written(&self) -> bool {
        matches!(self, Self::Written | Self::HpaApplied(_))
    }
}

/// What a generated object reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneratedHpaStatus {
    /// `status.currentReplicas`.
    pub current: Replicas,
    /// `status.desiredReplicas`.
    pub desired: Replicas,
    /// `status.lastScaleTime`.
    pub last_scale_time: Option<WallTime>,
    /// `status.conditions`; the times in it are not used.
    pub conditions: Vec<Judgement>,
}

/// What a condition says, as it is judged or as a generated object reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Its type.
    pub kind: Arc<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Arc<str>,
    /// Why, in one word.
    pub reason: Arc<str>,
    /// Why, in words.
    pub message: Arc<str>,
}

impl PodAutoscalerStatus {
    /// Reads what is stored; nothing at all is an empty status.
    pub fn read(stored: &Value) -> Self {
        Self::deserialize(stored).unwrap_or_default()
    }

    pub(super) fn was_put_to_zero(&self) -> bool {
        let mut written = self.scaling_history.iter().rev();
        let newest = written.find(|entry| entry.success);
        let is_zero = newest.is_some_and(|entry| entry.new_scale == Replicas::ZERO);
        is_zero && self.desired_scale == Replicas::ZERO
    }

    /// Adds an entry, if there is one, unless it repeats the newest one within a few seconds.
    fn remember(&mut self, entry: Option<ScalingHistoryEntry>, now: WallTime) {
        let Some(entry) = entry else {
            return;
        };
        let newest = self.scaling_history.last_mut();
        let repeated = newest.filter(|newest| {
            let is_same = newest.new_scale == entry.new_scale && newest.success == entry.success;
            // A failure that lasts would push all else out, also where its text names other pods at each tick.
            let is_lasting = !entry.success && newest.reason == entry.reason;
            let is_recent = now.since(newest.timestamp.wall()) <= ENTRY_GAP;
            is_same && (is_lasting || (is_recent && entry.success))
        });
        if let Some(newest) = repeated {
            newest.error = entry.error;
        } else {
            self.last_scale_time = Some(entry.timestamp);
            self.scaling_history.push(entry);
        }
    }
}

/// The status after a tick. It equals `stored` if nothing is to be written. A failure that lasts is
/// one entry of the history.
pub fn next_status(
    record: &AutoscalerRecord,
    stored: &PodAutoscalerStatus,
    outcome: &ScaleOutcome,
    now: WallTime,
) -> PodAutoscalerStatus {
    if matches!(record.verdict, AutoscalerVerdict::Unread { .. }) && record.awaits_first_reads() {
        return stored.clone();
    }
    let mut next = PodAutoscalerStatus {
        scheduled_bounds: Some(bounds(record, now)),
        predictive: predictive(record, stored, now),
        ..stored.clone()
    };
    match (&record.verdict, outcome) {
        (AutoscalerVerdict::Decided(decision), ScaleOutcome::HpaApplied(hpa)) => {
            next.remember(history_entry(record, decision, outcome, now), now);
            next.actual_scale = hpa.current;
            next.desired_scale = hpa.desired;
            next.last_scale_time = hpa.last_scale_time.map(StatusTime::from);
        }
        (AutoscalerVerdict::Decided(decision), _) if !is_delegated(record) => {
            next.actual_scale = decision.current;
            next.desired_scale = decision.desired;
            next.remember(history_entry(record, decision, outcome, now), now);
        }
        _ => {}
    }
    let excess = next.scaling_history.len().saturating_sub(HISTORY);
    next.scaling_history.drain(..excess);
    let scales = (next.desired_scale, next.actual_scale);
    next.conditions = condition::next(record, &stored.conditions, outcome, scales, now);
    next
}

/// Whether a generated object decides.
pub(super) fn is_delegated(record: &AutoscalerRecord) -> bool {
    let policy = record.policy.as_ref();
    policy.is_some_and(|policy| policy.strategy == ScalingStrategy::Hpa)
}

fn bounds(record: &AutoscalerRecord, now: WallTime) -> ScheduledBounds {
    let in_force = match (&record.verdict, &record.policy) {
        (AutoscalerVerdict::Decided(decision), _) => decision.bounds.clone(),
        (_, Some(policy)) => policy.bounds(Timestamp::from_millisecond(now.0).unwrap_or_default()),
        (_, None) => record.base.into(),
    };
    ScheduledBounds {
        active_schedule: in_force.active,
        effective_min_replicas: in_force.bounds.min,
        effective_max_replicas: in_force.bounds.max,
    }
}

/// Why no count was decided: what each source lacks. Pods that start, and first reads, may yet bring what lacks.
pub(super) fn compute_failure(
    record: &AutoscalerRecord,
    decision: &AutoscalerDecision,
) -> Option<String> {
    let is_decided = decision.outcome == AutoscalerOutcome::Decided;
    if is_decided || record.awaits_first_reads() || record.awaits_pods() {
        return None;
    }
    let gaps = decision.steps.iter().filter_map(|step| match &step.why {
        AutoscalerReason::Unmeasured { .. } => Some(step.why.to_string()),
        _ => None,
    });
    let gaps: Vec<String> = gaps.chain(record.gates()).collect();
    Some(format!("no source has a demand: {}", gaps.join("; ")))
}

fn history_entry(
    record: &AutoscalerRecord,
    decision: &AutoscalerDecision,
    outcome: &ScaleOutcome,
    now: WallTime,
) -> Option<ScalingHistoryEntry> {
    let failed = match outcome {
        ScaleOutcome::Failed { why } => Some(why.to_string()),
        _ => compute_failure(record, decision).map(|why| condition::with_note(why, record)),
    };
    let scaled = decision.should_scale() && outcome.is_written();
    let is_entry = scaled || failed.is_some();
    is_entry.then(|| ScalingHistoryEntry {
        timestamp: now.into(),
        previous_scale: decision.current,
        new_scale: decision.desired,
        reason: decision.reason(),
        success: failed.is_none(),
        error: failed,
    })
}

/// The forecast of this tick, or the last one where there is none, as long as the specification has one.
fn predictive(
    record: &AutoscalerRecord,
    stored: &PodAutoscalerStatus,
    now: WallTime,
) -> Option<PredictiveStatus> {
    let has_forecast = record.policy.as_ref()?.forecast.is_some() && !is_delegated(record);
    let stored = stored.predictive.as_ref().filter(|_| has_forecast);
    let next = match &record.verdict {
        AutoscalerVerdict::Decided(decision) if has_forecast => forecast(record, decision, now),
        _ => None,
    };
    let (Some(next), Some(stored)) = (&next, stored) else {
        return next.or_else(|| stored.cloned());
    };
    // Figures change with every tick, and the status does not have to.
    let counts = |one: &PredictiveStatus| {
        let replicas = (one.predicted_replicas, one.reactive_replicas);
        let names = (Arc::clone(&one.mode), Arc::clone(&one.metric));
        (names, replicas, one.would_be_replicas)
    };
    let figures =
        |one: &PredictiveStatus| (one.observed_value.clone(), one.predicted_value.clone());
    let is_recent = now.since(stored.last_updated.wall()) < FORECAST_GAP;
    let is_kept = counts(next) == counts(stored) && (is_recent || figures(next) == figures(stored));
    Some(if is_kept { stored } else { next }.clone())
}

fn forecast(
    record: &AutoscalerRecord,
    decision: &AutoscalerDecision,
    now: WallTime,
) -> Option<PredictiveStatus> {
    let expected = decision.steps.iter().filter_map(|step| match &step.why {
        AutoscalerReason::Forecast { source, demand, replicas, .. } => {
            Some((source, *demand, *replicas))
        }
        _ => None,
    });
    // The first of equal ones.
    let largest = expected.reduce(|most, one| if one.2 > most.2 { one } else { most });
    let (source, demand, replicas) = largest?;
    let policy = record.policy.as_ref()?;
    let measured = decision.steps.iter().filter_map(|step| match &step.why {
        AutoscalerReason::Measured { figures } => Some(figures),
        _ => None,
    });
    let mut measured = measured.filter(|figures| figures.source == *source);
    let mut sources = policy.sources.iter();
    let metric = sources.find(|named| named.to_string() == **source);
    let needs = decision.steps.iter();
    let needs = needs.filter(|step| step.stage == AutoscalerStage::Metric);
    Some(PredictiveStatus {
        mode: policy.forecast?.mode.as_str().into(),
        metric: Arc::clone(&metric?.metric),
        observed_value: amount(measured.next()?.stable.low),
        predicted_value: amount(demand),
        predicted_replicas: replicas,
        reactive_replicas: needs.map(|step| step.to).max()?,
        would_be_replicas: decision.would_be?,
        last_updated: now.into(),
    })
}
