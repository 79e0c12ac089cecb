//! Every number that led to an assessment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::roles::TokenRoleFigures;
use super::router::RouterDemand;
use super::variant::TokenVariantFigures;
use super::workload::MeanWorkload;
use crate::capacity::ServingRole;
use crate::key::VariantKey;

/// Figures of one model, in KV tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokensReport {
    /// Its mean request.
    pub workload: MeanWorkload,
    /// What waits in the router.
    pub router: RouterDemand,
    /// The model as a whole.
    pub model: TokenRoleFigures,
    /// Its roles; empty where every variant serves whole requests.
    pub roles: BTreeMap<ServingRole, TokenRoleFigures>,
    /// Its variants.
    pub variants: BTreeMap<VariantKey, TokenVariantFigures>,
}
