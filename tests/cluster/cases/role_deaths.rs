//! Roles of the tree are killed, several at once, while a variant grows, and others while it shrinks, and nothing
//! comes of it: the way and the end are those of an undisturbed run. Chaos kills each of them at every moment.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::harness::controller::Controller;
use crate::harness::fault::{Fault, Result};
use crate::harness::scaling_loop::{Beginning, Bound, NAME, ScalingLoop};
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::{eventually, seen};

/// Wants 3 replicas: 2.0 / 3 is 0.67, and 2 of them are saturated.
const LOAD_OF_3: f64 = 2.0;
const VARIANT: &str = "variant";
const HTTP: &str = "http";
/// Every role but the root, whose death ends the process: those that die while the variant grows, and those that die
/// while it shrinks. None is in a case with its supervisor, which takes it along, and no supervisor has more deaths than
/// it bears. The one that serves the door for kills is the last.
const ROLES: [[&[&str]; 2]; 4] = [
    [
        &[
            "egress",
            VARIANT,
            "router-scraper",
            "watcher/HorizontalPodAutoscaler",
            "watcher/ScaledObject",
            "watcher/ResourceSlice",
        ],
        &["config", "pod-autoscalers", "collector", "watcher/StatefulSet", "watcher/Pod.bound"],
    ],
    [
        &["ingress", "autoscaler-writer", "target-scaler", "optimizer"],
        &["emitter", "status-writer", "event-recorder", "metrics-reader", "pod-scraper"],
    ],
    [
        &[
            "engine",
            "scale-reader",
            "watcher/PodAutoscaler",
            "watcher/LeaderWorkerSet",
            "watcher/Pod",
        ],
        &[
            "leadership",
            "variants",
            "watcher/VariantAutoscaling",
            "watcher/Deployment",
            "watcher/Service",
        ],
    ],
    [
        &[
            "watcher/ConfigMap",
            "watcher/InferencePool.v1",
            "watcher/InferencePool.v1alpha2",
            "watcher/InferencePool.gateway",
            "watcher/InferencePool.llm-d",
            "watcher/ServiceMonitor",
            "watcher/Node",
        ],
        &[
            "watcher/Namespace",
            "watcher/ReplicaSet",
            "watcher/ResourceClaimTemplate",
            "watcher/ResourceClaim",
            HTTP,
        ],
    ],
];

pub(crate) fn cases() -> Vec<Case> {
    let survives = |roles: [&'static [&'static str]; 2]| {
        let name = format!("role_deaths::{}", roles.map(|roles| roles[0]).join("+"));
        Case::shared(&name, async move |cx: &Cx| survives_the_deaths_of(cx, roles).await)
    };
    ROLES.into_iter().map(survives).collect()
}

async fn survives_the_deaths_of(cx: &Cx, roles: [&[&str]; 2]) -> Result {
    let variant = format!("variant/{}/{NAME}", cx.namespace.name);
    let named = roles.map(|roles| -> Vec<&str> {
        let named = roles.iter();
        named.map(|role| if *role == VARIANT { &*variant } else { *role }).collect()
    });
    let [growing, shrinking] = named;
    let beginning = Beginning {
        bound: Bound::Instance,
        replicas: 1,
        kv_caches: 0.0,
        loading: Duration::from_secs(1),
    };
    let scaling = ScalingLoop::start(cx, beginning).await?;
    let controller = &scaling.controller;
    every_role_has_its_case(controller, &variant).await?;
    for role in growing.iter().chain(&shrinking) {
        seen(&life(controller, role).await?, &Life::running(0))?;
    }

    scaling.set_load(LOAD_OF_3);
    scaling.asks_for(2).await?;
    kill(controller, &growing).await?;
    scaling.rests_at(3).await?;
    scaling.replicas_went(&[1, 2, 3]).await?;

    scaling.set_load(0.0);
    scaling.asks_for(2).await?;
    kill(controller, &shrinking).await?;
    scaling.rests_at(1).await?;
    scaling.replicas_went(&[1, 2, 3, 2, 1]).await?;
    scaling.journal.gauge_went(&[1, 2, 3, 2, 1])?;
    scaling.grew_from_rest()?;
    scaling.journal.takes_single_steps_from_rest(1, 3)?;
    Ok(())
}

/// What the debug tree says about one role.
#[derive(Debug, PartialEq)]
struct Life {
    state: Value,
    restarts: u64,
}

impl Life {
    fn running(restarts: u64) -> Self {
        Self { state: Value::from("running"), restarts }
    }
}

async fn tree(controller: &Controller) -> Result<Vec<Value>> {
    let page = controller.debug("tree").await?;
    Ok(page.as_array().cloned().unwrap_or_default())
}

async fn life(controller: &Controller, role: &str) -> Result<Life> {
    let tree = tree(controller).await?;
    let found = tree.iter().find(|report| report["role"] == role);
    let report = found.ok_or_else(|| Fault::new(format!("{role} is not in the tree")))?;
    Ok(Life {
        state: report["state"].clone(),
        restarts: report["restarts"].as_u64().unwrap_or_default(),
    })
}

/// Kills roles at once, and waits until the next life of each runs.
async fn kill(controller: &Controller, roles: &[&str]) -> Result {
    for role in roles {
        let answer = controller.kill_role(role).await;
        // The server may take its answer with it.
        if *role != HTTP {
            answer?;
        }
    }
    for role in roles {
        let what = format!("{role} is back");
        eventually(what, Duration::from_secs(20), async || {
            seen(&life(controller, role).await?, &Life::running(1))
        })
        .await?;
    }
    Ok(())
}

/// A role that is new in the tree must get its case here.
async fn every_role_has_its_case(controller: &Controller, variant: &str) -> Result {
    let in_tree: BTreeSet<String> = tree(controller)
        .await?
        .iter()
        .filter_map(|report| report["role"].as_str())
        .map(str::to_owned)
        .collect();
    let with_case: BTreeSet<String> = ROLES
        .as_flattened()
        .iter()
        .copied()
        .flatten()
        .copied()
        .chain(["root"])
        .map(|role| if role == VARIANT { variant } else { role })
        .map(str::to_owned)
        .collect();
    seen(&in_tree, &with_case)
}
