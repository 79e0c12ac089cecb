//! From zero: the cheapest serving set, decode before prefill, never prefill alone.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::serving_set::{ServingMember, cheapest};
use crate::policy::capacity::ServingRole;
use crate::policy::key::VariantKey;
use crate::policy::limit::{Budget, PoolFigures};
use crate::policy::units::{Gpus, Replicas};

/// One variant of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeMember {
    /// Its part in a serving set.
    pub serving: ServingMember,
    /// Replicas that exist.
    pub current: Replicas,
    /// Of these, ready ones.
    pub ready: Replicas,
    /// Its maximum.
    pub max: Option<Replicas>,
    /// GPUs of one replica.
    pub gpus: Gpus,
    /// What the pools leave it.
    pub budget: Budget,
}

/// What a model needs to serve again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Wake {
    /// Something serves it, or is starting.
    Serving,
    /// Nobody reports its queue in the router.
    NoSignal,
    /// Nobody asks for it.
    NotWanted,
    /// This variant gets its first replica.
    Start {
        /// The variant.
        variant: VariantKey,
        /// Requests that wait in the router; `None` where a pair is completed, which needs none.
        queued: Option<f64>,
    },
    /// Prefill joins once this decode variant is ready.
    AwaitDecode {
        /// The variant.
        decode: VariantKey,
    },
    /// No set of variants that serves it is within maxima and budgets.
    NoServingSet {
        /// Requests that wait in the router; `None` where a pair lacks its prefill.
        queued: Option<f64>,
        /// What keeps each variant that has no replica.
        obstacles: BTreeMap<VariantKey, Obstacle>,
    },
}

/// What keeps a variant from its first replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// Its maximum is zero.
    AtMaximum,
    /// Its pools hold too little, or nobody knows what they hold.
    NoGpus,
    /// It could start, and nothing that it would serve with can.
    NoPartner,
}

/// Decides the next start of one model. `queued` are the requests that wait for it in the router;
/// `None` is not known. One start at a time, so that prefill never precedes decode.
pub fn wake(members: &BTreeMap<VariantKey, WakeMember>, queued: Option<f64>) -> Wake {
    let runs = |role: ServingRole| {
        members
            .iter()
            .find(|(_, member)| member.serving.role == role && member.current > Replicas::ZERO)
    };
    if runs(ServingRole::Both).is_some() {
        return Wake::Serving;
    }
    if let Some((decode, _)) = runs(ServingRole::Decode) {
        return complete_pair(members, decode);
    }
    match queued {
        None => Wake::NoSignal,
        Some(queued) if queued > 0.0 => start(members, queued),
        Some(_) => Wake::NotWanted,
    }
}

/// The first of the cheapest set that may start. Decode counts only where prefill can follow, or
/// runs already, or is no part of the model.
fn start(members: &BTreeMap<VariantKey, WakeMember>, queued: f64) -> Wake {
    let mut prefill = members
        .values()
        .filter(|member| member.serving.role == ServingRole::Prefill)
        .peekable();
    let can_decode = prefill.peek().is_none()
        || prefill.any(|member| member.may_start() || member.current > Replicas::ZERO);
    let startable = members
        .iter()
        .filter(|(_, member)| {
            member.may_start() && (can_decode || member.serving.role != ServingRole::Decode)
        })
        .map(|(key, member)| (key.clone(), member.serving))
        .collect();
    let first = cheapest(&startable).and_then(|set| set.members.into_iter().next());
    match first {
        Some(variant) => Wake::Start {
            variant,
            queued: Some(queued),
        },
        None => no_serving_set(members, Some(queued)),
    }
}

fn complete_pair(members: &BTreeMap<VariantKey, WakeMember>, decode: &VariantKey) -> Wake {
    let prefill = || {
        members
            .iter()
            .filter(|(_, member)| member.serving.role == ServingRole::Prefill)
    };
    if prefill().count() == 0 || prefill().any(|(_, member)| member.current > Replicas::ZERO) {
        return Wake::Serving;
    }
    let is_decode_ready = members
        .values()
        .any(|member| member.serving.role == ServingRole::Decode && member.ready > Replicas::ZERO);
    if !is_decode_ready {
        return Wake::AwaitDecode {
            decode: decode.clone(),
        };
    }
    let chosen =
        prefill()
            .filter(|(_, member)| member.may_start())
            .min_by(|(one, member), (other, its)| {
                (member.serving.cost.cmp(&its.serving.cost)).then_with(|| one.cmp(other))
            });
    match chosen {
        Some((variant, _)) => Wake::Start {
            variant: variant.clone(),
            queued: None,
        },
        None => no_serving_set(members, None),
    }
}

fn no_serving_set(members: &BTreeMap<VariantKey, WakeMember>, queued: Option<f64>) -> Wake {
    let kept = |member: &WakeMember| member.obstacle().unwrap_or(Obstacle::NoPartner);
    let waiting = members
        .iter()
        .filter(|(_, member)| member.current == Replicas::ZERO);
    Wake::NoServingSet {
        queued,
        obstacles: waiting
            .map(|(key, member)| (key.clone(), kept(member)))
            .collect(),
    }
}

impl WakeMember {
    /// Whether maximum and budget leave room for a first replica.
    fn may_start(&self) -> bool {
        self.current == Replicas::ZERO && self.obstacle().is_none()
    }

    fn obstacle(&self) -> Option<Obstacle> {
        let wanted = self.gpus.at_least_one();
        if self.max == Some(Replicas::ZERO) {
            Some(Obstacle::AtMaximum)
        } else if self.budget.grant(wanted) < wanted {
            Some(Obstacle::NoGpus)
        } else {
            None
        }
    }
}

/// Writes what keeps a variant from its first replica, with the pools that lack what it takes.
pub(in crate::policy) fn wake_refused(
    f: &mut fmt::Formatter<'_>,
    (obstacle, gpus, by): (Obstacle, Gpus, &[PoolFigures]),
    queued: Option<f64>,
) -> fmt::Result {
    for pool in by.iter().filter(|pool| pool.left == Budget::Unknown) {
        write!(f, "BudgetUnknown: {} is not known; ", pool.pool())?;
    }
    f.write_str("wake refused: ")?;
    match obstacle {
        Obstacle::AtMaximum => f.write_str("maxReplicas is 0; ")?,
        Obstacle::NoPartner => f.write_str("nothing that it would serve with can start; ")?,
        Obstacle::NoGpus => {
            for pool in by {
                if let Budget::Finite(left) = pool.left {
                    let kind = &pool.kind;
                    write!(f, "{kind} has {left} free GPUs in {}, ", pool.pool())?;
                }
            }
            write!(f, "one replica takes {gpus}; ")?;
        }
    }
    match queued {
        Some(queued) => write!(f, "{queued} requests wait in the router"),
        None => f.write_str("decode runs and needs prefill"),
    }
}
