//! Which of several objects scales a target: the oldest, whatever its kind.

use std::sync::Arc;

use super::check::AutoscalerPolicy;
use super::object::KIND;
use super::record::TargetOwner;
use super::tuning::StormServiceMode;
use crate::key::ObjectKey;
use wva_base::moment::WallTime;

/// Kinds of object that scale. Of objects of one age the first kind wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimKind {
    /// A `PodAutoscaler`.
    PodAutoscaler {
        /// The role that it scales; `None` if it scales the whole target.
        role: Option<Arc<str>>,
    },
    /// A `VariantAutoscaling`.
    VariantAutoscaling,
}

impl ClaimKind {
    fn rank(&self) -> u8 {
        match self {
            Self::PodAutoscaler { .. } => 0,
            Self::VariantAutoscaling => 1,
        }
    }

    fn role(&self) -> Option<&Arc<str>> {
        match self {
            Self::PodAutoscaler { role } => role.as_ref(),
            Self::VariantAutoscaling => None,
        }
    }
}

/// Other objects that name the target of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetRivals {
    /// This one scales instead.
    Owner(TargetOwner),
    /// These give way.
    Yielding(Vec<TargetOwner>),
}

impl TargetRivals {
    /// Those of a claim. `others` may contain it.
    pub fn of(own: &TargetClaim, others: &[TargetClaim]) -> Self {
        conflict(own, others).map_or_else(|| Self::Yielding(yielding(own, others)), Self::Owner)
    }
}

/// An object that wants to scale a target. Claims are compared with claims of the same target only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetClaim {
    /// The object.
    pub owner: TargetOwner,
    /// When it was created.
    pub created: WallTime,
    /// Its kind, with what it scales of the target.
    pub kind: ClaimKind,
}

impl TargetClaim {
    /// The claim of a `PodAutoscaler`. One whose specification does not hold together has none. `mode` is that of the
    /// StormService that it scales, if it scales one.
    pub fn of_autoscaler(
        policy: &AutoscalerPolicy,
        mode: StormServiceMode,
        created: WallTime,
    ) -> Self {
        let metadata = &policy.metadata;
        let role = policy.target.role.as_ref();
        // In mode `replica` the role selects pods, and the whole service is scaled.
        let is_pooled = mode == StormServiceMode::Pooled;
        let role = role.filter(|role| is_pooled && !role.is_empty());
        Self {
            owner: TargetOwner {
                kind: KIND.into(),
                key: ObjectKey::new(Arc::clone(&metadata.namespace), Arc::clone(&metadata.name)),
            },
            created,
            kind: ClaimKind::PodAutoscaler { role: role.cloned() },
        }
    }

    fn order(&self) -> (WallTime, u8, &ObjectKey) {
        (self.created, self.kind.rank(), &self.owner.key)
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self.kind.role(), other.kind.role()) {
            (Some(role), Some(other)) => role == other,
            _ => true,
        }
    }
}

/// The objects that give way to this one, which scales. `others` may contain this one.
pub fn yielding<'a>(
    own: &'a TargetClaim,
    others: impl IntoIterator<Item = &'a TargetClaim>,
) -> Vec<TargetOwner> {
    let others = others.into_iter();
    let others = others.filter(|other| other.owner != own.owner && other.overlaps(own));
    let mut others: Vec<TargetOwner> = others.map(|other| other.owner.clone()).collect();
    others.sort();
    others
}

/// The claims that hold, oldest first. Each holds unless an older one that holds overlaps it.
pub(super) fn holders<'a>(
    claims: impl IntoIterator<Item = &'a TargetClaim>,
) -> Vec<&'a TargetClaim> {
    let mut claims: Vec<&TargetClaim> = claims.into_iter().collect();
    claims.sort_by_key(|claim| claim.order());
    let mut held: Vec<&TargetClaim> = Vec::new();
    for claim in claims {
        if !held.iter().any(|older| older.overlaps(claim)) {
            held.push(claim);
        }
    }
    held
}

/// The object that scales instead of this one; `None` if this one scales. `others` may contain this one.
pub fn conflict<'a>(
    own: &'a TargetClaim,
    others: impl IntoIterator<Item = &'a TargetClaim>,
) -> Option<TargetOwner> {
    let others = others.into_iter().filter(|other| other.owner != own.owner);
    let held = holders(others.chain([own]));
    let mut stronger = held.into_iter().filter(|other| other.owner != own.owner);
    let owner = stronger.find(|other| other.overlaps(own) && other.order() < own.order());
    owner.map(|owner| owner.owner.clone())
}
