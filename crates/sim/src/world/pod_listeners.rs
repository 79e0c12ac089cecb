//! The controllers of a world, as the world reads them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::controller::ControllerView;
use wva::policy::key::VariantKey;
use wva::policy::units::Replicas;

/// Who answers at which pod. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodListeners(Arc<Mutex<BTreeMap<String, Option<Arc<ControllerView>>>>>);

impl PodListeners {
    /// This pod answers, or does not.
    pub(crate) fn set(&self, pod: &str, door: Option<Arc<ControllerView>>) {
        self.all().insert(pod.to_owned(), door);
    }

    pub(super) fn pods(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    pub(super) async fn metrics(&self, pod: &str) -> Option<String> {
        self.door(pod)?.metrics().await
    }

    pub(super) fn door(&self, pod: &str) -> Option<Arc<ControllerView>> {
        self.all().get(pod).cloned().flatten()
    }

    pub(super) fn desired(&self, key: &VariantKey) -> Option<Replicas> {
        let doors = self.all();
        let mut open = doors.values().flatten();
        open.find_map(|door| door.shared.records.desired(key))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Option<Arc<ControllerView>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
