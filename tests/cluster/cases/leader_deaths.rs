//! Leaders that die in the middle of scaling: nothing is ever lowered, and never do two replicas show
//! one variant, whatever scales the target.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use serde_json::json;
use tokio::time::sleep;
use wva_supervise::SeedTree;

use super::external_metrics_door as door;
use super::leadership::{QUICK, candidate, gauge, lease, takeover, takeover_bound};
use crate::harness::background::Background;
use crate::harness::bridge::Bridge;
use crate::harness::controller::Controller;
use crate::harness::door::Door;
use crate::harness::engine::{EngineFleet, Load};
use crate::harness::fault::{Fault, Result};
use crate::harness::history::History;
use crate::harness::scaled_object::ScaledObject;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{MODEL, Variants, variant};
use crate::harness::wait::{eventually, seen};
use crate::harness::world::Setup;

const NAME: &str = "llama";
const SOON: Duration = Duration::from_mins(1);
const KILLS: usize = 6;
const MAXIMUM: u32 = 10;

pub(crate) fn cases() -> Vec<Case> {
    let shared =
        Case::shared("leader_deaths::behind_keda", async |cx: &Cx| of_leaders(cx, None).await);
    let own = Case::with_own_servers(
        "leader_deaths::behind_a_native_hpa",
        Setup::Whole,
        async |cx: &Cx| of_leaders(cx, Some(Bridge::nowhere().await?)).await,
    );
    let deadline = Duration::from_mins(8);
    vec![shared.within(deadline), own.within(deadline)]
}

/// A replica of the controller, and the port of its external metrics where it serves them.
struct Replica {
    controller: Arc<Controller>,
    door: Option<u16>,
}

async fn replica(cx: &Cx, number: usize, service: Option<&Bridge>) -> Result<Replica> {
    let name = format!("wva-{number}");
    let spec = candidate(cx, &name, QUICK);
    if service.is_none() {
        let controller = Arc::new(Controller::start(cx, &spec).await?);
        return Ok(Replica { controller, door: None });
    }
    let door = Door::open(cx, spec).await?;
    Ok(Replica { controller: door.controller, door: Some(door.port) })
}

/// Watches the metrics pages of all replicas at once: two that show the variant at one moment, or
/// a value below an earlier one, are kept as violations.
struct Witness {
    _task: Background,
    replicas: Arc<Mutex<Vec<Arc<Controller>>>>,
    violations: Arc<Mutex<Vec<String>>>,
}

impl Witness {
    fn follow(namespace: &str) -> Self {
        let replicas: Arc<Mutex<Vec<Arc<Controller>>>> = Arc::default();
        let violations: Arc<Mutex<Vec<String>>> = Arc::default();
        let (watched, found) = (Arc::clone(&replicas), Arc::clone(&violations));
        let namespace = namespace.to_owned();
        let task = Background::start(async move {
            let mut highest = 0.0;
            loop {
                let now: Vec<_> = watched.lock().unwrap().clone();
                let pages = now.iter().map(|replica| replica.desired(&namespace, NAME));
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
        Self { _task: task, replicas, violations }
    }

    fn set(&self, replicas: &[&Replica]) {
        let controllers = replicas.iter().map(|one| Arc::clone(&one.controller));
        *self.replicas.lock().unwrap() = controllers.collect();
    }

    fn found_nothing(&self) -> Result {
        seen(&*self.violations.lock().unwrap(), &Vec::new())
    }
}

/// Under load that wants more than there may be, the leader dies again and again while it scales:
/// with KEDA behind it, which reads a missing series as 0 by default, or with a
/// native HPA that reads the replicas themselves through a Service.
async fn of_leaders(cx: &Cx, service: Option<Bridge>) -> Result {
    let pods = cx.namespace.run(NAME, 1, SOON).await?;
    let history = History::follow(&cx.namespace, NAME);
    let fleet = EngineFleet::start(cx, &pods, MODEL, Load::cache(0.0));
    let bounds = json!({ "maxReplicas": MAXIMUM });
    cx.namespace.apply(variant(NAME, NAME, &bounds)).await?;

    let witness = Witness::follow(&cx.namespace.name);
    let mut leader = replica(cx, 0, service.as_ref()).await?;
    let variants = Variants::new(&cx.namespace, &leader.controller);
    variants.publishes(NAME, Some(1.0), SOON).await?;
    scales(cx, &leader, service.as_ref()).await?;
    fleet.set_load(Load::cache(2.0 * f64::from(MAXIMUM)));

    let mut at_death = Vec::new();
    let mut takeovers = Vec::new();
    let mut moments = SeedTree::new(1).child("moments of death");
    for death in 1..=KILLS {
        let follower = replica(cx, death, service.as_ref()).await?;
        witness.set(&[&leader, &follower]);
        follower.controller.ready().await?;
        if let Some(service) = &service {
            let doors = leader.door.into_iter().chain(follower.door);
            service.leads_to(&doors.collect::<Vec<_>>());
        }
        let moment = Duration::from_millis(moments.next_u64() % 1_000);
        sleep(moment).await;
        let (shown, [victim, survivor]) = leading(cx, [leader, follower]).await?;
        at_death.push(shown);
        victim.controller.server.kill();
        let last = lease(cx).await?.spec.unwrap_or_default();
        eventually(format!("death {death} is outlived"), SOON, async || {
            seen(&gauge(cx, &survivor.controller).await?.is_some(), &true)
        })
        .await?;
        takeovers.push(took_over(cx, last, &survivor).await?);
        leader = survivor;
    }
    let bound = takeover_bound(QUICK);
    eprintln!("takeovers, with a bound of {bound:?}: {takeovers:?}");
    cx.namespace.settles(NAME, i32::try_from(MAXIMUM)?, SOON * 2).await?;
    seen(&gauge(cx, &leader.controller).await?, &Some(f64::from(MAXIMUM)))?;
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

/// How long the lease of the dead stood still. `None` where that says nothing: a request on the lease
/// failed, or the lease had changed hands before the death.
async fn took_over(cx: &Cx, last: LeaseSpec, survivor: &Replica) -> Result<Option<Duration>> {
    let after = lease(cx).await?.spec.unwrap_or_default();
    let log = fs::read_to_string(survivor.controller.server.log())?;
    if log.contains("lease not renewed") || last.holder_identity == after.holder_identity {
        return Ok(None);
    }
    Ok(Some(takeover(last, after)?))
}

/// What the one of two that leads shows, and the two with it first: on a busy machine a lease this
/// short changes hands.
async fn leading(cx: &Cx, [one, other]: [Replica; 2]) -> Result<(f64, [Replica; 2])> {
    let (shown, is_other) = eventually("one of them shows its count", SOON, async || {
        let first = gauge(cx, &one.controller).await?;
        let second = gauge(cx, &other.controller).await?;
        let shown = first.map(|shown| (shown, false));
        let shown = shown.or_else(|| second.map(|shown| (shown, true)));
        shown.ok_or_else(|| Fault::new("neither does"))
    })
    .await?;
    let pair = if is_other { [other, one] } else { [one, other] };
    Ok((shown, pair))
}

/// Whatever scales the target reads the first leader.
async fn scales(cx: &Cx, leader: &Replica, service: Option<&Bridge>) -> Result {
    let max = i32::try_from(MAXIMUM)?;
    let (Some(service), Some(port)) = (service, leader.door) else {
        let scaled_object = ScaledObject { target: NAME, variant: NAME, min: 1, max };
        scaled_object.apply(cx).await?;
        return scaled_object.is_read(cx, "1").await;
    };
    service.leads_to(&[port]);
    Door::register_at(cx, service.port).await?;
    cx.namespace.apply(door::hpa(&cx.namespace.name, NAME, max)?).await?;
    door::reads(cx, NAME, Some("1")).await
}
