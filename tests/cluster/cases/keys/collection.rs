//! When metrics are asked for, and how much of them is kept.

use serde_json::json;

use super::{Proof, SOON, asking, first};
use crate::harness::controller::Controller;
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::oracle::{Oracle, Report};
use crate::harness::suite::Cx;
use crate::harness::variants::{MODEL, Variants};
use crate::harness::wait::{eventually, seen};

/// Nothing but what a test does makes a cycle.
const CALM: (&str, &str) = ("GLOBAL_OPT_INTERVAL", "10m");

pub(super) fn proofs() -> Vec<Proof> {
    vec![
        Proof::of(&["PROMETHEUS_METRICS_CACHE_TTL"], "an_old_snapshot_is_not_decided_on", reuse),
        Proof::of(
            &["PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL"],
            "metrics_are_collected_between_cycles",
            fetch,
        ),
        Proof::of(
            &["PROMETHEUS_METRICS_CACHE_CLEANUP_INTERVAL"],
            "series_of_namespaces_that_are_gone_are_purged",
            purge,
        ),
        Proof::of(
            &["PROMETHEUS_METRICS_CACHE_MAX_SIZE"],
            "no_more_samples_are_held_than_allowed",
            most,
        ),
    ]
}

/// Waits until the first collection has come to its end, and answers its queries.
async fn collected(oracle: &Oracle, controller: &Controller) -> Result<usize> {
    first(oracle).await?;
    controller.readiness_has("[+] prometheus", SOON).await?;
    Ok(oracle.asked().len())
}

/// A new variant makes an early cycle: on the last snapshot while it may be used, else on another.
async fn reuse(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new("llama", 1)).await?;
    for (name, reusable, asks_again) in [("one", "10m", false), ("two", "1ms", true)] {
        let oracle = Oracle::plain().await?;
        let settings = [CALM, ("PROMETHEUS_METRICS_CACHE_TTL", reusable)];
        let controller = asking(cx, &oracle, &settings).await?;
        let before = collected(&oracle, &controller).await?;
        let variants = Variants::new(&cx.namespace, &controller);
        variants.apply(name, "llama", json!({})).await?;
        variants.decides(name, &[("/target", json!(1))], SOON).await?;
        let again = oracle.asked().len() > before;
        assert_eq!(again, asks_again, "at {reusable}");
        variants.delete(name).await?;
        controller.crash();
    }
    Ok(())
}

async fn fetch(cx: &Cx) -> Result {
    let calm = Oracle::plain().await?;
    let eager = Oracle::plain().await?;
    let controller = asking(cx, &calm, &[CALM]).await?;
    let once = collected(&calm, &controller).await?;
    let key = "PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL";
    let _eager = asking(cx, &eager, &[CALM, (key, "1s")]).await?;
    eventually("five collections", SOON, async || {
        if eager.asked().len() >= 5 * once {
            Ok(())
        } else {
            Err(Fault::new(format!("{} queries", eager.asked().len())))
        }
    })
    .await?;
    assert_eq!(calm.asked().len(), once, "the calm one asked again");
    Ok(())
}

fn report(namespace: &str, pod: &str) -> Report {
    Report {
        namespace: namespace.to_owned(),
        model: MODEL.to_owned(),
        pod: pod.to_owned(),
        kv_cache: 0.5,
    }
}

/// Pods of a namespace without variants are counted as strangers for as long as it reports.
async fn purge(cx: &Cx) -> Result {
    const STRANGERS: &str = "wva_pod_mapping_miss_total";
    let namespace = cx.namespace.name.as_str();
    for (every, goes) in [("1s", true), ("1h", false)] {
        let oracle = Oracle::plain().await?;
        oracle.report(vec![report(namespace, "stranger")]);
        let key = "PROMETHEUS_METRICS_CACHE_CLEANUP_INTERVAL";
        let controller = asking(cx, &oracle, &[(key, every)]).await?;
        let counted = async || {
            let labels = [("namespace", namespace)];
            Ok::<_, Fault>(controller.value(STRANGERS, &labels).await?.is_some())
        };
        eventually("the stranger is counted", SOON, async || seen(&counted().await?, &true))
            .await?;
        oracle.report(Vec::new());
        let before = oracle.asked().len();
        if goes {
            eventually("the count is gone", SOON, async || seen(&counted().await?, &false)).await?;
        } else {
            // Three collections later it is still there.
            eventually("three collections", SOON, async || {
                let later = oracle.asked().len() - before;
                seen(&(later >= 12), &true)
            })
            .await?;
            assert!(counted().await?);
        }
        controller.crash();
    }
    Ok(())
}

async fn most(cx: &Cx) -> Result {
    const PODS: &str = "wva_metrics_pods_discovered";
    let namespace = cx.namespace.name.as_str();
    let key = "PROMETHEUS_METRICS_CACHE_MAX_SIZE";
    for (most, pods, failed) in [("0", Some(3.0), false), ("2", None, true)] {
        let oracle = Oracle::plain().await?;
        let reports = ["a", "b", "c"].map(|pod| report(namespace, pod));
        oracle.report(reports.to_vec());
        let controller = asking(cx, &oracle, &[(key, most)]).await?;
        let labels = [("namespace", namespace)];
        eventually(format!("at most {most}"), SOON, async || {
            let found = controller.value(PODS, &labels).await?;
            let text = controller.readiness().await?;
            let is_reported = text.contains("PROMETHEUS_METRICS_CACHE_MAX_SIZE");
            seen(&(found, is_reported), &(pods, failed))
        })
        .await?;
        controller.crash();
    }
    Ok(())
}
