//! The controller is absent: KEDA does with every target what `wva doctor` stated beforehand.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::external_scaler::{in_plain_text, scaled_object, trigger};
use crate::harness::fault::{Fault, Result};
use crate::harness::history::History;
use crate::harness::namespace::{HPA, KEDA, Workload, condition_of};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::tools;
use crate::harness::variants::variant;
use crate::harness::wait::{eventually, seen};

/// Replicas of every target while the controller runs.
const BEFORE: i32 = 3;
/// The target that keeps its replicas by the fallback of the pages for users.
const HIGHER: &str = "gauge-higher";
const SOON: Duration = Duration::from_mins(1);
const LATER: Duration = Duration::from_mins(2);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, fallbacks::without_a_controller_keda_does_what_doctor_states)
            .within(Duration::from_mins(5)),
    ]
}

/// How KEDA reads the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The gauge, in Prometheus.
    Gauge,
    /// The external scaler.
    Scaler,
}

/// A target with its ScaledObject, and the replicas that it has once no controller answers.
struct Row {
    name: &'static str,
    way: Way,
    fallback: Option<Value>,
    then: i32,
}

fn rows() -> Vec<Row> {
    let fallback = |replicas: i32, behavior: &str| {
        Some(json!({ "failureThreshold": 3, "replicas": replicas, "behavior": behavior }))
    };
    let row = |name, way, fallback, then| Row { name, way, fallback, then };
    vec![
        row("gauge-fewer", Way::Gauge, fallback(2, "static"), 2),
        row("gauge-more", Way::Gauge, fallback(5, "static"), 5),
        row("gauge-none", Way::Gauge, fallback(0, "static"), 1),
        row(HIGHER, Way::Gauge, fallback(2, "currentReplicasIfHigher"), BEFORE),
        row("gauge-bare", Way::Gauge, None, BEFORE),
        row("scaler-fewer", Way::Scaler, fallback(2, "static"), BEFORE),
        row("scaler-bare", Way::Scaler, None, BEFORE),
    ]
}

impl Row {
    /// Deploys the target and has it follow its variant.
    async fn begin(&self, cx: &Cx, port: u16) -> Result<History> {
        let name = self.name;
        let history = History::follow(&cx.namespace, name);
        let fields = json!({ "maxReplicas": 10, "modelID": name });
        cx.namespace.apply(variant(name, name, &fields)).await?;
        let scaler = scaled_object(name);
        let mut object = match self.way {
            Way::Gauge => {
                let query = scaler.published(cx).await?;
                scaler.manifest(&cx.world.prometheus.url, &query)
            }
            Way::Scaler => {
                let mut trigger = trigger(port);
                trigger["metadata"]["variantName"] = json!(name);
                scaler.following(&trigger)
            }
        };
        let spec = object["spec"].as_object_mut();
        let spec = spec.ok_or_else(|| Fault::new("a ScaledObject has a specification"))?;
        match &self.fallback {
            Some(fallback) => spec.insert("fallback".to_owned(), fallback.clone()),
            None => spec.remove("fallback"),
        };
        cx.namespace.apply(object).await?;
        scaler.is_read(cx, "1").await?;
        Ok(history)
    }

    /// Waits until the HPA of KEDA has no metric.
    async fn is_unread(&self, cx: &Cx) -> Result {
        let (name, active) = (format!("keda-hpa-{}", self.name), ("ScalingActive", "False"));
        cx.namespace.has_condition(HPA, &name, active, LATER).await
    }

    /// Whether KEDA shows its fallback in place of the metric.
    async fn falls_back(&self, cx: &Cx) -> Result<bool> {
        let objects = cx.namespace.dynamic(KEDA.0, KEDA.1).await?;
        let [status, ..] = condition_of(&objects.get(self.name).await?, "Fallback");
        Ok(status == "True")
    }
}

/// The replicas without a controller, as the doctor states them by the name of the ScaledObject.
fn stated(cx: &Cx) -> Result<BTreeMap<String, i64>> {
    let output = Command::new(tools::wva())
        .env_clear()
        .env("KUBECONFIG", &cx.world.api.admin)
        .args(["doctor", "--output=json"])
        .args(["--namespace", &cx.namespace.name])
        .args(["--prometheus", &cx.world.prometheus.url])
        .output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Fault::new(format!("wva doctor: {error}: {complaint}")))?;
    let outages = report["outages"].as_array().into_iter().flatten();
    let all = outages.map(|one| {
        let name = one["object"]["name"].as_str();
        let replicas = one["replicas"].as_i64();
        let pair = name.map(str::to_owned).zip(replicas);
        pair.ok_or_else(|| Fault::new(format!("no forecast: {one}")))
    });
    all.collect()
}

async fn without_a_controller_keda_does_what_doctor_states(cx: &Cx) -> Result {
    let rows = rows();
    for row in &rows {
        cx.namespace.deploy(&Workload::new(row.name, BEFORE)).await?;
    }
    for row in &rows {
        cx.namespace.settles(row.name, BEFORE, SOON).await?;
    }
    let (controller, port) = in_plain_text(cx).await?;
    let histories = try_join_all(rows.iter().map(|row| row.begin(cx, port))).await?;
    for row in &rows {
        assert!(!row.falls_back(cx).await?, "{} has its count", row.name);
    }
    let wanted: BTreeMap<String, i64> =
        (rows.iter()).map(|row| (row.name.to_owned(), i64::from(row.then))).collect();
    eventually("the doctor states all counts", SOON, async || seen(&stated(cx)?, &wanted)).await?;

    controller.stop().await?;
    // Those that change end the wait for those that stay: KEDA polls all of them every second.
    for row in rows.iter().filter(|row| row.then != BEFORE) {
        cx.namespace.settles(row.name, row.then, LATER).await?;
    }
    for (row, history) in rows.iter().zip(&histories) {
        let is_shown = row.way == Way::Gauge && row.fallback.is_some();
        if is_shown {
            cx.namespace.has_condition(KEDA, row.name, ("Fallback", "True"), LATER).await?;
        } else {
            row.is_unread(cx).await?;
            assert!(!row.falls_back(cx).await?, "{} knows no metric", row.name);
        }
        cx.namespace.settles(row.name, row.then, SOON).await?;
        let mut way = vec![BEFORE, row.then];
        way.dedup();
        history.went(&way).await?;
    }
    // The gauge is obeyed again when it is back.
    let _controller = in_plain_text(cx).await?;
    let fields = json!({ "minReplicas": 4, "maxReplicas": 10, "modelID": HIGHER });
    cx.namespace.apply(variant(HIGHER, HIGHER, &fields)).await?;
    cx.namespace.settles(HIGHER, 4, LATER).await
}
