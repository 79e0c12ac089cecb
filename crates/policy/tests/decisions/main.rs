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
use std::time::Duration;

use wva_base::moment::Moment;
use wva_policy::key::VariantKey;
use wva_policy::learned::Learned;
use wva_policy::plan::Plan;
use wva_policy::units::Replicas;

mod accelerators;
mod budget_properties;
mod first_look;
mod from_zero;
mod latency_objectives;
mod losses;
mod missing;
mod multi_analyzer;
mod multi_analyzer_properties;
mod not_counted;
mod refit;
mod releases;
mod starts;

fn targets(plan: &Plan) -> BTreeMap<String, u32> {
    let decisions = plan.decisions.values();
    decisions
        .filter_map(|decision| Some((decision.key.name.to_string(), decision.target?.0)))
        .collect()
}

fn reason(plan: &Plan, name: &str) -> String {
    plan.decisions[&VariantKey::new("ns", name)].reason()
}

/// The fewest replicas because of a recent start.
fn least(learned: &Learned, variant: &VariantKey, hold: Duration, now: Moment) -> Replicas {
    Replicas(u32::from(learned.wakes.kept(variant, hold, now).is_some()))
}
