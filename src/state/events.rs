//! What there is to publish: a ring of events to be sent, and those that must wait for their minute.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::IntCounterVec;

use crate::cluster::event::{EventNotice, EventReason, NOTE_LIMIT, Occurrence, Regarding};
use wva_base::moment::Moment;

/// Events that may wait; the oldest gives way.
const RING: usize = 256;
/// One event per object and reason in this time.
const REPEAT_AFTER: Duration = Duration::from_mins(1);
/// Objects and reasons whose last event is remembered.
const REMEMBERED: usize = 4096;
/// Different notes about one subject that wait; of more, the oldest are only counted.
const NOTES: usize = 8;
/// Stands between two notes of one event.
const BETWEEN: &str = " | ";

/// The ring that everybody throws events into. It outlives the recorder.
#[derive(Clone)]
pub struct Events(Arc<Ring>);

struct Ring {
    waiting: Mutex<Waiting>,
    wake: Box<dyn Fn() + Send + Sync>,
    dropped: IntCounterVec,
}

type Subject = (Regarding, EventReason);

#[derive(Default)]
struct Waiting {
    due: VecDeque<Occurrence>,
    /// When each was sent last.
    last: BTreeMap<Subject, Moment>,
    /// What came within a minute of that.
    held: BTreeMap<Subject, Held>,
    /// Whether the recorder was woken since it looked last: once is enough, however much there is.
    rung: bool,
}

/// Everything of one object and reason that came within a minute of the last event about it.
struct Held {
    until: Moment,
    /// Each note once, in the order in which they came first.
    occurrences: VecDeque<Occurrence>,
    /// How many there were no places for.
    left_out: u32,
}

impl Held {
    fn join(&mut self, occurrence: Occurrence) {
        let note = &occurrence.notice.note;
        let mut known = self.occurrences.iter_mut();
        if let Some(known) = known.find(|known| known.notice.note == *note) {
            known.times = known.times.saturating_add(1);
            known.at = occurrence.at;
            return;
        }
        self.occurrences.push_back(occurrence);
        if self.occurrences.len() > NOTES {
            self.occurrences.pop_front();
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// As few events as there is room for all notes in. The first says how many are missing.
    fn merged(self) -> Vec<Occurrence> {
        let mut merged: Vec<Occurrence> = Vec::new();
        for mut next in self.occurrences {
            if self.left_out > 0 && merged.is_empty() {
                next.notice.note =
                    format!("{} left out{BETWEEN}{}", self.left_out, next.notice.note);
            }
            match merged.last_mut() {
                Some(last) if fits(last, &next) => {
                    let note = format!("{}{BETWEEN}{}", last.notice.note, next.notice.note);
                    *last = Occurrence { times: 1, ..next };
                    last.notice.note = note;
                }
                _ => merged.push(next),
            }
        }
        merged
    }
}

fn fits(one: &Occurrence, other: &Occurrence) -> bool {
    one.notice.note.len() + BETWEEN.len() + other.notice.note.len() <= NOTE_LIMIT
}

wva_base::debug_of!(Events:);

impl Events {
    /// An empty ring; `wake` notifies the recorder, `dropped` counts what is lost.
    pub fn new(dropped: IntCounterVec, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Ring { waiting: Mutex::default(), wake: Box::new(wake), dropped }))
    }

    /// Queues an event. What comes within a minute of another one about the same object with the
    /// same reason is published when that minute is over, in one event if there is room in it.
    pub fn throw(&self, now: Moment, notice: EventNotice) {
        let subject = (notice.regarding.clone(), notice.reason);
        let occurrence = Occurrence::once(notice, now.wall);
        let mut waiting = self.waiting();
        if let Some(held) = waiting.held.get_mut(&subject) {
            let left_out = held.left_out;
            held.join(occurrence);
            if held.left_out > left_out {
                self.count("left-out");
            }
            return;
        }
        match waiting.last.get(&subject).copied() {
            Some(last) if now.since(last) < REPEAT_AFTER => {
                let mut until = last;
                until.monotonic += REPEAT_AFTER;
                let held = Held { until, occurrences: VecDeque::from([occurrence]), left_out: 0 };
                waiting.held.insert(subject, held);
            }
            _ => {
                remember(&mut waiting.last, subject, now);
                self.push(&mut waiting, occurrence);
            }
        }
        drop(waiting);
        self.ring();
    }

    /// Queues an event whatever was queued before.
    pub fn throw_always(&self, now: Moment, notice: EventNotice) {
        self.push(&mut self.waiting(), Occurrence::once(notice, now.wall));
        self.ring();
    }

    /// Wakes the recorder, unless it was woken already.
    pub(crate) fn ring(&self) {
        let was_rung = std::mem::replace(&mut self.waiting().rung, true);
        if !was_rung {
            (self.0.wake)();
        }
    }

    /// What is to be sent next, if anything is.
    pub(crate) fn next(&self, now: Moment) -> Option<Occurrence> {
        let mut waiting = self.waiting();
        waiting.rung = false;
        if waiting.due.is_empty() {
            let over = waiting.held.iter().find(|(_, held)| held.until <= now);
            let subject = over.map(|(subject, _)| subject.clone())?;
            let held = waiting.held.remove(&subject)?;
            remember(&mut waiting.last, subject, now);
            waiting.due.extend(held.merged());
        }
        waiting.due.pop_front()
    }

    /// What is to be sent when nothing will be sent any more: everything.
    pub(crate) fn last(&self) -> Option<Occurrence> {
        let mut waiting = self.waiting();
        if waiting.due.is_empty() {
            let (_, held) = waiting.held.pop_first()?;
            waiting.due.extend(held.merged());
        }
        waiting.due.pop_front()
    }

    /// When there will be something to send, without a further event; now at the earliest.
    pub(crate) fn next_due(&self, now: Moment) -> Option<Moment> {
        let waiting = self.waiting();
        if !waiting.due.is_empty() {
            return Some(now);
        }
        let until = waiting.held.values().map(|held| held.until).min();
        until.map(|until| until.max(now))
    }

    pub(crate) fn count(&self, why: &str) {
        self.0.dropped.with_label_values(&[why]).inc();
    }

    fn push(&self, waiting: &mut Waiting, occurrence: Occurrence) {
        if waiting.due.len() == RING {
            waiting.due.pop_front();
            self.count("ring-full");
        }
        waiting.due.push_back(occurrence);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of more subjects than are remembered, the others are not held back.
fn remember(last: &mut BTreeMap<Subject, Moment>, subject: Subject, now: Moment) {
    if last.len() >= REMEMBERED {
        last.retain(|_, last| now.since(*last) < REPEAT_AFTER);
    }
    if last.len() < REMEMBERED {
        last.insert(subject, now);
    }
}

#[cfg(test)]
mod tests;
