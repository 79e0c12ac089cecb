//! The analyzer's view of one model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::input::TokenModelInput;
use super::learned::LearnedTokens;
use super::roles::{TokenRoleFigures, by_role, of_model};
use super::router::RouterDemand;
use super::variant::{TokenVariantFigures, measure_all};
use super::workload::MeanWorkload;
use crate::capacity::{AnalyzerName, Assessment, CapacityUnit, ServingRole};
use crate::combine::Band;
use crate::key::{ModelKey, VariantKey};
use wva_base::moment::Moment;

/// Figures of one model, in KV tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokensReport {
    pub workload: MeanWorkload,
    pub router: RouterDemand,
    pub model: TokenRoleFigures,
    /// Its roles; empty where every variant serves whole requests.
    pub roles: BTreeMap<ServingRole, TokenRoleFigures>,
    pub variants: BTreeMap<VariantKey, TokenVariantFigures>,
}

/// Assesses one model. `learned` has taken this collection in.
///
/// A variant of unknown capacity has no entry. A role has no demand, hence no opinion, while some of
/// its demand is unknown and what is known fits on the replicas that there are: that is no reason to
/// shrink.
pub(crate) fn assess(
    key: &ModelKey,
    input: &TokenModelInput,
    learned: &LearnedTokens,
    now: Moment,
) -> (Assessment, TokensReport) {
    let workload = MeanWorkload::of(input);
    let router = RouterDemand::of(input.router, workload, input.default_output);
    let variants = measure_all(key, (input, workload), learned, now);
    let roles = by_role(input, &variants, &router, |role| learned.trust(key, role, now));
    let assessment = assessment(&roles, &variants);
    let is_split = roles.keys().any(|role| *role != ServingRole::Both);
    let report = TokensReport {
        workload,
        router,
        model: of_model(&roles, &router, Band::from(input.band)),
        roles: if is_split { roles } else { BTreeMap::new() },
        variants,
    };
    (assessment, report)
}

fn assessment(
    roles: &BTreeMap<ServingRole, TokenRoleFigures>,
    variants: &BTreeMap<VariantKey, TokenVariantFigures>,
) -> Assessment {
    Assessment {
        analyzer: AnalyzerName::Saturation,
        unit: CapacityUnit::KvTokens,
        demand: roles
            .iter()
            // A part of a demand can only ask for more.
            .filter(|(_, figures)| figures.is_demand_known || figures.balance.required > 0.0)
            .map(|(role, figures)| (*role, figures.balance.demand))
            .collect(),
        variants: variants
            .iter()
            .filter_map(|(key, figures)| Some((key.clone(), figures.capacity()?)))
            .collect(),
    }
}
