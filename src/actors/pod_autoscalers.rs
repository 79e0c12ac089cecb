//! The registry of PodAutoscalers: one actor per object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::actors::event_recorder::Events;
use crate::actors::pod_autoscaler;
use crate::actors::retry_queue::RetryQueue;
use crate::cluster::event::{EventNotice, EventReason, EventType};
use crate::policy::key::ObjectKey;
use crate::roles::Role;
use crate::state::Readers;
use crate::state::autoscalers::regarding;
use crate::state::board::AutoscalerBoardWriter;
use wva_supervise::{Address, ChildSpec, Context, DirtySet, Event, Order, Registry};

/// Most PodAutoscalers that one controller runs.
const MAX_AUTOSCALERS: usize = 50_000;

/// Messages of the registry.
#[derive(Debug)]
pub enum PodAutoscalersMessage {
    /// Keys are in the dirty set.
    KeysDirty,
}

/// What changed that PodAutoscalers depend on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AutoscalerInvalidation {
    /// One of them.
    Object(ObjectKey),
    /// Their namespace.
    Namespace(Arc<str>),
    /// A whole mirror became synced.
    Everything,
}

/// The domain part of the supervisor by key.
#[derive(Debug)]
pub struct PodAutoscalers {
    shared: Readers,
    board: Arc<AutoscalerBoardWriter>,
    dirty: DirtySet<AutoscalerInvalidation>,
    writes: RetryQueue<ObjectKey>,
    events: Events,
    children: BTreeMap<ObjectKey, Child>,
}

/// What the registry keeps of one object.
#[derive(Debug)]
struct Child {
    address: Address<pod_autoscaler::PodAutoscalerMessage>,
    /// Identity and generation of the object that its actor was last ordered for.
    generation: (Arc<str>, i64),
}

impl PodAutoscalers {
    /// A new life of the role.
    pub fn new(
        shared: Readers,
        board: Arc<AutoscalerBoardWriter>,
        dirty: DirtySet<AutoscalerInvalidation>,
        writes: RetryQueue<ObjectKey>,
        events: Events,
    ) -> Self {
        Self {
            shared,
            board,
            dirty,
            writes,
            events,
            children: BTreeMap::new(),
        }
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
                    keys.extend(self.children.keys().cloned());
                    keys.extend(self.shared.autoscalers.snapshot().into_keys());
                }
            }
        }
        keys
    }

    /// What becomes of an object's actor. One that fails is run again at once only when its object changes.
    fn order(&mut self, key: ObjectKey) -> Option<Order<ObjectKey>> {
        let Some(stored) = self.shared.mirrors.managed_autoscaler(&key) else {
            let runs = self.children.remove(&key).is_some();
            if !runs {
                self.ended(&key);
            }
            return Some(Order::End(key));
        };
        let generation = (Arc::clone(&stored.uid), stored.generation);
        let count = self.children.len();
        match self.children.get_mut(&key) {
            Some(child) if child.generation == generation => None,
            Some(child) => {
                child.generation = generation;
                Some(Order::Run(key))
            }
            None if count >= MAX_AUTOSCALERS => {
                tracing::error!(autoscaler = %key, limit = MAX_AUTOSCALERS, "PodAutoscaler is refused: the controller runs as many as it can");
                None
            }
            None => {
                let address = Address::vacant();
                self.children.insert(
                    key.clone(),
                    Child {
                        address,
                        generation,
                    },
                );
                Some(Order::Run(key))
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
        let mut dirty = self.dirty.drain();
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
            if let Some(child) = self.children.get(key) {
                child
                    .address
                    .hint(pod_autoscaler::PodAutoscalerMessage::Refresh);
            }
        }
        keys.into_iter().filter_map(|key| self.order(key)).collect()
    }

    fn child(&self, key: &ObjectKey) -> ChildSpec<Role> {
        let known = self.children.get(key).map(|child| child.address.clone());
        let address = known.unwrap_or_else(Address::vacant);
        let (shared, board) = (self.shared.clone(), Arc::clone(&self.board));
        let (writes, name) = (self.writes.clone(), key.clone());
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

    fn started(&mut self, _key: &ObjectKey) {}

    fn ended(&mut self, key: &ObjectKey) {
        if let Some(record) = self.shared.autoscalers.get(key)
            && !self.shared.hooks.keeps_autoscaler_series()
        {
            self.shared.series.forget_autoscaler(&record);
        }
        self.board.remove(key);
        // The writer forgets it, too.
        self.writes.add(key.clone());
    }

    fn quarantined(&mut self, key: &ObjectKey, failures: usize, why: &str, retry_in: Duration) {
        tracing::error!(autoscaler = %key, failures, why, ?retry_in, "PodAutoscaler keeps failing and is quarantined");
        if let Some(stored) = self.shared.mirrors.pod_autoscalers.get(key) {
            let note = format!(
                "The controller's own handling of this object failed {failures} times ({why}); its target keeps its replicas. Tried again in {} s, or when the object changes.",
                retry_in.as_secs()
            );
            let notice = EventNotice {
                regarding: regarding(&stored),
                severity: EventType::Warning,
                reason: EventReason::AutoscalerQuarantined,
                action: "Refresh",
                note,
                cycle: None,
            };
            self.events.throw(self.shared.clock.now(), notice);
        }
    }

    fn released(&mut self, key: &ObjectKey) {
        tracing::info!(autoscaler = %key, "PodAutoscaler runs again");
    }
}
