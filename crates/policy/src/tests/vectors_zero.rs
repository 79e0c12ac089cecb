//! Tables zero.yaml and wake.yaml: the boundary between no replicas and some.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;

use super::vectors::{Tally, run};
use super::world::at;
use crate::bounds::ZeroPolicy;
use crate::capacity::ServingRole;
use crate::gpu::Budget;
use crate::key::{ModelKey, VariantKey};
use crate::reason::{Reason, WakeCause};
use crate::startup::StartProspect;
use crate::units::{Cost, Gpus, Replicas};
use crate::zero::{
    ActivityLog, Look, ModelLoad, Restart, ServingMember, Wake, WakeLog, WakeMember, ZeroMember,
    ZeroRule, to_zero, wake,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quiet {
    enabled: bool,
    variants: BTreeMap<String, (ServingRole, String, u32, u32)>,
    load: (Option<f64>, Option<f64>, Option<f64>),
    idle: u64,
    #[serde(default = "usual_retention")]
    retention: u64,
}

fn usual_retention() -> u64 {
    600
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Zeroed {
    targets: BTreeMap<String, u32>,
    block: Option<String>,
}

fn serving(role: ServingRole, cost: &str) -> ServingMember {
    ServingMember { role, cost: Cost::parse(cost).unwrap() }
}

fn wake_member(serving: ServingMember, (kept, ready): (u32, u32), has_room: bool) -> WakeMember {
    WakeMember {
        serving,
        kept: Replicas(kept),
        ready: Replicas(ready),
        prospect: StartProspect::Open,
        max: None,
        gpus: Gpus(2),
        budget: Budget::Finite(Gpus(if has_room { 2 } else { 1 })),
    }
}

#[test]
fn to_zero_and_minimum_of_one() {
    let tally = run(
        include_str!("../../../../tests/vectors/zero.yaml"),
        |id, given: Quiet, expect: Zeroed| {
            let members: BTreeMap<VariantKey, ZeroMember> = given
                .variants
                .iter()
                .map(|(name, (_, _, count, min))| {
                    let member =
                        ZeroMember { count: Replicas(*count), min: Replicas(*min), woken: None };
                    (VariantKey::new("ns", name.as_str()), member)
                })
                .collect();
            let (running, waiting, queued) = given.load;
            let load = ModelLoad { running, waiting, queued, ..idle() };
            let policy = ZeroPolicy::from(given.enabled);
            let rule = ZeroRule {
                policy,
                retention: Duration::from_secs(given.retention),
                restart: Restart::Possible,
            };
            let idle = Some(Duration::from_secs(given.idle));
            let changes = to_zero(&rule, &members, &load, idle);
            for change in changes.values() {
                let block = match &change.why {
                    Reason::ZeroBlocked { block } => Some(block.as_str().to_owned()),
                    _ => None,
                };
                assert_eq!(block, expect.block, "{id}");
            }
            let mut targets: BTreeMap<String, u32> =
                changes.iter().map(|(key, change)| (key.name.to_string(), change.to.0)).collect();
            let kept = (given.variants.iter())
                .map(|(name, (role, cost, count, _))| {
                    let member = wake_member(serving(*role, cost), (*count, *count), true);
                    (VariantKey::new("ns", name.as_str()), member)
                })
                .collect();
            if let Wake::Start { variant, cause, .. } = wake(&kept, queued, policy, |_, _| true) {
                assert_eq!(cause, WakeCause::MinimumOfOne, "{id}");
                targets.insert(variant.name.to_string(), 1);
            }
            assert_eq!(targets, expect.targets, "{id}");
        },
    );
    assert_eq!(tally, Tally::of(13, 1, 1));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asleep {
    queued: Option<f64>,
    #[serde(default = "may_be_at_zero")]
    enabled: bool,
    /// Role, cost, current, ready, whether there is room for a first replica.
    variants: BTreeMap<String, (ServingRole, String, u32, u32, bool)>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Woken {
    wake: String,
    variant: Option<String>,
}

fn may_be_at_zero() -> bool {
    true
}

#[test]
fn from_zero() {
    let tally = run(
        include_str!("../../../../tests/vectors/wake.yaml"),
        |id, given: Asleep, expect: Woken| {
            let members = given
                .variants
                .iter()
                .map(|(name, (role, cost, current, ready, has_room))| {
                    let member = wake_member(serving(*role, cost), (*current, *ready), *has_room);
                    (VariantKey::new("ns", name.as_str()), member)
                })
                .collect();
            let (word, variant) =
                match wake(&members, given.queued, given.enabled.into(), |_, _| true) {
                    Wake::Serving => ("serving", None),
                    Wake::NoSignal => ("no-signal", None),
                    Wake::NotWanted => ("not-wanted", None),
                    Wake::Start { variant, .. } => ("start", Some(variant)),
                    Wake::AwaitDecode { decode, .. } => ("await-decode", Some(decode)),
                    Wake::NoServingSet { .. } => ("none", None),
                };
            let found =
                Woken { wake: word.to_owned(), variant: variant.map(|key| key.name.to_string()) };
            assert_eq!(found, expect, "{id}");
        },
    );
    assert_eq!(tally, Tally::of(16, 1, 3));
}

fn idle() -> ModelLoad {
    ModelLoad {
        running: Some(0.0),
        waiting: Some(0.0),
        queued: Some(0.0),
        ended: Some(0.0),
        written: Some(0.0),
        arriving: Some(0.0),
    }
}

#[test]
fn last_activity_starts_with_the_process_and_errs_late() {
    let model = ModelKey::new("ns", "m");
    let none = BTreeSet::new();
    let look = |load: ModelLoad| BTreeMap::from([(model.clone(), load)]);
    let look_at = |second| looked(second, 30);
    let log = ActivityLog::default();
    assert_eq!(log.idle_for(&model, at(5)), None);
    let log = log.learn(&look(idle()), &none, look_at(10));
    assert_eq!(log.idle_for(&model, at(10)), Some(Duration::ZERO));
    let log = log.learn(&look(idle()), &none, look_at(40));
    assert_eq!(log.idle_for(&model, at(40)), Some(Duration::from_secs(30)));

    for load in wva_base::cases! {
        ModelLoad { running: Some(1.0), ..idle() },
        ModelLoad { waiting: None, ..idle() },
        ModelLoad { queued: Some(2.0), ..idle() },
        ModelLoad { ended: Some(1.0), ..idle() },
        ModelLoad { ended: None, ..idle() },
        ModelLoad { written: Some(1.0), ..idle() },
        ModelLoad { arriving: Some(1.0), ..idle() },
    } {
        let used = log.clone().learn(&look(load), &none, look_at(50));
        assert_eq!(used.idle_for(&model, at(50)), Some(Duration::ZERO), "{load:?}");
    }
    let woken = BTreeSet::from([model.clone()]);
    let started = log.clone().learn(&look(idle()), &woken, look_at(50));
    assert_eq!(started.idle_for(&model, at(50)), Some(Duration::ZERO));

    let gone = log.learn(&BTreeMap::new(), &none, look_at(60));
    assert_eq!(gone, ActivityLog::default());
}

fn looked(second: u64, after: u64) -> Look {
    Look { now: at(second), after: Duration::from_secs(after) }
}

/// A collector that hung for two minutes, and found no request when it was back, passed those minutes for idle ones.
#[test]
fn without_a_look_a_model_may_have_been_in_use() {
    let model = ModelKey::new("ns", "m");
    let none = BTreeSet::new();
    let loads = BTreeMap::from([(model.clone(), idle())]);
    let log = ActivityLog::default().learn(&loads, &none, looked(1_000, 30));
    let idle_after = |after| {
        let look = looked(1_000 + after, after);
        let log = log.clone().learn(&loads, &none, look);
        log.idle_for(&model, look.now).map(|idle| idle.as_secs())
    };
    assert_eq!(idle_after(75), Some(75));
    assert_eq!(idle_after(76), Some(60));
    assert_eq!(idle_after(600), Some(60));
}

#[test]
fn a_started_variant_is_held_for_its_retention() {
    let key = VariantKey::new("ns", "v");
    let retention = Duration::from_mins(10);
    let retentions = BTreeMap::from([(key.clone(), retention)]);
    let started = BTreeSet::from([key.clone()]);
    let none = BTreeSet::new();
    let log = WakeLog::default();
    assert!(log.kept(&key, retention, at(10)).is_none());
    let log = log.learn(&started, &retentions, at(10));
    assert!(log.kept(&key, retention, at(609)).is_some());
    assert!(log.kept(&key, retention, at(610)).is_none());
    let kept = log.clone().learn(&none, &retentions, at(609));
    assert_eq!(kept, log);
    assert_eq!(kept.learn(&none, &retentions, at(610)), WakeLog::default());
    assert_eq!(log.learn(&none, &BTreeMap::new(), at(11)), WakeLog::default());
}

#[test]
fn a_stalled_prefill_is_replaced_by_another_or_awaited() {
    let member = |role, (kept, ready), prospect| WakeMember {
        prospect,
        ..wake_member(serving(role, "1"), (kept, ready), true)
    };
    let wanted = |prospect, has_other: bool| {
        let key = |name: &str| VariantKey::new("ns", name);
        let mut members = BTreeMap::from([
            (key("d"), member(ServingRole::Decode, (1, 1), StartProspect::Open)),
            (key("p"), member(ServingRole::Prefill, (1, 0), prospect)),
        ]);
        if has_other {
            let other = member(ServingRole::Prefill, (0, 0), StartProspect::Open);
            members.insert(key("q"), other);
        }
        wake(&members, Some(3.0), ZeroPolicy::Enabled, |_, _| true)
    };
    assert_eq!(wanted(StartProspect::Open, true), Wake::Serving);
    assert_eq!(wanted(StartProspect::Stalled, false), Wake::Serving);
    let other =
        Wake::Start { variant: VariantKey::new("ns", "q"), next: None, cause: WakeCause::Pair };
    assert_eq!(wanted(StartProspect::Stalled, true), other);
}
