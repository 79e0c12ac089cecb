//! Which watches of a process are live: open, and not fallen silent; and what they have delivered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::threads::locked;

/// The open watches of one process, by the plural of what they watch. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Watches(Arc<Mutex<BTreeMap<String, Kind>>>);

#[derive(Debug, Default)]
struct Kind {
    open: u64,
    /// The newest version that a watch has delivered, or a list before it.
    newest: u64,
}

#[derive(Debug)]
pub(super) struct Open {
    of: Watches,
    pub(super) plural: String,
}

impl Watches {
    /// A watch at this path begins. One of some objects alone says nothing of all of them.
    pub(super) fn open(&self, path: &str, query: &str) -> Open {
        let plural = path.rsplit('/').next().unwrap_or_default();
        let plural = if query.contains("fieldSelector=") {
            format!("{plural} of a selection")
        } else {
            plural.to_owned()
        };
        locked(&self.0).entry(plural.clone()).or_default().open += 1;
        let open = Open { of: self.clone(), plural };
        open.reach(number_after(query, "resourceVersion="));
        open
    }

    pub(super) fn newest(&self, plural: &str) -> u64 {
        locked(&self.0).get(plural).map_or(0, |kind| kind.newest)
    }

    pub(super) fn live(&self, plurals: &[&str]) -> bool {
        let table = locked(&self.0);
        let watched = |plural: &&str| table.get(*plural).is_some_and(|kind| kind.open > 0);
        plurals.iter().all(watched)
    }
}

impl Open {
    pub(super) fn deliver(&self, events: &str) {
        let last = events.lines().next_back().unwrap_or_default();
        self.reach(number_after(last, "\"resourceVersion\":\""));
    }

    fn reach(&self, version: Option<u64>) {
        let mut table = locked(&self.of.0);
        if let (Some(kind), Some(version)) = (table.get_mut(&self.plural), version) {
            kind.newest = kind.newest.max(version);
        }
    }
}

fn number_after(text: &str, words: &str) -> Option<u64> {
    let (_, rest) = text.split_once(words)?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(kind) = locked(&self.of.0).get_mut(&self.plural) {
            kind.open = kind.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_followed_as_long_as_one_watch_of_it_is_open() {
        let watches = Watches::default();
        let _bound = watches.open("/api/v1/pods", "fieldSelector=spec.nodeName!=");
        assert!(!watches.live(&["pods"]));
        let one = watches.open("/api/v1/pods", "watch=true");
        let other = watches.open("/api/v1/namespaces/n/pods", "");
        assert!(watches.live(&["pods"]));
        assert!(!watches.live(&["pods", "nodes"]));
        drop(one);
        assert!(watches.live(&["pods"]));
        drop(other);
        assert!(!watches.live(&["pods"]));
    }

    #[test]
    fn a_kind_is_known_up_to_the_newest_version_of_any_of_its_watches() {
        let watches = Watches::default();
        assert_eq!(watches.newest("pods"), 0);
        let one = watches.open("/api/v1/pods", "watch=true&resourceVersion=17");
        assert_eq!(watches.newest("pods"), 17);
        let event =
            |version: u64| format!("{{\"metadata\":{{\"resourceVersion\":\"{version}\"}}}}\n");
        one.deliver(&(event(19) + &event(23)));
        assert_eq!(watches.newest("pods"), 23);
        let _older = watches.open("/api/v1/pods", "resourceVersion=5");
        assert_eq!((watches.newest("pods"), watches.newest("nodes")), (23, 0));
    }
}
