//! Means, fronts and ratios.

use serde_json::json;

use super::super::results::{Results, overall, read_results};
use super::is_near;
use super::sample::{self, Spread};
use crate::lab::tests::Folder;

fn position(results: &Results, policy: &str) -> usize {
    results.policies.iter().position(|label| label.name == policy).unwrap()
}

#[test]
fn the_front_is_what_no_policy_dominates() {
    for seed in 1..=8 {
        let folder = Folder::of_step(&format!("front-{seed}"));
        let mut chance = Spread::new(seed);
        for number in 0..20 {
            // Few values, so that there are ties.
            let share = (chance.next() * 10.0).floor() / 10.0;
            let hours = (chance.next() * 10.0).floor() + 1.0;
            folder.put_run(&sample::run("step", &format!("policy-{number}"), 1, (share, hours)));
        }
        let results = read_results(folder.path()).unwrap();
        let scenario = &results.scenarios[0];
        let points: Vec<(f64, f64)> = (0..20).map(|it| scenario.point(it).unwrap()).collect();
        for (position, (share, hours)) in points.iter().enumerate() {
            let is_dominated = points.iter().any(|(other, cost)| {
                (other >= share && cost < hours) || (other > share && cost <= hours)
            });
            let has_equal = scenario.front.iter().any(|front| {
                is_near(points[*front].0, *share) && is_near(points[*front].1, *hours)
            });
            assert_eq!(has_equal, !is_dominated, "seed {seed}, policy {position}");
        }
        let best = points[scenario.best.unwrap()];
        let highest = points.iter().map(|point| point.0).fold(0.0, f64::max);
        assert!(best.0 >= highest - 0.01);
    }
}

#[test]
fn a_policy_that_knows_the_load_is_on_no_front() {
    let folder = Folder::of_step("hindsight");
    folder.put_run(&sample::run("step", "keda-epp", 1, (0.9, 7.5)));
    folder.put_run(&sample::run("step", "clairvoyant", 1, (0.99, 5.5)));
    let results = read_results(folder.path()).unwrap();
    let keda = position(&results, "keda-epp");
    assert_eq!(results.scenarios[0].front, [keda]);
    assert_eq!(results.scenarios[0].best, Some(keda));
}

#[test]
fn policies_stand_by_family_and_knob() {
    let folder = Folder::of_step("knobs");
    for (policy, family, knob) in [
        ("tokens", "tokens", None),
        ("keda-epp-16", "keda-epp", Some(16.0)),
        ("keda-epp-8", "keda-epp", Some(8.0)),
        ("apa", "apa", None),
    ] {
        let mut run = sample::run("step", policy, 1, (0.9, 7.5));
        run["family"] = json!(family);
        run["knob"] = json!(knob);
        folder.put_run(&run);
    }
    let results = read_results(folder.path()).unwrap();
    let found = results.policies.iter();
    let found: Vec<(&str, usize)> = found.map(|label| (&*label.name, label.family_index)).collect();
    let expected = [("apa", 0), ("keda-epp-8", 1), ("keda-epp-16", 1), ("tokens", 2)];
    assert_eq!(found, expected);
}

#[test]
fn ratios_are_means_over_feasible_scenarios_with_a_bound() {
    let folder = Folder::new("ratios");
    let mut unbounded = sample::scenario(7200.0);
    unbounded["clairvoyant"] = json!(null);
    let mut overloaded = sample::scenario(7200.0);
    overloaded["loadToCapacity"] = json!(0.951);
    let mut refused = sample::scenario(7200.0);
    refused["isFeasible"] = json!(false);
    folder.put_scenarios(&json!({
        "step": sample::scenario(7200.0), "wave": sample::scenario(7200.0),
        "code": unbounded, "day": overloaded, "night": refused,
    }));
    // The bounds are 5.5 and 8.3 GPU-hours.
    for (scenario, share, hours) in [
        ("step", 0.9, 5.5),
        ("wave", 0.8, 11.0),
        ("code", 1.0, 8.3),
        ("day", 0.1, 99.0),
        ("night", 0.2, 99.0),
    ] {
        folder.put_run(&sample::run(scenario, "keda-epp", 1, (share, hours)));
    }
    let results = read_results(folder.path()).unwrap();
    let overall = overall(&results, position(&results, "keda-epp"));
    let (regret, count) = overall.to_clairvoyant.unwrap();
    assert!(is_near(regret, 1.5) && count == 2, "{overall:?}");
    let (ratio, count) = overall.to_static.unwrap();
    assert!(is_near(ratio, (5.5 + 11.0 + 8.3) / 8.3 / 3.0) && count == 3, "{overall:?}");
    assert!(is_near(overall.attainment.unwrap().mean, 0.9), "{overall:?}");
    assert_eq!(overall.hardest.as_deref(), Some("wave"));
    assert_eq!((overall.scenarios, overall.on_front, overall.best), (3, 3, 3));
}

#[test]
fn the_timeline_is_that_of_the_lowest_seed() {
    let folder = Folder::of_step("seeds");
    for (seed, share) in [(10, 0.5), (2, 0.7), (7, 0.9)] {
        folder.put_run(&sample::run("step", "keda-epp", seed, (share, 7.5)));
    }
    let results = read_results(folder.path()).unwrap();
    let outcome = results.scenarios[0].outcome(0).unwrap();
    assert_eq!((outcome.timeline.seed, outcome.seeds), (2, 3));
    assert!(is_near(outcome.score.attainment, 0.7));
    let spread = outcome.attainment.unwrap();
    assert!(is_near(spread.mean, 0.7) && is_near(spread.low, 0.5) && is_near(spread.high, 0.9));
}
