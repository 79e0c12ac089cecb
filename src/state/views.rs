//! What several cells say together: joins, the input of a cycle, the debug page.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::Readers;
use super::mirrors::{TargetLookup, target_of};
use crate::cluster::event::Regarding;
use crate::cluster::project::pool::PoolObject;
use crate::policy::document::SnapshotDocument;
use crate::policy::key::VariantKey;
use crate::policy::ownership::{Holding, Ownership};
use crate::policy::pod_autoscaler::claims::TargetRivals;
use crate::policy::pod_autoscaler::record::TargetOwner;
use crate::policy::record::PublishedRecord;
use crate::policy::scaler::Scalers;
use crate::policy::signal::SignalName;
use crate::policy::snapshot::{ClusterSnapshot, CycleId, GpuInventory, VariantView};
use crate::policy::units::Replicas;
use crate::policy::variant::{self, Refreshed, VariantState};
use wva_base::moment::{Moment, WallTime};

impl Readers {
    /// How this controller stands towards others that claim a variant.
    pub fn standing(&self, key: &VariantKey) -> Ownership {
        let Some(record) = self.mirrors.managed(key) else {
            return Ownership::Alone;
        };
        let ownership_conflicts = self.ownership_conflicts.load();
        ownership_conflicts.standing(&self.manager, key, &record.owners)
    }

    /// What other controllers hold of our variants, by manager.
    pub fn held_by_others(&self) -> BTreeMap<Arc<str>, BTreeMap<VariantKey, WallTime>> {
        let mut held: BTreeMap<Arc<str>, BTreeMap<VariantKey, WallTime>> = BTreeMap::new();
        for key in self.board.snapshot().into_keys() {
            let record = self.mirrors.managed(&key);
            let owners = record.iter().flat_map(|record| record.owners.iter());
            for owner in owners {
                if owner.holds == Holding::Status && owner.manager != self.manager {
                    let objects = held.entry(Arc::clone(&owner.manager)).or_default();
                    objects.insert(key.clone(), owner.written);
                }
            }
        }
        held
    }

    /// Joins what the mirrors hold about a variant; `None` if this controller does not manage it.
    pub fn refresh(
        &self,
        key: &VariantKey,
        state: &mut VariantState,
        now: Moment,
    ) -> Option<Refreshed> {
        let record = self.mirrors.managed(key)?;
        let target = target_of(&record);
        let sighting =
            target.as_ref().map_or(TargetLookup::Missing, |target| self.mirrors.sight(target));
        let pods = sighting.found().and_then(|target| self.mirrors.pods(target));
        let claimants =
            target.as_ref().map_or_else(Vec::new, |target| self.mirrors.claimants(target));
        let rivals = target.as_ref().map(|target| self.mirrors.rival_autoscalers(&record, target));
        let text = |other: &TargetOwner| Arc::from(other.to_string());
        let (owner, yielding) = match &rivals {
            Some(TargetRivals::Owner(owner)) => (Some(text(owner)), Vec::new()),
            Some(TargetRivals::Yielding(others)) => (None, others.iter().map(text).collect()),
            None => (None, Vec::new()),
        };
        let scalers =
            target.as_ref().map_or(Scalers::Unknown, |target| self.mirrors.scalers(target));
        let shared = variant::VariantObjects {
            object: &record.object,
            target: sighting.lookup(),
            pods: pods.as_ref(),
            claimants: &claimants,
            owner: owner.as_ref(),
            yielding: &yielding,
            published: self.decided(key, &record.object.uid),
            scalers: &scalers,
        };
        Some(state.refresh(&shared, now))
    }

    /// The object of a variant, as an event refers to it.
    pub fn regarding(&self, key: &VariantKey) -> Option<Regarding> {
        let first = self.mirrors.all_managed(key).into_iter().next()?;
        Some(first.regarding())
    }

    /// The input of a planning cycle: the board, with the counts that were published last. The
    /// status of an object may lag behind its gauge, and a step must be neither taken twice nor
    /// taken back for that. What a view holds of an earlier term, or of an object that was created again
    /// under its name, counts for nothing.
    pub fn snapshot(&self, cycle: CycleId) -> ClusterSnapshot {
        let mut variants = self.board.snapshot();
        let settings = self.settings.load();
        for (key, view) in &mut variants {
            if let Some(template) =
                (self.mirrors).counted(&key.namespace, &view.template, &settings.generation.dynamic)
            {
                *view = Arc::new(VariantView { template, ..(**view).clone() });
            }
            let target = view.target.resolved();
            let router = target.map(|target| self.mirrors.router_in_front(&target.key));
            if let Some(router) = router.filter(|router| *router != view.router) {
                *view = Arc::new(VariantView { router, ..(**view).clone() });
            }
            let decided = self.decided(key, &view.uid);
            let published = decided.or_else(|| self.mirrors.stored(key));
            if published != view.desired && view.target.resolved().is_some() {
                *view = Arc::new(VariantView {
                    desired: published,
                    // How long the count before it waited says nothing about this one.
                    unapplied_since: None,
                    ..(**view).clone()
                });
            }
        }
        ClusterSnapshot {
            cycle,
            variants,
            metrics: self.metrics.load(),
            direct: self.direct.load(),
            gpus: self.gpus(),
        }
    }

    /// The count that a cycle of this term decided last.
    fn decided(&self, key: &VariantKey, uid: &str) -> Option<Replicas> {
        let is_of_this_term = self.records.term() == self.claim.term();
        is_of_this_term.then(|| self.records.decided(key, uid)).flatten()
    }

    /// GPUs of the cluster; `None` where no setting needs them.
    fn gpus(&self) -> Option<Arc<GpuInventory>> {
        let is_asked_for = self.settings.load().needs_nodes();
        is_asked_for.then(|| Arc::new(self.mirrors.inventory(self.clock.now())))
    }

    /// Why a variant's own actor keeps failing, if it does.
    pub fn quarantine_of(&self, key: &VariantKey) -> Option<Arc<str>> {
        self.quarantined.read(|known| known.get(key).cloned())
    }

    /// The input of a planning cycle as it would be now, for the debug page; `wva plan` reads it.
    pub fn debug_snapshot(&self) -> SnapshotDocument {
        let snapshot = self.snapshot(CycleId::default());
        let scalers = snapshot
            .variants
            .iter()
            .map(|(key, view)| (key.clone(), view.scalers.clone()))
            .collect();
        let context = DebugContext {
            sources: snapshot.metrics.sources.clone(),
            scalers,
            records: self.records.snapshot(),
            pools: self.mirrors.pools.all().into_values().collect(),
        };
        let now = self.clock.now();
        let collected = snapshot.metrics.collected;
        let lag = collected.map_or(Duration::ZERO, |collected| now.since(collected));
        SnapshotDocument {
            context: serde_json::to_value(context).ok(),
            pod_autoscalers: self.autoscaler_documents(now, lag),
            ..SnapshotDocument::of(&snapshot, &self.learned.load(), now)
        }
    }
}

/// Context of a snapshot for its readers; it decides nothing.
#[derive(Debug, Serialize)]
struct DebugContext {
    sources: BTreeMap<SignalName, BTreeMap<Arc<str>, u64>>,
    scalers: BTreeMap<VariantKey, Scalers>,
    records: BTreeMap<VariantKey, Arc<PublishedRecord>>,
    pools: Vec<Arc<PoolObject>>,
}
