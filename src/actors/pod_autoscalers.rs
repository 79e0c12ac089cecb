//! The registry of PodAutoscalers: one actor per object.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::actors::mailboxes::Mailboxes;
use crate::actors::ordered_actors::{ActorOrder, OrderedActors};
use crate::actors::pod_autoscaler;
use crate::cluster::event::{EventNotice, EventReason};
use crate::policy::key::ObjectKey;
use crate::roles::Role;
use crate::state::Readers;
use crate::state::autoscalers::regarding;
use crate::state::board::AutoscalerBoardWriter;
use wva_supervise::{ChildSpec, Context, Event, Order, Registry};

const MAX_AUTOSCALERS: usize = 50_000;

#[derive(Debug)]
pub(crate) enum PodAutoscalersMessage {
    /// Keys are in the dirty set.
    KeysDirty,
}

/// What changed that PodAutoscalers depend on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AutoscalerInvalidation {
    Object(ObjectKey),
    Namespace(Arc<str>),
    /// A whole mirror became synced.
    Everything,
}

#[derive(Debug)]
pub(crate) struct PodAutoscalers {
    shared: Readers,
    board: Arc<AutoscalerBoardWriter>,
    mailboxes: Arc<Mailboxes>,
    actors: OrderedActors<ObjectKey, pod_autoscaler::PodAutoscalerMessage>,
}

impl PodAutoscalers {
    pub(crate) fn new(
        shared: Readers,
        board: Arc<AutoscalerBoardWriter>,
        mailboxes: Arc<Mailboxes>,
    ) -> Self {
        Self { shared, board, mailboxes, actors: OrderedActors::new(MAX_AUTOSCALERS) }
    }

    fn affected(&self, dirty: BTreeSet<AutoscalerInvalidation>) -> BTreeSet<ObjectKey> {
        let mirror = &self.shared.mirrors.pod_autoscalers;
        let mut keys = BTreeSet::new();
        for dirty in dirty {
            match dirty {
                AutoscalerInvalidation::Object(key) => {
                    keys.insert(key);
                }
                AutoscalerInvalidation::Namespace(namespace) => {
                    let objects = mirror.in_namespace(&namespace);
                    keys.extend(objects.into_iter().map(|(key, _)| key));
                }
                AutoscalerInvalidation::Everything => {
                    keys.extend(mirror.all().into_iter().map(|(key, _)| key));
                    keys.extend(self.actors.keys());
                    keys.extend(self.shared.autoscalers.snapshot().into_keys());
                }
            }
        }
        keys
    }

    fn order(&mut self, key: ObjectKey) -> Option<Order<ObjectKey>> {
        let stored = self.shared.mirrors.managed_autoscaler(&key);
        let object = stored.map(|stored| (Arc::clone(&stored.uid), stored.generation));
        match self.actors.order(&key, object) {
            ActorOrder::Given(order) => order,
            ActorOrder::Unknown => {
                self.ended(&key);
                Some(Order::End(key))
            }
            ActorOrder::Full => {
                tracing::error!(autoscaler = %key, limit = MAX_AUTOSCALERS, "PodAutoscaler is refused: the controller runs as many as it can");
                None
            }
        }
    }
}

impl Registry for PodAutoscalers {
    type Role = Role;
    type Key = ObjectKey;
    type Msg = PodAutoscalersMessage;

    fn reconcile(
        &mut self,
        _cx: &Context<PodAutoscalersMessage>,
        event: Event<PodAutoscalersMessage>,
    ) -> Vec<Order<ObjectKey>> {
        let mut dirty = self.mailboxes.autoscalers.drain();
        if matches!(event, Event::Started) {
            dirty.insert(AutoscalerInvalidation::Everything);
        }
        // A mirror that was listed again is no reason for a decision outside of the beat.
        let everything = dirty.remove(&AutoscalerInvalidation::Everything);
        let changed = self.affected(dirty);
        let mut keys = changed.clone();
        if everything {
            keys.extend(self.affected([AutoscalerInvalidation::Everything].into()));
        }
        for key in &changed {
            let address = self.actors.address(key);
            address.hint(pod_autoscaler::PodAutoscalerMessage::Refresh);
        }
        keys.into_iter().filter_map(|key| self.order(key)).collect()
    }

    fn child(&self, key: &ObjectKey) -> ChildSpec<Role> {
        let address = self.actors.address(key);
        let (shared, board) = (self.shared.clone(), Arc::clone(&self.board));
        let (writes, name) = (self.mailboxes.autoscaler_writes.clone(), key.clone());
        wva_supervise::machine(Role::PodAutoscaler(key.clone()), &address, move |epoch| {
            pod_autoscaler::PodAutoscalerActor::new(
                name.clone(),
                shared.clone(),
                Arc::clone(&board),
                epoch,
                writes.clone(),
            )
        })
    }

    fn ended(&mut self, key: &ObjectKey) {
        if let Some(record) = self.shared.autoscalers.get(key)
            && !self.shared.hooks.keeps_autoscaler_series()
        {
            self.shared.series.forget_autoscaler(&record);
        }
        self.board.remove(key);
        // The writer forgets it, too.
        self.mailboxes.autoscaler_writes.add(key.clone());
    }

    fn quarantined(&mut self, key: &ObjectKey, failures: usize, why: &str, retry_in: Duration) {
        tracing::error!(autoscaler = %key, failures, why, ?retry_in, "PodAutoscaler keeps failing and is quarantined");
        if let Some(stored) = self.shared.mirrors.pod_autoscalers.get(key) {
            let note = format!(
                "The controller's own handling of this object failed {failures} times ({why}); its target keeps its replicas. Tried again in {} s, or when the object changes.",
                retry_in.as_secs()
            );
            let reason = EventReason::AutoscalerQuarantined;
            let notice = EventNotice::warning(regarding(&stored), reason, "Refresh", note);
            self.mailboxes.events.throw(self.shared.clock.now(), notice);
        }
    }

    fn released(&mut self, key: &ObjectKey) {
        tracing::info!(autoscaler = %key, "PodAutoscaler runs again");
    }
}
