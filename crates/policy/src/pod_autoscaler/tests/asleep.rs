//! Who put a target at zero there, and what wakes it.

use std::sync::Arc;

use super::over_time::total;
use super::statuses::{first, judged, next, texts};
use super::{Loop, at, codes, partly_read, policy, signal, view};
use crate::key::ObjectKey;
use crate::pod_autoscaler::AutoscalerState;
use crate::pod_autoscaler::decide::{AutoscalerDecision, AutoscalerView, decide};
use crate::pod_autoscaler::demand::SourceReading;
use crate::pod_autoscaler::record::{AutoscalerRecord, AutoscalerVerdict, TargetOwner};
use crate::pod_autoscaler::status::{GeneratedHpaStatus, PodAutoscalerStatus, ScaleOutcome};
use crate::signal::{Failure, Signal};
use crate::units::Replicas;

const QUEUE: &str =
    "metricsSources: [{metricSourceType: external, targetMetric: queue, targetValue: '10'}]";
const ZERO: &[(&str, &str)] = &[("scale-to-zero", "true")];

fn idle(current: u32) -> AutoscalerView {
    AutoscalerView { readings: vec![SourceReading::Total(signal(0.0))], ..view(current, &[]) }
}

/// An autoscaler whose target fell asleep without load.
fn asleep() -> Loop {
    let mut run = Loop::new(policy(&format!("minReplicas: 0\n{QUEUE}"), ZERO), 1);
    assert!(!run.state.asleep);
    while run.current > 0 {
        run.decide(&idle(1));
    }
    run.decide(&idle(0));
    assert!(run.state.asleep);
    run
}

#[test]
fn the_last_replica_goes_after_the_longer_of_long_window_and_cooldown() {
    for (window, cooldown, expected) in
        [(180, "5m", 300), (180, "0s", 180), (180, "1m", 180), (600, "5m", 600)]
    {
        for strategy in ["KPA", "APA"] {
            let spec = format!(
                "minReplicas: 0\nscalingStrategy: {strategy}\nobserveWindowSeconds: {window}\n{QUEUE}"
            );
            let annotations = [ZERO[0], ("scale-down-cooldown-window", cooldown)];
            let mut run = Loop::new(policy(&spec, &annotations), 1);
            for _ in 0..100 {
                assert_eq!(run.decide(&total(1, 10.0)).desired, Replicas(1));
            }
            let began = run.seconds;
            while run.current > 0 && run.seconds < began + 3_600 {
                run.decide(&idle(1));
            }
            let last = run.seconds - 10;
            assert_eq!(last - began, expected, "{strategy} {window} {cooldown}");
        }
    }
}

#[test]
fn idle_time_does_not_go_on_through_a_gap() {
    for gap in [10, 60, 170, 1_700] {
        let annotations = [ZERO[0], ("scale-down-cooldown-window", "30m")];
        let mut run = Loop::new(policy(&format!("minReplicas: 0\n{QUEUE}"), &annotations), 1);
        for _ in 0..10 {
            run.decide(&idle(1));
        }
        run.seconds += gap - 10;
        let back = run.seconds;
        while run.current > 0 {
            run.decide(&idle(1));
        }
        // Load in a longer gap would have left no trace.
        let first = if gap > 60 { back } else { 100_000 };
        assert_eq!(run.seconds - 10 - first, 1_800, "{gap}");
    }
}

/// What is decided on a target at zero after the object was changed.
fn after(mut run: Loop, spec: &str, annotations: &[(&str, &str)]) -> AutoscalerDecision {
    run.policy = partly_read(spec, annotations);
    let AutoscalerState { asleep, .. } = run.state;
    let decision = run.decide(&idle(0));
    assert_eq!(run.state.asleep, asleep, "at zero nothing changes it");
    decision
}

fn delegated(min: u32) -> String {
    format!("scalingStrategy: HPA\nminReplicas: {min}\n{QUEUE}")
}

fn paused() -> Loop {
    let mut run = asleep();
    // A person wakes it, and then pauses it.
    run.decide(&idle(1));
    assert!(!run.state.asleep);
    run.current = 0;
    run
}

#[test]
fn a_raised_minimum_wakes_what_load_put_to_sleep_and_no_pause() {
    let raised = format!("minReplicas: 2\n{QUEUE}");
    let off = format!("minReplicas: 0\n{QUEUE}");
    let pods = "minReplicas: 0";
    for (spec, annotations, woken, code) in [
        (off.as_str(), ZERO, 0, "WithinBounds"),
        (&raised, &[], 2, "BelowMinimum"),
        (&raised, ZERO, 2, "BelowMinimum"),
        (&off, &[], 1, "ZeroNotEnabled"),
        (pods, ZERO, 1, "ZeroNeedsTotal"),
        (&delegated(0), &[], 1, "BelowMinimum"),
        (&delegated(3), &[], 3, "BelowMinimum"),
    ] {
        let decision = after(asleep(), spec, annotations);
        assert_eq!(decision.desired, Replicas(woken), "{spec} {annotations:?}");
        assert_eq!(codes(&decision).last().unwrap(), code);
        let decision = after(paused(), spec, annotations);
        assert_eq!(decision.desired, Replicas(0), "{spec} {annotations:?}");
    }
    for (spec, annotations, reason) in [
        (&raised, ZERO, "current replicas below minimum"),
        (&off, &[], "scale-to-zero is not true: one replica stays"),
        (&delegated(0), &[], "current replicas below minimum 1"),
    ] {
        let decision = after(asleep(), spec, annotations);
        assert_eq!(decision.reason(), reason);
    }
}

/// The HPA controller scales no target from zero.
#[test]
fn a_target_that_sleeps_wakes_once_where_an_hpa_takes_over() {
    let mut run = asleep();
    run.policy = partly_read(&delegated(0), &[]);
    let slept = record(&mut run, 0);
    let hpa = ScaleOutcome::HpaApplied(GeneratedHpaStatus::default());
    let mut stored = first(&slept, &ScaleOutcome::Failed { why: "no".into() });
    let text = "Asleep True ScaledToZero";
    assert_eq!(asleep_text(&stored).as_deref(), Some(text));
    assert!(AutoscalerState::restored(&stored).asleep);
    stored = next(&slept, &stored, &hpa);
    let newest = stored.scaling_history.last().unwrap();
    assert_eq!((newest.previous_scale, newest.new_scale), (Replicas(0), Replicas(1)));
    let awake = record(&mut run, 1);
    stored = next(&awake, &stored, &hpa);
    assert_eq!(asleep_text(&stored), None);
    assert!(!AutoscalerState::restored(&stored).asleep);
    // Another hand pauses it.
    assert_eq!(run.decide(&idle(0)).desired, Replicas(0));
}

fn record(run: &mut Loop, current: u32) -> AutoscalerRecord {
    let second = run.seconds;
    let policy = run.policy.clone();
    let decision = run.decide(&idle(current));
    AutoscalerRecord {
        state: run.state.clone(),
        ..judged(Some(policy), AutoscalerVerdict::Decided(Box::new(decision)), second)
    }
}

fn asleep_text(status: &PodAutoscalerStatus) -> Option<String> {
    let mut texts = texts(status).into_iter();
    let found = texts.find(|text| text.starts_with("Asleep"));
    found.map(|text| text.split(':').next().unwrap().to_owned())
}

#[test]
fn what_wakes_a_target_that_another_hand_put_to_zero_is_shown() {
    let zero = format!("minReplicas: 0\n{QUEUE}");
    for (spec, what) in [
        ("", "while its minimum is above 0, scale it to 1 to go on"),
        (&zero, "demand wakes it"),
        (
            PODS,
            "nothing could wake it: add an external source, or an InferencePool and the label model.aibrix.ai/name; \
             or scale it to 1",
        ),
    ] {
        let record = record(&mut Loop::new(policy(spec, &[]), 0), 0);
        assert_eq!(record.decision().unwrap().desired, Replicas(0));
        let found = texts(&first(&record, &ScaleOutcome::NotWritten));
        let start = format!(
            "Asleep False ScaledElsewhere: the target was not scaled to 0 by this object; {what}"
        );
        assert!(found.iter().any(|text| text.starts_with(&start)), "{found:?}");
    }
}

#[test]
fn the_status_holds_it_over_restarts_and_edits() {
    let mut run = asleep();
    let slept = record(&mut run, 0);
    let stored = first(&slept, &ScaleOutcome::NotWritten);
    assert_eq!(asleep_text(&stored).as_deref(), Some("Asleep True ScaledToZero"));
    assert!(AutoscalerState::restored(&stored).asleep);
    let owner = TargetOwner {
        kind: "HorizontalPodAutoscaler".into(),
        key: ObjectKey::new("default", "hpa"),
    };
    let mut kept = stored;
    for verdict in
        [AutoscalerVerdict::Unseen { why: "gone".into() }, AutoscalerVerdict::Conflict(owner)]
    {
        let record = judged(None, verdict, run.seconds);
        kept = next(&record, &kept, &ScaleOutcome::NotWritten);
        assert!(AutoscalerState::restored(&kept).asleep);
    }
    assert!(slept.state.suspended().asleep);
    let awake = next(&record(&mut run, 1), &kept, &ScaleOutcome::NotWritten);
    assert_eq!(asleep_text(&awake), None);
    assert!(!AutoscalerState::restored(&awake).asleep);
    // Paused by hand: the history still ends with a zero of ours.
    let mut paused = paused();
    let paused = next(&record(&mut paused, 0), &awake, &ScaleOutcome::NotWritten);
    assert_eq!(asleep_text(&paused).as_deref(), Some("Asleep False ScaledElsewhere"));
    assert!(!AutoscalerState::restored(&paused).asleep);
}

#[test]
fn without_the_condition_the_history_decides() {
    let status = |counts: &[(u32, u32, bool)], desired: u32| {
        let entries = counts.iter().map(|(from, to, success)| {
            serde_json::json!({"timestamp": "2026-01-01T00:00:00Z", "previousScale": from, "newScale": to,
                "reason": "", "success": success})
        });
        let entries: Vec<_> = entries.collect();
        PodAutoscalerStatus::read(
            &serde_json::json!({"desiredScale": desired, "scalingHistory": entries}),
        )
    };
    for (counts, desired, asleep) in [
        (&[][..], 0, false),
        (&[(1, 0, true)], 0, true),
        (&[(1, 0, false)], 0, false),
        (&[(1, 0, true), (0, 0, false)], 0, true),
        (&[(1, 0, true), (0, 1, true)], 0, false),
        // Another hand woke it, which the status saw.
        (&[(1, 0, true)], 1, false),
    ] {
        let restored = AutoscalerState::restored(&status(counts, desired));
        assert_eq!(restored.asleep, asleep, "{counts:?} {desired}");
        assert_eq!(restored.windows.len(), 0);
    }
}

#[test]
fn four_pods_at_180_percent_never_shrink_after_a_restart() {
    for strategy in ["KPA", "APA"] {
        let spec = format!("maxReplicas: 4\nscalingStrategy: {strategy}");
        let mut run = Loop::new(policy(&spec, &[("scale-down-cooldown-window", "0s")]), 4);
        for restart in 0..60 {
            if restart % 7 == 0 {
                run.state = AutoscalerState::restored(&PodAutoscalerStatus::default());
            }
            assert_eq!(run.share(72.0).desired, Replicas(4), "{strategy}");
        }
    }
}

#[test]
fn a_restart_in_panic_holds_its_count_as_long_as_panic_would_have() {
    let hurried = [("scale-down-cooldown-window", "0s")];
    let mut panics = 0;
    for load in [60.0, 90.0, 120.0, 300.0] {
        for cycles in 1..40 {
            let mut run = Loop::new(policy("maxReplicas: 40", &hurried), 2);
            run.run(400, 20.0);
            run.run(10 * cycles, load);
            let panic = run.state.panic;
            let held = run.current;
            run.state = AutoscalerState::restored(&PodAutoscalerStatus::default());
            if let Some(panic) = panic {
                panics += 1;
                let until = panic.exceeded.monotonic.as_secs() + 180;
                while run.seconds < until {
                    assert!(run.share(10.0).desired >= Replicas(held).max(panic.peak));
                }
            }
            run.run(600, 10.0);
            assert_eq!(run.current, 1);
        }
    }
    assert!(panics > 20, "{panics}");
}

#[test]
fn a_plan_without_memory_reads_the_status() {
    let policy = Arc::new(policy(&format!("minReplicas: 1\n{QUEUE}"), &[]));
    for (status, woken) in [("False", 0), ("True", 1)] {
        let status = PodAutoscalerStatus::read(&serde_json::json!({"conditions": [{
            "type": "Asleep", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}));
        let state = AutoscalerState::restored(&status);
        let (decision, _) = decide(&policy, &idle(0), &state, at(100_000));
        assert_eq!(decision.desired, Replicas(woken));
    }
}

const PODS: &str = "minReplicas: 0";

/// Pods without load, and what routers hold.
fn routed(current: u32, held: Option<Signal>) -> AutoscalerView {
    let pods = usize::try_from(current).unwrap();
    AutoscalerView { held, ..view(current, &[vec![0.0; pods]]) }
}

const UNREAD: Signal = Signal::Failed { why: Failure::Absent };

#[test]
fn a_router_that_holds_nothing_lets_the_last_replica_go() {
    for (held, sleeps, code) in [
        (None, false, "ZeroNeedsTotal"),
        (Some(UNREAD), false, "ZeroNeedsRouter"),
        (Some(signal(2.0)), false, "ZeroNeedsRouter"),
        (Some(signal(0.0)), true, ""),
    ] {
        let mut run = Loop::new(policy(PODS, ZERO), 1);
        let mut last = run.decide(&routed(1, held));
        while run.current > 0 && run.seconds < 101_000 {
            last = run.decide(&routed(1, held));
        }
        assert_eq!(run.current == 0, sleeps, "{held:?}");
        assert_eq!(run.state.asleep, sleeps);
        let has_code = codes(&last).iter().any(|one| one == code);
        assert_eq!(has_code, !sleeps, "{held:?}: {last:?}");
    }
    // Where an external source could wake it, a router that is not read holds nothing.
    let mut run = Loop::new(policy(&format!("minReplicas: 0\n{QUEUE}"), ZERO), 1);
    for (held, count) in [(signal(2.0), 1), (UNREAD, 0)] {
        let until = run.seconds + 1_000;
        let seen = AutoscalerView { held: Some(held), ..idle(1) };
        while run.current > 0 && run.seconds < until {
            run.decide(&seen);
        }
        assert_eq!(run.current, count, "{held:?}");
    }
    // What was held within the time is no idle time.
    let mut run = Loop::new(policy(PODS, ZERO), 1);
    for _ in 0..47 {
        run.decide(&routed(1, Some(signal(0.0))));
    }
    run.decide(&routed(1, Some(signal(1.0))));
    for _ in 0..29 {
        let held = run.decide(&routed(1, Some(signal(0.0))));
        assert_eq!(held.desired, Replicas(1));
    }
    run.decide(&routed(1, Some(signal(0.0))));
    assert_eq!(run.decide(&routed(1, Some(signal(0.0)))).desired, Replicas(0));
}

#[test]
fn requests_in_a_router_wake_one_replica_whatever_sources_report() {
    let failing = format!("minReplicas: 0\n{QUEUE}");
    for spec in [PODS, &failing] {
        for (held, woken) in [(Some(signal(0.0)), 0), (Some(UNREAD), 0), (Some(signal(3.0)), 1)] {
            let mut run = Loop::new(policy(spec, ZERO), 0);
            let mut seen = routed(0, held);
            if spec == failing {
                seen.readings = vec![SourceReading::Total(UNREAD)];
            }
            run.state.asleep = true;
            let decision = run.decide(&seen);
            assert_eq!(decision.desired, Replicas(woken), "{spec} {held:?}");
            let is_woken = codes(&decision).contains(&"RequestsHeld".to_owned());
            assert_eq!(is_woken, woken == 1);
        }
    }
    // Without its router nothing could wake it.
    let mut run = Loop::new(policy(PODS, ZERO), 0);
    assert_eq!(run.decide(&routed(0, None)).desired, Replicas(0));
    run.state.asleep = true;
    assert_eq!(run.decide(&routed(0, None)).desired, Replicas(1));
}
