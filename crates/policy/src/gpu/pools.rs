//! All pools of one cycle, and what has been taken from them.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::accelerator_name::{counts_under, reconcile};
use super::budget::Budget;
use super::pool::{GpuPool, HeldGpus, PoolFigures};
use crate::accelerator::Accelerator;
use crate::key::ModelKey;
use crate::params::{Limiter, LimiterScope, Quota, Quotas};
use crate::units::Gpus;

/// The name of the quotas of namespaces that are not listed.
const DEFAULT_NAMESPACE: &str = "default";

/// What is known about the GPUs on the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Physical {
    /// The nodes do not limit.
    Unlimited,
    /// A view of nodes or pods is missing.
    Unknown,
    /// By short type name. A type without an entry does not exist.
    Known {
        /// GPUs that nodes offer.
        limits: BTreeMap<Arc<str>, Gpus>,
        /// GPUs that all pods hold.
        used: BTreeMap<Arc<str>, Gpus>,
        /// Types of which no node lists any, or a node some that are not counted: what there is, is not known.
        unlisted: BTreeSet<Arc<str>>,
    },
}

/// GPUs that our own variants hold, by namespace, then type as declared.
pub(crate) type ManagedUse = BTreeMap<Arc<str>, BTreeMap<Arc<str>, Gpus>>;

/// Types of our own variants that hold GPUs which are not counted, by namespace, as declared.
pub(crate) type UncountedUse = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

#[derive(Debug, Clone)]
pub(crate) struct GpuPools {
    physical: Physical,
    quotas: Vec<Limiter>,
    managed: ManagedUse,
    /// Whose GPUs no quota counts: what is left of those that they draw from is not known.
    pub(crate) uncounted: UncountedUse,
    /// GPUs that pods on their way out still hold, by short type name.
    pub(crate) leaving: BTreeMap<Arc<str>, Gpus>,
    taken: BTreeMap<GpuPool, Gpus>,
    /// For starts that are refused today.
    held: Vec<HeldGpus>,
    /// For the second part of a start that is under way.
    partners: Vec<HeldGpus>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GpuSupply {
    Left,
    /// All that it allows, as if nothing were in use.
    Limit,
}

#[derive(Debug)]
struct Level {
    pool: GpuPool,
    cap: Budget,
    used: Gpus,
    /// Whether more than that is in use.
    is_more_used: bool,
}

impl Level {
    fn budget(&self, supply: GpuSupply) -> Budget {
        match supply {
            GpuSupply::Left => self.left(self.used),
            GpuSupply::Limit => self.cap,
        }
    }

    /// What is left where as many are in use, and more where some are not counted.
    fn left(&self, used: Gpus) -> Budget {
        match self.cap.less(used) {
            Budget::Finite(left) if self.is_more_used && left > Gpus::ZERO => Budget::Unknown,
            left => left,
        }
    }

    /// That of an accelerator that no node has, or that is not stated where nodes have several.
    fn of_no_node(accelerator: &Accelerator, limits: &BTreeMap<Arc<str>, Gpus>) -> Self {
        let pool = match accelerator {
            Accelerator::Named(name) => GpuPool::NoNode {
                accelerator: Arc::clone(name),
                known: limits.keys().cloned().collect(),
            },
            Accelerator::Unresolved => {
                GpuPool::Inventory { accelerator: accelerator.label().into() }
            }
        };
        Self { pool, cap: Budget::Finite(Gpus::ZERO), used: Gpus::ZERO, is_more_used: false }
    }
}

impl GpuPools {
    /// Opens the pools. `managed` is what quotas count; nodes count every pod.
    pub(crate) fn new(physical: Physical, limiters: &[Limiter], managed: ManagedUse) -> Self {
        Self {
            physical,
            quotas: limiters.to_vec(),
            managed,
            uncounted: UncountedUse::new(),
            leaving: BTreeMap::new(),
            taken: BTreeMap::new(),
            held: Vec::new(),
            partners: Vec::new(),
        }
    }

    /// The pools that a variant draws from, in the order in which they are credited. A limiter that does
    /// not concern it has no pool here.
    pub(crate) fn drawn_by(&self, namespace: &str, accelerator: &Accelerator) -> Vec<GpuPool> {
        self.levels(namespace, accelerator).into_iter().map(|level| level.pool).collect()
    }

    pub(crate) fn figures(&self, namespace: &str, accelerator: &Accelerator) -> Vec<PoolFigures> {
        let levels = self.levels(namespace, accelerator).into_iter();
        levels
            .map(|level| {
                let left = level.left(level.used);
                PoolFigures::of(&level.pool, level.cap, level.used, left)
            })
            .collect()
    }

    /// Whether more is in use than any pool of a variant holds.
    pub(crate) fn is_overdrawn(&self, namespace: &str, accelerator: &Accelerator) -> bool {
        self.levels(namespace, accelerator)
            .iter()
            .any(|level| matches!(level.cap, Budget::Finite(cap) if level.used > cap))
    }

    pub(crate) fn budget(&self, namespace: &str, accelerator: &Accelerator) -> Budget {
        self.supply(namespace, accelerator, GpuSupply::Left)
    }

    pub(crate) fn supply(
        &self,
        namespace: &str,
        accelerator: &Accelerator,
        supply: GpuSupply,
    ) -> Budget {
        self.levels(namespace, accelerator)
            .iter()
            .fold(Budget::Unlimited, |budget, level| budget.and(level.budget(supply)))
    }

    /// Whether there are GPUs for several variants of a namespace together.
    pub(crate) fn fits(
        &self,
        namespace: &str,
        demands: &[(&Accelerator, Gpus)],
        supply: GpuSupply,
    ) -> bool {
        let mut needs: BTreeMap<GpuPool, (Budget, Gpus)> = BTreeMap::new();
        for (accelerator, gpus) in demands {
            for level in self.levels(namespace, accelerator) {
                let budget = level.budget(supply);
                let (_, need) = needs.entry(level.pool).or_insert((budget, Gpus::ZERO));
                *need = need.plus(*gpus);
            }
        }
        needs.values().all(|(left, need)| left.grant(*need) == *need)
    }

    /// What all pools of a variant leave it once the pods are gone that are on their way out.
    pub(crate) fn budget_once_gone(&self, namespace: &str, accelerator: &Accelerator) -> Budget {
        let levels = self.levels(namespace, accelerator).into_iter();
        levels.fold(Budget::Unlimited, |budget, level| {
            let staying = match &level.pool {
                GpuPool::Inventory { accelerator } => {
                    let leaving = self.leaving.get(accelerator).copied();
                    level.used.saturating_sub(leaving.unwrap_or_default())
                }
                GpuPool::NoNode { .. }
                | GpuPool::ClusterQuota { .. }
                | GpuPool::NamespaceQuota { .. } => level.used,
            };
            budget.and(level.left(staying))
        })
    }

    pub(crate) fn take_physical(&mut self, accelerator: &Accelerator, gpus: Gpus) {
        if let Some(level) = self.physical_level(accelerator) {
            let taken = self.taken.entry(level.pool).or_default();
            *taken = taken.plus(gpus);
        }
    }

    pub(crate) fn take(&mut self, namespace: &str, accelerator: &Accelerator, gpus: Gpus) {
        for pool in self.drawn_by(namespace, accelerator) {
            let taken = self.taken.entry(pool).or_default();
            *taken = taken.plus(gpus);
        }
    }

    pub(crate) fn give_back(&mut self, namespace: &str, accelerator: &Accelerator, gpus: Gpus) {
        for pool in self.drawn_by(namespace, accelerator) {
            let taken = self.taken.entry(pool).or_default();
            *taken = taken.saturating_sub(gpus);
        }
    }

    /// Keeps GPUs for the start of a model that lacks some still: as many of `gpus` as every pool of the
    /// variant leaves.
    pub(crate) fn hold(&mut self, model: &ModelKey, place: (&str, &Accelerator), gpus: Gpus) {
        let (namespace, accelerator) = place;
        let gpus = self.budget(namespace, accelerator).grant(gpus);
        self.take(namespace, accelerator, gpus);
        self.held.extend(self.held_for(model, place, gpus));
    }

    /// Records that GPUs which were taken are for the second part of a start.
    pub(crate) fn note_partner(
        &mut self,
        model: &ModelKey,
        place: (&str, &Accelerator),
        gpus: Gpus,
    ) {
        self.partners.extend(self.held_for(model, place, gpus));
    }

    fn held_for(
        &self,
        model: &ModelKey,
        (namespace, accelerator): (&str, &Accelerator),
        gpus: Gpus,
    ) -> Vec<HeldGpus> {
        if gpus == Gpus::ZERO {
            return Vec::new();
        }
        let pools = self.drawn_by(namespace, accelerator).into_iter();
        pools.map(|pool| HeldGpus { model: model.clone(), pool, gpus }).collect()
    }

    /// Frees what is held for the start of a model, before it is tried again.
    pub(crate) fn release_held(&mut self, model: &ModelKey) {
        for HeldGpus { pool, gpus, .. } in self.held.extract_if(.., |held| held.model == *model) {
            let taken = self.taken.entry(pool).or_default();
            *taken = taken.saturating_sub(gpus);
        }
    }

    pub(crate) fn held(&self, pools: &BTreeSet<GpuPool>) -> Vec<HeldGpus> {
        let all = self.held.iter().chain(&self.partners);
        all.filter(|held| pools.contains(&held.pool)).cloned().collect()
    }

    fn levels(&self, namespace: &str, accelerator: &Accelerator) -> Vec<Level> {
        let mut levels = Vec::with_capacity(1 + self.quotas.len());
        levels.extend(self.physical_level(accelerator));
        for quota in &self.quotas {
            levels.extend(self.quota_level(quota, namespace, accelerator));
        }
        for level in &mut levels {
            let taken = self.taken.get(&level.pool).copied().unwrap_or_default();
            level.used = level.used.plus(taken);
        }
        levels
    }

    fn physical_level(&self, accelerator: &Accelerator) -> Option<Level> {
        let label: Arc<str> = accelerator.label().into();
        let (accelerator, cap, used) = match &self.physical {
            Physical::Unlimited => return None,
            Physical::Unknown => (label, Budget::Unknown, Gpus::ZERO),
            Physical::Known { limits, used, unlisted } => {
                let kind = match accelerator {
                    Accelerator::Named(name) => reconcile(name, limits),
                    // With one type there is nothing to confuse it with.
                    Accelerator::Unresolved if limits.len() == 1 => limits.keys().next(),
                    Accelerator::Unresolved => None,
                };
                let Some(kind) = kind else {
                    return Some(Level::of_no_node(accelerator, limits));
                };
                let cap = match limits.get(kind) {
                    _ if unlisted.contains(kind) => Budget::Unknown,
                    cap => Budget::Finite(cap.copied().unwrap_or_default()),
                };
                let used = used_of(used, kind, limits);
                (Arc::clone(kind), cap, used)
            }
        };
        let pool = GpuPool::Inventory { accelerator };
        Some(Level { pool, cap, used, is_more_used: false })
    }

    fn quota_level(
        &self,
        limiter: &Limiter,
        namespace: &str,
        accelerator: &Accelerator,
    ) -> Option<Level> {
        if limiter.exclude.contains(namespace) {
            return None;
        }
        let none = Quotas::new();
        let (quotas, home) = match &limiter.scope {
            LimiterScope::Cluster(quotas) => (quotas, None),
            LimiterScope::Namespaces(namespaces) => {
                let quotas =
                    namespaces.get(namespace).or_else(|| namespaces.get(DEFAULT_NAMESPACE));
                (quotas.unwrap_or(&none), Some(namespace))
            }
        };
        let (accelerator, cap) = cap_of(quotas, accelerator);
        let counts = |one: &Arc<str>| match home {
            Some(home) => **one == *home,
            None => !limiter.exclude.contains(&**one),
        };
        let (used, is_more_used) = self.managed_in(counts, &accelerator, quotas);
        let limiter = Arc::clone(&limiter.name);
        let pool = match home {
            Some(namespace) => {
                GpuPool::NamespaceQuota { limiter, namespace: namespace.into(), accelerator }
            }
            None => GpuPool::ClusterQuota { limiter, accelerator },
        };
        Some(Level { pool, cap, used, is_more_used })
    }

    /// What our own variants hold of a type in the namespaces that count.
    fn managed_in(
        &self,
        counts: impl Fn(&Arc<str>) -> bool,
        accelerator: &Arc<str>,
        quotas: &Quotas,
    ) -> (Gpus, bool) {
        let managed = self.managed.iter().filter(|(one, _)| counts(one));
        let used: Gpus = managed.map(|(_, used)| used_of(used, accelerator, quotas)).sum();
        let uncounted = self.uncounted.iter().filter(|(one, _)| counts(one));
        let is_more = uncounted
            .flat_map(|(_, names)| names)
            .any(|name| counts_under(name, accelerator, quotas));
        (used, is_more)
    }
}

/// Use under every spelling that means this key of the limits.
fn used_of<K: Borrow<str> + Ord, V>(
    used: &BTreeMap<Arc<str>, Gpus>,
    key: &str,
    limits: &BTreeMap<K, V>,
) -> Gpus {
    used.iter().filter(|(name, _)| counts_under(name, key, limits)).map(|(_, gpus)| *gpus).sum()
}

/// The type that a quota counts a variant under, and how many it allows; a type that is not listed,
/// or not known, is denied.
fn cap_of(quotas: &Quotas, accelerator: &Accelerator) -> (Arc<str>, Budget) {
    let Accelerator::Named(name) = accelerator else {
        return (accelerator.label().into(), Budget::Finite(Gpus::ZERO));
    };
    let kind = reconcile(name, quotas);
    let budget = match kind.and_then(|kind| quotas.get(kind)) {
        Some(Quota::Unlimited) => Budget::Unlimited,
        Some(Quota::AtMost(most)) => Budget::Finite(Gpus(*most)),
        None => Budget::Finite(Gpus::ZERO),
    };
    let kind = kind.map_or_else(|| Arc::clone(name), |kind| kind.as_str().into());
    (kind, budget)
}
