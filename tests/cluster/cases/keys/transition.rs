//! How long each cause of transition may hold a variant back.

use std::time::Duration;

use serde_json::json;

use super::{Proof, SOON, asking};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::{Namespace, Workload, is_ready};
use crate::harness::oracle::{Oracle, Report};
use crate::harness::suite::Cx;
use crate::harness::variants::{MODEL, Variants};
use crate::harness::wait::{eventually, seen};

const NAME: &str = "llama";
/// Longer than any test.
const AGES: Duration = Duration::from_hours(1);

pub(super) fn proofs() -> Vec<Proof> {
    vec![
        Proof::of(&["WVA_PENDING_TIME_LIMIT"], "loading_replicas_hold_for_a_time", pending),
        Proof::of(&["WVA_UNAPPLIED_TIME_LIMIT"], "an_unapplied_count_holds_for_a_time", unapplied),
        Proof::of(&["WVA_SILENT_TIME_LIMIT"], "silent_replicas_hold_for_a_time", silent),
    ]
}

/// The names of the pods that are ready.
async fn ready_pods(namespace: &Namespace, selector: &str) -> Result<Vec<String>> {
    let pods = namespace.pods(selector).await?.into_iter();
    let ready = pods.filter(is_ready);
    Ok(ready.filter_map(|pod| pod.metadata.name).collect())
}

/// Has these pods report that they are full.
fn saturate(cx: &Cx, oracle: &Oracle, pods: &[String]) {
    let reports = pods.iter().map(|pod| Report {
        namespace: cx.namespace.name.clone(),
        model: MODEL.to_owned(),
        pod: pod.clone(),
        kv_cache: 0.95,
    });
    oracle.report(reports.collect());
}

/// Decisions about a full variant under the usual limit and under one of a second: the first holds
/// and says so, the second grows.
async fn holds_then_not(
    cx: &Cx,
    oracle: &Oracle,
    key: &'static str,
    with: &[(&'static str, &str)],
) -> Result {
    let mut held = None;
    for (limit, reason) in [("10m", "InTransition"), ("1s", "TransitionExpired")] {
        let controller = asking(cx, oracle, &[&[(key, limit)], with].concat()).await?;
        let variants = Variants::new(&cx.namespace, &controller);
        variants.apply(NAME, NAME, json!({ "maxReplicas": 9 })).await?;
        let target = eventually(format!("{reason} with {key}={limit}"), SOON, async || {
            let decision = variants.decision(NAME).await?;
            let target = decision["target"].as_u64();
            let has_grown = held.is_some() && target > held;
            let is_explained = decision["steps"].to_string().contains(reason);
            if is_explained && has_grown == held.is_some() {
                Ok(target)
            } else {
                Err(Fault::new(format!("{decision}")))
            }
        })
        .await?;
        // The object says it, too.
        let words = match limit {
            "10m" => ["not ready yet", "not applied yet", "not every replica reports"].as_slice(),
            _ => ["a limit on waiting has passed"].as_slice(),
        };
        eventually(format!("{words:?} in the condition"), SOON, async || {
            let (_, message) = variants.condition(NAME, "OptimizationReady").await?;
            let is_said = words.iter().any(|word| message.contains(word));
            seen(&(is_said, &*message), &(true, &*message))
        })
        .await?;
        held = held.or(target);
        controller.crash();
    }
    Ok(())
}

/// A rollout whose new replica loads for ever while the old one serves.
async fn pending(cx: &Cx) -> Result {
    let pods = cx.namespace.run(NAME, 1, SOON).await?;
    let oracle = Oracle::plain().await?;
    saturate(cx, &oracle, &ready_pods(&cx.namespace, &pods).await?);
    let rollout = Workload { loading: AGES, ..Workload::new(NAME, 1) };
    cx.namespace.deploy(&rollout).await?;
    // It does not report either, which is a cause of its own.
    let silent = [("WVA_SILENT_TIME_LIMIT", "1s")];
    holds_then_not(cx, &oracle, "WVA_PENDING_TIME_LIMIT", &silent).await
}

/// No scaler follows, so that the first step up is never taken.
async fn unapplied(cx: &Cx) -> Result {
    let pods = cx.namespace.run(NAME, 3, SOON).await?;
    let oracle = Oracle::plain().await?;
    saturate(cx, &oracle, &ready_pods(&cx.namespace, &pods).await?);
    holds_then_not(cx, &oracle, "WVA_UNAPPLIED_TIME_LIMIT", &[]).await
}

/// One of two replicas reports.
async fn silent(cx: &Cx) -> Result {
    let pods = cx.namespace.run(NAME, 2, SOON).await?;
    let oracle = Oracle::plain().await?;
    let pods = ready_pods(&cx.namespace, &pods).await?;
    saturate(cx, &oracle, &pods[..1]);
    holds_then_not(cx, &oracle, "WVA_SILENT_TIME_LIMIT", &[]).await
}
