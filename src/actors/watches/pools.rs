//! Watchers of InferencePools. Changes notify no role: every cycle reads what there is.

use std::sync::Arc;

use super::{WatcherWiring, scoped};
use crate::actors::variants::Invalidation;
use crate::actors::watcher::WatchUpdate;
use crate::api::inference_pool::InferencePool;
use crate::cluster::kinds::{KindSpec, WatchedKind};
use crate::cluster::mirror::MirrorWriter;
use crate::cluster::project::pool::PoolObject;
use crate::cluster::watch::{Discovery, ServedVersion};
use crate::roles::Role;
use wva_supervise::ChildSpec;

impl WatcherWiring<'_> {
    /// InferencePools of the group of a kind, in this version or in any that discovery shows.
    pub(super) fn pools(
        &self,
        kind: WatchedKind,
        version: &str,
        mirror: &Arc<MirrorWriter<PoolObject>>,
    ) -> ChildSpec<Role> {
        let KindSpec { group, is_discovered, .. } = kind.spec();
        let client = self.client.clone();
        let namespace = self.statics.scope.watch_namespace.clone();
        let in_version = move |version: &str| {
            let version = ServedVersion::Other { group, version: Arc::from(version) };
            scoped(&client, namespace.as_deref(), &version)
        };
        let mailboxes = Arc::clone(&self.mailboxes);
        let notify = move |update: WatchUpdate<'_, _>| {
            if matches!(update, WatchUpdate::Synced) {
                mailboxes.dirty.insert(Invalidation::Everything);
            }
        };
        let mut spec = Self::spec::<InferencePool>(kind, in_version(version), mirror, notify);
        spec.discovery =
            is_discovered.then(|| Discovery::new(self.client.clone(), group, in_version));
        self.watcher(spec)
    }
}
