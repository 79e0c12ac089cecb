use super::*;
use crate::chaos::scale_to_zero::tests::plan;

#[test]
fn a_model_goes_to_zero_as_its_policy_allows_and_one_variant_of_several_for_want_of_load() {
    let fleet = BTreeMap::new();
    let told = |steps: &[(&str, &str, u32, u32)], stage: PlanStage, allowed: bool| {
        let may_sleep = |_: &ModelKey| allowed;
        let mut plan = plan(steps);
        for step in (plan.decisions.values_mut()).flat_map(|one| &mut one.steps) {
            step.stage = stage;
        }
        let circumstances = Circumstances {
            may_sleep: &may_sleep,
            ..circumstances(&fleet)
        };
        sent_to_zero(&plan, &circumstances).map(|found| found.to_string())
    };
    let whole = [("v", "m", 1, 0), ("w", "m", 0, 0), ("x", "other", 1, 1)];
    assert_eq!(told(&whole, PlanStage::Zero, true), None);
    let text = "D8: n/v goes to 0, which no policy of m|n allows";
    assert_eq!(told(&whole, PlanStage::Zero, false).as_deref(), Some(text));
    assert_eq!(
        told(&whole, PlanStage::Optimizer, false).as_deref(),
        Some(text)
    );
    let one = [("v", "m", 1, 0), ("w", "m", 1, 1)];
    assert_eq!(told(&one, PlanStage::Optimizer, false), None);
    assert_eq!(told(&one, PlanStage::Zero, false).as_deref(), Some(text));
    let stays = [("v", "m", 0, 0), ("w", "m", 0, 0)];
    assert_eq!(told(&stays, PlanStage::Zero, false), None);
}

/// Where nothing is wrong with a plan.
fn circumstances(fleet: &BTreeMap<VariantKey, (String, u32)>) -> Circumstances<'_> {
    Circumstances {
        generation: 1,
        term: 1,
        stored: Inherited::new(),
        silent: Duration::ZERO,
        unheard: &|_| Duration::ZERO,
        mute: &|_| None,
        usable: Duration::MAX,
        fresh: Duration::MAX,
        shortest: None,
        age: Duration::ZERO,
        calm: None,
        unserved: &|_| false,
        staying: &|_| None,
        budget: BTreeMap::new(),
        fleet,
        may_be_zero: &|_| false,
        may_sleep: &|_| false,
        begins_anew: &|_| false,
        uid_of: &|_| Some("u".into()),
        bounds_of: &|_| None,
    }
}

#[test]
fn a_plan_goes_on_from_the_one_before_it_of_its_term_about_the_same_object() {
    let fleet = BTreeMap::new();
    let mut plans = Plans::default();
    let mut told = |from, to, term: u64, uid: &'static str| {
        let plan = plan(&[("v", "m", from, to)]);
        let circumstances = Circumstances {
            uid_of: &|_| Some(uid.into()),
            begins_anew: &|_| from == 9,
            term,
            ..circumstances(&fleet)
        };
        if plans.term.replace(term) != Some(term) {
            plans.decided.clear();
        }
        let found = plans.goes_on(&plan, &circumstances);
        found.map(|found| found.to_string())
    };
    assert_eq!(told(1, 2, 1, "u"), None);
    assert_eq!(
        told(1, 2, 1, "u"),
        None,
        "may have been about another object"
    );
    let text =
        "D7: cycle 1 goes on from 1 for n/v, and not from 2, which the one before it decided";
    assert_eq!(told(1, 3, 1, "u").as_deref(), Some(text));
    assert_eq!(told(3, 3, 1, "u"), None);
    assert_eq!(told(1, 3, 1, "w"), None, "another object");
    assert_eq!(told(3, 3, 1, "w"), None);
    assert_eq!(told(3, 3, 1, "w"), None);
    assert_eq!(told(1, 3, 2, "w"), None, "another term");
    assert_eq!(told(3, 3, 2, "w"), None);
    assert_eq!(told(9, 9, 2, "w"), None, "its target has gone");
}

/// What is found in a plan: `v` goes from 1 to 2, with two GPUs for each, beside two others.
fn found(
    quota: u32,
    (exist, least): (u32, Option<u32>),
    age: Duration,
    calm: Option<Duration>,
) -> [Option<String>; 2] {
    let plan = plan(&[("v", "m", 1, 2), ("w", "m", 1, 1)]);
    let keys = ["v", "w"].map(|name| VariantKey::new("n", name));
    let fleet = keys.map(|key| (key, ("A".to_owned(), 2))).into();
    let circumstances = Circumstances {
        age,
        calm,
        staying: &|_| Some(Replicas(exist)),
        budget: [("A", quota)].into(),
        bounds_of: &|_| {
            Some(DeclaredBounds {
                min: least.map(Replicas),
                max: None,
            })
        },
        ..circumstances(&fleet)
    };
    let text = |found: Option<InvariantViolation>| found.map(|found| found.to_string());
    [
        text(beyond(&plan, &circumstances)),
        text(late(&plan, &circumstances)),
    ]
}

#[test]
fn growth_keeps_within_its_budget_and_what_exists_is_no_growth() {
    let grown = |quota, exist, least| {
        let [found, _] = found(quota, (exist, least), Duration::ZERO, None);
        found.map(|text| text.split(':').nth(1).unwrap_or_default().to_owned())
    };
    assert_eq!(grown(6, 1, Some(1)), None);
    let text = " n/v grows, so that 6 A are used of 5";
    assert_eq!(grown(5, 1, Some(1)).as_deref(), Some(text));
    assert_eq!(grown(5, 2, None), None, "somebody else has scaled it");
    assert_eq!(grown(5, 1, Some(2)), None, "its minimum is owed");
}

#[test]
fn what_is_published_late_in_calm_is_told() {
    let told = |seconds, calm| {
        let [_, found] = found(9, (1, None), Duration::from_secs(seconds), calm);
        found
    };
    assert_eq!(told(2, Some(Duration::ZERO)), None);
    let text = "D7: cycle 1 is published 3 s after it was decided";
    assert_eq!(told(3, Some(Duration::ZERO)).as_deref(), Some(text));
    assert_eq!(told(3, None), None);
    assert_eq!(
        told(3, Some(Duration::from_secs(1))),
        None,
        "disturbed then"
    );
}

#[test]
fn bounds_hold_and_of_crossed_ones_the_most() {
    let outside = |target, min: Option<u32>, max: Option<u32>| {
        let bounds = DeclaredBounds {
            min: min.map(Replicas),
            max: max.map(Replicas),
        };
        is_outside(Replicas(target), &bounds)
    };
    assert!(!outside(7, None, None));
    for (target, expected) in [(1, true), (2, false), (4, false), (5, true)] {
        assert_eq!(outside(target, Some(2), Some(4)), expected, "{target}");
    }
    assert!(!outside(2, Some(5), Some(2)));
    assert!(outside(3, Some(5), Some(2)));
}
