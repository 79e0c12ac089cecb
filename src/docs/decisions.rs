//! The sample of `/debug/decisions`.

use std::fmt::Write as _;

use serde_json::Value;

use super::check_block;
use crate::policy::document::SnapshotDocument;
use crate::policy::key::VariantKey;
use crate::policy::{learn, plan};
use crate::settings::bundle::read_bundle;

const FLEET: &str = "
version: 1
variants:
- namespace: inference
  name: llama-8b-h100
  model: meta/llama-3.1-8b
  cost: 40
  accelerator: H100
  desired: 2
  target: {current: 2}
  pods:
  - {name: a, age: 2h, signals: {kvUsage: 0.665, queueLength: 0}}
  - {name: b, age: 2h, signals: {kvUsage: 0.795, queueLength: 0}}
";

#[test]
fn the_decision_in_the_docs_is_what_the_page_shows() {
    let settings = read_bundle("").unwrap();
    let document = SnapshotDocument::parse(FLEET).unwrap();
    let situation = document.situation(&settings.freshness).unwrap();
    let (snapshot, now) = (&situation.snapshot, situation.now);
    let learned = learn(snapshot, &situation.learned.unwrap_or_default(), &settings, now);
    let plan = plan(snapshot, &learned, &settings, 1, now);
    let key = VariantKey::new("inference", "llama-8b-h100");
    let decision = &plan.decisions[&key];
    // In the order of the page.
    let steps = decision.steps.iter().map(|step| {
        let step = serde_json::to_string(step).unwrap();
        format!("    {step}")
    });
    let steps: Vec<String> = steps.collect();
    let decision = serde_json::to_value(decision).unwrap();
    let mut shown = "{\n".to_owned();
    for field in ["key", "current", "target", "outcome"] {
        writeln!(shown, "  \"{field}\": {},", decision[field]).unwrap();
    }
    write!(shown, "  \"steps\": [\n{}\n  ]\n}}\n", steps.join(",\n")).unwrap();
    assert!(serde_json::from_str::<Value>(&shown).is_ok(), "{shown}");
    check_block("docs/development/plan.md", "One variant in it", &shown);
}
