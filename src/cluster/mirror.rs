//! What we know of the objects of one kind: projections, in order, written by one watcher and read
//! by anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::replace;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use crate::policy::key::ObjectKey;
use wva_base::moment::Moment;
use wva_supervise::{Epoch, Fenced, Guard};

/// Most objects that one mirror holds. At well below 1 kB for a projection that is 200 MB.
const CAPACITY: usize = 200_000;

/// The mirror of one kind, to be read. Clones share their content. It outlives its writer: while a watcher is
/// restarted, readers see the last state, and see it grow old.
#[derive(Debug)]
pub struct Mirror<V> {
    shared: Arc<Shared<V>>,
}

/// The half of a mirror that also writes. There is one, and it cannot be cloned: the watcher of the kind has it.
#[derive(Debug)]
pub struct MirrorWriter<V>(Mirror<V>);

#[derive(Debug)]
struct Shared<V> {
    guard: Guard,
    capacity: usize,
    state: RwLock<State<V>>,
}

#[derive(Debug)]
struct State<V> {
    objects: BTreeMap<ObjectKey, Arc<V>>,
    index: Index<V>,
    revision: u64,
    sync: SyncState,
    contact: Option<Moment>,
    /// Why the API server has not answered since.
    trouble: Option<Arc<str>>,
    /// Whether that is a missing right.
    is_forbidden: bool,
}

/// Whether a mirror has ever held a complete list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncState {
    /// Not yet: what is missing here may exist.
    Never,
    /// It has: what is missing here did not exist at some moment since.
    Complete,
    /// The API server does not serve the kind, so that there are no objects of it.
    KindAbsent,
}

/// One object that came, changed or went. Both sides are given, since those who depended on the
/// old one must look as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectUpdate<V> {
    pub key: ObjectKey,
    /// What was known before; absent if it is new.
    pub before: Option<Arc<V>>,
    /// What is known now; absent if it is gone.
    pub after: Option<Arc<V>>,
}

impl<V> ObjectUpdate<V> {
    fn gone((key, before): (ObjectKey, Arc<V>)) -> Self {
        Self { key, before: Some(before), after: None }
    }
}

/// Objects by something that they name, like their owner.
#[derive(Debug)]
struct Index<V> {
    named: fn(&V) -> Vec<ObjectKey>,
    naming: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl<V> Index<V> {
    fn add(&mut self, key: &ObjectKey, value: &V) {
        for named in (self.named)(value) {
            self.naming.entry(named).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &ObjectKey, value: &V) {
        for named in (self.named)(value) {
            if let Some(naming) = self.naming.get_mut(&named) {
                naming.remove(key);
                if naming.is_empty() {
                    self.naming.remove(&named);
                }
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// The writer's successor has written already.
    #[error(transparent)]
    Superseded(#[from] Fenced),
    #[error(
        "{key} is not mirrored: the mirror holds {capacity} objects of this kind already; \
         limit the controller to a namespace or to labelled objects"
    )]
    Full { key: ObjectKey, capacity: usize },
}

impl<V> Clone for Mirror<V> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<V> Deref for MirrorWriter<V> {
    type Target = Mirror<V>;

    fn deref(&self) -> &Mirror<V> {
        &self.0
    }
}

impl<V> Mirror<V> {
    /// The projection of one object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.read().objects.get(key).cloned()
    }

    /// All objects that name `named`, in order; none unless the mirror was made by
    /// [`MirrorWriter::indexed`].
    pub fn naming(&self, named: &ObjectKey) -> Vec<(ObjectKey, Arc<V>)> {
        let state = self.read();
        let keys = state.index.naming.get(named).into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), Arc::clone(state.objects.get(key)?)))).collect()
    }

    /// How many objects name `named`.
    pub fn count_naming(&self, named: &ObjectKey) -> usize {
        let state = self.read();
        state.index.naming.get(named).map_or(0, BTreeSet::len)
    }

    /// All objects of one namespace, in order of their names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<(ObjectKey, Arc<V>)> {
        let first = ObjectKey::new(namespace, "");
        self.read()
            .objects
            .range(first..)
            .take_while(|(key, _)| &*key.namespace == namespace)
            .map(|(key, value)| (key.clone(), Arc::clone(value)))
            .collect()
    }

    /// All objects, in order of namespace and name.
    pub fn all(&self) -> Vec<(ObjectKey, Arc<V>)> {
        self.read().objects.iter().map(|(key, value)| (key.clone(), Arc::clone(value))).collect()
    }

    /// Whether the mirror has ever been complete.
    pub fn sync(&self) -> SyncState {
        self.read().sync
    }

    /// Whether an object that is missing here can be taken as not existing.
    pub fn synced(&self) -> bool {
        self.sync() != SyncState::Never
    }

    /// A number that grows with every change of content.
    pub fn revision(&self) -> u64 {
        self.read().revision
    }

    /// When the API server last answered; its age is `wva_mirror_age_seconds`.
    pub fn last_contact(&self) -> Option<Moment> {
        self.read().contact
    }

    /// What keeps the mirror from being brought up to date, if something does.
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.read().trouble.clone()
    }

    /// Whether a missing right keeps the mirror from being brought up to date.
    pub fn is_forbidden(&self) -> bool {
        self.read().is_forbidden
    }

    fn read(&self) -> RwLockReadGuard<'_, State<V>> {
        self.shared.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Default for MirrorWriter<V> {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl<V> MirrorWriter<V> {
    /// An empty mirror that was never synced and refuses more than `capacity` objects.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::build(capacity, |_| Vec::new())
    }

    /// An empty mirror that also finds objects by what they name, see [`Mirror::naming`].
    pub fn indexed(named: fn(&V) -> Vec<ObjectKey>) -> Self {
        Self::build(CAPACITY, named)
    }

    /// The half for everybody else.
    pub fn reader(&self) -> Mirror<V> {
        self.0.clone()
    }

    fn build(capacity: usize, named: fn(&V) -> Vec<ObjectKey>) -> Self {
        let shared = Arc::new(Shared {
            guard: Guard::new(),
            capacity,
            state: RwLock::new(State {
                objects: BTreeMap::new(),
                index: Index { named, naming: BTreeMap::new() },
                revision: 0,
                sync: SyncState::Never,
                contact: None,
                trouble: None,
                is_forbidden: false,
            }),
        });
        Self(Mirror { shared })
    }

    /// Notes an answer of the API server.
    pub fn touch(&self, epoch: &Epoch, now: Moment) -> Result<(), Fenced> {
        self.write(epoch, |state| {
            state.contact = Some(now);
            state.trouble = None;
        })
    }

    /// Notes what keeps the mirror from being brought up to date, until the API server answers.
    pub fn fail(&self, epoch: &Epoch, why: &str) -> Result<(), Fenced> {
        self.write(epoch, |state| state.trouble = Some(Arc::from(why)))
    }

    /// Notes that a right is missing to bring the mirror up to date; whether it was not missing before.
    pub fn forbid(&self, epoch: &Epoch) -> Result<bool, Fenced> {
        self.write(epoch, |state| !replace(&mut state.is_forbidden, true))
    }

    /// Notes that no right is missing; whether one was.
    pub fn permit(&self, epoch: &Epoch) -> Result<bool, Fenced> {
        self.write(epoch, |state| replace(&mut state.is_forbidden, false))
    }

    /// Forgets everything, since no role needs it any more.
    pub fn forget(&self, epoch: &Epoch) -> Result<(), Fenced> {
        self.write(epoch, |state| {
            let gone = std::mem::take(&mut state.objects);
            state.index.naming.clear();
            state.sync = SyncState::Never;
            state.contact = None;
            state.trouble = None;
            state.is_forbidden = false;
            state.count_if(!gone.is_empty());
        })
    }

    /// Forgets everything, since the API server does not serve the kind. Returns what was there.
    pub fn kind_absent(&self, epoch: &Epoch) -> Result<Vec<ObjectUpdate<V>>, Fenced> {
        self.write(epoch, |state| {
            let gone = std::mem::take(&mut state.objects);
            state.index.naming.clear();
            state.sync = SyncState::KindAbsent;
            state.count_if(!gone.is_empty());
            gone.into_iter().map(ObjectUpdate::gone).collect()
        })
    }

    /// Removes an object; returns what was there.
    pub fn delete(
        &self,
        epoch: &Epoch,
        key: &ObjectKey,
    ) -> Result<Option<ObjectUpdate<V>>, Fenced> {
        self.write(epoch, |state| {
            let before = state.objects.remove(key)?;
            state.index.remove(key, &before);
            state.count_if(true);
            Some(ObjectUpdate::gone((key.clone(), before)))
        })
    }

    fn write<R>(
        &self,
        epoch: &Epoch,
        change: impl FnOnce(&mut State<V>) -> R,
    ) -> Result<R, Fenced> {
        let shared = &*self.0.shared;
        shared.guard.admit(epoch, || {
            let mut state: RwLockWriteGuard<'_, _> =
                shared.state.write().unwrap_or_else(PoisonError::into_inner);
            change(&mut state)
        })
    }
}

impl<V: PartialEq> MirrorWriter<V> {
    /// Stores what is known of an object now; returns the change, if there is one.
    ///
    /// # Errors
    /// If a newer incarnation of the writer has written, or if the object is new and one too many.
    pub fn apply(
        &self,
        epoch: &Epoch,
        key: ObjectKey,
        value: V,
    ) -> Result<Option<ObjectUpdate<V>>, MirrorError> {
        let capacity = self.shared.capacity;
        self.write(epoch, |state| {
            let before = state.objects.get(&key).cloned();
            match &before {
                Some(known) if **known == value => return Ok(None),
                Some(known) => state.index.remove(&key, known),
                None if state.objects.len() >= capacity => {
                    return Err(MirrorError::Full { key, capacity });
                }
                None => {}
            }
            let after = Arc::new(value);
            state.index.add(&key, &after);
            state.objects.insert(key.clone(), Arc::clone(&after));
            state.count_if(true);
            Ok(Some(ObjectUpdate { key, before, after: Some(after) }))
        })?
    }

    /// Begins a fresh list; the content stays readable until [`MirrorWriter::replace`].
    pub fn relist(&self) -> Relist<V> {
        Relist { objects: BTreeMap::new(), capacity: self.shared.capacity }
    }

    /// Puts a complete list in place of the content, at once. Returns all objects that came,
    /// changed or went.
    pub fn replace(&self, epoch: &Epoch, list: Relist<V>) -> Result<Vec<ObjectUpdate<V>>, Fenced> {
        self.write(epoch, |state| {
            let mut before = replace(&mut state.objects, list.objects);
            let mut changed = Vec::new();
            state.index.naming.clear();
            for (key, value) in &mut state.objects {
                match before.remove(key) {
                    // The old allocation stays, so that readers that compare pointers see no change.
                    Some(known) if known == *value => *value = known,
                    known => changed.push(ObjectUpdate {
                        key: key.clone(),
                        before: known,
                        after: Some(Arc::clone(value)),
                    }),
                }
                state.index.add(key, value);
            }
            changed.extend(before.into_iter().map(ObjectUpdate::gone));
            state.sync = SyncState::Complete;
            state.count_if(!changed.is_empty());
            changed
        })
    }
}

impl<V> State<V> {
    fn count_if(&mut self, is_changed: bool) {
        self.revision = self.revision.saturating_add(u64::from(is_changed));
    }
}

/// A list that is being received. Dropped without effect if it never completes.
#[derive(Debug)]
pub struct Relist<V> {
    objects: BTreeMap<ObjectKey, Arc<V>>,
    capacity: usize,
}

impl<V> Relist<V> {
    /// Adds an object of the list.
    ///
    /// # Errors
    /// If it is one too many; the list goes on without it.
    pub fn add(&mut self, key: ObjectKey, value: V) -> Result<(), MirrorError> {
        if self.objects.len() >= self.capacity && !self.objects.contains_key(&key) {
            return Err(MirrorError::Full { key, capacity: self.capacity });
        }
        self.objects.insert(key, Arc::new(value));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
