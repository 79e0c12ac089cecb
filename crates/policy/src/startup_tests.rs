use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;

use super::{
    KEPT_NODES, KEPT_STARTS, PodOrigin, StartOutlook, StartProspect, StartSeeds, StartSource,
    StartTimes, StartingPod, VariantKey, WallTime,
};
use crate::tests::vectors::{Tally, run};
use wva_base::moment::Moment;

const SEED: Duration = Duration::from_mins(2);
const PENDING: Duration = Duration::from_mins(10);
static SEEDS: StartSeeds = StartSeeds { usual: SEED, stated: BTreeMap::new() };
const LIMITS: (&StartSeeds, Duration) = (&SEEDS, PENDING);

/// Name, node, created, ready (negative while it is not), lent; times in seconds.
type PodGiven = (String, Option<String>, i64, i64, bool);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    seed: u64,
    looks: Vec<Option<Vec<PodGiven>>>,
    #[serde(default)]
    age: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    typical: u64,
    source: StartSource,
    cold: Option<u64>,
    cached: Option<u64>,
    remaining: Option<u64>,
    limit: Option<u64>,
}

fn key() -> VariantKey {
    VariantKey::new("ns", "v")
}

fn pod(name: &str, node: Option<&str>, created: i64, ready: i64, lent: bool) -> StartingPod {
    StartingPod {
        name: Arc::from(name),
        node: node.map(Arc::from),
        created: WallTime(created * 1000),
        ready: (ready >= 0).then_some(WallTime(ready * 1000)),
        is_gated: false,
        origin: if lent { PodOrigin::Lent } else { PodOrigin::Own },
    }
}

#[test]
fn start_times() {
    let tally = run(
        include_str!("../../../tests/vectors/startup.yaml"),
        |id, given: Given, expect: Expect| {
            let mut times = StartTimes::default();
            for look in &given.looks {
                let pods = look.as_ref().map(|pods| {
                    pods.iter()
                        .map(|(name, node, created, ready, lent)| {
                            pod(name, node.as_deref(), *created, *ready, *lent)
                        })
                        .collect()
                });
                times = times.learn(&BTreeMap::from([(key(), pods)]), LIMITS, WallTime(0));
            }
            let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
            let estimate = times.expect(&key(), Duration::from_secs(given.seed));
            assert_eq!(estimate.typical.as_secs(), expect.typical, "{id}");
            assert_eq!(estimate.source, expect.source, "{id}");
            assert_eq!(seconds(estimate.cold), expect.cold, "{id} cold");
            assert_eq!(seconds(estimate.cached), expect.cached, "{id} cached");
            let remaining = estimate.remaining(Duration::from_secs(given.age));
            assert_eq!(seconds(remaining), expect.remaining, "{id} remaining");
            if let Some(limit) = expect.limit {
                let configured = Duration::from_mins(10);
                assert_eq!(estimate.pending_limit(configured).as_secs(), limit, "{id}");
            }
        },
    );
    assert_eq!(tally, Tally::of(13, 0, 0));
}

#[test]
fn a_variant_that_is_gone_is_forgotten() {
    let look = |ready| BTreeMap::from([(key(), Some(vec![pod("p", Some("n"), 0, ready, false)]))]);
    let times = StartTimes::default().learn(&look(-1), LIMITS, WallTime(0)).learn(
        &look(90),
        LIMITS,
        WallTime(90_000),
    );
    assert_eq!(times.variants.len(), 1);
    assert!(times.learn(&BTreeMap::new(), LIMITS, WallTime(90_000)).variants.is_empty());
}

/// A replica that wakes is ready before anything looks.
#[test]
fn a_start_between_two_looks_is_one() {
    let look = |pods: &[StartingPod], now: i64| {
        (BTreeMap::from([(key(), Some(pods.to_vec()))]), WallTime(now * 1000))
    };
    let learn = |times: &StartTimes, (pods, now)| times.learn(&pods, LIMITS, now);
    let old = pod("old", Some("n"), 0, 90, false);
    let woken = pod("woken", Some("n"), 300, 305, false);
    let of = |times: &StartTimes| {
        let estimate = times.expect(&key(), SEED);
        (estimate.starts, estimate.typical.as_secs())
    };
    // At first sight it may have been ready for long, and ready again since.
    let first = learn(&StartTimes::default(), look(&[old.clone(), woken.clone()], 315));
    assert_eq!(of(&first), (0, SEED.as_secs()));
    let before = learn(&StartTimes::default(), look(std::slice::from_ref(&old), 300));
    let after = learn(&before, look(&[old.clone(), woken.clone()], 315));
    assert_eq!(of(&after), (1, 5));
    assert_eq!(of(&learn(&after, look(&[old.clone(), woken], 330))), (1, 5));
    // One that is not new was somewhere that was not seen.
    let moved = pod("moved", Some("n"), 300, 305, false);
    assert_eq!(of(&learn(&before, look(&[old, moved], 1_000))), (0, SEED.as_secs()));
}

/// A process that starts while the container of an old pod is down does not take the age of that pod for the
/// time of a start.
#[test]
fn a_pod_that_is_old_at_first_sight_has_not_just_started() {
    let slowest_of = |created: i64, first_seen: i64| {
        let look = |ready, now| {
            let pods = vec![pod("p", Some("n"), created, ready, false)];
            (BTreeMap::from([(key(), Some(pods))]), WallTime(now * 1000))
        };
        let (down, first) = look(-1, first_seen);
        let (still_down, second) = look(-1, first_seen + 600);
        let (up, last) = look(first_seen + 900, first_seen + 900);
        let times = (StartTimes::default().learn(&down, LIMITS, first))
            .learn(&still_down, LIMITS, second)
            .learn(&up, LIMITS, last);
        times.expect(&key(), Duration::from_mins(2)).slowest.as_secs()
    };
    assert_eq!(slowest_of(1_000, 1_600), 1_500);
    assert_eq!(slowest_of(1_000, 1_601), 120);
    assert_eq!(slowest_of(1_000, 260_200), 120);
}

/// Pods of a variant at second 0 of which `ready` became ready after 30 s, and `waiting` never.
fn batch(ready: usize, waiting: usize, node: Option<&str>) -> Vec<StartingPod> {
    let landed = (0..ready).map(|number| pod(&format!("r{number}"), Some("n"), 0, 30, false));
    let stuck = (0..waiting).map(|number| pod(&format!("w{number}"), node, 0, -1, false));
    landed.chain(stuck).collect()
}

/// What is expected of a further start after each of these looks, at their seconds.
fn prospects(looks: &[(i64, Vec<StartingPod>)]) -> Vec<StartProspect> {
    let mut times = StartTimes::default();
    let look = |(second, pods): &(i64, Vec<StartingPod>)| {
        let wall = WallTime(second * 1000);
        times = times.learn(&BTreeMap::from([(key(), Some(pods.clone()))]), LIMITS, wall);
        let now = Moment { monotonic: Duration::ZERO, wall };
        let outlook = StartOutlook { starts: &times, seeds: &SEEDS, pending: PENDING, now };
        outlook.of(&key()).prospect
    };
    looks.iter().map(look).collect()
}

#[test]
fn starts_are_stalled_while_more_are_late_than_became_ready() {
    use StartProspect::{Open, Stalled};
    for (node, limit) in [(None, 300), (Some("n"), 600)] {
        let looks = [10, limit - 1, limit].map(|second| (second, batch(0, 3, node)));
        assert_eq!(prospects(&looks), [Open, Open, Stalled], "on {node:?}");
    }
    for (ready, waiting, expected) in [(3, 0, Open), (2, 1, Open), (1, 1, Open), (1, 2, Stalled)] {
        let looks = [(10, batch(0, ready + waiting, None)), (300, batch(ready, waiting, None))];
        assert_eq!(prospects(&looks), [Open, expected], "{ready} and {waiting}");
    }
    // An older one that is ready once more has not started.
    let with_old = |ready| {
        let old = vec![pod("old", Some("n"), -900, ready, false)];
        old.into_iter().chain(batch(0, 1, None)).collect()
    };
    let looks = [(10, with_old(-800)), (300, with_old(290))];
    assert_eq!(prospects(&looks), [Open, Stalled]);
    // One that served, and whose container is down, is no start.
    let down = vec![pod("r0", Some("n"), 0, -1, false)];
    let looks = [(60, batch(1, 0, None)), (900, down)];
    assert_eq!(prospects(&looks), [Open, Open]);
}

#[test]
fn stalled_starts_are_remembered_until_one_lands_and_for_half_an_hour_at_most() {
    use StartProspect::{Open, Stalled};
    let stuck = || batch(0, 2, None);
    let looks = [
        (300, stuck()),
        (480, stuck()),
        (481, vec![]),
        (480 + 30 * 60 - 1, vec![]),
        (480 + 30 * 60, vec![]),
    ];
    assert_eq!(prospects(&looks), [Stalled, Stalled, Stalled, Stalled, Open]);
    let new = |ready| vec![pod("new", Some("n"), 400, ready, false)];
    let looks = [(300, stuck()), (399, vec![]), (410, new(-1)), (430, new(430))];
    assert_eq!(prospects(&looks), [Stalled, Stalled, Stalled, Open]);
}

#[test]
fn a_gated_pod_is_late_by_a_limit_of_its_own_and_starts_when_its_gates_are_gone() {
    use StartProspect::{Open, Stalled};
    let gated = |created| StartingPod { is_gated: true, ..pod("p", None, created, -1, false) };
    let looks = [(10, vec![gated(0)]), (299, vec![gated(0)]), (300, vec![gated(0)])];
    assert_eq!(prospects(&looks), [Open, Open, Stalled]);
    // Of a batch of four three were admitted, and served after 100 s.
    let batch = |ready: i64| {
        let served = ["a", "b", "c"].map(|name| pod(name, Some("n"), 0, ready, false));
        served.into_iter().chain([gated(0)]).collect::<Vec<_>>()
    };
    let looks = [(10, batch(-1)), (399, batch(100)), (400, batch(100))];
    assert_eq!(prospects(&looks), [Open, Open, Stalled]);
    // Admitted after four minutes it has as much time as any other.
    let admitted = |ready| vec![pod("p", Some("n"), 0, ready, false)];
    let looks =
        [(240, vec![gated(0)]), (300, admitted(-1)), (839, admitted(-1)), (840, admitted(-1))];
    assert_eq!(prospects(&looks), [Open, Open, Open, Stalled]);
    // What it waited is no part of its start, and the wait of a day does not hide the start.
    let mut times = StartTimes::default();
    for (second, pods) in [(86_400, vec![gated(0)]), (86_500, admitted(86_490))] {
        let pods = BTreeMap::from([(key(), Some(pods))]);
        times = times.learn(&pods, LIMITS, WallTime(second * 1000));
    }
    let learned = times.expect(&key(), SEED);
    assert_eq!(learned.cold, Some(Duration::from_secs(90)));
}

proptest! {
    #[test]
    fn what_is_remembered_is_bounded_and_order_changes_nothing(
        rounds in prop::collection::vec(
            prop::collection::vec((0_u8..9, 0_u8..200, -500_i64..500, -9_i64..900), 0..12),
            0..60,
        ),
    ) {
        let (mut times, mut reversed) = (StartTimes::default(), StartTimes::default());
        for round in &rounds {
            let mut names = std::collections::BTreeSet::new();
            let mut pods: Vec<StartingPod> = round
                .iter()
                .filter(|(name, ..)| names.insert(*name))
                .map(|(name, node, created, ready)| {
                    pod(&name.to_string(), Some(&node.to_string()), *created, *ready, false)
                })
                .collect();
            times = times.learn(&BTreeMap::from([(key(), Some(pods.clone()))]), LIMITS, WallTime(0));
            pods.reverse();
            reversed = reversed.learn(&BTreeMap::from([(key(), Some(pods))]), LIMITS, WallTime(0));
            for variant in times.variants.values() {
                prop_assert!(variant.nodes.len() <= KEPT_NODES);
                prop_assert!(variant.starts.values().all(|starts| starts.len() <= KEPT_STARTS));
            }
        }
        prop_assert_eq!(times, reversed);
    }
}

#[test]
fn a_stated_seed_counts_for_its_variant_until_a_start_was_measured() {
    let stated = Duration::from_mins(5);
    let outlook = |starts: &StartTimes, seeds: &StartSeeds| {
        let outlook = StartOutlook {
            starts,
            seeds,
            pending: PENDING,
            now: Moment { monotonic: Duration::ZERO, wall: WallTime(0) },
        };
        let typical = |key: VariantKey| outlook.of(&key).estimate.typical;
        (typical(key()), typical(VariantKey::new("ns", "other")))
    };
    let seeds = StartSeeds { usual: SEED, stated: [(key(), stated)].into() };
    let none = StartTimes::default();
    assert_eq!(outlook(&none, &SEEDS), (SEED, SEED));
    assert_eq!(outlook(&none, &seeds), (stated, SEED));
    let look = |ready| BTreeMap::from([(key(), Some(vec![pod("p", Some("n"), 0, ready, false)]))]);
    let measured = none.learn(&look(-1), (&seeds, PENDING), WallTime(0)).learn(
        &look(90),
        (&seeds, PENDING),
        WallTime(90_000),
    );
    assert_eq!(outlook(&measured, &seeds), (Duration::from_secs(90), SEED));
}
