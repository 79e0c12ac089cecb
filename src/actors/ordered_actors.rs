//! What the registries share: the actors by key, with the object that each was ordered for last.

use std::collections::BTreeMap;
use std::sync::Arc;

use wva_supervise::{Address, Order};

/// Identity and generation of an object.
pub(super) type ObjectGeneration = (Arc<str>, i64);

/// What becomes of the actor of an object.
#[derive(Debug)]
pub(super) enum ActorOrder<K> {
    /// This, or nothing.
    Given(Option<Order<K>>),
    /// There is no room for another one.
    Full,
    /// The object is gone, and its actor was never ordered in this life.
    Unknown,
}

#[derive(Debug)]
pub(super) struct OrderedActors<K, M> {
    actors: BTreeMap<K, (Address<M>, ObjectGeneration)>,
    /// Most of them.
    pub(super) room: usize,
}

impl<K: Ord + Clone, M: Send + 'static> OrderedActors<K, M> {
    pub(super) fn new(room: usize) -> Self {
        Self { actors: BTreeMap::new(), room }
    }

    /// The actor of an object, which is `None` once it is gone. One that fails is run again at once only when its object
    /// changes; a write to its status does not count.
    pub(super) fn order(&mut self, key: &K, object: Option<ObjectGeneration>) -> ActorOrder<K> {
        let Some(object) = object else {
            return match self.actors.remove(key) {
                Some(_) => ActorOrder::Given(Some(Order::End(key.clone()))),
                None => ActorOrder::Unknown,
            };
        };
        let count = self.actors.len();
        let order = match self.actors.get_mut(key) {
            Some((_, known)) if *known == object => None,
            Some((_, known)) => {
                *known = object;
                Some(Order::Run(key.clone()))
            }
            None if count >= self.room => return ActorOrder::Full,
            None => {
                self.actors.insert(key.clone(), (Address::vacant(), object));
                Some(Order::Run(key.clone()))
            }
        };
        ActorOrder::Given(order)
    }

    /// The mailbox of an actor, which outlives its lives.
    pub(super) fn address(&self, key: &K) -> Address<M> {
        let known = self.actors.get(key);
        known.map_or_else(Address::vacant, |(address, _)| address.clone())
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = K> {
        self.actors.keys().cloned()
    }
}
