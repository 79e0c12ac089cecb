//! What a running controller decides is decided again by `wva plan`, from the snapshot it writes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::settings::SATURATION;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, Load, Reading};
use crate::harness::exporter::{Exporter, Page};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::servers::kwok;
use crate::harness::suite::{Case, Cx};
use crate::harness::tools;
use crate::harness::variants::{MODEL, Variants};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_mins(1);
/// Served by SGLang, while `MODEL` is served by vLLM.
const OTHER: &str = "qwen";
/// The policy of the controller and of the desk.
const POLICY: &str = "analyzerName: saturation";
const BUSY: Reading = Reading { kv_cache: 0.9, waiting: 4.0, running: 8.0, finished: 2.0 };

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::shared("offline::a_decision_on_every_signal_is_repeated", every_signal)]
}

fn sglang() -> Page {
    let series =
        |name: &str, value: &str| format!("sglang:{name}{{model_name=\"{OTHER}\"}} {value}\n");
    let lines = [
        series("token_usage", "0.2"),
        series("num_queue_reqs", "0"),
        series("num_running_reqs", "1"),
        series("max_total_num_tokens", "131072"),
    ];
    Page::Text(lines.concat())
}

fn router() -> Page {
    let labels = format!("model_name=\"{MODEL}\",target_model_name=\"{MODEL}\"");
    let lines = [
        format!("llm_d_epp_flow_control_queue_size{{{labels}}} 5\n"),
        format!("llm_d_epp_flow_control_queue_bytes{{{labels}}} 5120\n"),
        format!("llm_d_epp_request_total{{{labels}}} 7\n"),
    ];
    Page::Text(lines.concat())
}

/// Every part of the snapshot that is to be known.
fn known(snapshot: &Value, namespace: &str) -> Vec<String> {
    let variants = snapshot["variants"].as_array().cloned().unwrap_or_default();
    let signals = |name: &str| {
        let own = |one: &&Value| one["name"] == name && one["namespace"] == namespace;
        let found = variants.iter().find(own).cloned().unwrap_or_default();
        found["pods"][0]["signals"].clone()
    };
    let (vllm, sglang) = (signals("vllm"), signals("sglang"));
    let router = &snapshot["models"][0]["router"];
    let parts = [
        ("vllm kvUsage", &vllm["kvUsage"]),
        ("vllm queueLength", &vllm["queueLength"]),
        ("vllm kvCapacity", &vllm["kvCapacity"]),
        ("sglang kvUsage", &sglang["kvUsage"]),
        ("sglang kvCapacity", &sglang["kvCapacity"]),
        ("router queueRequests", &router["queueRequests"]),
        ("router queueBytes", &router["queueBytes"]),
        ("nodes", &snapshot["inventory"]["nodes"]),
        ("pods", &snapshot["inventory"]["pods"]),
        ("learned", &snapshot["learned"]),
    ];
    let missing = parts.into_iter().filter(|(_, value)| value.is_null());
    missing.map(|(name, _)| name.to_owned()).collect()
}

/// What `wva plan` makes of a snapshot: targets and stages, by variant.
fn planned(cx: &Cx, snapshot: &Value) -> Result<Value> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&cx.namespace.name);
    fs::create_dir_all(&folder)?;
    let (fleet, settings) = (folder.join("snapshot.json"), folder.join("settings.yaml"));
    fs::write(&fleet, snapshot.to_string())?;
    let text = format!("WVA_LIMITED_MODE: true\nsaturation:\n  default: {{{POLICY}}}\n");
    fs::write(&settings, text)?;
    let output = Command::new(tools::wva())
        .args(["plan", "--format=json", "--snapshot"])
        .arg(&fleet)
        .arg("--settings")
        .arg(&settings)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Fault::fatal(format!("wva plan: {said}")));
    }
    let plan: Value = serde_json::from_slice(&output.stdout)?;
    let variants = plan["variants"].as_object().cloned().unwrap_or_default();
    Ok(outline(variants.iter().map(|(name, one)| (name, &one["to"], &one["steps"]))))
}

/// The same of the controller's own decisions.
fn decided(plan: &Value) -> Value {
    let decisions = plan["decisions"].as_object().cloned().unwrap_or_default();
    outline(decisions.iter().map(|(name, one)| (name, &one["target"], &one["steps"])))
}

/// Where each variant is led, and by which steps: from, to and stage.
fn outline<'a>(variants: impl Iterator<Item = (&'a String, &'a Value, &'a Value)>) -> Value {
    let lower = |stage: &Value| stage.as_str().unwrap_or_default().to_lowercase().replace('-', "");
    let step = |step: &Value| json!([step["from"], step["to"], lower(&step["stage"])]);
    let outlines = variants.map(|(name, to, steps)| {
        let steps: Vec<Value> = steps.as_array().into_iter().flatten().map(step).collect();
        (name.clone(), json!({ "to": to, "steps": steps }))
    });
    Value::Object(outlines.collect())
}

async fn every_signal(cx: &Cx) -> Result {
    let namespace = &cx.namespace;
    for name in ["vllm", "sglang"] {
        let workload = Workload { gpus: Some((1, kwok::L4)), ..Workload::new(name, 1) };
        namespace.deploy(&workload).await?;
        namespace.settles(name, 1, SOON).await?;
    }
    let _fleet = EngineFleet::start(cx, "app=vllm", MODEL, Load::Each(BUSY));
    let pods = namespace.pods("app=sglang").await?;
    let pod = pods.first().and_then(|pod| pod.metadata.name.clone());
    let pod = pod.ok_or_else(|| Fault::new("no pod of sglang"))?;
    let (engine, gate) = (Exporter::start(sglang).await?, Exporter::start(router).await?);
    let prometheus = &cx.world.prometheus;
    let _engine = prometheus.scrape(&namespace.name, &pod, engine.address)?;
    let _gate = prometheus.scrape(&namespace.name, "epp-0", gate.address)?;

    let policy = json!({ "default": POLICY });
    cx.system().await?.configure(SATURATION, policy).await?;
    let spec = ControllerSpec::scoped(cx).with("WVA_LIMITED_MODE", "true");
    let controller = Controller::start_ready(cx, &spec).await?;
    let variants = Variants::new(namespace, &controller);
    variants.apply("vllm", "vllm", json!({ "maxReplicas": 2 })).await?;
    variants.apply("sglang", "sglang", json!({ "modelID": OTHER })).await?;
    eventually("every signal is known", SOON, async || {
        let snapshot = controller.debug("snapshot").await?;
        seen(&known(&snapshot, &namespace.name), &Vec::<String>::new())
    })
    .await?;
    variants.publishes("vllm", Some(2.0), SOON).await?;

    // A cycle may pass between the two pages.
    eventually("the desk agrees", SOON, async || {
        let snapshot = controller.debug("snapshot").await?;
        let decisions = decided(&controller.debug("decisions").await?);
        seen(&planned(cx, &snapshot)?, &decisions)
    })
    .await
}
