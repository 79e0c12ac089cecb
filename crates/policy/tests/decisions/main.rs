//! Decisions under settings that are read from texts, as an operator writes them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

use std::collections::BTreeMap;

use wva_policy::key::VariantKey;
use wva_policy::plan::Plan;

mod accelerators;
mod budget_properties;
mod first_look;
mod from_zero;
mod losses;
mod missing;
mod multi_analyzer;
mod multi_analyzer_properties;
mod refit;
mod releases;
mod starts;

/// The targets of a whole plan.
fn targets(plan: &Plan) -> BTreeMap<String, u32> {
    let decisions = plan.decisions.values();
    decisions
        .filter_map(|decision| Some((decision.key.name.to_string(), decision.target?.0)))
        .collect()
}

/// The decisive reason of one variant of `ns`.
fn reason(plan: &Plan, name: &str) -> String {
    plan.decisions[&VariantKey::new("ns", name)].reason()
}
