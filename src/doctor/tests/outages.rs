//! What KEDA makes of targets while no controller answers.

use serde_json::{Value, json};

use super::causes::{edit, objects};
use super::fleets::external_scaler;
use super::healthy::facts;
use crate::doctor::examine;
use crate::doctor::facts::{FactSource, Facts, LiveKind};

const KIND: LiveKind = LiveKind::ScaledObject;

/// The forecast for ScaledObject `b`, whose target has this many replicas, after a change of the facts.
fn forecast(current: u32, change: impl FnOnce(&mut Facts)) -> Option<(i64, String)> {
    let mut facts = facts();
    change(&mut facts);
    let target = LiveKind::Deployment;
    edit(&mut facts, target, "b", "/spec/replicas", json!(current));
    let all = examine(&facts).outages.into_iter();
    let mut own = all.filter(|one| one.object.name == "b");
    own.next().map(|one| (one.replicas, one.why))
}

fn replicas(current: u32, change: impl FnOnce(&mut Facts)) -> Option<i64> {
    forecast(current, change).map(|(replicas, _)| replicas)
}

fn fallback(replicas: u32, behavior: &str) -> Value {
    json!({ "failureThreshold": 3, "replicas": replicas, "behavior": behavior })
}

fn without_fallback(facts: &mut Facts) {
    for object in objects(facts, KIND) {
        let spec = object.0["spec"].as_object_mut().unwrap();
        spec.remove("fallback").unwrap();
    }
}

#[test]
fn a_lost_count_leads_to_the_fallback_within_the_bounds() {
    for (current, given, expected) in [
        (3, fallback(5, "static"), Some(5)),
        (3, fallback(2, ""), Some(2)),
        (3, fallback(12, "static"), Some(8)),
        (3, fallback(0, "static"), Some(1)),
        (3, fallback(5, "currentReplicas"), Some(3)),
        (3, fallback(0, "currentReplicas"), Some(3)),
        (3, fallback(5, "currentReplicasIfHigher"), Some(5)),
        (3, fallback(2, "currentReplicasIfHigher"), Some(3)),
        (3, fallback(5, "currentReplicasIfLower"), Some(3)),
        (3, fallback(2, "currentReplicasIfLower"), Some(2)),
        (3, fallback(2, "scalingModifiers"), None),
    ] {
        let found = replicas(current, |facts| {
            edit(facts, KIND, "b", "/spec/fallback", given.clone());
        });
        assert_eq!(found, expected, "{given}");
    }
    let (kept, why) = forecast(3, without_fallback).unwrap();
    assert_eq!((kept, &*why), (3, "it has no fallback"));
}

#[test]
fn an_active_fallback_starts_a_target_at_zero() {
    let asleep = |given: Value| {
        replicas(0, |facts| {
            edit(facts, KIND, "b", "/spec/minReplicaCount", json!(0));
            edit(facts, KIND, "b", "/spec/fallback", given);
        })
    };
    assert_eq!(asleep(fallback(2, "static")), Some(2));
    assert_eq!(asleep(fallback(2, "currentReplicas")), Some(1));
    assert_eq!(asleep(fallback(0, "currentReplicas")), None, "WVA131");
}

/// KEDA counts no failures of an external trigger whose metric it cannot learn.
#[test]
fn an_external_trigger_that_nothing_answers_keeps_the_count() {
    let external = |threshold: u32| {
        forecast(3, |facts| {
            external_scaler(facts);
            let place = "/spec/fallback/failureThreshold";
            edit(facts, KIND, "b", place, json!(threshold));
        })
    };
    let (kept, why) = external(2).unwrap();
    assert_eq!(kept, 3);
    assert!(why.contains("not its absence"), "{why}");
    assert_eq!(external(1), None);
    let bare = |facts: &mut Facts| {
        external_scaler(facts);
        without_fallback(facts);
    };
    assert_eq!(replicas(3, bare), Some(3));
}

#[test]
fn what_has_a_finding_or_other_triggers_has_no_forecast() {
    assert_eq!(replicas(3, |_| {}), Some(2));
    let ignored = "/spec/triggers/0/metadata/ignoreNullValues";
    let zero = |facts: &mut Facts| edit(facts, KIND, "b", ignored, json!("true"));
    assert_eq!(replicas(3, zero), None);
    let paused = json!({ "autoscaling.keda.sh/paused": "true" });
    let rests = |facts: &mut Facts| edit(facts, KIND, "b", "/metadata/annotations", paused);
    assert_eq!(replicas(3, rests), None);
    let second = |facts: &mut Facts| {
        let triggers = &mut objects(facts, KIND)[0].0["spec"]["triggers"];
        let cpu = json!({ "type": "cpu", "metadata": { "value": "80" } });
        triggers.as_array_mut().unwrap().push(cpu);
    };
    assert_eq!(replicas(3, second), None);
    assert_eq!(replicas(3, |facts| facts.source = FactSource::Files), None);
}

#[test]
fn the_report_states_the_count_and_stays_fine() {
    let diagnosis = examine(&facts());
    assert_eq!(diagnosis.verdict().exit_code(), 0);
    let text = diagnosis.to_text();
    let stated = "without a controller\n--------------------\n\
                  ScaledObject ns/b: 2 replicas, its fallback, after more than 3 failures\n";
    assert!(text.contains(stated), "{text}");
    let report = diagnosis.to_json();
    let [forecast] = report["outages"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    assert_eq!(forecast["object"]["name"], "b");
    assert_eq!(forecast["replicas"], 2);
}
