//! What one analyzer says in one cycle of one model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::balance::{Balance, balance};
use super::band::Band;
use super::liveness::Liveness;
use super::participation::Participation;
use crate::capacity::{AnalyzerName, Assessment, CapacityUnit, ServingRole};
use crate::key::VariantKey;

/// One analyzer's part in one cycle of one model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnalyzerResult {
    pub analyzer: AnalyzerName,
    /// Its weight among the voters, not negative.
    pub score: f64,
    pub band: Band,
    pub participation: Participation,
    pub liveness: Liveness,
    /// What it says; `None` where it said nothing this cycle.
    pub assessment: Option<Assessment>,
}

/// The view of one voter, role by role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoterFigures {
    /// The analyzer.
    pub analyzer: AnalyzerName,
    /// Its weight.
    pub score: f64,
    /// Whether its agreement is needed to shrink.
    pub liveness: Liveness,
    /// Of its balances; absent where it said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<CapacityUnit>,
    /// Demand, supply, and what follows; a role without an entry is one that it abstains from.
    pub roles: BTreeMap<ServingRole, Balance>,
}

#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) result: &'a AnalyzerResult,
    pub(super) roles: BTreeMap<ServingRole, Balance>,
}

impl<'a> View<'a> {
    pub(super) fn of(result: &'a AnalyzerResult) -> Self {
        let roles = result
            .assessment
            .iter()
            .flat_map(|assessment| {
                assessment
                    .demand
                    .iter()
                    .filter(|(_, demand)| demand.is_finite() && **demand >= 0.0)
                    .map(|(role, demand)| (*role, balance(assessment, *role, *demand, result.band)))
            })
            .collect();
        Self { result, roles }
    }

    /// Capacities of one replica of each variant of a role; those that cannot be sized are left out.
    pub(super) fn capacities(&self, role: ServingRole) -> BTreeMap<VariantKey, f64> {
        self.result
            .assessment
            .iter()
            .flat_map(|assessment| &assessment.variants)
            .filter(|(_, variant)| {
                variant.role == role && variant.per_replica.is_finite() && variant.per_replica > 0.0
            })
            .map(|(key, variant)| (key.clone(), variant.per_replica))
            .collect()
    }

    pub(super) fn figures(self) -> VoterFigures {
        VoterFigures {
            analyzer: self.result.analyzer,
            score: self.result.score,
            liveness: self.result.liveness,
            unit: (self.result.assessment.as_ref()).map(|said| said.unit),
            roles: self.roles,
        }
    }
}
