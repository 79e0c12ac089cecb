//! What has been published per variant: one record is gauge, status, condition and debug page.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::kit::{Epoch, Fenced, Guard};
use crate::policy::key::VariantKey;
use crate::policy::record::PublishedRecord;
use crate::policy::units::Replicas;

/// Records by variant. Written by the emitter alone; outlives it.
#[derive(Debug, Clone)]
pub struct Records(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    guard: Guard,
    term: AtomicU64,
    records: RwLock<BTreeMap<VariantKey, Arc<PublishedRecord>>>,
}

impl Default for Records {
    fn default() -> Self {
        Self(Arc::new(Inner {
            guard: Guard::new(),
            term: AtomicU64::new(0),
            records: RwLock::new(BTreeMap::new()),
        }))
    }
}

impl Records {
    /// The term of the claim that the records are of. Somebody else may have led since.
    pub fn term(&self) -> u64 {
        self.0.term.load(Ordering::Acquire)
    }

    /// Notes that no record of an earlier term is left.
    ///
    /// # Errors
    /// When a younger emitter has written already.
    pub fn enter(&self, epoch: &Epoch, term: u64) -> Result<(), Fenced> {
        self.0.guard.admit(epoch, || {
            self.0.term.store(term, Ordering::Release);
        })
    }

    /// The count published last for a variant.
    pub fn desired(&self, key: &VariantKey) -> Option<Replicas> {
        self.get(key)?.values.map(|values| values.desired)
    }

    /// The count that a cycle decided last for a variant. What is shown before the first one only
    /// repeats the status, or the replicas that exist.
    pub fn decided(&self, key: &VariantKey) -> Option<Replicas> {
        let record = self.get(key).filter(|record| !record.awaits_decision())?;
        record.values.map(|values| values.desired)
    }

    /// The record of one variant.
    pub fn get(&self, key: &VariantKey) -> Option<Arc<PublishedRecord>> {
        self.read().get(key).map(Arc::clone)
    }

    /// All records, sorted.
    pub fn snapshot(&self) -> BTreeMap<VariantKey, Arc<PublishedRecord>> {
        self.read().clone()
    }

    /// Keeps or drops a record; `None` drops it.
    ///
    /// # Errors
    /// When a younger emitter has written already.
    pub fn put(
        &self,
        epoch: &Epoch,
        key: &VariantKey,
        record: Option<Arc<PublishedRecord>>,
    ) -> Result<(), Fenced> {
        self.0.guard.admit(epoch, || {
            let mut records = self
                .0
                .records
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            match record {
                Some(record) => records.insert(key.clone(), record),
                None => records.remove(key),
            };
        })
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<VariantKey, Arc<PublishedRecord>>> {
        self.0
            .records
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
