//! From zero: the cheapest serving set, decode before prefill, never prefill alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::serving_set::{ServingMember, cheapest_fitting};
use crate::bounds::ZeroPolicy;
use crate::capacity::ServingRole;
use crate::gpu::Budget;
use crate::key::VariantKey;
use crate::reason::{WakeCause, WakeObstacle};
use crate::startup::StartProspect;
use crate::units::{Gpus, Replicas};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakeMember {
    pub serving: ServingMember,
    /// Replicas that it has whatever is started: that exist, or that its own minimum makes.
    pub kept: Replicas,
    pub ready: Replicas,
    /// Whether those that are not ready can be expected to become so.
    pub prospect: StartProspect,
    pub max: Option<Replicas>,
    pub gpus: Gpus,
    pub budget: Budget,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Wake {
    Serving,
    NoSignal,
    NotWanted,
    Start {
        variant: VariantKey,
        /// The prefill that is to follow a decode variant, and needs its GPUs then.
        next: Option<VariantKey>,
        cause: WakeCause,
    },
    AwaitDecode {
        decode: VariantKey,
        /// The prefill that is to follow; `None` where none may start today.
        next: Option<VariantKey>,
    },
    NoServingSet {
        cause: WakeCause,
        obstacles: BTreeMap<VariantKey, WakeObstacle>,
    },
}

/// Decides the next start of one model. `queued` are the requests that wait for it in the router;
/// `None` is not known. Where `policy` forbids zero, no request needs to wait. `fits` says whether there
/// are GPUs for a decode and a prefill variant
/// together, which may draw from one pool. One start at a time, so that prefill never precedes decode.
pub(crate) fn wake(
    members: &BTreeMap<VariantKey, WakeMember>,
    queued: Option<f64>,
    policy: ZeroPolicy,
    fits: impl Fn(&VariantKey, &VariantKey) -> bool,
) -> Wake {
    match next_start(members, queued, policy, fits) {
        // What is stalled may become ready yet.
        Wake::NoServingSet { .. } if members.values().any(WakeMember::is_stalled) => Wake::Serving,
        wake => wake,
    }
}

fn next_start(
    members: &BTreeMap<VariantKey, WakeMember>,
    queued: Option<f64>,
    policy: ZeroPolicy,
    fits: impl Fn(&VariantKey, &VariantKey) -> bool,
) -> Wake {
    let runs = |role: ServingRole| {
        members.iter().find(|(_, member)| member.serving.role == role && member.serves())
    };
    if runs(ServingRole::Both).is_some() {
        return Wake::Serving;
    }
    if let Some((decode, _)) = runs(ServingRole::Decode) {
        return complete_pair(members, decode);
    }
    match (queued, policy) {
        (Some(queued), _) if queued > 0.0 => start(members, WakeCause::Queued(queued), fits),
        (_, ZeroPolicy::Disabled) => start(members, WakeCause::MinimumOfOne, fits),
        (None, ZeroPolicy::Enabled) => Wake::NoSignal,
        (Some(_), ZeroPolicy::Enabled) => Wake::NotWanted,
    }
}

/// The first of the cheapest set that may start as a whole. Decode counts only where prefill can
/// follow, or runs already, or is no part of the model.
fn start(
    members: &BTreeMap<VariantKey, WakeMember>,
    cause: WakeCause,
    fits: impl Fn(&VariantKey, &VariantKey) -> bool,
) -> Wake {
    let prefill = || of_role(members, ServingRole::Prefill).map(|(_, member)| member);
    let is_fed = prefill().any(WakeMember::serves);
    let can_decode = is_fed || prefill().next().is_none() || prefill().any(WakeMember::may_start);
    let startable = members
        .iter()
        .filter(|(_, member)| {
            member.may_start()
                && match member.serving.role {
                    ServingRole::Both => true,
                    ServingRole::Prefill => !is_fed,
                    ServingRole::Decode => can_decode,
                }
        })
        .map(|(key, member)| (key.clone(), member.serving))
        .collect();
    let mut set = cheapest_fitting(&startable, fits).map(Vec::into_iter);
    match set.as_mut().and_then(Iterator::next) {
        Some(variant) => Wake::Start { variant, next: set.and_then(|mut rest| rest.next()), cause },
        None => no_serving_set(members, cause),
    }
}

fn complete_pair(members: &BTreeMap<VariantKey, WakeMember>, decode: &VariantKey) -> Wake {
    let prefill = || of_role(members, ServingRole::Prefill);
    if prefill().count() == 0 || prefill().any(|(_, member)| member.serves()) {
        return Wake::Serving;
    }
    let chosen = prefill()
        .filter(|(_, member)| member.may_start())
        .min_by(|(one, member), (other, its)| {
            (member.serving.cost.cmp(&its.serving.cost)).then_with(|| one.cmp(other))
        })
        .map(|(variant, _)| variant.clone());
    let is_decode_ready =
        of_role(members, ServingRole::Decode).any(|(_, member)| member.ready > Replicas::ZERO);
    if !is_decode_ready {
        return Wake::AwaitDecode { decode: decode.clone(), next: chosen };
    }
    match chosen {
        Some(variant) => Wake::Start { variant, next: None, cause: WakeCause::Pair },
        None => no_serving_set(members, WakeCause::Pair),
    }
}

fn of_role(
    members: &BTreeMap<VariantKey, WakeMember>,
    role: ServingRole,
) -> impl Iterator<Item = (&VariantKey, &WakeMember)> {
    members.iter().filter(move |(_, member)| member.serving.role == role)
}

fn no_serving_set(members: &BTreeMap<VariantKey, WakeMember>, cause: WakeCause) -> Wake {
    let may_start =
        |role: ServingRole| of_role(members, role).any(|(_, member)| member.may_start());
    let lone = if may_start(ServingRole::Decode) && may_start(ServingRole::Prefill) {
        WakeObstacle::NoGpusForPair
    } else {
        WakeObstacle::NoPartner
    };
    let waiting = members.iter().filter(|(_, member)| member.kept == Replicas::ZERO);
    Wake::NoServingSet {
        cause,
        obstacles: waiting
            .map(|(key, member)| (key.clone(), member.obstacle().unwrap_or(lone)))
            .collect(),
    }
}

impl WakeMember {
    pub(crate) fn serves(&self) -> bool {
        self.kept > Replicas::ZERO && !self.is_stalled()
    }

    fn is_stalled(&self) -> bool {
        let is_late = self.ready == Replicas::ZERO && self.prospect == StartProspect::Stalled;
        self.kept > Replicas::ZERO && is_late
    }

    fn may_start(&self) -> bool {
        self.kept == Replicas::ZERO && self.obstacle().is_none()
    }

    fn obstacle(&self) -> Option<WakeObstacle> {
        let wanted = self.gpus.at_least_one();
        if self.max == Some(Replicas::ZERO) {
            Some(WakeObstacle::AtMaximum)
        } else if self.budget.grant(wanted) < wanted {
            Some(WakeObstacle::NoGpus)
        } else {
            None
        }
    }
}
