//! Which pods go first: opposite states, then the exact choice.

use std::time::Duration;

use crate::deletion::{DeletionCandidate, chosen};
use crate::object::DeletionCost;
use crate::signal::{Failure, Signal, StaleBand};
use crate::snapshot::{PodView, Readiness};
use crate::units::Replicas;
use wva_base::moment::WallTime;

const AGE: Duration = Duration::from_secs(5);
const UNKNOWN: Signal = Signal::Failed { why: Failure::Absent };
const STALE_ZERO: Signal = Signal::Stale { value: 0.0, age: AGE, band: StaleBand::NoShrink };

fn known(value: f64) -> Signal {
    Signal::Known { value, age: AGE }
}

fn idle() -> Signal {
    Signal::KnownZero { age: AGE }
}

/// A pod by its place: ready unless its load is left out, chosen by us where it begins with `+`, by others with `!`.
fn choice(pods: &[(&str, Option<Signal>)], surplus: u32) -> Vec<String> {
    let views = pods.iter().map(|(name, load)| PodView {
        name: name.trim_start_matches(['+', '!', '?']).into(),
        readiness: match load {
            Some(_) => Readiness::Ready,
            None => Readiness::NotReady,
        },
        created: WallTime(0),
        ready_since: None,
        node: None,
    });
    let views: Vec<PodView> = views.collect();
    let candidates = views.iter().zip(pods).map(|(pod, (name, load))| {
        let cost = match name.get(..1) {
            Some("+") => DeletionCost::Chosen("me".into()),
            Some("?") => DeletionCost::Chosen("another".into()),
            Some("!") => DeletionCost::Foreign,
            _ => DeletionCost::None,
        };
        DeletionCandidate { pod, cost, in_flight: load.unwrap_or(UNKNOWN) }
    });
    let candidates: Vec<_> = candidates.collect();
    let names = chosen(&candidates, Replicas(surplus), "me").into_iter();
    names.map(|name| name.to_string()).collect()
}

#[test]
fn those_with_the_least_requests_are_chosen() {
    let loads = [
        ("a", Some(known(9.0))),
        ("b", Some(known(2.0))),
        ("c", Some(idle())),
        ("d", Some(known(2.0))),
    ];
    for (surplus, expected) in [
        (0, &[][..]),
        (1, &["c"]),
        (2, &["b", "c"]),
        (3, &["b", "c", "d"]),
        // All go: nothing is to be chosen.
        (4, &[]),
        (9, &[]),
    ] {
        assert_eq!(choice(&loads, surplus), expected, "{surplus}");
    }
}

#[test]
fn an_unknown_load_is_not_chosen() {
    let loads = [("a", Some(UNKNOWN)), ("b", Some(known(80.0))), ("c", Some(STALE_ZERO))];
    assert_eq!(choice(&loads, 1), ["b"]);
    assert_eq!(choice(&loads, 2), ["b"]);
}

#[test]
fn pods_that_are_not_ready_take_their_places_first() {
    let loads = [("a", None), ("b", Some(known(3.0))), ("c", Some(known(4.0)))];
    assert!(choice(&loads, 1).is_empty());
    assert_eq!(choice(&loads, 2), ["b"]);
}

#[test]
fn the_chosen_stay_chosen_until_fewer_are_to_go() {
    let loads = [
        ("+a", Some(known(5.0))),
        ("b", Some(idle())),
        ("+c", Some(UNKNOWN)),
        ("d", Some(known(1.0))),
    ];
    assert!(choice(&loads, 0).is_empty());
    assert_eq!(choice(&loads, 1), ["a"]);
    assert_eq!(choice(&loads, 2), ["a", "c"]);
    assert_eq!(choice(&loads, 3), ["a", "b", "c"]);
    // All go: those that are chosen are not written again.
    assert_eq!(choice(&loads, 4), ["a", "c"]);
}

#[test]
fn costs_of_others_stand() {
    for foreign in ["!b", "?b"] {
        let loads = [("+a", Some(idle())), (foreign, Some(known(3.0))), ("c", Some(idle()))];
        assert!(choice(&loads, 2).is_empty(), "{foreign}");
    }
}
