//! Wakes the tasks that follow single objects. A wake-up is a hint: the task reads the mirrors itself.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::policy::key::{ObjectKey, TargetKey, VariantKey};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FollowedObject {
    Variant(VariantKey),
    ScaledObject(ObjectKey),
    /// A scale target, of which the VariantAutoscalings that name it count.
    Target(TargetKey),
}

/// Who follows what. Clones share their content.
#[derive(Debug, Clone, Default)]
pub struct ObjectChanges(Arc<DashMap<FollowedObject, Followers>>);

#[derive(Debug, Default)]
struct Followers {
    count: usize,
    changed: Arc<Notify>,
}

/// Follows one object until it is dropped.
#[derive(Debug)]
pub struct ObjectFollower {
    changes: ObjectChanges,
    object: FollowedObject,
    changed: Arc<Notify>,
}

impl ObjectChanges {
    pub fn follow(&self, object: FollowedObject) -> ObjectFollower {
        let mut followers = self.0.entry(object.clone()).or_default();
        followers.count += 1;
        let changed = Arc::clone(&followers.changed);
        drop(followers);
        ObjectFollower { changes: self.clone(), object, changed }
    }

    pub fn wake(&self, object: &FollowedObject) {
        if let Some(followers) = self.0.get(object) {
            followers.changed.notify_waiters();
        }
    }

    #[cfg(test)]
    pub(crate) fn followed(&self) -> usize {
        self.0.len()
    }
}

impl ObjectFollower {
    /// Ready after the next change. A change between this call and the first poll counts.
    pub fn changed(&self) -> OwnedNotified {
        Arc::clone(&self.changed).notified_owned()
    }
}

impl Drop for ObjectFollower {
    fn drop(&mut self) {
        self.changes.0.remove_if_mut(&self.object, |_, followers| {
            followers.count = followers.count.saturating_sub(1);
            followers.count == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::{FollowedObject, ObjectChanges};
    use crate::policy::key::VariantKey;

    fn variant(name: &str) -> FollowedObject {
        FollowedObject::Variant(VariantKey::new("ns", name))
    }

    #[test]
    fn a_change_wakes_the_followers_of_its_object_alone() {
        let changes = ObjectChanges::default();
        let [first, second] = [variant("a"), variant("a")].map(|object| changes.follow(object));
        let other = changes.follow(variant("b"));
        let mut waits = [&first, &second, &other].map(|follower| follower.changed().boxed());
        let is_woken =
            |wait: &mut futures::future::BoxFuture<'_, ()>| wait.now_or_never().is_some();
        assert_eq!(waits.each_mut().map(is_woken), [false; 3]);
        changes.wake(&variant("a"));
        assert_eq!(waits.each_mut().map(is_woken), [true, true, false]);
        let mut later = first.changed().boxed();
        assert!(!is_woken(&mut later), "an earlier change does not count");
    }

    #[test]
    fn a_change_before_the_first_poll_counts() {
        let changes = ObjectChanges::default();
        let follower = changes.follow(variant("a"));
        let wait = follower.changed();
        changes.wake(&variant("a"));
        assert!(wait.now_or_never().is_some());
    }

    #[test]
    fn an_object_without_followers_is_forgotten() {
        let changes = ObjectChanges::default();
        let [first, second] = [variant("a"), variant("a")].map(|object| changes.follow(object));
        let wait = first.changed();
        drop(first);
        assert_eq!(changes.followed(), 1);
        drop(second);
        assert_eq!(changes.followed(), 0);
        drop(wait);
    }
}
