//! The controllers of a world, as the world reads them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::request::Parts;

use super::controller::ControllerView;
use wva::policy::key::VariantKey;
use wva::policy::units::Replicas;
use wva::roles::Role;
use wva::serve::answer::HttpResponse;

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
        let door = self.all().get(pod).cloned().flatten();
        door?.metrics().await
    }

    /// A page of the controller at this pod, as one of its ports serves it.
    pub(super) fn page(&self, pod: &str, head: &Parts) -> Option<HttpResponse> {
        let door = self.all().get(pod).cloned().flatten();
        door.map(|door| door.page(head))
    }

    pub(super) fn kill(&self, pod: &str, role: &Role) -> bool {
        let door = self.all().get(pod).cloned().flatten();
        door.is_some_and(|door| door.actors.kill(role))
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
