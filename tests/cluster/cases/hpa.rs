//! The arithmetic of the simulated horizontal pod autoscaler against the real controller: the same
//! objects, the same metrics, and what both make of them.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wva_sim::hpa::{History as Memory, HpaCondition, HpaDecision, HpaSpec, Observed, decide};
use wva_sim::milli::Milli;

use crate::harness::fault::{Fault, Result};
use crate::harness::history::History;
use crate::harness::namespace::Workload;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_mins(2);
/// Looks after which a constant metric changes nothing more in any row.
const LOOKS: u64 = 20;

pub(crate) fn cases() -> Vec<Case> {
    vec![case!(shared, hpa::decides_as_the_real_controller_does).within(Duration::from_mins(6))]
}

/// A metric: the type of its target, the target, and the value; none where no series is there.
type Metric = (&'static str, &'static str, Option<&'static str>);

/// One autoscaler, and what it finds.
#[derive(Clone)]
struct Row {
    id: &'static str,
    replicas: i32,
    /// Pods of these that run and are not ready.
    unready: i32,
    bounds: (i32, i32),
    metrics: Vec<Metric>,
    behavior: Value,
}

/// The state at rest.
#[derive(Debug, PartialEq)]
struct Rest {
    /// Replicas that were asked for, in order.
    way: Vec<i32>,
    /// Status and reason of conditions by their type.
    conditions: BTreeMap<String, (String, String)>,
    /// What the status shows of each metric, in thousandths.
    current: Vec<Milli>,
}

fn row(id: &'static str, replicas: i32, usage: &'static str, behavior: &Value) -> Row {
    Row {
        id,
        replicas,
        unready: 0,
        bounds: (1, 30),
        metrics: vec![("AverageValue", "1", Some(usage))],
        behavior: behavior.clone(),
    }
}

/// Rules of both directions that act at once.
fn at_once(up: &Value, down: &Value) -> Value {
    let rules = |more: &Value| {
        let mut rules = json!({"tolerance": "0", "stabilizationWindowSeconds": 0});
        let more = more.as_object().into_iter().flatten();
        for (name, value) in more {
            rules[name] = value.clone();
        }
        rules
    };
    json!({"scaleUp": rules(up), "scaleDown": rules(down)})
}

/// A policy whose period does not end within the test.
fn policy(kind: &str, value: i32) -> Value {
    json!({"type": kind, "value": value, "periodSeconds": 1800})
}

fn averages() -> Vec<Row> {
    let none = Value::Null;
    let exact = at_once(&none, &none);
    let up = |rules: Value| at_once(&rules, &none);
    let down = |rules: Value| at_once(&none, &rules);
    let both = json!([policy("Pods", 1), policy("Percent", 100)]);
    let within = |bounds, row: Row| Row { bounds, ..row };
    vec![
        row("within-the-tolerance", 10, "11", &none),
        row("without-tolerance", 10, "11", &exact),
        row("beyond-the-tolerance", 10, "12", &none),
        row("four-then-twice", 1, "9", &none),
        within((1, 5), row("most", 3, "9", &exact)),
        within((1, 4), row("above-most", 6, "9", &exact)),
        row("pods-up", 3, "20", &up(json!({"policies": [policy("Pods", 2)]}))),
        row("percent-up", 3, "20", &up(json!({"policies": [policy("Percent", 50)]}))),
        row("greatest-up", 3, "20", &up(json!({"policies": both}))),
        row("least-up", 3, "20", &up(json!({"policies": both, "selectPolicy": "Min"}))),
        row("never-up", 3, "9", &up(json!({"selectPolicy": "Disabled"}))),
        row("later-up", 3, "9", &up(json!({"stabilizationWindowSeconds": 1800}))),
        row("pods-down", 9, "1", &down(json!({"policies": [policy("Pods", 2)]}))),
        row("percent-down", 9, "1", &down(json!({"policies": [policy("Percent", 30)]}))),
        row("never-down", 4, "1", &down(json!({"selectPolicy": "Disabled"}))),
        row("later-down", 6, "1", &none),
        within((2, 9), row("fewest", 4, "0", &exact)),
    ]
}

fn others() -> Vec<Row> {
    let none = Value::Null;
    let exact = at_once(&none, &none);
    let one_up = at_once(&json!({"policies": [policy("Pods", 3)]}), &none);
    let by = |id, replicas, metrics: &[Metric], behavior: &Value| Row {
        metrics: metrics.to_vec(),
        ..row(id, replicas, "0", behavior)
    };
    let average = |usage| ("AverageValue", "1", usage);
    let value = |usage| ("Value", "10", Some(usage));
    let fraction = ("AverageValue", "2.5", Some("9"));
    let unready = |unready, row: Row| Row { unready, ..row };
    let within = |bounds, row: Row| Row { bounds, ..row };
    vec![
        by("fraction", 2, &[fraction], &exact),
        by("greatest-metric", 3, &[average(Some("3")), average(Some("5"))], &exact),
        by("missing", 3, &[average(None)], &exact),
        by("missing-with-more", 3, &[average(Some("5")), average(None)], &exact),
        by("missing-with-fewer", 3, &[average(Some("2")), average(None)], &exact),
        by("value-tolerated", 4, &[value("10.5")], &none),
        by("value-up", 4, &[value("15")], &one_up),
        within((1, 6), by("value-most", 4, &[value("15")], &exact)),
        unready(2, by("value-unready", 4, &[value("12.5")], &exact)),
        unready(2, by("value-none-ready", 2, &[value("15")], &exact)),
    ]
}

async fn decides_as_the_real_controller_does(cx: &Cx) -> Result {
    let mut rows = averages();
    rows.extend(others());
    let count = rows.len();
    let begun = try_join_all(rows.iter().map(|row| begin(cx, row))).await?;
    let pairs = rows.iter().zip(&begun);
    let compared = pairs.map(async |(row, history)| {
        let what = format!("both decide {} alike", row.id);
        eventually(what, SOON, async || {
            let hpa = object(cx, row).await?;
            let simulated = simulate(row, &hpa)?;
            seen(&real(&hpa, history), &simulated)
        })
        .await
        .map_err(|fault| fault.text().to_owned())
    });
    let outcomes = futures::future::join_all(compared).await;
    let differences: Vec<String> =
        outcomes.into_iter().filter_map(std::result::Result::err).collect();
    if !differences.is_empty() {
        return Err(Fault::new(differences.join("\n")));
    }
    eprintln!("hpa: {count} rows, decided alike");
    Ok(())
}

/// Pods at rest, and then the autoscaler.
async fn begin(cx: &Cx, row: &Row) -> Result<History> {
    let workload = Workload::new(row.id, row.replicas);
    cx.namespace.deploy(&workload).await?;
    let history = History::follow(&cx.namespace, row.id);
    cx.namespace.settles(row.id, row.replicas, SOON).await?;
    let pods: Api<Pod> = cx.namespace.api();
    let found = cx.namespace.pods(&workload.selector()).await?;
    for pod in found.iter().take(usize::try_from(row.unready)?) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let patch = Patch::Strategic(&status);
        pods.patch_status(name, &PatchParams::default(), &patch).await?;
    }
    cx.namespace.apply(scaled_object(cx, row)).await?;
    Ok(history)
}

/// KEDA makes an autoscaler of it, and serves what Prometheus answers: constants.
fn scaled_object(cx: &Cx, row: &Row) -> Value {
    let triggers = row.metrics.iter().map(|(kind, target, usage)| {
        let query =
            usage.map_or_else(|| "absent_here".to_owned(), |usage| format!("vector({usage})"));
        json!({"type": "prometheus", "metricType": kind, "metadata": {
            "serverAddress": cx.world.prometheus.url, "query": query, "threshold": target,
            "ignoreNullValues": "false",
        }})
    });
    let triggers: Vec<Value> = triggers.collect();
    let mut object = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": row.id},
        "spec": {
            "scaleTargetRef": {"name": row.id}, "pollingInterval": 1800,
            "minReplicaCount": row.bounds.0, "maxReplicaCount": row.bounds.1, "triggers": triggers,
        },
    });
    if !row.behavior.is_null() {
        object["spec"]["advanced"] =
            json!({"horizontalPodAutoscalerConfig": {"behavior": row.behavior}});
    }
    object
}

async fn object(cx: &Cx, row: &Row) -> Result<HorizontalPodAutoscaler> {
    let objects: Api<HorizontalPodAutoscaler> = cx.namespace.api();
    Ok(objects.get(&format!("keda-hpa-{}", row.id)).await?)
}

/// What the real controller has come to.
fn real(hpa: &HorizontalPodAutoscaler, history: &History) -> Rest {
    let mut way: Vec<i32> = history.steps().iter().map(|step| step.wanted).collect();
    way.dedup();
    let status = hpa.status.clone().unwrap_or_default();
    let conditions = status.conditions.into_iter().flatten();
    let conditions = conditions.map(|one| {
        let reason = one.reason.unwrap_or_default();
        (one.type_, (one.status, reason))
    });
    let metrics = status.current_metrics.into_iter().flatten();
    let current = metrics.filter_map(|metric| {
        let current = metric.external?.current;
        Milli::parse(&current.average_value.or(current.value)?.0)
    });
    Rest { way, conditions: conditions.collect(), current: current.collect() }
}

/// The result of the simulated one where each of its looks finds the pods of the one before.
fn simulate(row: &Row, hpa: &HorizontalPodAutoscaler) -> Result<Rest> {
    let spec = HpaSpec::read(hpa).map_err(|error| Fault::new(error))?;
    let usage = |metric: &Metric| {
        let usage = metric.2.ok_or("no series")?;
        Milli::parse(usage).ok_or("no number")
    };
    let metrics: Vec<_> = row.metrics.iter().map(usage).collect();
    let mut wanted = u32::try_from(row.replicas)?;
    let unready = u32::try_from(row.unready)?;
    let ready = wanted - unready;
    let mut memory = Memory::default();
    let mut way = vec![row.replicas];
    let mut last = None;
    for look in 0..LOOKS {
        let seen = Observed {
            wanted,
            existing: wanted,
            // Those that are not ready are the first to go, and new ones are.
            ready: if unready == 0 { wanted } else { ready.min(wanted) },
            metrics: metrics.iter().map(|one| one.map_err(str::to_owned)).collect(),
        };
        let now = Duration::from_secs(look);
        let outcome = decide(now, &spec, &seen, &mut memory);
        if let Some(desired) = outcome.desired.filter(|desired| *desired != wanted) {
            memory.rescaled(now, &spec, wanted, desired);
            way.push(i32::try_from(desired)?);
            wanted = desired;
        }
        last = Some(outcome);
    }
    let mut outcome = last.ok_or_else(|| Fault::new("no look"))?;
    if way.len() > 1 {
        let condition = HpaCondition::scaled_to_zero(&spec, wanted);
        outcome.conditions.push(condition);
    }
    Ok(rest(way, outcome))
}

fn rest(way: Vec<i32>, outcome: HpaDecision) -> Rest {
    // The controller around it has read the scale before.
    let read = ("AbleToScale", true, "SucceededGetScale");
    let mut conditions = BTreeMap::new();
    let decided = outcome.conditions.iter();
    let decided = decided.map(|one| (one.kind, one.holds, one.reason));
    for (kind, holds, reason) in std::iter::once(read).chain(decided) {
        let status = if holds { "True" } else { "False" };
        conditions.insert(kind.to_owned(), (status.to_owned(), reason.to_owned()));
    }
    Rest { way, conditions, current: outcome.current.into_iter().flatten().collect() }
}
