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
use wva_policy::document::{Situation, SnapshotDocument};
use wva_policy::key::VariantKey;
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;
use wva_policy::plan::Plan;
use wva_policy::units::Replicas;
use wva_policy::{check_plan, learn, plan};
use wva_settings::bundle::read_bundle;

mod accelerators;
mod backlogs;
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

fn settings(text: &str) -> DynamicSettings {
    read_bundle(text).unwrap()
}

fn situation(text: &str, settings: &DynamicSettings) -> Situation {
    SnapshotDocument::parse(text)
        .and_then(|document| document.situation(&settings.freshness))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What is learned and decided of a situation after what was learned before.
fn decide(situation: &Situation, before: &Learned, settings: &DynamicSettings) -> (Learned, Plan) {
    let Situation { snapshot, now, .. } = situation;
    let learned = learn(snapshot, before, settings, *now);
    let made = plan(snapshot, &learned, settings, 1, *now);
    (learned, made)
}

/// The plan of one document, which is sound.
fn planned(text: &str, with: &str) -> Plan {
    let settings = settings(with);
    let situation = situation(text, &settings);
    let before = situation.learned.clone().unwrap_or_default();
    let (_, made) = decide(&situation, &before, &settings);
    let sound = check_plan(&situation.snapshot, &settings, &made);
    assert_eq!(sound, Ok(()), "{text}");
    made
}

/// Targets in the order of names, and the steps of each in words.
fn words(plan: &Plan) -> Vec<(u32, String)> {
    let decisions = plan.decisions.values();
    decisions
        .map(|decision| {
            let steps = decision.steps.iter();
            let said: Vec<String> = steps.map(|step| step.why.to_string()).collect();
            (decision.target.unwrap().0, said.join("; "))
        })
        .collect()
}

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
