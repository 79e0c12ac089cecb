//! Which watches of a process tell something: open, and not fallen silent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open watches of one process, by the plural of what they watch. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Watches(Arc<Mutex<BTreeMap<String, u64>>>);

/// A watch for as long as this lives.
#[derive(Debug)]
pub(super) struct Open {
    of: Watches,
    plural: String,
}

impl Watches {
    /// A watch at this path begins. One of some objects alone tells nothing of all of them.
    pub(super) fn open(&self, path: &str, query: &str) -> Open {
        let plural = path.rsplit('/').next().unwrap_or_default();
        let plural = if query.contains("fieldSelector=") {
            format!("{plural} of a selection")
        } else {
            plural.to_owned()
        };
        *self.table().entry(plural.clone()).or_default() += 1;
        Open {
            of: self.clone(),
            plural,
        }
    }

    /// Whether each of these is watched.
    pub(super) fn hear(&self, plurals: &[&str]) -> bool {
        let table = self.table();
        let watched = |plural: &&str| table.get(*plural).is_some_and(|count| *count > 0);
        plurals.iter().all(watched)
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(count) = self.of.table().get_mut(&self.plural) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_heard_as_long_as_one_watch_of_it_is_open() {
        let watches = Watches::default();
        let _bound = watches.open("/api/v1/pods", "fieldSelector=spec.nodeName!=");
        assert!(!watches.hear(&["pods"]));
        let one = watches.open("/api/v1/pods", "watch=true");
        let other = watches.open("/api/v1/namespaces/n/pods", "");
        assert!(watches.hear(&["pods"]));
        assert!(!watches.hear(&["pods", "nodes"]));
        drop(one);
        assert!(watches.hear(&["pods"]));
        drop(other);
        assert!(!watches.hear(&["pods"]));
    }
}
