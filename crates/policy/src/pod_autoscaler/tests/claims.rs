//! Which of several objects scales a target.

use std::sync::Arc;

use proptest::prelude::*;

use super::{object, policy};
use crate::key::ObjectKey;
use crate::pod_autoscaler::claims::{ClaimKind, TargetClaim, conflict, holders, yielding};
use crate::pod_autoscaler::record::TargetOwner;
use wva_base::moment::WallTime;

/// A claim by its kind, or of a `PodAutoscaler` by its role; `-` is the whole target.
fn claim(kind: &str, name: &str, created: i64) -> TargetClaim {
    let (kind, text) = match kind {
        "VariantAutoscaling" => (ClaimKind::VariantAutoscaling, kind),
        role => {
            let role = (role != "-").then(|| role.into());
            (ClaimKind::PodAutoscaler { role }, "PodAutoscaler")
        }
    };
    TargetClaim {
        owner: TargetOwner { kind: text.into(), key: ObjectKey::new("default", name) },
        created: WallTime(created),
        kind,
    }
}

/// Claims as kind, name and age, and the names of those that hold.
type HoldCase = (&'static [(&'static str, &'static str, i64)], &'static [&'static str]);

const HOLDS: [HoldCase; 9] = wva_base::cases! {
    (&[("-", "a", 1), ("-", "b", 2)], &["a"]),
    (&[("-", "a", 2), ("-", "b", 1)], &["b"]),
    (&[("-", "b", 1), ("-", "a", 1)], &["a"]),
    (&[("VariantAutoscaling", "c", 1), ("-", "d", 1)], &["d"]),
    (&[("VariantAutoscaling", "a", 1), ("-", "b", 2), ("VariantAutoscaling", "c", 0)], &["c"]),
    (&[("prefill", "a", 1), ("decode", "b", 2)], &["a", "b"]),
    (&[("prefill", "a", 2), ("prefill", "b", 1)], &["b"]),
    (&[("prefill", "a", 2), ("-", "b", 1), ("decode", "c", 3)], &["b"]),
    // A claim that does not hold keeps no other from holding.
    (&[("prefill", "a", 1), ("-", "b", 2), ("decode", "c", 3)], &["a", "c"]),
};

#[test]
fn the_oldest_claim_holds_then_kind_then_name() {
    for (claims, expected) in HOLDS {
        let claims: Vec<TargetClaim> =
            claims.iter().map(|(kind, name, created)| claim(kind, name, *created)).collect();
        let held = holders(&claims);
        let names: Vec<&str> = held.iter().map(|claim| &*claim.owner.key.name).collect();
        assert_eq!(names, expected, "{claims:?}");
    }
}

#[test]
fn the_loser_names_the_holder() {
    let (old, new) = (claim("-", "old", 1), claim("VariantAutoscaling", "new", 2));
    assert_eq!(conflict(&new, []), None);
    let both = [new.clone(), old.clone()];
    assert_eq!(conflict(&new, &both), Some(old.owner.clone()));
    assert_eq!(conflict(&old, &both), None);
    let (prefill, decode) = (claim("prefill", "p", 1), claim("decode", "d", 2));
    assert_eq!(conflict(&decode, [&prefill]), None);
}

#[test]
fn the_holder_names_those_that_give_way() {
    let (old, new) = (claim("-", "old", 1), claim("VariantAutoscaling", "new", 2));
    assert_eq!(yielding(&old, [&old]), []);
    assert_eq!(yielding(&old, [&old, &new]), std::slice::from_ref(&new.owner));
    let (prefill, decode) = (claim("prefill", "p", 1), claim("decode", "d", 2));
    assert_eq!(yielding(&prefill, [&decode]), []);
    let later = claim("prefill", "q", 3);
    assert_eq!(yielding(&prefill, [&later, &decode, &new]), [later.owner.clone(), new.owner]);
}

#[test]
fn an_autoscaler_claims_a_role_only_where_it_scales_one() {
    let service = "scaleTargetRef: {apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: s}";
    let role = |name: &str| format!("{service}\nsubTargetSelector: {{roleName: '{name}'}}");
    let cases = [
        (service.to_owned(), "pooled", None),
        (role("decode"), "pooled", Some("decode")),
        (role("decode"), "replica", None),
        (role(""), "pooled", None),
    ];
    for (spec, mode, expected) in cases {
        let policy = policy(&spec, &[("storm-service-mode", mode)]);
        let found = TargetClaim::of_autoscaler(&policy, policy.tuning.storm_service, WallTime(5));
        let role = expected.map(Arc::from);
        assert_eq!(found.kind, ClaimKind::PodAutoscaler { role }, "{spec} {mode}");
        assert_eq!(found.owner.to_string(), "PodAutoscaler default/pa");
    }
    assert!(object("pa", "maxReplicas: 0", &[]).check().is_err());
}

fn any_claims() -> impl Strategy<Value = Vec<TargetClaim>> {
    let kind = prop_oneof![Just("-"), Just("prefill"), Just("decode"), Just("VariantAutoscaling"),];
    prop::collection::vec((kind, 0_i64..4), 1..9).prop_map(|claims| {
        let named = claims.iter().enumerate();
        named
            .map(|(number, (kind, created))| claim(kind, &format!("o{number}"), *created))
            .collect()
    })
}

proptest! {
    #[test]
    fn every_claim_holds_or_names_one_that_does(
        (claims, shuffled) in any_claims().prop_flat_map(|claims| (Just(claims.clone()), Just(claims).prop_shuffle()))
    ) {
        let held = holders(&claims);
        prop_assert_eq!(&holders(&shuffled), &held);
        for claim in &claims {
            let owner = conflict(claim, &claims);
            prop_assert_eq!(&conflict(claim, &shuffled), &owner);
            prop_assert_eq!(owner.is_none(), held.contains(&claim));
            prop_assert!(owner.is_none_or(|owner| held.iter().any(|held| held.owner == owner)));
        }
        let whole = |claim: &&TargetClaim| claim.kind == ClaimKind::PodAutoscaler { role: None }
            || !matches!(claim.kind, ClaimKind::PodAutoscaler { .. });
        // Where no role is claimed, exactly one scales.
        let wholes: Vec<&TargetClaim> = claims.iter().filter(whole).collect();
        prop_assert_eq!(holders(wholes.iter().copied()).len(), wholes.len().min(1));
    }
}
