//! Variants: VariantAutoscalings, and what scalers declare.

use std::sync::Arc;

use super::WatcherWiring;
use crate::actors::scale_reader::scale_target;
use crate::actors::variants::Invalidation;
use crate::actors::watcher::{WatchSpec, WatchUpdate};
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::kinds::WatchedKind;
use crate::cluster::project::variant::{self, VariantRecord};
use crate::roles::Role;
use crate::state::changes::FollowedObject;
use crate::state::mirrors::target_of;
use wva_supervise::ChildSpec;

impl WatcherWiring<'_> {
    pub(super) fn variants(&self) -> ChildSpec<Role> {
        let mailboxes = Arc::clone(&self.mailboxes);
        let changed = self.variant_changed();
        let mirror = &self.mirrors.variants;
        let notify = move |update: WatchUpdate<'_, VariantRecord>| match update {
            WatchUpdate::Changed(update) => {
                changed(update.before.as_deref(), update.after.as_deref());
            }
            WatchUpdate::Synced => {
                mailboxes.dirty.insert(Invalidation::Everything);
                mailboxes.config.insert(());
            }
        };
        let kind = WatchedKind::VariantAutoscaling;
        self.watcher(WatchSpec::<VariantAutoscaling> {
            malformed: |malformed, _, texts| Some(variant::malformed(malformed, texts)),
            relists: Some(Arc::clone(&self.relists.variants)),
            ..Self::spec(kind, self.api(), mirror, notify)
        })
    }

    /// Who looks when a variant came, changed or went, whichever kind of object it is.
    pub(super) fn variant_changed(
        &self,
    ) -> impl Fn(Option<&VariantRecord>, Option<&VariantRecord>) + Send + Sync + use<> {
        let mailboxes = Arc::clone(&self.mailboxes);
        let followed = self.shared.changes.clone();
        move |before, after| {
            for record in before.into_iter().chain(after) {
                let key = &record.object.key;
                followed.wake(&FollowedObject::Variant(key.clone()));
                mailboxes.dirty.insert(Invalidation::Variant(key.clone()));
                if let Some(target) = target_of(record) {
                    followed.wake(&FollowedObject::Target(target.clone()));
                    mailboxes.dirty.insert(Invalidation::Target(target));
                }
            }
            if let Some(after) = after {
                // A scaler gets a new version with each of its statuses.
                let is_news = after.declared_by.is_none()
                    || before.is_none_or(|before| before.differs_from(after));
                let before = before.and_then(scale_target);
                let other = scale_target(after).filter(|now| before.as_ref() != Some(now));
                mailboxes.named.insert_all(other.map(|(target, _)| target));
                // Another program may have written its status; ours is compared again.
                if is_news {
                    mailboxes.statuses.add(after.object.key.clone());
                }
            }
            // Whether a namespace has variants decides whether its ConfigMaps count.
            if before.is_some() != after.is_some() {
                mailboxes.config.insert(());
            }
        }
    }
}
