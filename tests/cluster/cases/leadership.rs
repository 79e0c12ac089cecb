//! Several replicas of one controller: one leads, the others are warm and silent.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use crate::harness::audit::{Change, changes};
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::{Variants, variant};
use crate::harness::wait::{eventually, seen};

const NAME: &str = "llama";
const SOON: Duration = Duration::from_mins(1);
/// Lease duration, renew deadline and retry period.
pub(super) const QUICK: [u64; 3] = [4_000, 3_000, 500];
/// A lease longer than any wait of these tests.
const SLOW: [u64; 3] = [300_000, 200_000, 500];

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, leadership::a_release_is_taken_at_once),
        case!(shared, leadership::a_deleted_lease_stays_with_its_leader),
        case!(shared, leadership::a_frozen_leader_wakes_up_silent),
    ]
}

/// A replica of the controller of the case.
pub(super) fn candidate<'a>(cx: &'a Cx, name: &'a str, lease: [u64; 3]) -> ControllerSpec<'a> {
    let [duration, deadline, retry] = lease;
    ControllerSpec {
        name,
        arguments: vec![
            "--leader-elect".to_owned(),
            format!("--leader-election-lease-duration={duration}ms"),
            format!("--leader-election-renew-deadline={deadline}ms"),
            format!("--leader-election-retry-period={retry}ms"),
        ],
        ..ControllerSpec::scoped(cx)
    }
}

async fn replica(cx: &Cx, name: &str, lease: [u64; 3]) -> Result<Arc<Controller>> {
    let spec = candidate(cx, name, lease);
    Ok(Arc::new(Controller::start(cx, &spec).await?))
}

/// The gauge of the variant on one replica's metrics page.
pub(super) async fn gauge(cx: &Cx, controller: &Controller) -> Result<Option<f64>> {
    controller.desired(&cx.namespace.name, NAME).await
}

async fn shows(cx: &Cx, controller: &Controller, wanted: Option<f64>) -> Result {
    let variants = Variants::new(&cx.namespace, controller);
    variants.publishes(NAME, wanted, SOON).await
}

async fn follows(controller: &Controller) -> Result {
    controller.ready().await?;
    let text = controller.readiness().await?;
    if text.contains("leadership: following") { Ok(()) } else { Err(Fault::new(text)) }
}

/// Within this a lease is taken over: its duration, two retry periods and one request, which has half a
/// retry period.
pub(super) fn takeover_bound([duration, _, retry]: [u64; 3]) -> Duration {
    Duration::from_millis(duration + 2 * retry + retry / 2)
}

/// From the last renewal of a holder to the taking of its lease, by the times in the two records.
pub(super) fn takeover(before: LeaseSpec, after: LeaseSpec) -> Result<Duration> {
    let (Some(renewed), Some(acquired)) = (before.renew_time, after.acquire_time) else {
        return Err(Fault::new("a lease without times"));
    };
    Ok(Duration::try_from(acquired.0.duration_since(renewed.0))?)
}

/// The lease of the controllers of the case.
pub(super) async fn lease(cx: &Cx) -> Result<Lease> {
    let leases: Api<Lease> = cx.system().await?.api();
    let found = leases.list(&ListParams::default()).await?.items;
    match <[Lease; 1]>::try_from(found) {
        Ok([lease]) => Ok(lease),
        Err(leases) => Err(Fault::new(format!("{} leases", leases.len()))),
    }
}

/// Three replicas without metrics: what is there is kept, and published.
async fn place(cx: &Cx) -> Result {
    cx.namespace.run(NAME, 3, SOON).await?;
    cx.namespace.apply(variant(NAME, NAME, &json!({}))).await?;
    Ok(())
}

/// A leader that gets SIGTERM gives its lease back: no follower waits for five minutes.
async fn a_release_is_taken_at_once(cx: &Cx) -> Result {
    place(cx).await?;
    let first = replica(cx, "wva-0", SLOW).await?;
    shows(cx, &first, Some(3.0)).await?;
    let second = replica(cx, "wva-1", SLOW).await?;
    follows(&second).await?;
    seen(&gauge(cx, &second).await?, &None)?;

    let status = first.server.stop(Duration::from_secs(15)).await?;
    assert_eq!(status.code(), Some(0));
    shows(cx, &second, Some(3.0)).await
}

/// A lease that is deleted, or that a restored backup does not have, binds followers as if it
/// stood still: its holder writes on, and makes it anew.
async fn a_deleted_lease_stays_with_its_leader(cx: &Cx) -> Result {
    const DELETIONS: usize = 2;
    place(cx).await?;
    let first = replica(cx, "wva-0", SLOW).await?;
    shows(cx, &first, Some(3.0)).await?;
    let second = replica(cx, "wva-1", SLOW).await?;
    follows(&second).await?;
    let leases: Api<Lease> = cx.system().await?.api();
    for _ in 0..DELETIONS {
        let before = lease(cx).await?.metadata;
        let name = before.name.unwrap_or_default();
        leases.delete(&name, &DeleteParams::default()).await?;
        let holder = eventually("there is a lease again", SOON, async || {
            let now = lease(cx).await?;
            seen(&(now.metadata.uid == before.uid), &false)?;
            Ok(now.spec.unwrap_or_default().holder_identity)
        })
        .await?;
        let holder = holder.unwrap_or_default();
        assert!(holder.starts_with("wva-0_"), "{holder}");
        // It has seen the record of the one that leads before the next deletion.
        eventually("it is renewed", SOON, async || {
            let spec = lease(cx).await?.spec.unwrap_or_default();
            seen(&(spec.renew_time > spec.acquire_time), &true)
        })
        .await?;
        follows(&second).await?;
    }
    seen(&gauge(cx, &first).await?, &Some(3.0))?;
    seen(&gauge(cx, &second).await?, &None)
}

/// A leader that was frozen past its lease shows nothing from its first answer on, and writes
/// nothing over what its successor wrote.
async fn a_frozen_leader_wakes_up_silent(cx: &Cx) -> Result {
    place(cx).await?;
    let first = replica(cx, "wva-0", QUICK).await?;
    shows(cx, &first, Some(3.0)).await?;
    let (logs, system) = (cx.world.site.logs(), &cx.system().await?.name);
    let changes = || changes(&logs, system);
    let token = changes()?.pop().map(|change| change.token);
    let second = replica(cx, "wva-1", QUICK).await?;
    follows(&second).await?;
    // All that there is to say has been written.
    let said = [("MetricsAvailable", "False/MetricsMissing"), ("ActuationReady", "False/NoScaler")];
    let variants = Variants::new(&cx.namespace, &first);
    variants.says(NAME, &said, SOON).await?;
    assert!(changes()?.iter().any(is_status), "the leader has written");

    first.freeze();
    shows(cx, &second, Some(3.0)).await?;
    // Something that the frozen leader would have to write about.
    cx.namespace.scale(NAME, 4).await?;
    cx.namespace.settles(NAME, 4, SOON).await?;
    cx.namespace.apply(variant(NAME, NAME, &json!({ "minReplicas": 4 }))).await?;
    shows(cx, &second, Some(4.0)).await?;

    let thawed = Timestamp::now();
    first.thaw();
    no_pipeline_series(&first).await?;
    follows(&first).await?;
    // By then it has seen the change, and was free to write if it thought that it may.
    eventually("it has seen the change", SOON, async || {
        let snapshot = first.debug("snapshot").await?;
        seen(&snapshot.pointer("/variants/0/bounds/min"), &Some(&json!(4)))
    })
    .await?;
    no_pipeline_series(&first).await?;
    seen(&gauge(cx, &second).await?, &Some(4.0))?;
    // The API server was never away: it saw every request. Those of the second one come on.
    let token = Some(token.ok_or_else(|| Fault::new("no request of the leader is in the log"))?);
    let since = || -> Result<(Vec<Change>, Vec<Change>)> {
        let since = changes()?.into_iter().filter(|one| one.at > thawed);
        Ok(since.partition(|one| Some(&one.token) == token.as_ref()))
    };
    eventually("the second one writes", SOON, async || seen(&since()?.1.is_empty(), &false))
        .await?;
    seen(&since()?.0, &Vec::new())
}

fn is_status(change: &Change) -> bool {
    change.what == "patch variantautoscalings"
}

/// Nothing that scalers, or people who look at decisions, could take for the word of a leader.
async fn no_pipeline_series(controller: &Controller) -> Result {
    let series = controller.series().await?;
    let of_variants = series.iter().filter(|one| one.labels.contains_key("variant_name"));
    let names: Vec<&str> = of_variants.map(|one| one.name.as_str()).collect();
    seen(&names, &Vec::new())
}
