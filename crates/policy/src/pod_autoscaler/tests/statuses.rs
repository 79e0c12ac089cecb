//! What is stored of an autoscaler after a tick.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{at, object, policy, view};
use crate::key::{ObjectKey, TargetKey, TargetKind};
use crate::pod_autoscaler::check::AutoscalerPolicy;
use crate::pod_autoscaler::decide::{AutoscalerView, decide};
use crate::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict, TargetOwner};
use crate::pod_autoscaler::state::AutoscalerState;
use crate::pod_autoscaler::status::{PodAutoscalerStatus, ScaleOutcome, next_status};
use crate::pod_autoscaler::storm_service::ReplicaField;
use crate::units::Replicas;
use wva_base::moment::WallTime;

/// A record with a verdict, decided at a second.
pub(super) fn judged(
    policy: Option<AutoscalerPolicy>,
    verdict: AutoscalerVerdict,
    second: u64,
) -> AutoscalerRecord {
    AutoscalerRecord {
        key: ObjectKey::new("default", "pa"),
        uid: "u-1".into(),
        generation: 7,
        term: 1,
        decided: at(second),
        policy: policy.map(Arc::new),
        target: Some(TargetKey::new("default", TargetKind::Deployment, "llm")),
        model: None,
        field: ReplicaField::Scale,
        pods: Arc::default(),
        base: object("pa", "", &[]).spec.base_bounds(),
        notes: Vec::new(),
        yielding: Vec::new(),
        unread_since: None,
        starting_since: None,
        state: AutoscalerState::default(),
        verdict,
    }
}

pub(super) fn decided(spec: &str, view: &AutoscalerView, second: u64) -> AutoscalerRecord {
    let policy = policy(spec, &[]);
    let (decision, state) = decide(&policy, view, &AutoscalerState::default(), at(second));
    let verdict = AutoscalerVerdict::Decided(Box::new(decision));
    AutoscalerRecord { state, ..judged(Some(policy), verdict, second) }
}

pub(super) fn next(
    record: &AutoscalerRecord,
    stored: &PodAutoscalerStatus,
    outcome: &ScaleOutcome,
) -> PodAutoscalerStatus {
    next_status(record, stored, outcome, record.decided.wall)
}

pub(super) fn first(record: &AutoscalerRecord, outcome: &ScaleOutcome) -> PodAutoscalerStatus {
    next(record, &PodAutoscalerStatus::default(), outcome)
}

/// Each condition as `type status reason: message`.
pub(super) fn texts(status: &PodAutoscalerStatus) -> Vec<String> {
    let conditions = status.conditions.iter();
    let texts = conditions.map(|one| {
        let text = format!("{} {} {}: {}", one.kind, one.status, one.reason, one.message);
        text.trim_end_matches(": ").to_owned()
    });
    texts.collect()
}

fn failed(why: &str) -> ScaleOutcome {
    ScaleOutcome::Failed { why: why.into() }
}

const GROWTH: &[f64] = &[20.0, 20.0];

#[test]
fn a_rescale_is_active_until_the_target_has_the_count() {
    let growing = decided("", &view(2, &[GROWTH.to_vec()]), 100);
    let status = first(&growing, &ScaleOutcome::Written);
    assert_eq!(
        texts(&status),
        [
            "ValidSpec True AsExpected",
            "ScalingActive True ReconcilingScaleDiff: desired=4, actual=2",
            "AbleToScale True SucceededGetScale",
            "Ready False ReconcilingScaleDiff",
            "MetricsAvailable True MetricsFound: pod http://:8000/metrics load: 2 pods measured",
        ]
    );
    let stored = serde_json::to_value(&status).unwrap();
    assert_eq!(stored["lastScaleTime"], "1970-01-01T00:01:40Z");
    assert_eq!((&stored["desiredScale"], &stored["actualScale"]), (&json!(4), &json!(2)));
    assert_eq!(
        stored["scalingHistory"],
        json!([{"timestamp": "1970-01-01T00:01:40Z", "previousScale": 2, "newScale": 4,
            "reason": "kpa above target", "success": true}])
    );
    assert_eq!(
        stored["scheduledBounds"],
        json!({"effectiveMinReplicas": 1, "effectiveMaxReplicas": 10})
    );
    assert_eq!(
        stored["conditions"][0],
        json!({"type": "ValidSpec", "status": "True", "reason": "AsExpected", "message": "",
            "lastTransitionTime": "1970-01-01T00:01:40Z", "observedGeneration": 7})
    );
    let settled = decided("", &view(4, &[vec![10.0; 4]]), 110);
    let status = next(&settled, &status, &ScaleOutcome::NotWritten);
    assert_eq!(
        texts(&status)[1..4],
        [
            "ScalingActive False Stable: desired=4, actual=4",
            "AbleToScale True SucceededGetScale",
            "Ready True AsExpected",
        ]
    );
    assert_eq!(status.scaling_history.len(), 1);
    let since: Vec<i64> =
        status.conditions.iter().map(|one| one.last_transition_time.wall().0 / 1000).collect();
    assert_eq!(since, [100, 110, 100, 110, 100]);
    let later = next_status(&settled, &status, &ScaleOutcome::NotWritten, WallTime(900_000));
    assert_eq!(later, status);
}

/// A record of a specification that does not hold together.
fn invalid(spec: &str) -> AutoscalerRecord {
    let object = object("pa", spec, &[]);
    let violations = object.check().unwrap_err();
    let verdict = AutoscalerVerdict::Invalid {
        problem: violations.problem().unwrap(),
        why: violations.to_string(),
    };
    AutoscalerRecord { base: object.spec.base_bounds(), ..judged(None, verdict, 50) }
}

#[test]
fn every_verdict_has_its_conditions() {
    let owner =
        TargetOwner { kind: "VariantAutoscaling".into(), key: ObjectKey::new("default", "va") };
    let plain = || Some(policy("", &[]));
    let why = "404";
    let cases: [(AutoscalerRecord, &[&str]); 4] = [
        (
            invalid("minReplicas: 5\nmaxReplicas: 3"),
            &[
                "ValidSpec False InvalidBounds",
                "ScalingActive False Stable",
                "AbleToScale False InvalidSpec",
                "Ready False ReconcilingScaleDiff",
            ],
        ),
        (
            judged(plain(), AutoscalerVerdict::Conflict(owner), 50),
            &[
                "ValidSpec True AsExpected",
                "MultiPodAutoscalerConflict False MultiPodAutoscalerConflict: Deployment default/llm is scaled by VariantAutoscaling default/va",
                "ScalingActive False Stable",
                "AbleToScale False InvalidSpec",
                "Ready False ReconcilingScaleDiff",
            ],
        ),
        (
            judged(plain(), AutoscalerVerdict::Unseen { why: why.into() }, 50),
            &[
                "ValidSpec True AsExpected",
                "ScalingActive False Stable",
                "AbleToScale False FailedGetScale: 404",
                "Ready False ReconcilingScaleDiff",
            ],
        ),
        (
            judged(plain(), AutoscalerVerdict::Uncounted { why: why.into() }, 50),
            &[
                "ValidSpec True AsExpected",
                "ScalingActive False Stable",
                "AbleToScale False FailedGetReplicas: 404",
                "Ready False ReconcilingScaleDiff",
            ],
        ),
    ];
    let before = first(&decided("", &view(4, &[vec![10.0; 4]]), 10), &ScaleOutcome::NotWritten);
    for (record, expected) in cases {
        let status = next(&record, &before, &ScaleOutcome::NotWritten);
        let found = texts(&status);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found} is not {expected}");
        }
        // What was known of the target stays.
        assert_eq!((status.actual_scale, status.desired_scale), (Replicas(4), Replicas(4)));
        assert_eq!(status.scaling_history, []);
        assert_ne!(status, before);
    }
}

#[test]
fn bounds_are_shown_of_an_invalid_specification_too() {
    let bounds = first(&invalid("minReplicas: 5\nmaxReplicas: 3"), &ScaleOutcome::NotWritten)
        .scheduled_bounds
        .unwrap();
    assert_eq!(
        (bounds.effective_min_replicas, bounds.effective_max_replicas),
        (Replicas(5), Replicas(3))
    );
}

#[test]
fn history_grows_by_its_rules() {
    let growing = decided("", &view(2, &[GROWTH.to_vec()]), 100);
    let less = decided("", &view(2, &[vec![14.0, 14.0]]), 100);
    let blind = decided("", &view(2, &[vec![]]), 100);
    let settled = decided("", &view(2, &[vec![10.0, 10.0]]), 100);
    // A record, its outcome, milliseconds since the entry before, and whether there is another.
    let cases = wva_base::cases! {
        ("the same at once", &growing, ScaleOutcome::Written, 0, false),
        ("the same after five seconds", &growing, ScaleOutcome::Written, 5_000, false),
        ("the same later", &growing, ScaleOutcome::Written, 5_001, true),
        ("another size", &less, ScaleOutcome::Written, 0, true),
        ("a failure", &growing, failed("forbidden"), 0, true),
        ("no decision", &blind, ScaleOutcome::NotWritten, 0, true),
        ("nothing to do", &settled, ScaleOutcome::NotWritten, 60_000, false),
        ("not written yet", &growing, ScaleOutcome::NotWritten, 60_000, false),
    };
    for (case, record, outcome, after, grows) in cases {
        let before = first(&growing, &ScaleOutcome::Written);
        let status = next_status(record, &before, &outcome, WallTime(100_000 + after));
        assert_eq!(status.scaling_history.len(), if grows { 2 } else { 1 }, "{case}");
        let moved = status.last_scale_time.unwrap().wall().0 - 100_000;
        assert_eq!(moved, if grows { after / 1000 * 1000 } else { 0 }, "{case}");
    }
}

#[test]
fn a_failure_is_an_entry_with_its_text() {
    let growing = decided("", &view(2, &[GROWTH.to_vec()]), 100);
    let blind = decided("", &view(2, &[vec![]]), 100);
    let before = first(&growing, &failed("forbidden"));
    let entry = &before.scaling_history[0];
    assert_eq!((entry.success, entry.error.as_deref()), (false, Some("forbidden")));
    assert_eq!(texts(&before)[2], "AbleToScale False FailedUpdateScale: forbidden");
    assert_eq!(next(&growing, &before, &failed("forbidden")), before);
    let entry = &first(&blind, &ScaleOutcome::NotWritten).scaling_history[0];
    assert_eq!(entry.reason, "FailedComputeScale");
    assert!(entry.error.as_ref().unwrap().starts_with("no source has a demand: pod"), "{entry:?}");
}

#[test]
fn a_failure_that_lasts_is_one_entry_with_its_last_text() {
    let growing = |second| decided("", &view(2, &[GROWTH.to_vec()]), second);
    let mut status = first(&growing(100), &ScaleOutcome::Written);
    let scaled = status.scaling_history.clone();
    for (second, pod) in [(110, "a"), (123, "b"), (136, "c")] {
        let mut blind = decided("", &view(4, &[vec![]]), second);
        blind.notes = vec![format!("{pod}: connection refused").into()];
        status = next(&blind, &status, &ScaleOutcome::NotWritten);
        assert_eq!(status.scaling_history.len(), 2, "{pod}");
        assert_eq!(status.scaling_history[..1], scaled);
        let entry = &status.scaling_history[1];
        let error = entry.error.as_ref().unwrap();
        assert!(error.ends_with(&format!("; {pod}: connection refused")), "{error}");
        assert_eq!(entry.timestamp.wall(), WallTime(110_000));
        assert_eq!(status.last_scale_time.unwrap().wall(), WallTime(110_000));
    }
    // Another reason, and then another size, is another entry.
    for (used, count) in [(GROWTH, 3), (&[14.0, 14.0][..], 4)] {
        let record = decided("", &view(2, &[used.to_vec()]), 150);
        for why in ["forbidden", "timed out"] {
            status = next(&record, &status, &failed(why));
            assert_eq!(status.scaling_history.len(), count, "{why}");
            let entry = status.scaling_history.last().unwrap();
            assert_eq!(entry.error.as_deref(), Some(why));
        }
    }
}

/// What is lost with a part that is malformed.
type Lost = fn(&mut PodAutoscalerStatus);

#[test]
fn stored_parts_are_read_leniently() {
    let good = first(&decided("", &view(2, &[GROWTH.to_vec()]), 100), &ScaleOutcome::Written);
    let mut stored = serde_json::to_value(&good).unwrap();
    assert_eq!(PodAutoscalerStatus::read(&stored), good);
    stored["unknown"] = json!({"a": 1});
    stored["conditions"].as_array_mut().unwrap().push(json!({"type": "Odd"}));
    stored["scalingHistory"].as_array_mut().unwrap().push(json!("odd"));
    assert_eq!(PodAutoscalerStatus::read(&stored), good);
    let parts: [(&str, Value, Lost); 5] = wva_base::cases! {
        ("desiredScale", json!(-3), |lost| { lost.desired_scale = Replicas::ZERO; }),
        ("lastScaleTime", json!("yesterday"), |lost| { lost.last_scale_time = None; }),
        ("scheduledBounds", json!(4), |lost| { lost.scheduled_bounds = None; }),
        ("conditions", Value::Null, |lost| lost.conditions.clear()),
        ("predictive", json!([]), |lost| lost.predictive = None),
    };
    for (part, odd, lose) in parts {
        let mut stored = serde_json::to_value(&good).unwrap();
        stored[part] = odd;
        let mut expected = good.clone();
        lose(&mut expected);
        assert_eq!(PodAutoscalerStatus::read(&stored), expected, "{part}");
    }
    assert_eq!(PodAutoscalerStatus::read(&Value::Null), PodAutoscalerStatus::default());
}

#[derive(Debug, Clone)]
enum Tick {
    Pods(u32, Vec<f64>),
    Conflict,
    Unseen,
}

fn any_tick() -> impl Strategy<Value = (Tick, u64, u8)> {
    let pods = (1_u32..12, prop::collection::vec(0.0..40.0, 0..6))
        .prop_map(|(current, pods)| Tick::Pods(current, pods));
    (prop_oneof![6 => pods, 1 => Just(Tick::Conflict), 1 => Just(Tick::Unseen)], 0_u64..20, 0_u8..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_course_keeps_history_and_transitions_true(ticks in prop::collection::vec(any_tick(), 1..25)) {
        let mut status = PodAutoscalerStatus::default();
        let mut second = 1_000;
        for (tick, wait, outcome) in ticks {
            second += wait;
            let record = match tick {
                Tick::Pods(current, pods) => decided("", &view(current, &[pods]), second),
                Tick::Conflict => {
                    let owner = TargetOwner { kind: "VariantAutoscaling".into(), key: ObjectKey::new("default", "va") };
                    judged(Some(policy("", &[])), AutoscalerVerdict::Conflict(owner), second)
                }
                Tick::Unseen => judged(Some(policy("", &[])), AutoscalerVerdict::Unseen { why: "404".into() }, second),
            };
            let outcome = match outcome {
                0 => ScaleOutcome::NotWritten,
                1 => ScaleOutcome::Written,
                _ => failed("forbidden"),
            };
            let after = next(&record, &status, &outcome);
            prop_assert_eq!(&next(&record, &after, &outcome), &after);
            let text = serde_json::to_value(&after).unwrap();
            prop_assert_eq!(&PodAutoscalerStatus::read(&text), &after);
            prop_assert!(after.scaling_history.len() <= 5);
            prop_assert!(after.scaling_history.is_sorted_by_key(|entry| entry.timestamp));
            prop_assert!(after.scheduled_bounds.is_some());
            for (number, one) in after.conditions.iter().enumerate() {
                prop_assert!(after.conditions[..number].iter().all(|other| other.kind != one.kind));
                let old = status.conditions.iter().find(|old| old.kind == one.kind);
                let same = old.filter(|old| old.status == one.status);
                let since = same.map_or_else(|| record.decided.wall.into(), |old| old.last_transition_time);
                prop_assert_eq!(one.last_transition_time, since);
            }
            status = after;
        }
    }
}
