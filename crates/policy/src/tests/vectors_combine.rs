//! Tables combine.yaml and votes.yaml: thresholds, votes, participation, liveness, and what follows
//! from them for a role.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::{Tally, run};
use super::world::{at, key};
use crate::capacity::{AnalyzerName, Assessment, CapacityUnit, ServingRole, VariantCapacity};
use crate::combine::{
    AnalyzerLog, AnalyzerResult, Balance, Band, Liveness, Participation, RoleTarget, Vote,
    VoteDirection, Weighed, combine, combine_votes, lacks_saturation_vote, participation,
};
use crate::key::{ModelKey, VariantKey};
use crate::params::AnalyzerSettings;
use crate::reason::{BlockReason, CapacitySource, ViewGap};
use crate::rounding;
use crate::units::{Cost, Replicas};

const BAND: Band = Band { scale_up: 0.85, scale_down: 0.70 };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Role {
    demand: f64,
    supply: f64,
    anticipated: f64,
    #[serde(default = "usual_up")]
    up: f64,
    #[serde(default = "usual_down")]
    down: f64,
}

fn usual_up() -> f64 {
    BAND.scale_up
}

fn usual_down() -> f64 {
    BAND.scale_down
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wishes {
    required: f64,
    spare: f64,
    releasable: Option<f64>,
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-3
}

#[test]
fn thresholds() {
    let tally = run(
        include_str!("../../../../tests/vectors/combine.yaml"),
        |id, given: Role, expect: Wishes| {
            let band = Band { scale_up: given.up, scale_down: given.down };
            let balance = Balance::of(given.demand, given.supply, given.anticipated, band);
            assert!(is_near(balance.required, expect.required), "{id}: {balance:?}");
            assert!(is_near(balance.spare, expect.spare), "{id}: {balance:?}");
            if let Some(releasable) = expect.releasable {
                assert!(is_near(balance.releasable, releasable), "{id}: {balance:?}");
            }
        },
    );
    assert_eq!(tally.passed, 8);
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Election {
    up: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Elected {
    combined: Option<f64>,
    whole: Option<u32>,
}

fn votes(given: &[(f64, f64)]) -> Vec<Vote> {
    given
        .iter()
        .map(|(replicas, score)| Vote {
            analyzer: AnalyzerName::Saturation,
            score: *score,
            replicas: *replicas,
        })
        .collect()
}

#[test]
fn weighted_votes() {
    let tally = run(
        include_str!("../../../../tests/vectors/votes.yaml"),
        |id, given: Election, expect: Elected| {
            let combined = combine_votes(VoteDirection::Up, &votes(&given.up));
            assert_eq!(combined.is_some(), expect.combined.is_some(), "{id}");
            if let (Some(combined), Some(expected)) = (combined, expect.combined) {
                assert!(is_near(combined, expected), "{id}: {combined}");
            }
            assert_eq!(combined.map(rounding::ceil), expect.whole, "{id}");
        },
    );
    assert_eq!(tally, Tally::of(6, 0, 0));
}

fn listed(kinds: &[(&str, bool)]) -> Vec<AnalyzerSettings> {
    kinds
        .iter()
        .map(|(kind, enabled)| AnalyzerSettings {
            kind: (*kind).to_owned(),
            enabled: *enabled,
            score: 1.0,
            scale_up_threshold: None,
            scale_down_boundary: None,
        })
        .collect()
}

#[test]
fn n099_n101_who_runs_and_who_votes() {
    use AnalyzerName::{Saturation, Throughput};
    use Participation::{Identity, NotRun, Votes};
    for (list, saturation, throughput) in wva_base::cases! {
        (listed(&[]), Votes, NotRun),
        (listed(&[("throughput", true)]), Identity, Votes),
        (listed(&[("saturation", true), ("throughput", true)]), Votes, Votes),
        (listed(&[("saturation", true), ("throughput", false)]), Votes, NotRun),
        (listed(&[("saturation", false), ("throughput", true)]), Identity, Votes),
    } {
        assert_eq!(participation(&list, Saturation), saturation, "{list:?}");
        assert_eq!(participation(&list, Throughput), throughput, "{list:?}");
        assert_eq!(lacks_saturation_vote(&list), saturation != Votes, "{list:?}");
    }
}

#[test]
fn n103_n105_n111_liveness() {
    let model = ModelKey::new("ns", "m");
    let other = ModelKey::new("ns", "other");
    let both = |seen: Vec<AnalyzerName>| {
        BTreeMap::from([(model.clone(), seen), (other.clone(), Vec::new())])
    };
    let interval = Duration::from_secs(30);
    let live = |log: &AnalyzerLog, seconds| {
        log.liveness(&model, AnalyzerName::Throughput, interval, at(seconds))
    };
    let log = AnalyzerLog::default().learn(&both(Vec::new()), at(0));
    assert_eq!(live(&log, 0), None);
    let log = log.learn(&both(vec![AnalyzerName::Throughput]), at(10));
    assert_eq!(live(&log, 10), Some(Liveness::Live));
    assert_eq!(live(&log, 100), Some(Liveness::Live));
    assert_eq!(live(&log, 101), Some(Liveness::Silent));
    assert_eq!(
        log.liveness(&model, AnalyzerName::Throughput, Duration::ZERO, at(100)),
        Some(Liveness::Live)
    );
    let kept = log.clone().learn(&BTreeMap::new(), at(20));
    assert_eq!(live(&kept, 20), Some(Liveness::Live));
    let others = BTreeMap::from([(other.clone(), Vec::new())]);
    let evicted = log.learn(&others, at(20));
    assert_eq!(evicted, AnalyzerLog::default().learn(&others, at(20)));
}

/// A voter that sees variants of one role as (name, capacity of one replica, ready replicas).
fn result(
    analyzer: AnalyzerName,
    score: f64,
    demand: f64,
    variants: &[(&str, f64, u32)],
) -> AnalyzerResult {
    let variants = variants.iter().map(|(name, per_replica, ready)| {
        let capacity = VariantCapacity {
            role: ServingRole::Both,
            per_replica: *per_replica,
            ready: Replicas(*ready),
            pending: Replicas::ZERO,
        };
        (key(name), capacity)
    });
    AnalyzerResult {
        analyzer,
        score,
        band: BAND,
        participation: Participation::Votes,
        liveness: Liveness::Live,
        assessment: Some(Assessment {
            analyzer,
            unit: CapacityUnit::KvTokens,
            demand: BTreeMap::from([(ServingRole::Both, demand)]),
            variants: variants.collect(),
        }),
    }
}

fn costs(names: &[&str]) -> BTreeMap<VariantKey, Cost> {
    names.iter().map(|name| (key(name), Cost::DEFAULT)).collect()
}

fn outcome(results: &[AnalyzerResult]) -> Option<RoleTarget> {
    combine(results, &costs(&["v", "w"])).roles.remove(&ServingRole::Both)
}

const IDLE: f64 = 7_000.0;

#[test]
fn n107_n109_a_silent_voter_has_no_veto_and_silence_is_no_basis() {
    let roomy = result(AnalyzerName::Saturation, 1.0, IDLE, &[("v", 10_000.0, 3)]);
    let mut full = result(AnalyzerName::Throughput, 1.0, 24_000.0, &[("v", 10_000.0, 3)]);
    let veto = outcome(&[roomy.clone(), full.clone()]);
    assert!(
        matches!(
            veto,
            Some(RoleTarget::Hold(BlockReason::Vetoed { analyzer: AnalyzerName::Throughput, .. }))
        ),
        "{veto:?}"
    );
    full.liveness = Liveness::Silent;
    assert!(matches!(outcome(&[roomy.clone(), full]), Some(RoleTarget::Release(_))));
    let mut silent = roomy;
    silent.liveness = Liveness::Silent;
    assert!(matches!(outcome(&[silent]), Some(RoleTarget::Hold(_))));
}

#[test]
fn a_live_voter_that_says_nothing_this_cycle_is_waited_for() {
    let roomy = result(AnalyzerName::Saturation, 1.0, IDLE, &[("v", 10_000.0, 3)]);
    let mut absent = result(AnalyzerName::Throughput, 1.0, IDLE, &[]);
    absent.assessment = None;
    assert_eq!(
        outcome(&[roomy, absent]),
        Some(RoleTarget::Hold(BlockReason::Awaited {
            analyzer: AnalyzerName::Throughput,
            gap: ViewGap::default(),
        }))
    );
}

#[test]
fn n113_two_candidates_without_saturation_hold_the_model() {
    let short = [("v", 10_000.0, 1)];
    let throughput = result(AnalyzerName::Throughput, 1.0, 50_000.0, &short);
    let queueing = result(AnalyzerName::QueueingModel, 1.0, 50_000.0, &short);
    let mut saturation = result(AnalyzerName::Saturation, 1.0, 50_000.0, &short);
    saturation.participation = Participation::Identity;
    let results = [saturation, throughput.clone(), queueing.clone()];
    assert!(matches!(
        outcome(&results),
        Some(RoleTarget::Hold(BlockReason::Unsized { anchor: CapacitySource::Ambiguous { .. } }))
    ));
    let [saturation, ..] = results;
    assert!(matches!(outcome(&[saturation, throughput]), Some(RoleTarget::Grow(_))));
}

#[test]
fn latency_objectives_size_a_model_where_saturation_does_not_vote() {
    let short = [("v", 10_000.0, 1)];
    let one = |analyzer| result(analyzer, 1.0, 50_000.0, &short);
    let throughput = one(AnalyzerName::Throughput);
    let held = outcome(&[throughput.clone(), one(AnalyzerName::QueueingModel)]);
    assert!(matches!(held, Some(RoleTarget::Hold(_))), "{held:?}");
    let grown = outcome(&[throughput, one(AnalyzerName::Slo)]);
    assert!(matches!(grown, Some(RoleTarget::Grow(_))), "{grown:?}");
}

#[test]
fn n115_only_a_variant_of_known_capacity_is_claimed() {
    let ballot =
        result(AnalyzerName::Throughput, 1.0, 10_200.0, &[("v", 5_000.0, 0), ("w", 0.0, 0)]);
    let Some(RoleTarget::Grow(Weighed { claims, replicas, .. })) = outcome(&[ballot]) else {
        panic!("it grows");
    };
    assert!(is_near(claims[0].amount, 12_000.0));
    assert_eq!(claims[0].per_replica.keys().collect::<Vec<_>>(), [&key("v")]);
    assert!(is_near(replicas.unwrap(), 2.4));
}

#[test]
fn n275_a_voter_without_a_view_on_the_role_abstains() {
    let roomy = result(AnalyzerName::Saturation, 1.0, IDLE, &[("v", 10_000.0, 3)]);
    let mut other = result(AnalyzerName::Throughput, 1.0, 0.0, &[("v", 10_000.0, 3)]);
    other.assessment.as_mut().unwrap().demand.clear();
    assert!(matches!(outcome(&[roomy, other]), Some(RoleTarget::Release(_))));
}

#[test]
fn n277_every_claim_keeps_its_own_unit() {
    let one = result(AnalyzerName::Saturation, 1.0, 3_400.0, &[("v", 1_000.0, 0)]);
    let other = result(AnalyzerName::Throughput, 1.0, 85.0, &[("v", 50.0, 0)]);
    let Some(RoleTarget::Grow(Weighed { claims, votes, replicas })) = outcome(&[one, other]) else {
        panic!("it grows");
    };
    assert!(is_near(votes[0].replicas, 4.0) && is_near(votes[1].replicas, 2.0));
    assert!(is_near(replicas.unwrap(), 4.0));
    let left: Vec<f64> = claims
        .iter()
        .map(|claim| (claim.amount - 2.0 * claim.per_replica[&key("v")]).max(0.0))
        .collect();
    assert!(is_near(left[0], 2_000.0) && is_near(left[1], 0.0), "{left:?}");
}

#[test]
fn a_weighted_vote_is_rounded_once() {
    let large = result(AnalyzerName::Saturation, 1.0, 8_500.0, &[("v", 1_000.0, 0)]);
    let small = result(AnalyzerName::Throughput, 2.0, 212.5, &[("v", 50.0, 0)]);
    let Some(RoleTarget::Grow(Weighed { claims, .. })) = outcome(&[large, small]) else {
        panic!("it grows");
    };
    // 10 at weight 1 against 5 at weight 2.
    assert!(is_near(claims[0].amount, 8_333.333), "{claims:?}");
    assert!(is_near(claims[1].amount, 250.0), "{claims:?}");
}

#[test]
fn a_voter_counts_where_it_cannot_size_every_variant() {
    let thousand = [("v", 1_000.0, 1)];
    let content =
        |variants: &[(&str, f64, u32)]| result(AnalyzerName::Saturation, 9.0, 1_000.0, variants);
    let short = result(AnalyzerName::Throughput, 1.0, 4_250.0, &thousand);
    // 0 at weight 9 against 4 at weight 1: 4 - 4 * 8 / 10. Without w the votes are the same, and where
    // no variant is sized by both, a replica of one counts as a replica of the other at equal costs.
    for saturation in [
        content(&[("v", 10_000.0, 1)]),
        content(&[("v", 10_000.0, 1), ("w", 10_000.0, 1)]),
        content(&[("w", 10_000.0, 1)]),
    ] {
        let Some(RoleTarget::Grow(Weighed { claims, votes, replicas })) =
            outcome(&[saturation.clone(), short.clone()])
        else {
            panic!("it grows");
        };
        assert!(
            is_near(votes[0].replicas, 0.0) && is_near(votes[1].replicas, 4.0),
            "{saturation:?}: {votes:?}"
        );
        assert!(is_near(replicas.unwrap(), 0.8), "{saturation:?}: {replicas:?}");
        assert!(is_near(claims[0].amount, 0.0), "{saturation:?}: {claims:?}");
        assert!(is_near(claims[1].amount, 800.0), "{saturation:?}: {claims:?}");
    }
}

#[test]
fn a_release_weighs_a_voter_that_cannot_size_every_variant() {
    let roomy =
        result(AnalyzerName::Saturation, 9.0, 0.0, &[("v", 10_000.0, 4), ("w", 10_000.0, 4)]);
    let careful = result(AnalyzerName::Throughput, 1.0, 2_325.0, &[("v", 1_000.0, 4)]);
    let Some(RoleTarget::Release(Weighed { votes, replicas, .. })) = outcome(&[roomy, careful])
    else {
        panic!("it shrinks");
    };
    // 8 at weight 9 against 1 at weight 1, which is 4 less 2325 / 775: 1 + 7 * 8 / 10.
    assert_eq!(votes.len(), 2, "{votes:?}");
    assert!(is_near(replicas.unwrap(), 6.6), "{replicas:?}");
}

proptest! {
    #[test]
    fn a_combined_vote_lies_within_the_votes(
        given in proptest::collection::vec((0.0_f64..50.0, 0.0_f64..9.0), 1..6),
        factor in 0.1_f64..10.0,
    ) {
        let ballot = votes(&given);
        let low = given.iter().map(|(replicas, _)| *replicas).fold(f64::INFINITY, f64::min);
        let high = given.iter().map(|(replicas, _)| *replicas).fold(0.0, f64::max);
        for direction in [VoteDirection::Up, VoteDirection::Down] {
            let combined = combine_votes(direction, &ballot).unwrap();
            prop_assert!(combined >= low - 1e-9 && combined <= high + 1e-9);
            let scaled: Vec<(f64, f64)> = given.iter().map(|(v, s)| (*v, s * factor)).collect();
            let again = combine_votes(direction, &votes(&scaled)).unwrap();
            prop_assert!((combined - again).abs() < 1e-6);
            let mut reversed = ballot.clone();
            reversed.reverse();
            let again = combine_votes(direction, &reversed).unwrap();
            prop_assert!((combined - again).abs() < 1e-6);
        }
    }
}
