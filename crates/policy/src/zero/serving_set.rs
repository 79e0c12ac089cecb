//! What it takes to serve a model at all.

use std::collections::BTreeMap;

use crate::capacity::ServingRole;
use crate::key::VariantKey;
use crate::units::Cost;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServingMember {
    pub role: ServingRole,
    pub cost: Cost,
}

/// The cheapest set of one replica each that serves a model, in the order in which they are started:
/// one variant that does both, or a decode variant with a prefill variant that fits it. A decode variant
/// reads prompts itself where the model has no prefill variant. `None` where only prefill is left. Equal
/// costs: one variant before two, then by name.
pub(crate) fn cheapest_fitting(
    members: &BTreeMap<VariantKey, ServingMember>,
    fits: impl Fn(&VariantKey, &VariantKey) -> bool,
) -> Option<Vec<VariantKey>> {
    let by_cost = |role: ServingRole| {
        let mut found: Vec<(f64, &VariantKey)> = members
            .iter()
            .filter(|(_, member)| member.role == role)
            .map(|(key, member)| (charged(member.cost).millionths(), key))
            .collect();
        found.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(other.1)));
        found
    };
    let mut best = (by_cost(ServingRole::Both).into_iter().next())
        .map(|(cost, key)| (cost, vec![key.clone()]));
    let prefill = by_cost(ServingRole::Prefill);
    for (cost, decode) in by_cost(ServingRole::Decode) {
        let found = if prefill.is_empty() {
            Some((cost, vec![decode.clone()]))
        } else {
            let pairs = prefill.iter().map(|(more, key)| (cost + more, *key));
            let mut cheaper =
                pairs.take_while(|(cost, _)| best.as_ref().is_none_or(|best| *cost < best.0));
            cheaper
                .find(|(_, prefill)| fits(decode, prefill))
                .map(|(cost, prefill)| (cost, vec![decode.clone(), prefill.clone()]))
        };
        if let Some(found) = found
            && best.as_ref().is_none_or(|best| found.0 < best.0)
        {
            best = Some(found);
        }
    }
    best.map(|(_, members)| members)
}

/// A cost of zero means that none is stated.
fn charged(cost: Cost) -> Cost {
    if cost.millionths() > 0.0 { cost } else { Cost::DEFAULT }
}
