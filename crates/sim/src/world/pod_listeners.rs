//! The controllers of a world, as the world reads them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::controller::ControllerView;
use crate::threads::locked;
use wva::policy::key::VariantKey;
use wva::policy::units::Replicas;

/// Who answers at which pod. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodListeners(Arc<Mutex<BTreeMap<String, Option<Arc<ControllerView>>>>>);

impl PodListeners {
    /// This pod answers, or does not.
    pub(crate) fn set(&self, pod: &str, door: Option<Arc<ControllerView>>) {
        locked(&self.0).insert(pod.to_owned(), door);
    }

    pub(super) fn pods(&self) -> Vec<String> {
        locked(&self.0).keys().cloned().collect()
    }

    pub(super) async fn metrics(&self, pod: &str) -> Option<String> {
        self.door(pod)?.metrics().await
    }

    pub(super) fn door(&self, pod: &str) -> Option<Arc<ControllerView>> {
        locked(&self.0).get(pod).cloned().flatten()
    }

    pub(super) fn desired(&self, key: &VariantKey) -> Option<Replicas> {
        let doors = locked(&self.0);
        let mut open = doors.values().flatten();
        open.find_map(|door| door.shared.records.desired(key))
    }
}
