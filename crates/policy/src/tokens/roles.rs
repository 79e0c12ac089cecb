//! Demand and supply by the part of a request that replicas serve.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::input::TokenModelInput;
use super::learned::Trust;
use super::router::RouterDemand;
use super::variant::TokenVariantFigures;
use crate::capacity::ServingRole;
use crate::combine::{Balance, Band};
use crate::engine_args::KvTokens;
use crate::key::VariantKey;
use crate::total::total;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenRoleFigures {
    /// What its instances are asked to hold.
    pub local: KvTokens,
    /// What counts instead of that while decode replicas are full: prefill replicas hold a backlog
    /// then that is not theirs.
    pub held: Option<KvTokens>,
    /// What the router's queue will ask it to hold.
    pub router: f64,
    /// Demand, supply, and what the thresholds make of them.
    pub balance: Balance,
    /// Demand over supply; 0 without supply.
    pub utilisation: f64,
    /// Whether the demand is all of it; otherwise it is at least so much.
    pub is_demand_known: bool,
    /// Why what is missing cannot be asked for.
    pub problem: Option<UnsizedDemand>,
}

/// A demand that no variant is known to be able to take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "{required:.0} KV tokens of role {role} are missing, and no variant has a known capacity; start a \
     replica that reports its KV cache, or fix the size of the cache in the engine's arguments"
)]
pub struct UnsizedDemand {
    pub role: ServingRole,
    pub required: f64,
}

impl TokenRoleFigures {
    fn of(
        role: ServingRole,
        variants: &[&TokenVariantFigures],
        trust: Trust,
        router: &RouterDemand,
        band: Band,
    ) -> Self {
        let sum = |part: fn(&TokenVariantFigures) -> KvTokens| -> KvTokens {
            variants.iter().map(|variant| part(variant)).sum()
        };
        let (supply, anticipated) =
            (sum(|variant| variant.supply), sum(|variant| variant.anticipated));
        let local = sum(|variant| variant.demand);
        let held = (trust == Trust::PartnersBacklog && anticipated.is_some())
            .then(|| hold(local, supply, anticipated, band));
        let waiting = router.of_role(role);
        let demand = held.unwrap_or(local).0 + waiting;
        let balance = Balance::of(demand, supply.0, anticipated.0, band);
        let is_sized = variants.iter().any(|variant| variant.per_instance.is_some());
        let required = balance.required;
        Self {
            local,
            held,
            router: waiting,
            balance,
            utilisation: utilisation(&balance),
            is_demand_known: router.is_complete
                && variants.iter().all(|variant| variant.is_demand_known),
            problem: (required > 0.0 && !is_sized).then_some(UnsizedDemand { role, required }),
        }
    }
}

/// Into the band: neither growth nor release follows.
fn hold(local: KvTokens, supply: KvTokens, anticipated: KvTokens, band: Band) -> KvTokens {
    let least = supply.0 * band.scale_down;
    let most = anticipated.0 * band.scale_up;
    KvTokens(local.0.max(least).min(most))
}

fn utilisation(balance: &Balance) -> f64 {
    if balance.supply > 0.0 { balance.demand / balance.supply } else { 0.0 }
}

pub(super) fn by_role(
    input: &TokenModelInput,
    variants: &BTreeMap<VariantKey, TokenVariantFigures>,
    router: &RouterDemand,
    trust: impl Fn(ServingRole) -> Trust,
) -> BTreeMap<ServingRole, TokenRoleFigures> {
    let mut members: BTreeMap<ServingRole, Vec<&TokenVariantFigures>> = BTreeMap::new();
    for variant in variants.values() {
        members.entry(variant.role).or_default().push(variant);
    }
    let band = Band::from(input.band);
    members
        .into_iter()
        .map(|(role, variants)| {
            let figures = TokenRoleFigures::of(role, &variants, trust(role), router, band);
            (role, figures)
        })
        .collect()
}

/// Figures of the model: its roles together, with the router's queue counted once.
pub(super) fn of_model(
    roles: &BTreeMap<ServingRole, TokenRoleFigures>,
    router: &RouterDemand,
    band: Band,
) -> TokenRoleFigures {
    let held = roles.values().any(|role| role.held.is_some());
    let local: KvTokens = roles.values().map(|role| role.local).sum();
    let counted: KvTokens = roles.values().map(|role| role.held.unwrap_or(role.local)).sum();
    let sum = |part: fn(&Balance) -> f64| total(roles.values().map(|role| part(&role.balance)));
    let balance = Balance::of(
        counted.0 + router.total,
        sum(|balance| balance.supply),
        sum(|balance| balance.anticipated),
        band,
    );
    TokenRoleFigures {
        local,
        held: held.then_some(counted),
        router: router.total,
        balance,
        utilisation: utilisation(&balance),
        is_demand_known: router.is_complete && roles.values().all(|role| role.is_demand_known),
        problem: roles.values().find_map(|role| role.problem.clone()),
    }
}
