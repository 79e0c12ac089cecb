//! What is wrong with a file is named with its remedy.

use super::{TINY, tiny};
use crate::lab::policies::{POLICIES, PolicyChoice};
use crate::lab::scenario::{BUILT_IN, LoadedScenario, load, prepare};
use crate::workloads::{MOST_ASLEEP, WAKE};
use crate::world::objects::workload;
use wva::policy::params::SloTerm;

#[test]
fn every_built_in_scenario_is_one() {
    for (name, _) in BUILT_IN {
        let scenario = load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name(), name);
    }
}

#[test]
fn pods_state_how_many_of_them_may_sleep() {
    let stated = |name: &str| {
        let scenario = load(name).unwrap();
        let prepared = prepare(&scenario.spec, None, 1).unwrap();
        let model = &prepared.scenario.models[0];
        let (_, _, object) = workload(model, &model.variants[0]);
        let annotations = &object["spec"]["template"]["metadata"]["annotations"];
        let text = |name: &str| annotations.get(name)?.as_str().map(str::to_owned);
        [text(MOST_ASLEEP), text(WAKE)]
    };
    assert_eq!(stated("to-zero"), [None, None]);
    assert_eq!(stated("sleepers"), [Some("2".to_owned()), Some("5".to_owned())]);
}

/// What is replaced in the file, by what, and the error.
const WRONG: [(&str, &str, &str); 25] = [
    ("duration: 60s", "duration: 60", "\"60\" is not a time"),
    ("duration: 60s", "durations: 60s", "unknown field `durations`"),
    ("duration: 60s", "duration: 0s", "duration is 0s; give a longer time"),
    ("name: tiny", "name: a b", "name is \"a b\"; give letters, digits and dashes"),
    (
        "profile: Qwen3-8B FP8, 1×H100-80GB",
        "profile: X",
        "models[0].variants[0].profile is \"X\"; give one of \"Qwen3-8B BF16",
    ),
    ("gpus: 2", "gpus: 0", "models[0].variants[0].gpus is 0; give at least 1"),
    ("gpus: 2", "gpus: 4", "nodes with product NVIDIA-H100-80GB-HBM3 is 8 GPUs; give 12"),
    ("cost: 3.6", "cost: -1", "models[0].variants[0].cost is -1; give a cost above 0"),
    ("max: 3", "max: 0", "models[0].variants[0].max is 0; give at least 1"),
    ("replicas: 1", "replicas: 7", "models[0].variants[0].replicas is 7; give a count from 1 to 3"),
    ("kind: cached", "kind: warm", "unknown variant `warm`, expected `cold` or `cached`"),
    (
        "sigma: 0}",
        "sigma: 0, asleep: {count: 4, wake: 5s}}",
        "models[0].variants[0].startUp.asleep.count is 4; give a count from 1 to max, 3",
    ),
    (
        "sigma: 0}",
        "sigma: 0, asleep: {count: 1, wake: 10s}}",
        "startUp.asleep.wake is 10s; give a time above 0 and below that of a start, 10s",
    ),
    (
        "  - trace: {file",
        "  - constant: {rate: 1}\n    trace: {file",
        "models[0].load[0] is 2 loads at once; give one of constant, step",
    ),
    (
        "  - trace: {file: known.csv, jitter: 0s}",
        "  - constant: {rate: 1}",
        "models[0].load[0].lengths is missing; give {prompt",
    ),
    ("jitter: 0s", "scale: 0", "models[0].load[0].trace.scale is 0; give a factor above 0"),
    (
        "  variants:",
        "  router: {binding: soon}\n  variants:",
        "unknown variant `soon`, expected one of `late`, `early`, `early-round-robin`",
    ),
    (
        "  variants:",
        "  router: {order: lifo}\n  variants:",
        "unknown variant `lifo`, expected `fcfs` or `slo-deadline`",
    ),
    (
        "nodes:",
        "missing: [runing]\nnodes:",
        "unknown variant `runing`, expected one of `running`, `waiting`, `kvUsage`",
    ),
    (
        "nodes:",
        "actuation: {direct: {}, hpa: {}}\nnodes:",
        "actuation is 2 ways at once; give one of hpa, direct and keda",
    ),
    (
        "nodes:",
        "actuation: {hpa: {sync: 0s}}\nnodes:",
        "actuation.hpa.sync is 0s; give a longer time",
    ),
    ("nodes:", "actuation: {hpa: {pods: 0}}\nnodes:", "actuation.hpa.pods is 0; give at least 1"),
    (
        "  - trace: {file: known.csv, jitter: 0s}",
        "  - constant: {rate: 1}\n    lengths: {prompt: {median: 9}, output: {median: 9}}\n    \
         sharing: {share: 1, texts: 0, tokens: 9}",
        "models[0].load[0].sharing.texts is 0; give at least 1",
    ),
    (
        "itl: 20ms",
        "itl: 20ms, quantile: 95",
        "models[0].slo.quantile is 95; give a share above 0 and at most 1, for example 0.95",
    ),
    (
        "  - trace: {file",
        "  - slo: {ttft: 0s, itl: 1s}\n    trace: {file",
        "models[0].load[0].slo.ttft is 0s; give the longest time that is good",
    ),
];

#[test]
fn two_models_of_one_id_are_refused() {
    let (head, model) = TINY.split_once("- name: m\n").unwrap();
    let second = model.replace("name: v", "name: w").replace("max: 3", "max: 1");
    let both = |second: &str| {
        let text = format!("{head}- name: m\n{model}- name: n\n{second}");
        LoadedScenario::read(&text, "tiny.yaml").map(|_read| ())
    };
    assert_eq!(both(&second.replace("id: Qwen/Qwen3-8B", "id: other")), Ok(()));
    let error = both(&second).unwrap_err();
    let expected =
        "scenario tiny: models[1].id is \"Qwen/Qwen3-8B\"; give every model an id of its own";
    assert_eq!(error, expected);
}

#[test]
fn what_is_wrong_is_named_with_its_remedy() {
    assert_eq!(tiny().name(), "tiny");
    for (before, after, expected) in WRONG {
        let text = TINY.replacen(before, after, 1);
        assert_ne!(text, TINY, "{before}");
        let error = LoadedScenario::read(&text, "tiny.yaml").unwrap_err();
        assert!(error.starts_with("scenario "), "{error}");
        assert!(error.contains(expected), "{after}: {error}");
    }
}

#[test]
fn policies_are_named_with_their_knob() {
    for (name, family, knob) in [
        ("wva-default", "wva-default", None),
        ("wva-tokens-0.75", "wva-tokens", Some(0.75)),
        ("keda-epp", "keda-epp", Some(16.0)),
        ("keda-epp-12", "keda-epp", Some(12.0)),
        ("static-4", "static", Some(4.0)),
        ("static-best", "static-best", None),
    ] {
        let choice = PolicyChoice::parse(name).unwrap();
        assert_eq!((&*choice.name, choice.family.name), (name, family));
        assert_eq!(choice.knob, knob, "{name}");
        assert_eq!(choice.without, None, "{name}");
    }
    let choice = PolicyChoice::parse("wva-slo-without-memory").unwrap();
    assert_eq!(choice.family.name, "wva-slo");
    assert_eq!(choice.without, Some(SloTerm::Memory));
    assert_eq!(choice.sweep(), [choice]);
    for name in ["wva-slo-without-luck", "keda-epp-without-memory"] {
        let error = PolicyChoice::parse(name).unwrap_err();
        let expected = "wva-slo-without- and one of short-window, generated, ";
        assert!(error.starts_with(expected), "{name}: {error}");
    }
    for name in ["static", "static-best-3", "keda", "wva-default-x"] {
        let error = PolicyChoice::parse(name).unwrap_err();
        assert!(error.starts_with("one of wva-default, "), "{name}: {error}");
    }
    for family in POLICIES.iter().filter(|family| !family.sweep.is_empty()) {
        let choice = PolicyChoice::parse(family.name).unwrap();
        let points = choice.sweep();
        assert_eq!(points.len(), 3, "{}", family.name);
        for point in points {
            assert_eq!(PolicyChoice::parse(&point.name), Ok(point));
        }
    }
}

#[test]
fn the_points_of_every_sweep_are_documented() {
    let page = include_str!("../../../../../docs/development/laboratory.md");
    for family in POLICIES.iter().filter(|family| !family.sweep.is_empty()) {
        let points: Vec<String> = family.sweep.iter().map(ToString::to_string).collect();
        let (name, points) = (format!("`{}`", family.name), format!("| {} |", points.join(", ")));
        let mut lines = page.lines();
        let is_documented = lines.any(|line| line.contains(&name) && line.ends_with(&points));
        assert!(is_documented, "{name}: {points}");
    }
}

#[test]
fn a_knob_that_the_policy_would_not_play_by_is_refused_with_its_range() {
    for name in ["wva-default-5", "wva-slo-0.16", "wva-tokens-1", "keda-epp-0.002"] {
        assert!(PolicyChoice::parse(name).is_ok(), "{name}");
    }
    let trigger = "a number above 0 and at most 5 as queueSpareTrigger of";
    let threshold = "a number above 0.15 and at most 1 as scaleUpThreshold of";
    let running = "a number above 0.001 and at most 1000000 as running requests per replica of";
    let replicas = "a whole number above 0 and at most 1000000 as replicas of";
    for (name, family, expected) in [
        ("wva-default-99", "wva-default", trigger),
        ("wva-chart-5.1", "wva-chart", trigger),
        ("wva-slo-0.15", "wva-slo", threshold),
        ("wva-tokens-1.01", "wva-tokens", threshold),
        ("keda-epp-inf", "keda-epp", running),
        ("keda-epp-0.0001", "keda-epp", running),
        ("static-1.5", "static", replicas),
        ("static-0", "static", replicas),
    ] {
        let error = PolicyChoice::parse(name).unwrap_err();
        assert_eq!(error, format!("{expected} {family}"), "{name}");
    }
}
