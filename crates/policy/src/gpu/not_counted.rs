//! GPUs of replicas that no limit can count.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::pool::{GpuPool, PoolFigures};
use crate::units::{Gpus, Replicas};
use wva_base::text::listed;

/// Whether the GPUs of a replica can be counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuCount {
    /// What its pods request is all that they hold.
    #[default]
    Counted,
    /// Its pods have resource claims, too, and what those hold is not known.
    Claimed {
        /// The claims.
        claims: Arc<[ReplicaClaim]>,
    },
    /// Nothing shows what they hold: the kind of the target has no pod template that is read, and no pod was seen.
    Unknown,
}

/// A resource claim of the pods of a replica.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReplicaClaim {
    /// Its name in the pod template, or the resource of a device class that containers request.
    pub name: Arc<str>,
    /// The ResourceClaimTemplate that one is made from for each pod, or that resource; `None` where pods share one, or it is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Arc<str>>,
    /// Pods of the replica that have it, or the devices of all of them.
    pub pods: Replicas,
}

impl GpuCount {
    /// That of a replica whose pods have these claims.
    pub fn of(claims: Arc<[ReplicaClaim]>) -> Self {
        if claims.is_empty() { Self::Counted } else { Self::Claimed { claims } }
    }

    /// Whether all is counted.
    pub fn is_counted(&self) -> bool {
        *self == Self::Counted
    }

    /// The claims that are not counted.
    pub fn claims(&self) -> &[ReplicaClaim] {
        match self {
            Self::Counted | Self::Unknown => &[],
            Self::Claimed { claims } => claims,
        }
    }

    /// The names of the claims that are not counted, each once.
    pub fn names(&self) -> Arc<[Arc<str>]> {
        let names: BTreeSet<&Arc<str>> = self.claims().iter().map(|claim| &claim.name).collect();
        names.into_iter().map(Arc::clone).collect()
    }

    /// What a budget is worth to one more replica: a limit may have no room for what cannot be counted.
    pub(crate) fn within(&self, budget: Budget) -> Budget {
        let is_known = self.is_counted() || budget == Budget::Unlimited;
        if is_known { budget } else { Budget::Unknown }
    }

    /// What a budget is worth to the first replica of a model that sleeps: of what nothing shows it takes one GPU at least,
    /// since only a pod can show more.
    pub(crate) fn within_for_the_first(&self, budget: Budget) -> Budget {
        match self {
            Self::Unknown => budget,
            Self::Counted | Self::Claimed { .. } => self.within(budget),
        }
    }

    /// GPUs that one replica takes of pools: those requested, at least one, or what is requested besides claims.
    pub(crate) fn taken(&self, requested: Gpus) -> Gpus {
        match self {
            Self::Counted | Self::Unknown => requested.at_least_one(),
            Self::Claimed { .. } => requested,
        }
    }
}

/// A limit let a variant grow no further, since its replicas hold GPUs that cannot be counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCounted {
    /// Replicas added, up to the floor.
    pub added: Replicas,
    pub wanted: Replicas,
    /// The claims that hold them, by name; empty where nothing shows what they hold.
    pub claims: Arc<[Arc<str>]>,
    pub pools: Vec<GpuPool>,
}

impl NotCounted {
    /// `pools` are those that a replica draws from.
    pub(crate) fn of(
        count: &GpuCount,
        pools: &[PoolFigures],
        added: Replicas,
        wanted: Replicas,
    ) -> Self {
        let bounded = pools.iter().filter(|pool| pool.left != Budget::Unlimited);
        let pools = bounded.map(PoolFigures::pool).collect();
        Self { added, wanted, claims: count.names(), pools }
    }
}

wva_base::display_of! { NotCounted:
    Self { added, wanted, claims, .. } =>
        "GpusNotCounted: +{added} of +{wanted} replicas; {}", claims_not_counted(claims);
}

/// Names claims, and what to do about them. Without claims nothing shows what a replica holds.
pub(crate) fn claims_not_counted(claims: &[Arc<str>]) -> impl Display {
    fmt::from_fn(move |f| {
        if claims.is_empty() {
            return f.write_str(
                "GPUs of its replicas are not known: the kind of its target has no pod template that is read, and no \
                 pod of it was seen; raise minReplicas",
            );
        }
        write!(
            f,
            "GPUs of its resource claims {} are not counted: request GPUs as a resource like nvidia.com/gpu, or raise \
             minReplicas",
            listed(claims)
        )
    })
}
