//! Delivers Kubernetes events: bounded, one per object and reason in a minute.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::IntCounterVec;

use crate::actors::facts::Facts;
use crate::actors::writes::Writer;
use crate::cluster::event::{self, EventApi, Notice, Posted, Regarding};
use crate::kit::{Behaviour, Context, Occasion, Trouble};
use crate::policy::moment::Moment;

/// Events that may wait; the oldest gives way.
const RING: usize = 256;
/// One event per object and reason in this time.
const REPEAT_AFTER: Duration = Duration::from_mins(1);
/// Objects and reasons whose last event is remembered.
const REMEMBERED: usize = 4096;
/// Stored events that may be counted up instead of being stored again.
const POSTED: usize = 256;

/// Messages of the event recorder.
#[derive(Debug)]
pub enum Message {
    /// Something is in the ring.
    Publish,
}

/// The ring that everybody throws events into. It outlives the recorder.
#[derive(Clone)]
pub struct Events(Arc<Ring>);

struct Ring {
    waiting: Mutex<Waiting>,
    wake: Box<dyn Fn() + Send + Sync>,
    dropped: IntCounterVec,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Notice>,
    last: BTreeMap<(Regarding, &'static str), Moment>,
}

impl fmt::Debug for Events {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Events")
            .field("waiting", &self.waiting().events.len())
            .finish()
    }
}

impl Events {
    /// An empty ring; `wake` tells the recorder, `dropped` counts what is lost.
    pub fn new(dropped: IntCounterVec, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Ring {
            waiting: Mutex::default(),
            wake: Box::new(wake),
            dropped,
        }))
    }

    /// Queues an event, unless one about the same object with the same reason was queued within a
    /// minute.
    pub fn throw(&self, now: Moment, notice: Notice) {
        let subject = (notice.regarding.clone(), notice.reason);
        {
            let mut waiting = self.waiting();
            if waiting
                .last
                .get(&subject)
                .is_some_and(|last| now.since(*last) < REPEAT_AFTER)
            {
                return;
            }
            if waiting.last.len() >= REMEMBERED {
                waiting
                    .last
                    .retain(|_, last| now.since(*last) < REPEAT_AFTER);
            }
            if waiting.last.len() < REMEMBERED {
                waiting.last.insert(subject, now);
            }
        }
        self.throw_always(notice);
    }

    /// Queues an event whatever was queued before.
    pub fn throw_always(&self, notice: Notice) {
        {
            let mut waiting = self.waiting();
            if waiting.events.len() == RING {
                waiting.events.pop_front();
                self.0.dropped.with_label_values(&["ring-full"]).inc();
            }
            waiting.events.push_back(notice);
        }
        (self.0.wake)();
    }

    /// The oldest event that waits.
    pub(super) fn next(&self) -> Option<Notice> {
        self.waiting().events.pop_front()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pump behind the role.
#[derive(Debug)]
pub struct EventRecorder {
    facts: Facts,
    events: Events,
    api: EventApi,
    posted: BTreeMap<(Regarding, &'static str, String), Posted>,
}

impl EventRecorder {
    /// A new life of the role.
    pub fn new(facts: Facts, events: Events, api: EventApi) -> Self {
        Self {
            facts,
            events,
            api,
            posted: BTreeMap::new(),
        }
    }

    async fn deliver(&mut self, now: Moment, notice: Notice) {
        let Some(permit) = self.facts.claim.permit(now, self.api.timeout) else {
            self.facts
                .series
                .process
                .events_dropped
                .with_label_values(&["no-claim"])
                .inc();
            return;
        };
        let identity = (notice.regarding.clone(), notice.reason, notice.note.clone());
        let earlier = self.posted.get(&identity);
        match event::publish(permit, &self.api, &notice, earlier, now.wall).await {
            Ok(posted) => {
                self.facts.writes.worked(Writer::Events);
                if self.posted.len() >= POSTED {
                    self.posted.clear();
                }
                self.posted.insert(identity, posted);
            }
            Err(error) => {
                self.facts
                    .series
                    .process
                    .events_dropped
                    .with_label_values(&["refused"])
                    .inc();
                self.facts.writes.failed(Writer::Events, &error.to_string());
                let object = &notice.regarding;
                tracing::warn!(namespace = &*object.namespace, name = &*object.name, reason = notice.reason, %error, "event not delivered");
            }
        }
    }
}

impl Behaviour for EventRecorder {
    type Msg = Message;

    async fn handle(
        &mut self,
        cx: &Context<Message>,
        _occasion: Occasion<Message>,
    ) -> Result<(), Trouble> {
        while let Some(notice) = self.events.next() {
            self.deliver(cx.now(), notice).await;
        }
        Ok(())
    }

    async fn retire(&mut self, cx: &Context<Message>) {
        while let Some(notice) = self.events.next() {
            self.deliver(cx.now(), notice).await;
        }
    }
}
