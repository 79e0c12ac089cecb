//! The registry: one actor per variant, and who must look again when something changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::actors::mailboxes::Mailboxes;
use crate::actors::ordered_actors::{ActorOrder, OrderedActors};
use crate::actors::variant;
use crate::cluster::event::{EventNotice, EventReason};
use crate::policy::key::{TargetKey, VariantKey};
use crate::policy::object::ControllerRef;
use crate::roles::Role;
use crate::state::{QuarantinedVariants, Readers, VariantsWriters};
use wva_supervise::{ChildSpec, Context, Epoch, Event, Order, Registry};

#[cfg(test)]
pub(crate) mod tests;

/// Most variants that one controller runs. What comes beyond is refused, with an event on it: a
/// controller that quietly became slow would harm all the others.
const MAX_VARIANTS: usize = 50_000;

#[derive(Debug)]
pub(crate) enum VariantsMessage {
    /// Objects have changed.
    KeysDirty,
}

/// Something changed that variants depend on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invalidation {
    Variant(VariantKey),
    /// A scale target, or the claim of a variant on it.
    Target(TargetKey),
    /// Something in a namespace that this controls.
    Controlled(Arc<str>, ControllerRef),
    Namespace(Arc<str>),
    /// A whole mirror became synced.
    Everything,
}

#[derive(Debug)]
pub(crate) struct Variants {
    shared: Readers,
    writers: Arc<VariantsWriters>,
    epoch: Epoch,
    mailboxes: Arc<Mailboxes>,
    actors: OrderedActors<VariantKey, variant::VariantMessage>,
    /// Variants that found no room.
    refused: BTreeSet<VariantKey>,
}

impl Variants {
    pub(crate) fn new(
        shared: Readers,
        writers: Arc<VariantsWriters>,
        epoch: &Epoch,
        mailboxes: Arc<Mailboxes>,
    ) -> Self {
        Self {
            shared,
            writers,
            epoch: epoch.clone(),
            mailboxes,
            actors: OrderedActors::new(MAX_VARIANTS),
            refused: BTreeSet::new(),
        }
    }

    /// Publishes that there is no room for a variant; it is looked at again when there is.
    fn refuse(&mut self, key: &VariantKey) {
        if !self.refused.insert(key.clone()) {
            return;
        }
        tracing::error!(variant = %key, limit = self.actors.room, "variant is refused: the controller runs as many as it can");
        if let Some(regarding) = self.shared.regarding(key) {
            let note = format!(
                "The controller already runs {} variants, the most it accepts; this one is not scaled until others are deleted. Spread them over several controllers with CONTROLLER_INSTANCE.",
                self.actors.room
            );
            let reason = EventReason::VariantRefused;
            let notice = EventNotice::warning(regarding, reason, "Admit", note);
            self.mailboxes.events.throw(self.shared.clock.now(), notice);
        }
    }

    /// Notes which actors keep failing. What a younger life has noted stands.
    fn quarantine<R>(&self, change: impl FnOnce(&mut QuarantinedVariants) -> R) {
        drop(self.writers.quarantined.update(&self.epoch, change));
    }

    /// Variants that must look again.
    fn affected(&self, dirty: BTreeSet<Invalidation>) -> BTreeSet<VariantKey> {
        let mut keys = BTreeSet::new();
        for dirty in dirty {
            match dirty {
                Invalidation::Variant(key) => {
                    keys.insert(key);
                }
                Invalidation::Target(target) => keys.extend(self.shared.mirrors.claimants(&target)),
                Invalidation::Controlled(namespace, controller) => {
                    let mirrors = &self.shared.mirrors;
                    for target in mirrors.concerned(&namespace, &controller) {
                        keys.extend(mirrors.claimants(&target));
                    }
                }
                Invalidation::Namespace(namespace) => {
                    keys.extend(self.shared.mirrors.variants_in(&namespace));
                }
                Invalidation::Everything => {
                    let records = self.shared.mirrors.all_records();
                    keys.extend(records.iter().map(|record| record.object.key.clone()));
                    keys.extend(self.actors.keys());
                    keys.extend(self.shared.board.snapshot().into_keys());
                }
            }
        }
        keys
    }

    fn order(&mut self, key: VariantKey) -> Option<Order<VariantKey>> {
        let record = self.shared.mirrors.managed(&key);
        let object =
            record.map(|record| (Arc::clone(&record.object.uid), record.object.generation));
        match self.actors.order(&key, object) {
            ActorOrder::Full => {
                self.refuse(&key);
                None
            }
            ActorOrder::Given(order) => {
                self.refused.remove(&key);
                order
            }
            ActorOrder::Unknown => {
                self.refused.remove(&key);
                if self.shared.board.get(&key).is_some() {
                    // It ran in an earlier life, and went before this one began: no actor is left to end.
                    self.ended(&key);
                }
                Some(Order::End(key))
            }
        }
    }
}

impl Registry for Variants {
    type Role = Role;
    type Key = VariantKey;
    type Msg = VariantsMessage;

    fn reconcile(
        &mut self,
        _cx: &Context<VariantsMessage>,
        event: Event<VariantsMessage>,
    ) -> Vec<Order<VariantKey>> {
        let mut dirty = self.mailboxes.dirty.drain();
        if matches!(event, Event::Started) {
            // A new life of the supervisor begins with no variant in quarantine.
            self.quarantine(QuarantinedVariants::clear);
            dirty.insert(Invalidation::Everything);
        }
        let keys = self.affected(dirty);
        for key in &keys {
            // A variant that is not there looks at everything when it comes back.
            let address = self.actors.address(key);
            address.hint(variant::VariantMessage::Refresh);
        }
        keys.into_iter().filter_map(|key| self.order(key)).collect()
    }

    fn child(&self, key: &VariantKey) -> ChildSpec<Role> {
        let address = self.actors.address(key);
        let (shared, writers) = (self.shared.clone(), Arc::clone(&self.writers));
        let (mailboxes, name) = (Arc::clone(&self.mailboxes), key.clone());
        wva_supervise::machine(Role::Variant(key.clone()), &address, move |epoch| {
            variant::VariantActor::new(
                name.clone(),
                shared.clone(),
                Arc::clone(&writers),
                epoch,
                Arc::clone(&mailboxes),
            )
        })
    }

    fn ended(&mut self, key: &VariantKey) {
        self.writers.board.remove(key);
        // What comes back under its name has not failed.
        self.quarantine(|known| known.remove(key));
        self.mailboxes.changed.insert(key.clone());
        if let Some(next) = self.refused.pop_first() {
            self.mailboxes.dirty.insert(Invalidation::Variant(next));
        }
    }

    fn quarantined(&mut self, key: &VariantKey, failures: usize, why: &str, retry_in: Duration) {
        tracing::error!(variant = %key, failures, why, ?retry_in, "variant keeps failing and is quarantined");
        self.quarantine(|known| known.insert(key.clone(), Arc::from(why)));
        if let Some(regarding) = self.shared.regarding(key) {
            let note = format!(
                "The controller's own handling of this object failed {failures} times ({why}); its last replica count is kept. Tried again in {} s, or when the object changes.",
                retry_in.as_secs()
            );
            let reason = EventReason::VariantQuarantined;
            let notice = EventNotice::warning(regarding, reason, "Refresh", note);
            self.mailboxes.events.throw(self.shared.clock.now(), notice);
        }
        self.mailboxes.changed.insert(key.clone());
    }

    fn released(&mut self, key: &VariantKey) {
        tracing::info!(variant = %key, "variant runs again");
        self.quarantine(|known| known.remove(key));
        self.mailboxes.changed.insert(key.clone());
    }
}
