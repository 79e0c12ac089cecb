//! Delivers Kubernetes events: bounded, one per object and reason in a minute.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::Instrument;

use crate::cluster::event::{
    self, EventApi, EventError, EventReason, Occurrence, Posted, Regarding,
};
use crate::cluster::permit::WritePermit;
use crate::state::Readers;
use crate::state::events::Events;
use crate::state::permission_reporter::PermissionReporter;
use crate::state::requests::RequestReporter;
use crate::telemetry::in_cycle;
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorResult, Context, Event};

/// Stored events that may be counted up instead of being stored again.
const POSTED: usize = 256;

/// Messages of the event recorder.
#[derive(Debug)]
pub enum EventRecorderMessage {
    /// Something is in the ring.
    Publish,
    /// To itself: something has waited for its minute.
    Due,
}

/// The pump behind the role.
#[derive(Debug, Clone)]
pub struct EventRecorder {
    shared: Readers,
    requests: Arc<RequestReporter>,
    events: Events,
    permissions: PermissionReporter,
    api: EventApi,
    posted: BTreeMap<(Regarding, EventReason, String), Posted>,
    /// When its timer rings.
    armed: Option<Moment>,
    /// Until when the API server has asked to be left alone.
    spared: Option<Moment>,
    /// What the API server said when it refused an event for lack of a right. That can be published
    /// when it takes one again.
    denied: Option<String>,
}

impl EventRecorder {
    /// What every life of the role begins as.
    pub fn new(
        shared: Readers,
        requests: Arc<RequestReporter>,
        events: Events,
        permissions: PermissionReporter,
        api: EventApi,
    ) -> Self {
        Self {
            shared,
            requests,
            events,
            permissions,
            api,
            posted: BTreeMap::new(),
            armed: None,
            spared: None,
            denied: None,
        }
    }

    /// Without leadership only events about this process are permitted.
    fn permit(&self, now: Moment, about: &Regarding) -> Option<WritePermit> {
        if self.permissions.are_on(about) {
            return Some(self.shared.claim.permit_about_itself());
        }
        self.shared.permit(now, self.api.timeout)
    }

    /// Until when the API server is left alone, if it is: it has too many requests, whatever they are about.
    fn spared_until(&self, now: Moment) -> Option<Moment> {
        self.spared.filter(|until| now.monotonic < until.monotonic)
    }

    async fn deliver(&mut self, cx: &Context<EventRecorderMessage>, occurrence: Occurrence) {
        let now = cx.now();
        let notice = &occurrence.notice;
        let Some(permit) = self.permit(now, &notice.regarding) else {
            return self.events.count("no-claim");
        };
        let identity = (notice.regarding.clone(), notice.reason, notice.note.clone());
        let earlier = self.posted.get(&identity);
        let published = event::publish(permit, &self.api, &occurrence, earlier);
        match published.instrument(in_cycle(notice.cycle)).await {
            Ok(posted) => {
                self.requests.worked();
                if let Some(denied) = self.denied.take() {
                    self.permissions.report("Publish", &denied);
                }
                if self.posted.len() >= POSTED {
                    self.posted.clear();
                }
                self.posted.insert(identity, posted);
            }
            Err(error) => {
                let asked = self.shared.hooks.retry_after(error.retry_after());
                self.spared = self.spared.max(asked.map(|asked| cx.now().later(asked)));
                self.lost(&occurrence, &error);
            }
        }
    }

    fn lost(&mut self, occurrence: &Occurrence, error: &EventError) {
        self.events.count("refused");
        let notice = &occurrence.notice;
        let _cycle = in_cycle(notice.cycle).entered();
        let object = &notice.regarding;
        tracing::warn!(namespace = &*object.namespace, name = &*object.name, reason = notice.reason.as_str(), note = notice.note, %error, "event not delivered");
        self.requests.failed(&error.to_string());
        if error.is_denied() {
            self.denied = Some(error.to_string());
        }
    }

    /// Comes back for what waits. One event is sent for each message, so that a slow API server is
    /// not taken for a stall.
    fn arm(&mut self, cx: &Context<EventRecorderMessage>) {
        let now = cx.now();
        let Some(due) = self.events.next_due(now) else {
            return;
        };
        let due = self.spared_until(now).map_or(due, |until| due.max(until));
        if due == now {
            self.events.ring();
        } else if self.armed.is_none_or(|armed| due < armed || armed <= now) {
            self.armed = Some(due);
            cx.arm(due.since(now), EventRecorderMessage::Due);
        }
    }
}

impl Actor for EventRecorder {
    type Msg = EventRecorderMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, _event: Event<Self::Msg>) -> ActorResult {
        let is_spared = self.spared_until(cx.now()).is_some();
        if !is_spared && let Some(next) = self.events.next(cx.now()) {
            self.deliver(cx, next).await;
        }
        self.arm(cx);
        Ok(())
    }

    async fn retire(&mut self, cx: &Context<EventRecorderMessage>) {
        while let Some(next) = self.events.last() {
            // No reader waits for it any more, and an end is no reason to overrun a server.
            if self.spared_until(cx.now()).is_some() {
                self.events.count("refused");
            } else {
                self.deliver(cx, next).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
