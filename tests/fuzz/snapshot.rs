//! Snapshot documents, and everything that `wva plan` makes of them.

use serde_yaml::Value;
use wva::policy::document::{Situation, SnapshotDocument};
use wva::policy::learned::Learned;
use wva::policy::params::DynamicSettings;
use wva::policy::plan::Plan;
use wva::policy::{check_plan, learn, plan};
use wva::settings::bundle::read_bundle;

use crate::campaign::{Campaign, Memory, Outcome};
use crate::mutate::Grammar;
use crate::seeds::{blocks, json, owned};

/// Longest text of an error, without its text about every fault.
const LONGEST_ERROR: usize = 64 * 1024;

/// Every part that a snapshot can have, with every analyzer given what it needs.
const WHOLE: &str = include_str!("whole.yaml");

/// Settings under which a snapshot is planned, one for each way to decide.
const SETTINGS: [&str; 6] = [
    "",
    "saturation: {default: {analyzerName: saturation, enableLimiter: true, enableRescale: true}}",
    "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}]}}\nqueueingModel: {default: {sloMultiplier: 3}}",
    "queueingModel: {default: {}}\nscaleToZero: {default: {enable_scale_to_zero: true, retention_period: 1m}}",
    "EXPERIMENTAL_PROACTIVE_MODEL: true\nqueueingModel: {default: {}, m: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 50}}",
    "WVA_LIMITED_MODE: true\nsaturation: {default: {limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 4}}]}}",
];

fn decide(situation: &Situation, settings: &DynamicSettings) -> Plan {
    let before = situation.learned.clone().unwrap_or_default();
    let learned = learn(&situation.snapshot, &before, settings, situation.now);
    let made = plan(&situation.snapshot, &learned, settings, 1, situation.now);
    if let Err(violation) = check_plan(&situation.snapshot, settings, &made) {
        panic!("{violation:?}");
    }
    made
}

/// A plan that was written down is made again from what was written.
fn again(situation: &Situation, settings: &DynamicSettings, made: &Plan) {
    let learned = situation.learned.clone().unwrap_or_default();
    let written = SnapshotDocument::of(&situation.snapshot, &learned, situation.now);
    let text = serde_json::to_string(&written).unwrap();
    let read = SnapshotDocument::parse(&text)
        .and_then(|document| document.situation(&settings.freshness))
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let repeated = decide(&read, settings);
    assert_eq!(format!("{:?}", made.decisions), format!("{:?}", repeated.decisions));
}

fn run(name: &str, seeds: Vec<String>) {
    let settings = SETTINGS.map(|text| read_bundle(text).unwrap());
    let words = owned([
        "age: ",
        "state: stale",
        "state: failed",
        "why: tooOld",
        "knownZero",
        "learned: {version: 1}",
        "inventory: {unknown: x}",
        "role: prefill",
        "role: decode",
        "uptime: 1h",
        "ago: 30s",
        "2026-03-01T12:00:00Z",
        "-009999-01-01T00:00:00Z",
    ]);
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let settings = &settings[input.len() % settings.len()];
        let read = SnapshotDocument::parse(&text)
            .and_then(|document| document.situation(&settings.freshness));
        match &read {
            Ok(situation) => again(situation, settings, &decide(situation, settings)),
            Err(error) => {
                let text = error.to_string();
                assert!(text.len() <= LONGEST_ERROR, "{} bytes: {text:.400}", text.len());
            }
        }
        Outcome::from(&read)
    };
    Campaign::run(name, Grammar::new(seeds, words, 6 * 1024), Memory::kib(1024, 2_000), &check);
}

fn documents() -> Vec<String> {
    let mut documents = blocks(include_str!("../../docs/user-guide/plan.md"), "yaml");
    let autoscalers = include_str!("../../docs/development/plan.md");
    documents.extend(blocks(autoscalers, "yaml"));
    documents.retain(|block| block.contains("variants:"));
    documents.push(WHOLE.to_owned());
    documents.push(taught(WHOLE));
    documents
}

/// The same document after a collection without failures, with what its signals have taught.
fn taught(text: &str) -> String {
    let settings = read_bundle(SETTINGS[2]).unwrap();
    let mut document = SnapshotDocument::parse(text).unwrap();
    document.collection.failures.clear();
    let situation = document.situation(&settings.freshness).unwrap();
    let learned = learn(&situation.snapshot, &Learned::default(), &settings, situation.now);
    assert_ne!(learned, Learned::default());
    let written = SnapshotDocument::of(&situation.snapshot, &learned, situation.now);
    serde_yaml::to_string(&written).unwrap()
}

#[test]
fn snapshot_yaml() {
    run("snapshot::snapshot_yaml", documents());
}

#[test]
fn snapshot_json() {
    let as_json = |text: String| json(&serde_yaml::from_str::<Value>(&text).unwrap());
    run("snapshot::snapshot_json", documents().into_iter().map(as_json).collect());
}
