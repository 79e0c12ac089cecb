//! Chaos itself under test. Seeds by the hundred are played by `wva chaos`.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::env::Flaw;
use crate::kit::{KillAt, Role};

/// Plays a seed, and fails with everything that is known.
fn held(plot: &Plot, seed: u64) -> Outcome {
    let outcome = survive(plot, seed, &plot.schedule(seed), Keep::Tail);
    if let Some((at, violation)) = &outcome.violation {
        let lines = outcome.lines.join("\n");
        panic!(
            "{} seed {seed} probe {:?} at {at:?}: {violation}\n{lines}",
            plot.name, plot.probe
        );
    }
    outcome
}

#[test]
fn a_schedule_is_drawn_from_its_seed_alone_and_holds_every_class() {
    let drawn = |seed| plot("storm", seed).unwrap().schedule(seed);
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
    let mut kinds: BTreeMap<Class, BTreeSet<String>> = BTreeMap::new();
    for seed in 0..200 {
        let schedule = drawn(seed);
        let classes: BTreeSet<Class> = schedule.0.iter().map(|one| one.fault.class()).collect();
        assert!(classes.len() >= 5, "seed {seed}: {classes:?}");
        for strike in schedule.0 {
            let kind = strike.fault.kind();
            kinds.entry(strike.fault.class()).or_default().insert(kind);
        }
    }
    let counts: Vec<usize> = kinds.values().map(BTreeSet::len).collect();
    assert_eq!(counts, [15, 18, 8, 7, 12, 7, 7], "{kinds:#?}");
}

#[test]
fn a_schedule_without_faults_comes_to_rest() {
    let outcome = held(&plot("probe", 1).unwrap(), 1);
    assert!(outcome.settled.is_some(), "{outcome:?}");
    assert!(outcome.counts.plans > 50, "{:?}", outcome.counts);
}

#[test]
fn same_seed_same_trace() {
    let mut plot = plot("brief", 3).unwrap();
    plot.faults_until = std::time::Duration::from_mins(9);
    plot.lasts = plot.faults_until;
    let schedule = plot.schedule(3);
    let first = survive(&plot, 3, &schedule, Keep::Tail);
    let second = survive(&plot, 3, &schedule, Keep::Tail);
    assert_eq!(first.lines, second.lines);
    assert_eq!((first.hash, first.events), (second.hash, second.events));
    assert!(first.events > 200, "{}", first.events);
}

/// Every role that the small scenario has, killed before or after an early occasion, the same for every
/// run: it comes to rest where it does without.
#[test]
fn kill_once_everywhere() {
    for (place, role) in roles_of_a_probe().into_iter().enumerate() {
        let moment = if place % 2 == 1 {
            KillAt::Before(1)
        } else {
            KillAt::After(2)
        };
        assert!(survives(&role, moment), "{role} has no {moment:?}");
    }
}

/// The same at every occasion up to the tenth, then at each that is twice as late, for as long as the
/// role has so many.
#[test]
#[ignore = "several hundred runs: a quarter of an hour in a release build"]
fn kill_once_at_every_occasion() {
    let mut struck = 0;
    for role in roles_of_a_probe() {
        let late = std::iter::successors(Some(20), |n| Some(n * 2));
        let mut occasions = (1..=10).chain(late);
        let dies = |n: u64| {
            let moments = [KillAt::Before(n), KillAt::After(n)];
            let died = moments.map(|moment| survives(&role, moment));
            assert!(n > 1 || died == [true, true], "{role} has no occasion");
            died == [true, true]
        };
        let lives = occasions.by_ref().take_while(|n| dies(*n)).count();
        struck += 2 * lives;
    }
    assert!(struck > 200, "{struck}");
}

fn roles_of_a_probe() -> Vec<Role> {
    schedule::roles(&plot("probe", 1).unwrap().variants())
}

/// Kills a role once; whether that came to pass.
fn survives(role: &Role, moment: KillAt) -> bool {
    let mut plot = plot("probe", 1).unwrap();
    plot.probe = Some(Probe::Role(role.clone(), moment));
    held(&plot, 1).struck
}

/// As many seeds as fit into every run of the tests; `wva chaos` plays them by the thousand.
#[test]
fn seeds_of_every_run() {
    let seeds = if cfg!(debug_assertions) { 5 } else { 40 };
    for seed in 1..=seeds {
        held(&plot("brief", seed).unwrap(), seed);
    }
}

/// The process ends before, during and after one of its writes, and another one takes over.
#[test]
fn crash_at_every_write() {
    for number in [2, 9, 40] {
        for how in [
            Process::BeforeWrite,
            Process::DuringWrite,
            Process::AfterWrite,
        ] {
            let mut plot = plot("probe", 1).unwrap();
            plot.probe = Some(Probe::Write(number, how));
            assert!(held(&plot, 1).struck, "{:?} never came to pass", plot.probe);
        }
    }
}

#[test]
fn a_planted_defect_is_found() {
    let mut plot = plot("probe", 1).unwrap();
    plot.flaw = Some(Flaw::ZeroUnasked);
    let outcome = survive(&plot, 1, &plot.schedule(1), Keep::Tail);
    let (_, violation) = outcome.violation.unwrap();
    assert!(violation.to_string().starts_with('D'), "{violation}");
}
