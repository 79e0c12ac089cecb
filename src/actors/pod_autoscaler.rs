//! One `PodAutoscaler`: decides on its own tick from mirrors and samples.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::actors::retry_queue::RetryQueue;
use crate::cluster::fingerprint::fingerprint;
use crate::policy::key::ObjectKey;
use crate::policy::pod_autoscaler::record::AutoscalerRecord;
use crate::state::Readers;
use crate::state::board::AutoscalerBoardWriter;
use wva_base::moment::Moment;
use wva_supervise::{Context, Epoch, Event, StateMachine, TimerEpoch};

/// From one tick to the next. Source: the resync period of AIBrix.
const TICK: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) enum PodAutoscalerMessage {
    /// Its object changed.
    Refresh,
    /// To itself: time for a tick.
    Tick(TimerEpoch),
}

#[derive(Debug)]
pub(crate) enum PodAutoscalerEffect {
    Show(Arc<AutoscalerRecord>),
    Arm(Duration, PodAutoscalerMessage),
}

#[derive(Debug)]
pub(crate) struct PodAutoscalerActor {
    key: ObjectKey,
    shared: Readers,
    board: Arc<AutoscalerBoardWriter>,
    epoch: Epoch,
    writes: RetryQueue<ObjectKey>,
    timer: TimerEpoch,
}

impl PodAutoscalerActor {
    /// A new life of the role; it goes on with the record that its predecessor left on the board.
    pub(crate) fn new(
        key: ObjectKey,
        shared: Readers,
        board: Arc<AutoscalerBoardWriter>,
        epoch: &Epoch,
        writes: RetryQueue<ObjectKey>,
    ) -> Self {
        Self { key, shared, board, epoch: epoch.clone(), writes, timer: TimerEpoch::default() }
    }

    fn decide(&mut self, now: Moment, effects: &mut Vec<PodAutoscalerEffect>) {
        let record = self.shared.decide_autoscaler(&self.key, now);
        let boundary = record.as_ref().and_then(AutoscalerRecord::next_boundary);
        let wait = boundary.map_or(Duration::MAX, |at| until(at, now));
        effects.extend(record.map(|record| PodAutoscalerEffect::Show(Arc::new(record))));
        effects.push(PodAutoscalerEffect::Arm(
            wait.min(until_tick(&self.key, now)),
            PodAutoscalerMessage::Tick(self.timer.advance()),
        ));
    }

    fn show(&self, record: &Arc<AutoscalerRecord>) {
        let Ok(replaced) = self.board.put(&self.epoch, Arc::clone(record)) else {
            return;
        };
        self.shared.series.show_autoscaler(record, replaced.as_deref());
        self.writes.add(self.key.clone());
    }
}

/// Until the next tick. The ticks of one object keep their phase, which its name sets: those of many objects do not come
/// at once.
fn until_tick(key: &ObjectKey, now: Moment) -> Duration {
    let period = millis(TICK);
    let phase = fingerprint(&[&key.namespace, &key.name]) % period;
    let into = (millis(now.monotonic) + period - phase) % period;
    Duration::from_millis(period - into)
}

/// Until a boundary of a schedule, which is met at once.
fn until(at: Timestamp, now: Moment) -> Duration {
    let wait = at.as_millisecond().saturating_sub(now.wall.0).max(1);
    Duration::from_millis(wait.unsigned_abs())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl StateMachine for PodAutoscalerActor {
    type Msg = PodAutoscalerMessage;
    type Effect = PodAutoscalerEffect;

    fn step(&mut self, now: Moment, event: Event<Self::Msg>, effects: &mut Vec<Self::Effect>) {
        match event {
            Event::Message(PodAutoscalerMessage::Tick(timer)) if timer != self.timer => {}
            Event::Started | Event::Message(_) => self.decide(now, effects),
        }
    }

    fn perform(&mut self, cx: &Context<PodAutoscalerMessage>, effect: PodAutoscalerEffect) {
        match effect {
            PodAutoscalerEffect::Show(record) => self.show(&record),
            PodAutoscalerEffect::Arm(after, message) => cx.arm(after, message),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
