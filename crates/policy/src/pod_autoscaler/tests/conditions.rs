//! The conditions that metrics, annotations and generated objects lead to.

use std::sync::Arc;
use std::time::Duration;

use super::statuses::{decided, first, judged, next, texts};
use super::{at, name, object, policy, signal, view};
use crate::key::ObjectKey;
use crate::pod_autoscaler::decide::AutoscalerView;
use crate::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use crate::pod_autoscaler::event::events;
use crate::pod_autoscaler::record::{
    AutoscalerRecord, AutoscalerVerdict, MeasuredPod, TargetOwner,
};
use crate::pod_autoscaler::status::{GeneratedHpaStatus, Judgement, ScaleOutcome};
use crate::signal::{Failure, Signal, StaleBand};
use crate::units::Replicas;
use wva_base::moment::WallTime;

/// Signals of three pods: f failed, s stale, a absent, 0 zero, 1 loaded.
fn samples(pods: &str) -> AutoscalerView {
    let age = Duration::from_mins(10);
    let signals = pods.chars().enumerate().map(|(number, pod)| {
        let signal = match pod {
            'f' => Signal::Failed { why: Failure::QueryFailed },
            's' => Signal::Stale { value: 1.0, age, band: StaleBand::Hold },
            'a' => Signal::Failed { why: Failure::Absent },
            '0' => signal(0.0),
            _ => signal(10.0),
        };
        (name(number), signal)
    });
    let signals = signals.collect();
    AutoscalerView { readings: vec![SourceReading::Pods(signals)], ..view(3, &[vec![0.0; 3]]) }
}

#[test]
fn failed_absent_stale_and_zero_stay_apart() {
    let cases = wva_base::cases! {
        ("111", "True MetricsFound", "3 pods measured"),
        ("110", "True MetricsFound", "3 pods measured"),
        ("000", "True MetricsZero", "3 pods at 0"),
        ("11f", "True MetricsPartial", "2 pods measured, 1 failed; refused"),
        ("1ff", "True MetricsPartial", "1 pod measured, 2 failed; refused"),
        ("00a", "True MetricsPartial", "2 pods measured, 1 without a sample; refused"),
        ("fsa", "False MetricsFailed",
         "no serving pod has a usable sample (1 stale, 1 failed, 1 without a sample); refused"),
        ("ssa", "False MetricsStale", "no serving pod has a usable sample (2 stale, 1 without a sample); refused"),
        ("aaa", "False MetricsAbsent", "no serving pod has a usable sample (3 without a sample); refused"),
    };
    for (pods, status, message) in cases {
        let mut record = decided("", &samples(pods), 100);
        record.notes = vec!["refused".into()];
        let found = texts(&first(&record, &ScaleOutcome::NotWritten));
        let expected =
            format!("MetricsAvailable {status}: pod http://:8000/metrics load: {message}");
        assert_eq!(found[4], expected, "{pods}");
    }
    let idle = decided("", &AutoscalerView { pods: [].into(), ..view(3, &[vec![]]) }, 100);
    for (unread_since, status) in [(Some(at(50)), "Unknown"), (None, "False")] {
        let idle = AutoscalerRecord { unread_since, ..idle.clone() };
        let text = &texts(&first(&idle, &ScaleOutcome::NotWritten))[4];
        let expected = format!("MetricsAvailable {status} NoServingPod");
        assert!(text.starts_with(&expected), "{text}");
    }
    let above = decided("", &view(30, &[vec![1.0; 30]]), 100);
    assert!(
        texts(&first(&above, &ScaleOutcome::NotWritten))[4]
            .starts_with("MetricsAvailable Unknown NotMeasured")
    );
}

/// A start reads everything again, and changes nothing of a status meanwhile.
#[test]
fn first_reads_on_their_way_are_no_failure() {
    let nothing = ScaleOutcome::NotWritten;
    let before = first(&decided("", &samples("111"), 90), &nothing);
    let blind = |second: u64, unread_since: Option<u64>| AutoscalerRecord {
        unread_since: unread_since.map(at),
        ..decided("", &samples("aaa"), second)
    };
    let refused = next(&blind(100, None), &before, &nothing);
    assert_eq!(refused.scaling_history.len(), 1);
    assert!(texts(&refused)[4].starts_with("MetricsAvailable False MetricsAbsent"));
    assert_eq!(events(None, &blind(100, None), &nothing).len(), 1);
    for second in [100, 189] {
        let waiting = blind(second, Some(100));
        assert_eq!(next(&waiting, &before, &nothing), before);
        assert_eq!(events(None, &waiting, &nothing), []);
    }
    assert_eq!(next(&blind(190, Some(100)), &before, &nothing).scaling_history.len(), 1);
    let new = first(&blind(100, Some(100)), &nothing);
    assert_eq!((new.scaling_history.len(), new.last_scale_time), (0, None));
    let kinds: Vec<&str> = new.conditions.iter().map(|one| &*one.kind).collect();
    assert_eq!(kinds, ["ValidSpec", "ScalingActive", "AbleToScale", "Ready"]);
}

#[test]
fn a_target_that_was_not_read_is_a_failure_after_a_while() {
    let nothing = ScaleOutcome::NotWritten;
    let before = first(&decided("", &samples("111"), 90), &nothing);
    let why = "Deployment default/llm has not been read yet";
    let unread = |second: u64| AutoscalerRecord {
        unread_since: Some(at(100)),
        ..judged(Some(policy("", &[])), AutoscalerVerdict::Unread { why: why.into() }, second)
    };
    assert_eq!(next(&unread(189), &before, &nothing), before);
    assert_eq!(events(None, &unread(189), &nothing), []);
    let late = texts(&next(&unread(190), &before, &nothing));
    assert_eq!(late[2], format!("AbleToScale False FailedGetScale: {why}"));
    assert_eq!(events(None, &unread(190), &nothing).len(), 1);
}

/// Nor are those that wait, move their shards or make room for others.
#[test]
fn pods_that_start_are_no_failure() {
    let ready = |seconds: u64| AutoscaledPod::Ready { ready_for: Duration::from_secs(seconds) };
    let starting = "MetricsAvailable Unknown NoServingPod";
    let gated = "MetricsAvailable Unknown PodsGated";
    let absent = "MetricsAvailable False MetricsAbsent";
    for (pod, condition, failures) in wva_base::cases! {
        (AutoscaledPod::Pending, starting, 0),
        (ready(59), starting, 0),
        (ready(60), absent, 1),
        (AutoscaledPod::Gated, gated, 0),
        (AutoscaledPod::Draining, starting, 0),
        (AutoscaledPod::Resharding, starting, 0),
    } {
        let view = AutoscalerView { pods: [(name(0), pod)].into(), ..view(1, &[vec![]]) };
        let measured = MeasuredPod { pod, address: None, engine: None };
        let record = AutoscalerRecord {
            pods: Arc::new([(name(0), measured)].into()),
            ..decided("", &view, 100)
        };
        let nothing = ScaleOutcome::NotWritten;
        let status = first(&record, &nothing);
        let text = &texts(&status)[4];
        assert!(text.starts_with(condition), "{pod:?}: {text}");
        assert_eq!(status.scaling_history.len(), failures, "{pod:?}");
        assert_eq!(events(None, &record, &nothing).len(), failures, "{pod:?}");
    }
}

/// A pod that crashes, lacks its image or finds no node is pending as well, and one that flaps is ready in between.
#[test]
fn pods_that_start_for_ten_minutes_have_failed() {
    let nothing = ScaleOutcome::NotWritten;
    let gate = "behind a scheduling gate: see what is to remove it, like the queue of Kueue";
    let ready = AutoscaledPod::Ready { ready_for: Duration::from_secs(30) };
    let (pending, gated) = (AutoscaledPod::Pending, AutoscaledPod::Gated);
    let draining = AutoscaledPod::Draining;
    for (pods, counts, unread_since, held) in [
        (&[pending][..], "1 starting", None, None),
        (&[gated], "1 gated", None, Some("1 pod")),
        (&[gated, gated, draining], "2 gated, 1 draining", None, Some("2 pods")),
        (&[gated, pending], "1 starting, 1 gated", None, None),
        (&[gated, ready], "1 starting, 1 gated", None, None),
        (&[draining], "1 draining", None, None),
        (&[AutoscaledPod::Resharding], "1 resharding", None, None),
        (&[ready], "1 starting", None, None),
        (&[ready], "1 starting", Some(at(690)), None),
    ] {
        let unserved = format!("pod http://:8000/metrics load: no pod serves ({counts})");
        let pods = pods.iter().enumerate();
        let pods: Vec<_> = pods.map(|(number, pod)| (name(number), *pod)).collect();
        let view = AutoscalerView { pods: pods.iter().cloned().collect(), ..view(1, &[vec![]]) };
        let measured = pods.into_iter().map(|(name, pod)| {
            let measured = MeasuredPod { pod, address: None, engine: None };
            (name, measured)
        });
        let measured = Arc::new(measured.collect());
        let (reason, text) = match held {
            None => ("NoServingPod", unserved),
            Some(held) => ("PodsGated", format!("{unserved}; {held} {gate}")),
        };
        let why = format!("no source has a demand: {text}");
        let starting = |second: u64| AutoscalerRecord {
            pods: Arc::clone(&measured),
            unread_since,
            starting_since: Some(at(100)),
            ..decided("", &view, second)
        };
        let no_pod = |status: &str| format!("MetricsAvailable {status} {reason}: {text}");
        let early = first(&starting(699), &nothing);
        assert_eq!(texts(&early)[4], no_pod("Unknown"));
        assert_eq!(early.scaling_history, []);
        assert_eq!(events(None, &starting(699), &nothing), []);
        let late = next(&starting(700), &early, &nothing);
        assert_eq!(texts(&late)[4], no_pod("False"));
        assert_eq!(late.scaling_history.len(), 1);
        assert_eq!(late.scaling_history[0].error.as_ref(), Some(&why));
        let before = (&starting(699), &nothing);
        let events = events(Some(before), &starting(700), &nothing);
        let notes: Vec<&str> = events.iter().map(|event| &*event.note).collect();
        assert_eq!(notes, [&*why]);
    }
}

#[test]
fn totals_keep_their_failures_apart() {
    let spec =
        "metricsSources: [{metricSourceType: external, targetMetric: queue, targetValue: '10'}]";
    let failed = |why| Signal::Failed { why };
    let stale = |band| Signal::Stale { value: 30.0, age: Duration::from_mins(2), band };
    let cases = wva_base::cases! {
        (signal(30.0), "True MetricsFound: external queue: its total is known"),
        (signal(0.0), "True MetricsZero: external queue: its total is 0"),
        (stale(StaleBand::NoShrink), "True MetricsPartial: external queue: its total is old"),
        (stale(StaleBand::Hold), "False MetricsStale: external queue: its total is unusable: too old"),
        (failed(Failure::Absent), "False MetricsAbsent: external queue: its total is unusable: no sample"),
        (failed(Failure::QueryFailed), "False MetricsFailed: external queue: its total is unusable: query failed"),
        (failed(Failure::Invalid), "False MetricsFailed: external queue: its total is unusable: not a usable number"),
    };
    for (total, expected) in cases {
        let view = AutoscalerView { readings: vec![SourceReading::Total(total)], ..view(3, &[]) };
        let found = texts(&first(&decided(spec, &view, 100), &ScaleOutcome::NotWritten));
        assert_eq!(found[4], format!("MetricsAvailable {expected}"));
    }
}

#[test]
fn faulty_annotations_are_named_until_they_are_gone() {
    let faulty = object(
        "pa",
        "",
        &[
            ("autoscaling.aibrix.ai/max-scale-up-rate", "0"),
            ("kpa.autoscaling.aibrix.ai/tolerance", "0.1"),
        ],
    );
    let plain = decided("", &view(1, &[vec![10.0]]), 100);
    let before = first(&plain, &ScaleOutcome::NotWritten);
    assert_eq!(before.conditions.len(), 5);
    let record =
        AutoscalerRecord { policy: Some(Arc::new(faulty.check().unwrap())), ..plain.clone() };
    let status = next(&record, &before, &ScaleOutcome::NotWritten);
    let text = &texts(&status)[5];
    assert!(text.starts_with("AnnotationsAccepted False AnnotationsWithoutEffect: "), "{text}");
    assert!(
        text.contains("max-scale-up-rate: \"0\"")
            && text.contains("kpa.autoscaling.aibrix.ai/tolerance"),
        "{text}"
    );
    assert_eq!(next(&plain, &status, &ScaleOutcome::NotWritten), before);
}

fn hpa(conditions: &[(&str, &str, &str)]) -> ScaleOutcome {
    ScaleOutcome::HpaApplied(GeneratedHpaStatus {
        current: Replicas(3),
        desired: Replicas(3),
        last_scale_time: Some(WallTime(42_000)),
        conditions: conditions
            .iter()
            .map(|(kind, status, reason)| Judgement {
                kind: (*kind).into(),
                status: (*status).into(),
                reason: (*reason).into(),
                message: "of the HPA".into(),
            })
            .collect(),
    })
}

#[test]
fn a_generated_object_reports_through_its_owner() {
    let record = decided("scalingStrategy: HPA", &view(2, &[]), 100);
    let created = first(&record, &hpa(&[]));
    assert_eq!(
        texts(&created),
        [
            "ValidSpec True AsExpected",
            "ScalingActive False Stable: desired=3, actual=3",
            "AbleToScale True Configured",
            "Ready True AsExpected",
        ]
    );
    let working = hpa(&[
        ("AbleToScale", "True", "ReadyForNewScale"),
        ("ScalingActive", "True", "ValidMetricFound"),
        ("ScalingLimited", "False", "DesiredWithinRange"),
    ]);
    let status = next(&record, &created, &working);
    let expected = [
        "ValidSpec True AsExpected",
        "ScalingActive True ValidMetricFound: of the HPA",
        "AbleToScale True ReadyForNewScale: of the HPA",
        "Ready True AsExpected",
        "ScalingLimited False DesiredWithinRange: of the HPA",
    ];
    assert_eq!(texts(&status), expected);
    assert_eq!(status.last_scale_time.unwrap().wall(), WallTime(42_000));
    assert_eq!(status.scaling_history, []);
    // Until the object is seen again, what it reported stays.
    assert_eq!(next(&record, &status, &ScaleOutcome::NotWritten), status);
    let unable = hpa(&[("AbleToScale", "False", "FailedGetScale")]);
    assert_eq!(texts(&next(&record, &status, &unable))[3], "Ready False ReconcilingScaleDiff");
    let refused = ScaleOutcome::HpaRefused { why: "remove it".into() };
    assert_eq!(
        texts(&next(&record, &status, &refused))[1..],
        [
            "ScalingActive False Stable: desired=3, actual=3",
            "AbleToScale False HpaNotOwned: remove it",
            "Ready False ReconcilingScaleDiff",
        ]
    );
    let direct = decided("", &view(3, &[vec![10.0; 3]]), 110);
    let kinds: Vec<Arc<str>> = next(&direct, &status, &ScaleOutcome::NotWritten)
        .conditions
        .into_iter()
        .map(|one| one.kind)
        .collect();
    assert_eq!(
        kinds.iter().map(|kind| &**kind).collect::<Vec<_>>(),
        ["ValidSpec", "ScalingActive", "AbleToScale", "Ready", "MetricsAvailable"]
    );
}

#[test]
fn the_object_that_scales_names_those_that_give_way() {
    let mut record = decided("", &samples("111"), 100);
    let shared = |record: &AutoscalerRecord| {
        let texts = texts(&first(record, &ScaleOutcome::NotWritten));
        texts.into_iter().find(|text| text.starts_with("TargetShared"))
    };
    assert_eq!(shared(&record), None);
    record.yielding =
        vec![TargetOwner { kind: "PodAutoscaler".into(), key: ObjectKey::new("default", "pb") }];
    assert_eq!(
        shared(&record).as_deref(),
        Some(
            "TargetShared True MultiPodAutoscalerConflict: Deployment default/llm is also named by PodAutoscaler default/pb; \
             this object scales it, remove the others"
        )
    );
}
