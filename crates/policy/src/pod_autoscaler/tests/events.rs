//! Events of a tick.

use super::statuses::{decided, judged};
use super::{policy, view};
use crate::key::ObjectKey;
use crate::pod_autoscaler::event::{AutoscalerEvent, EventType, events};
use crate::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict, TargetOwner};
use crate::pod_autoscaler::status::ScaleOutcome;

fn texts(events: &[AutoscalerEvent]) -> Vec<String> {
    let texts = events.iter().map(|event| {
        let mark = if event.severity == EventType::Warning { "!" } else { "" };
        format!("{mark}{}: {}", event.reason.as_str(), event.note)
    });
    texts.collect()
}

fn growing(second: u64) -> AutoscalerRecord {
    decided("", &view(2, &[vec![20.0, 20.0]]), second)
}

const RUN: &str = "AlgorithmRun: KPA: 2 replicas, 4 desired: kpa above target";

#[test]
fn a_rescale_is_reported_each_time_and_a_decision_once() {
    let settled = decided("", &view(4, &[vec![10.0; 4]]), 90);
    assert_eq!(texts(&events(None, &settled, &ScaleOutcome::NotWritten)), [""; 0]);
    let before = Some((&settled, &ScaleOutcome::NotWritten));
    let written = ScaleOutcome::Written;
    // The steps that changed the count.
    let rescaled = "SuccessfulRescale: New size: 4; reason: kpa above target; metric 2 -> 4: pod ";
    let found = texts(&events(before, &growing(100), &written));
    assert_eq!(found[0], RUN);
    assert!(found[1].starts_with(rescaled), "{found:?}");
    assert_eq!(found[1].matches(" -> ").count(), 2, "{found:?}");
    let (first, second) = (growing(100), growing(110));
    let again = texts(&events(Some((&first, &written)), &second, &written));
    assert_eq!(again, found[1..]);
}

#[test]
fn a_warning_is_reported_when_it_begins_and_when_its_text_changes() {
    let failed = |why: &str| ScaleOutcome::Failed { why: why.into() };
    let (first, second) = (growing(100), growing(110));
    let refused = failed("forbidden");
    assert_eq!(texts(&events(None, &first, &refused)), ["!FailedRescale: forbidden", RUN]);
    assert_eq!(texts(&events(Some((&first, &refused)), &second, &refused)), [""; 0]);
    let other = failed("timed out");
    assert_eq!(
        texts(&events(Some((&first, &refused)), &second, &other)),
        ["!FailedRescale: timed out"]
    );
    let written = ScaleOutcome::Written;
    assert_eq!(
        texts(&events(Some((&first, &written)), &second, &refused)),
        ["!FailedRescale: forbidden"]
    );
    let hpa = decided("scalingStrategy: HPA", &view(2, &[]), 100);
    let taken = ScaleOutcome::HpaRefused { why: "pa-hpa has no owner".into() };
    assert_eq!(texts(&events(None, &hpa, &taken)), ["!FailedRescale: pa-hpa has no owner"]);
}

#[test]
fn every_failure_has_its_reason() {
    let plain = || Some(policy("", &[]));
    let nothing = ScaleOutcome::NotWritten;
    let owner = TargetOwner { kind: "ScaledObject".into(), key: ObjectKey::new("default", "so") };
    let mut blind = decided("", &view(2, &[vec![]]), 100);
    blind.notes = vec!["connection refused".into()];
    let cases: [(AutoscalerRecord, &[&str]); 5] = [
        (
            judged(plain(), AutoscalerVerdict::Unseen { why: "not found".into() }, 1),
            &["!FailedGetScale: not found"],
        ),
        (
            judged(plain(), AutoscalerVerdict::Uncounted { why: "no spec.replicas".into() }, 1),
            &["!FailedGetReplicas: no spec.replicas"],
        ),
        (
            judged(plain(), AutoscalerVerdict::Conflict(owner.clone()), 1),
            &[
                "!MultiPodAutoscalerConflict: Deployment default/llm is scaled by ScaledObject default/so; remove one of them",
            ],
        ),
        (
            AutoscalerRecord {
                yielding: vec![owner],
                ..decided("", &view(2, &[vec![10.0; 2]]), 100)
            },
            &[
                "!MultiPodAutoscalerConflict: Deployment default/llm is also named by ScaledObject default/so; this object scales it, remove the others",
            ],
        ),
        (
            blind,
            &[
                "!FailedComputeScale: no source has a demand: pod http://:8000/metrics load: no pod serves; connection refused",
            ],
        ),
    ];
    for (record, expected) in cases {
        assert_eq!(texts(&events(None, &record, &nothing)), expected);
        assert_eq!(texts(&events(Some((&record, &nothing)), &record, &nothing)), [""; 0]);
    }
}
