//! Growth and release where starts of a variant are stalled.

use std::collections::BTreeMap;

use super::world::{self, key};
use crate::capacity::{AnalyzerName, ServingRole};
use crate::combine::{CapacityClaim, RoleTarget, Weighed};
use crate::key::VariantKey;
use crate::optimize::{Candidate, cost_aware};
use crate::reason::{Method, Reason};
use crate::snapshot::DeclaredBounds;
use crate::startup::StartProspect;
use crate::units::Replicas;

/// Name, role, cost, replicas, those that are late.
type Given = (&'static str, ServingRole, &'static str, u32, u32);

fn candidates(given: &[Given]) -> BTreeMap<VariantKey, Candidate> {
    let candidate = |&(name, role, cost, count, late): &Given| {
        let declared = DeclaredBounds { min: Some(Replicas::ONE), max: Some(Replicas(10)) };
        let candidate = Candidate {
            overdue: Replicas(late),
            late: Replicas(late),
            prospect: if late > 0 { StartProspect::Stalled } else { StartProspect::Open },
            ..world::candidate(role, cost, count, &declared)
        };
        (key(name), candidate)
    };
    given.iter().map(candidate).collect()
}

/// One replica of every variant supplies 100.
fn claims(analyzer: AnalyzerName, given: &[Given], amount: f64) -> Vec<CapacityClaim> {
    let per_replica = given.iter().map(|(name, ..)| (key(name), 100.0)).collect();
    vec![CapacityClaim { analyzer, amount, anticipated: 100.0, per_replica }]
}

fn counts(
    given: &[Given],
    role_targets: &BTreeMap<ServingRole, RoleTarget>,
) -> BTreeMap<&'static str, (u32, Reason)> {
    let allocation = cost_aware(&candidates(given), role_targets, Method::LeastCost);
    let found = given.iter().map(|(name, ..)| {
        let change = &allocation.changes[&key(name)];
        (*name, (change.to.0, change.why.clone()))
    });
    found.collect()
}

fn grow(analyzer: AnalyzerName, given: &[Given], amount: f64) -> RoleTarget {
    let claims = claims(analyzer, given, amount);
    RoleTarget::Grow(Weighed { claims, ..Weighed::default() })
}

fn release(given: &[Given], amount: f64) -> RoleTarget {
    let claims = claims(AnalyzerName::Slo, given, amount);
    RoleTarget::Release(Weighed { claims, ..Weighed::default() })
}

#[test]
fn others_grow_before_a_variant_whose_starts_are_stalled() {
    use AnalyzerName::{Saturation, Slo};
    const BOTH: ServingRole = ServingRole::Both;
    let dear = |count| ("dear", BOTH, "10", count, 0);
    let cheap = |count, late| ("cheap", BOTH, "4", count, late);
    for (given, analyzer, amount, expected) in [
        (vec![cheap(1, 0), dear(1)], Slo, 300.0, [4, 1]),
        (vec![cheap(4, 3), dear(1)], Slo, 300.0, [4, 4]),
        // What the other one has no room for waits for the late ones first.
        (vec![cheap(4, 3), dear(8)], Slo, 500.0, [4, 10]),
        (vec![cheap(4, 3), dear(8)], Slo, 600.0, [5, 10]),
        (vec![cheap(4, 3), dear(8)], Saturation, 500.0, [4, 10]),
    ] {
        let targets = [(BOTH, grow(analyzer, &given, amount))].into();
        let found = counts(&given, &targets);
        let to = [found["cheap"].0, found["dear"].0];
        assert_eq!(to, expected, "{given:?} {amount}");
    }
    let given = [cheap(4, 3), dear(1)];
    let targets = [(BOTH, grow(Slo, &given, 300.0))].into();
    assert_eq!(counts(&given, &targets)["cheap"].1, Reason::StartsStalled);
    // A variant alone counts on them, and orders what is beyond.
    for (amount, expected) in [(300.0, 4), (400.0, 5)] {
        let given = [cheap(4, 3)];
        let targets = [(BOTH, grow(Slo, &given, amount))].into();
        let (to, why) = counts(&given, &targets)["cheap"].clone();
        assert_eq!(to, expected);
        assert!(!matches!(why, Reason::StartsStalled), "{why:?}");
    }
}

#[test]
fn what_is_gated_covers_no_claim_and_is_not_ordered_twice() {
    for (analyzer, amount, expected) in [
        (AnalyzerName::Saturation, 200.0, [4, 10]),
        (AnalyzerName::Saturation, 500.0, [4, 10]),
        (AnalyzerName::Saturation, 600.0, [5, 10]),
        (AnalyzerName::Slo, 600.0, [5, 10]),
    ] {
        let given =
            [("cheap", ServingRole::Both, "4", 4, 3), ("dear", ServingRole::Both, "10", 8, 0)];
        let mut candidates = candidates(&given);
        for one in candidates.values_mut() {
            one.gated = std::mem::take(&mut one.late);
        }
        let targets = [(ServingRole::Both, grow(analyzer, &given, amount))].into();
        let changes = cost_aware(&candidates, &targets, Method::LeastCost).changes;
        let to = ["cheap", "dear"].map(|name| changes[&key(name)].to.0);
        assert_eq!(to, expected, "{analyzer:?} {amount}");
    }
}

#[test]
fn a_release_gives_up_what_never_served_and_no_role_waits_for_it() {
    use ServingRole::{Both, Decode, Prefill};
    let given = [("cheap", Both, "4", 4, 3), ("dear", Both, "10", 4, 0)];
    let found = counts(&given, &[(Both, release(&given, 150.0))].into());
    assert_eq!([found["cheap"].0, found["dear"].0], [1, 3]);

    let prefill = [("prefill", Prefill, "4", 3, 2)];
    let decode = [("decode", Decode, "4", 4, 0)];
    let given = [prefill, decode].concat();
    for (amount, expected) in [(200.0, [3, 2]), (300.0, [4, 4])] {
        let targets = [
            (Prefill, grow(AnalyzerName::Slo, &prefill, amount)),
            (Decode, release(&decode, 200.0)),
        ];
        let found = counts(&given, &targets.into());
        assert_eq!([found["prefill"].0, found["decode"].0], expected);
    }
}
