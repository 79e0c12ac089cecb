//! Roles of the tree are killed, three at once, while a variant grows, and again while it shrinks, and nothing
//! comes of it: the way and the end are those of an undisturbed run. One at a time they are killed by chaos.

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
/// Every role but the root, whose death ends the process; none is together with its supervisor, and the one that
/// serves the door for kills is the last.
const ROLES: [&[&str]; 12] = [
    &["config", "metrics-reader", "watcher/InferencePool.v1"],
    &["leadership", "variants", "watcher/InferencePool.v1alpha2"],
    &["egress", VARIANT, "watcher/HorizontalPodAutoscaler"],
    &["emitter", "pod-autoscalers", "watcher/ScaledObject"],
    &["status-writer", "ingress", "collector"],
    &[
        "autoscaler-writer",
        "optimizer",
        "watcher/VariantAutoscaling",
    ],
    &["event-recorder", "router-scraper", "watcher/PodAutoscaler"],
    &["engine", "watcher/Service", "watcher/Deployment"],
    &["pod-scraper", "watcher/StatefulSet", "watcher/Pod.bound"],
    &["watcher/LeaderWorkerSet", "watcher/Pod", "scale-reader"],
    &[
        "watcher/ConfigMap",
        "watcher/ServiceMonitor",
        "watcher/Node",
        "watcher/ResourceClaimTemplate",
    ],
    &["watcher/Namespace", "watcher/ReplicaSet", HTTP],
];

pub(crate) fn cases() -> Vec<Case> {
    let survives = |roles: &'static [&'static str]| {
        let name = format!("role_deaths::{}", roles.join("+"));
        Case::shared(&name, async move |cx: &Cx| {
            survives_the_deaths_of(cx, roles).await
        })
    };
    ROLES.into_iter().map(survives).collect()
}

async fn survives_the_deaths_of(cx: &Cx, roles: &[&str]) -> Result {
    let variant = format!("variant/{}/{NAME}", cx.namespace.name);
    let roles: Vec<&str> = (roles.iter())
        .map(|role| if *role == VARIANT { &*variant } else { *role })
        .collect();
    let beginning = Beginning {
        bound: Bound::Instance,
        replicas: 1,
        kv_caches: 0.0,
        loading: Duration::from_secs(1),
    };
    let scaling = ScalingLoop::start(cx, beginning).await?;
    let controller = &scaling.controller;
    every_role_has_its_case(controller, &variant).await?;
    for role in &roles {
        seen(&life(controller, role).await?, &Life::running(0))?;
    }

    scaling.set_load(LOAD_OF_3);
    scaling.asks_for(2).await?;
    kill(controller, &roles, 1).await?;
    scaling.rests_at(3).await?;
    scaling.replicas_went(&[1, 2, 3]).await?;

    scaling.set_load(0.0);
    scaling.asks_for(2).await?;
    kill(controller, &roles, 2).await?;
    scaling.rests_at(1).await?;
    scaling.replicas_went(&[1, 2, 3, 2, 1]).await?;
    scaling.journal.gauge_went(&[1, 2, 3, 2, 1])?;
    scaling.grew_from_rest()?;
    scaling.journal.takes_single_steps_from_rest(1, 3)?;
    for role in &roles {
        seen(&life(controller, role).await?, &Life::running(2))?;
    }
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
        Self {
            state: Value::from("running"),
            restarts,
        }
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
async fn kill(controller: &Controller, roles: &[&str], time: u64) -> Result {
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
            seen(&life(controller, role).await?, &Life::running(time))
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
        .into_iter()
        .flatten()
        .copied()
        .chain(["root"])
        .map(|role| if role == VARIANT { variant } else { role })
        .map(str::to_owned)
        .collect();
    seen(&in_tree, &with_case)
}
