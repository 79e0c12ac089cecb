//! What it takes to serve a model at all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::policy::capacity::ServingRole;
use crate::policy::key::VariantKey;
use crate::policy::units::Cost;

/// A variant as a part of a serving set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServingMember {
    /// The part of a request that it serves.
    pub role: ServingRole,
    /// Cost of one replica.
    pub cost: Cost,
}

/// Variants that together serve a model, in the order in which they are started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServingSet {
    /// Decode before prefill.
    pub members: Vec<VariantKey>,
}

/// The cheapest set of one replica each that serves a model: one variant that does both, or a decode
/// variant with a prefill variant. A decode variant reads prompts itself where the model has no
/// prefill variant. `None` where only prefill is left. Equal costs: one variant before two, then by
/// name.
pub fn cheapest(members: &BTreeMap<VariantKey, ServingMember>) -> Option<ServingSet> {
    let least = |role: ServingRole| {
        members
            .iter()
            .filter(|(_, member)| member.role == role)
            .map(|(key, member)| (charged(member.cost).millionths(), key))
            .min_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(other.1)))
    };
    let single = least(ServingRole::Both).map(|(cost, key)| (cost, vec![key.clone()]));
    let pair = least(ServingRole::Decode).map(|(cost, decode)| match least(ServingRole::Prefill) {
        Some((more, prefill)) => (cost + more, vec![decode.clone(), prefill.clone()]),
        None => (cost, vec![decode.clone()]),
    });
    let (_, members) = match (single, pair) {
        (Some(single), Some(pair)) if pair.0 < single.0 => pair,
        (Some(single), _) => single,
        (None, pair) => pair?,
    };
    Some(ServingSet { members })
}

/// A cost of zero says that nobody stated one.
fn charged(cost: Cost) -> Cost {
    if cost.millionths() > 0.0 {
        cost
    } else {
        Cost::DEFAULT
    }
}
