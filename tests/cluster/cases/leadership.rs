//! Several replicas of one controller: one leads, the others are warm and silent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use wva::env::SeedTree;

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, FleetSpec, Load, Reading};
use crate::harness::fault::{Fault, Result};
use crate::harness::history::History;
use crate::harness::namespace::Workload;
use crate::harness::scaled_object::ScaledObject;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{DESIRED, MODEL, Variants, variant};
use crate::harness::wait::{eventually, seen};

const NAME: &str = "llama";
const SOON: Duration = Duration::from_mins(1);
/// Lease duration, renew deadline and retry period.
const QUICK: [u64; 3] = [4_000, 3_000, 500];
/// A lease that nobody would wait for in one of these tests.
const SLOW: [u64; 3] = [300_000, 200_000, 500];
/// Requests on the lease have this long.
const LEASE_REQUEST: u64 = 250;
/// Largest deviation of a retry period.
const JITTER: f64 = 0.1;
const KILLS: usize = 20;
const MAXIMUM: u32 = 20;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "leadership::outlives_twenty_deaths_of_the_leader_in_mid_scale",
            outlives_twenty_deaths_of_the_leader_in_mid_scale,
        )
        .within(Duration::from_mins(8)),
        Case::shared("leadership::a_follower_takes_over", a_follower_takes_over),
        Case::shared(
            "leadership::a_release_is_taken_at_once",
            a_release_is_taken_at_once,
        ),
        Case::shared(
            "leadership::a_frozen_leader_wakes_up_silent",
            a_frozen_leader_wakes_up_silent,
        ),
    ]
}

/// A replica of the controller of the case.
async fn replica(cx: &Cx, name: &str, lease: [u64; 3]) -> Result<Arc<Controller>> {
    let [duration, deadline, retry] = lease;
    let spec = ControllerSpec {
        name,
        arguments: vec![
            "--leader-elect".to_owned(),
            format!("--leader-election-lease-duration={duration}ms"),
            format!("--leader-election-renew-deadline={deadline}ms"),
            format!("--leader-election-retry-period={retry}ms"),
        ],
        ..ControllerSpec::scoped(cx)
    };
    Ok(Arc::new(Controller::start(cx, &spec).await?))
}

/// The gauge of the variant on one replica's metrics page.
async fn gauge(cx: &Cx, controller: &Controller) -> Result<Option<f64>> {
    let labels = [
        ("variant_name", NAME),
        ("namespace", cx.namespace.name.as_str()),
    ];
    controller.value(DESIRED, &labels).await
}

async fn shows(cx: &Cx, controller: &Controller, wanted: Option<f64>) -> Result {
    eventually(format!("the gauge is {wanted:?}"), SOON, async || {
        seen(&gauge(cx, controller).await?, &wanted)
    })
    .await
}

async fn follows(controller: &Controller) -> Result {
    controller.ready().await?;
    let text = controller.readiness().await?;
    if text.contains("leadership: following") {
        Ok(())
    } else {
        Err(Fault::new(text))
    }
}

async fn lease(cx: &Cx) -> Result<Lease> {
    let leases: Api<Lease> = cx.system().await?.api();
    let found = leases.list(&kube::api::ListParams::default()).await?.items;
    match <[Lease; 1]>::try_from(found) {
        Ok([lease]) => Ok(lease),
        Err(leases) => Err(Fault::new(format!("{} leases", leases.len()))),
    }
}

async fn holder(cx: &Cx) -> Result<String> {
    let spec = lease(cx).await?.spec.unwrap_or_default();
    Ok(spec.holder_identity.unwrap_or_default())
}

/// Three replicas that nobody has metrics of: what is there is kept, and published.
async fn place(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new(NAME, 3)).await?;
    cx.namespace.settles(NAME, 3, SOON).await?;
    cx.namespace.apply(variant(NAME, NAME, &json!({}))).await?;
    Ok(())
}

/// The follower shows nothing while the leader lives, and the same value once it has died, within
/// the lease's duration, two retries and one request.
async fn a_follower_takes_over(cx: &Cx) -> Result {
    place(cx).await?;
    let first = replica(cx, "wva-0", QUICK).await?;
    shows(cx, &first, Some(3.0)).await?;
    let second = replica(cx, "wva-1", QUICK).await?;
    follows(&second).await?;
    seen(&gauge(cx, &second).await?, &None)?;
    let first_holder = holder(cx).await?;
    assert!(first_holder.starts_with("wva-0_"), "{first_holder}");

    let before = lease(cx).await?.spec.unwrap_or_default();
    first.server.kill();
    let last_renewal = lease(cx).await?.spec.unwrap_or_default().renew_time;
    shows(cx, &second, Some(3.0)).await?;
    let after = lease(cx).await?.spec.unwrap_or_default();
    let now_holder = after.holder_identity.unwrap_or_default();
    assert!(now_holder.starts_with("wva-1_"), "{now_holder}");
    assert_eq!(
        after.lease_transitions.unwrap_or(0),
        before.lease_transitions.unwrap_or(0) + 1
    );
    let (Some(renewed), Some(acquired)) = (last_renewal, after.acquire_time) else {
        return Err(Fault::new("a lease without times"));
    };
    let waited = acquired.0.duration_since(renewed.0);
    let [duration, _, retry] = QUICK;
    let retries = Duration::from_millis(2 * retry).mul_f64(1.0 + JITTER);
    let bound = Duration::from_millis(duration + LEASE_REQUEST) + retries;
    let waited = Duration::try_from(waited)?;
    assert!(waited <= bound, "{waited:?}, not within {bound:?}");
    Ok(())
}

/// A leader that is told to end gives its lease back: nobody waits for five minutes.
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

/// A leader that was frozen past its lease shows nothing from its first answer on, and writes
/// nothing over what its successor wrote.
async fn a_frozen_leader_wakes_up_silent(cx: &Cx) -> Result {
    place(cx).await?;
    let first = replica(cx, "wva-0", QUICK).await?;
    shows(cx, &first, Some(3.0)).await?;
    let second = replica(cx, "wva-1", QUICK).await?;
    follows(&second).await?;
    // All that there is to say has been written.
    let said = [
        ("MetricsAvailable", "False/MetricsMissing"),
        ("ActuationReady", "False/NoScaler"),
    ];
    let variants = Variants::new(&cx.namespace, &first);
    variants.says(NAME, &said, SOON).await?;
    let writes = status_writes(&first).await?;
    assert!(writes > 0.0, "the leader has written");

    first.freeze();
    shows(cx, &second, Some(3.0)).await?;
    // Something that the frozen leader would have to write about.
    cx.namespace.scale(NAME, 4).await?;
    cx.namespace.settles(NAME, 4, SOON).await?;
    cx.namespace
        .apply(variant(NAME, NAME, &json!({ "minReplicas": 4 })))
        .await?;
    shows(cx, &second, Some(4.0)).await?;

    first.thaw();
    seen(&gauge(cx, &first).await?, &None)?;
    follows(&first).await?;
    // By then it has seen the change, and was free to write if it thought that it may.
    eventually("it has seen the change", SOON, async || {
        let snapshot = first.debug("snapshot").await?;
        seen(
            &snapshot.pointer("/variants/0/bounds/min"),
            &Some(&json!(4)),
        )
    })
    .await?;
    seen(&status_writes(&first).await?, &writes)?;
    seen(&gauge(cx, &first).await?, &None)?;
    seen(&gauge(cx, &second).await?, &Some(4.0))
}

async fn status_writes(controller: &Controller) -> Result<f64> {
    let series = controller.series().await?;
    let writes = series
        .iter()
        .filter(|series| series.matches("wva_status_writes_total", &[]));
    Ok(writes.map(|series| series.value).sum())
}

/// Watches the metrics pages of all replicas at once: two that show the variant at one moment, or
/// a value below an earlier one, are kept as violations.
struct Witness {
    replicas: Arc<Mutex<Vec<Arc<Controller>>>>,
    violations: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Witness {
    fn follow(namespace: &str) -> Self {
        let replicas: Arc<Mutex<Vec<Arc<Controller>>>> = Arc::default();
        let violations: Arc<Mutex<Vec<String>>> = Arc::default();
        let (watched, found) = (Arc::clone(&replicas), Arc::clone(&violations));
        let namespace = namespace.to_owned();
        let task = tokio::spawn(async move {
            let labels = [("variant_name", NAME), ("namespace", namespace.as_str())];
            let mut highest = 0.0;
            loop {
                let now: Vec<_> = watched.lock().unwrap().clone();
                let pages = now.iter().map(|replica| replica.value(DESIRED, &labels));
                let values = futures::future::join_all(pages).await;
                let shown: Vec<f64> = values.into_iter().filter_map(|v| v.ok()?).collect();
                let mut texts = Vec::new();
                if shown.len() > 1 {
                    texts.push(format!("several replicas show the variant: {shown:?}"));
                }
                for value in shown {
                    if value < highest {
                        texts.push(format!("{value} after {highest}"));
                    }
                    highest = value;
                }
                found.lock().unwrap().extend(texts);
                sleep(Duration::from_millis(50)).await;
            }
        });
        Self {
            replicas,
            violations,
            task,
        }
    }

    fn set(&self, replicas: &[Arc<Controller>]) {
        *self.replicas.lock().unwrap() = replicas.to_vec();
    }

    fn found_nothing(&self) -> Result {
        seen(&*self.violations.lock().unwrap(), &Vec::new())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Under load that wants more than there may be, the leader dies again and again while it scales,
/// with KEDA behind it, which reads a missing series as 0 unless it is told otherwise. Nothing is
/// ever lowered, and never do two replicas show the variant.
async fn outlives_twenty_deaths_of_the_leader_in_mid_scale(cx: &Cx) -> Result {
    let workload = Workload {
        loading: Duration::from_secs(1),
        ..Workload::new(NAME, 1)
    };
    cx.namespace.deploy(&workload).await?;
    cx.namespace.settles(NAME, 1, SOON).await?;
    let history = History::follow(&cx.namespace, NAME);
    let fleet = FleetSpec {
        namespace: cx.namespace.name.clone(),
        selector: workload.selector(),
        model: MODEL.to_owned(),
    };
    let fleet = EngineFleet::start(&cx.world, fleet, Load::Shared(Reading::IDLE));
    let bounds = json!({ "maxReplicas": MAXIMUM });
    cx.namespace.apply(variant(NAME, NAME, &bounds)).await?;

    let witness = Witness::follow(&cx.namespace.name);
    let mut leader = replica(cx, "wva-0", QUICK).await?;
    shows(cx, &leader, Some(1.0)).await?;
    let scaled_object = ScaledObject {
        target: NAME,
        variant: NAME,
        min: 1,
        max: i32::try_from(MAXIMUM)?,
    };
    scaled_object.apply(cx).await?;
    scaled_object.is_read(cx, "1").await?;
    fleet.set_load(Load::Shared(Reading {
        kv_cache: 2.0 * f64::from(MAXIMUM),
        ..Reading::IDLE
    }));

    let mut at_death = Vec::new();
    let mut moments = SeedTree::new(1).child("moments of death");
    for death in 1..=KILLS {
        let follower = replica(cx, &format!("wva-{death}"), QUICK).await?;
        witness.set(&[Arc::clone(&leader), Arc::clone(&follower)]);
        follows(&follower).await?;
        let moment = Duration::from_millis(moments.next_u64() % 1_000);
        sleep(moment).await;
        // On a busy machine a lease this short may have changed hands meanwhile.
        let shown = eventually("the leader shows its count", SOON, async || {
            let shown = gauge(cx, &leader).await?;
            shown.ok_or_else(|| Fault::new("it shows none"))
        })
        .await?;
        at_death.push(shown);
        leader.server.kill();
        eventually(format!("death {death} is outlived"), SOON, async || {
            seen(&gauge(cx, &follower).await?.is_some(), &true)
        })
        .await?;
        leader = follower;
    }
    cx.namespace
        .settles(NAME, i32::try_from(MAXIMUM)?, SOON * 2)
        .await?;
    shows(cx, &leader, Some(f64::from(MAXIMUM))).await?;
    witness.found_nothing()?;
    // Each of them died while more was wanted than there was, and something grew meanwhile.
    assert_eq!(at_death.len(), KILLS, "{at_death:?}");
    let grew = at_death.last() > at_death.first();
    let is_mid_scale = |desired: &f64| *desired < f64::from(MAXIMUM);
    assert!(grew && at_death.iter().all(is_mid_scale), "{at_death:?}");
    let wanted: Vec<i32> = history.steps().iter().map(|step| step.wanted).collect();
    assert!(wanted.is_sorted(), "{wanted:?}");
    Ok(())
}
