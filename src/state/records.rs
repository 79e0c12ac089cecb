//! What has been published per variant: one record is gauge, status, condition and debug page.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::policy::key::VariantKey;
use crate::policy::params::ActuationMode;
use crate::policy::record::PublishedRecord;
use crate::policy::units::Replicas;
use wva_supervise::{Reader, Writer};

/// Records of one term.
#[derive(Debug, Clone, Default)]
pub struct RecordTable {
    /// The term of the claim that the records are of. Another controller may have led since.
    pub term: u64,
    pub records: BTreeMap<VariantKey, Arc<PublishedRecord>>,
}

impl RecordTable {
    /// Keeps a record in place of the one before.
    pub fn put(&mut self, record: Arc<PublishedRecord>) {
        self.records.insert(record.key.clone(), record);
    }
}

/// What the emitter has published, to be read.
#[derive(Debug, Clone)]
pub struct Records(Reader<RecordTable>);

impl Records {
    pub fn of(writer: &Writer<RecordTable>) -> Self {
        Self(writer.reader())
    }

    /// The term of the claim that the records are of.
    pub fn term(&self) -> u64 {
        self.0.read(|table| table.term)
    }

    /// The count published last for a variant.
    pub fn desired(&self, key: &VariantKey) -> Option<Replicas> {
        self.get(key)?.values.map(|values| values.desired)
    }

    /// The count that a cycle decided last for the object with this uid. What is shown before the first one only repeats
    /// the status, or the replicas that exist.
    pub fn decided(&self, key: &VariantKey, uid: &str) -> Option<Replicas> {
        let counts =
            |record: &Arc<PublishedRecord>| *record.uid == *uid && !record.awaits_decision();
        let record = self.get(key).filter(counts)?;
        record.values.map(|values| values.desired)
    }

    /// The records of variants whose targets the controller scales itself.
    pub fn scaled_directly(&self) -> Vec<Arc<PublishedRecord>> {
        let is_direct = |record: &&Arc<PublishedRecord>| record.actuation == ActuationMode::Direct;
        self.0.read(|table| table.records.values().filter(is_direct).cloned().collect())
    }

    pub fn get(&self, key: &VariantKey) -> Option<Arc<PublishedRecord>> {
        self.0.read(|table| table.records.get(key).cloned())
    }

    /// All records, sorted.
    pub fn snapshot(&self) -> BTreeMap<VariantKey, Arc<PublishedRecord>> {
        self.0.read(|table| table.records.clone())
    }
}
