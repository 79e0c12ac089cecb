//! Keys that decide what a plan looks like: seen on `wva plan`, which works with the same settings as
//! the controller.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::Proof;
use crate::harness::fault::{Fault, Result};
use crate::harness::suite::Cx;
use crate::harness::tools;

/// A model that wants to grow on the one free GPU that there is, on a node of shard `a`.
const FLEET: &str = "
version: 1
variants:
- namespace: serving
  name: llama
  model: m
  accelerator: H100
  desired: 1
  target: {current: 1}
  pods:
  - name: llama-a
    signals: {kvUsage: 0.78, queueLength: 0, arrivalRate: 0.1, inputTokens: 512, outputTokens: 128,
              timeToFirstToken: 0.045, interTokenLatency: 0.008}
inventory:
  nodes:
    one: {labels: {shard: a, nvidia.com/gpu.product: H100}, allocatable: {nvidia.com/gpu: 2}}
  pods:
  - {node: one, containers: [{nvidia.com/gpu: 1}]}
";

/// A replica that is asked for more than it generates.
const BUSY: &str = "
version: 1
variants:
- namespace: serving
  name: llama
  model: m
  target: {current: 1}
  pods:
  - name: llama-a
    signals: {kvUsage: 0.9, queueLength: 9, kvCapacity: 1024000, inputTokens: 4500, outputTokens: 200,
              interTokenLatency: 0.0717, generationRate: 2700}
models:
- {namespace: serving, model: m, router: {queueRequests: 0, arrivalRate: 15}}
";

pub(super) fn proofs() -> Vec<Proof> {
    vec![
        Proof::of(
            &["WVA_LIMITED_MODE", "WVA_NODE_SELECTOR"],
            "free_gpus_of_selected_nodes_limit_growth",
            limited,
        ),
        Proof::of(
            &["WVA_REPLICA_START_TIME"],
            "orders_are_for_the_load_at_the_end_of_a_start",
            starts,
        ),
        Proof::of(
            &["EXPERIMENTAL_PROACTIVE_MODEL"],
            "the_queueing_model_has_a_say",
            proactive,
        ),
    ]
}

/// What is planned under these settings, with every intermediate.
fn answer(cx: &Cx, name: &str, snapshot: &str, settings: &str) -> Result<Value> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&cx.namespace.name);
    fs::create_dir_all(&folder)?;
    let (fleet, file) = (
        folder.join(format!("{name}.yaml")),
        folder.join(format!("{name}-settings.yaml")),
    );
    fs::write(&fleet, snapshot)?;
    fs::write(&file, settings)?;
    let output = Command::new(tools::wva())
        .args(["plan", "--explain", "--format=json", "--snapshot"])
        .arg(&fleet)
        .arg("--settings")
        .arg(&file)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Fault::new(format!("wva plan: {said}")));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The steps of the one variant under these settings, and where they lead.
fn planned(cx: &Cx, name: &str, snapshot: &str, settings: &str) -> Result<(Vec<String>, u64)> {
    let answer = answer(cx, name, snapshot, settings)?;
    let variant = &answer["variants"]["serving/llama"];
    let stages = variant["steps"].as_array().into_iter().flatten();
    let stages = stages.map(|step| step["stage"].as_str().unwrap_or_default().to_owned());
    Ok((stages.collect(), variant["to"].as_u64().unwrap_or_default()))
}

async fn limited(cx: &Cx) -> Result {
    let to = |name: &str, snapshot: &str, settings: &str| -> Result<u64> {
        Ok(planned(cx, name, snapshot, settings)?.1)
    };
    let full = FLEET.replace("{nvidia.com/gpu: 2}", "{nvidia.com/gpu: 1}");
    assert_eq!(to("full", &full, "")?, 2);
    assert_eq!(to("full-limited", &full, "WVA_LIMITED_MODE: true")?, 1);
    assert_eq!(to("room", FLEET, "WVA_LIMITED_MODE: true")?, 2);
    let selected =
        |shard: &str| format!("WVA_LIMITED_MODE: true\nWVA_NODE_SELECTOR: shard={shard}\n");
    assert_eq!(to("shard-a", FLEET, &selected("a"))?, 2);
    assert_eq!(to("shard-b", FLEET, &selected("b"))?, 1);
    Ok(())
}

async fn starts(cx: &Cx) -> Result {
    let votes = "saturation: {default: {analyzers: [{name: throughput}]}}\n";
    let horizon = |name: &str, settings: &str| -> Result<Option<u64>> {
        let answer = answer(cx, name, BUSY, settings)?;
        let floor = "/models/serving~1m/throughput/roles/both/floor/horizon/secs";
        Ok(answer.pointer(floor).and_then(Value::as_u64))
    };
    assert_eq!(horizon("usual", votes)?, Some(60));
    let slow = format!("{votes}WVA_REPLICA_START_TIME: 5m\n");
    assert_eq!(horizon("slow", &slow)?, Some(300));
    Ok(())
}

async fn proactive(cx: &Cx) -> Result {
    let (without, _) = planned(cx, "without", FLEET, "")?;
    assert!(
        !without.iter().any(|stage| stage == "hybrid"),
        "{without:?}"
    );
    let (with, _) = planned(cx, "with", FLEET, "EXPERIMENTAL_PROACTIVE_MODEL: true")?;
    assert!(with.iter().any(|stage| stage == "hybrid"), "{with:?}");
    Ok(())
}
