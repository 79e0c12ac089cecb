//! The watch of PodAutoscalers.

use std::sync::Arc;

use super::{WatchSpec, WatchUpdate, WatcherWiring};
use crate::actors::pod_autoscalers::AutoscalerInvalidation;
use crate::actors::variants::Invalidation;
use crate::api::pod_autoscaler::PodAutoscaler;
use crate::cluster::kinds::WatchedKind;
use crate::cluster::project::pod_autoscaler::{self, StoredAutoscaler};
use crate::cluster::scale::autoscaler_target;
use crate::roles::Role;
use wva_supervise::ChildSpec;

impl WatcherWiring<'_> {
    /// A status that was written and nothing else is no reason to look again.
    pub(super) fn pod_autoscalers(&self) -> ChildSpec<Role> {
        let mailboxes = Arc::clone(&self.mailboxes);
        let mirror = &self.mirrors.pod_autoscalers;
        let notify = move |update: WatchUpdate<'_, StoredAutoscaler>| match update {
            WatchUpdate::Changed(changed) => {
                let (before, after) = (&changed.before, &changed.after);
                let is_same = before
                    .as_ref()
                    .zip(after.as_ref())
                    .is_some_and(|(before, after)| before.asks_the_same(after));
                if !is_same {
                    mailboxes
                        .autoscalers
                        .insert(AutoscalerInvalidation::Object(changed.key.clone()));
                    let states = before.iter().chain(after);
                    let targets = states.filter_map(|stored| stored.target());
                    mailboxes.dirty.insert_all(targets.map(Invalidation::Target));
                    let before = before.as_deref().and_then(autoscaler_target);
                    let after = after.as_deref().and_then(autoscaler_target);
                    let other = after.filter(|now| before.as_ref() != Some(now));
                    mailboxes.named.insert_all(other.map(|(target, _)| target));
                }
            }
            WatchUpdate::Synced => {
                mailboxes.autoscalers.insert(AutoscalerInvalidation::Everything);
                mailboxes.dirty.insert(Invalidation::Everything);
            }
        };
        self.watcher(WatchSpec::<PodAutoscaler> {
            malformed: |malformed, _, texts| Some(pod_autoscaler::malformed(malformed, texts)),
            ..Self::spec(WatchedKind::PodAutoscaler, self.api(), mirror, notify)
        })
    }
}
