//! Publishes which rights the controller lacks, as an event.

use std::fmt::Display;

use crate::cluster::event::{EventNotice, EventReason, Regarding};
use crate::state::events::Events;
use wva_supervise::Clock;

/// The way to say so. Clones say it in the same place.
#[derive(Clone)]
pub struct PermissionReporter {
    clock: Clock,
    events: Events,
    own_pod: Regarding,
}

wva_base::debug_of!(PermissionReporter: own_pod);

impl PermissionReporter {
    /// Says so in events on `own_pod`, the pod of this process.
    pub fn new(clock: Clock, events: Events, own_pod: Regarding) -> Self {
        Self { clock, events, own_pod }
    }

    #[cfg(test)]
    pub(crate) fn for_test(clock: Clock, events: Events) -> Self {
        let own_pod = Regarding {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: "system".into(),
            name: "wva-0".into(),
            uid: "".into(),
        };
        Self::new(clock, events, own_pod)
    }

    /// The API server has refused what the shipped roles grant. `action` is what was tried, in one
    /// word; the error names the right.
    pub fn report(&self, action: &'static str, error: &dyn Display) {
        let note = format!("{error}; grant what the roles in config/rbac grant");
        let (pod, reason) = (self.own_pod.clone(), EventReason::PermissionMissing);
        let notice = EventNotice::warning(pod, reason, action, note);
        self.events.throw(self.clock.now(), notice);
    }

    /// Whether an event is about this process alone. Then no leadership is needed to send it.
    pub fn are_on(&self, regarding: &Regarding) -> bool {
        *regarding == self.own_pod
    }
}
