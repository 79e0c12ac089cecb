//! Demands that were not seen for a while.

use super::over_time::about_to_release;
use super::{Loop, codes, policy, view};
use crate::pod_autoscaler::decide::{AutoscalerDecision, AutoscalerView};
use crate::units::Replicas;

#[test]
fn a_release_after_a_gap_of_more_than_a_minute_needs_a_long_window_again() {
    for strategy in ["KPA", "APA"] {
        for (window, gap, is_gap) in [
            (180, 60, false),
            (180, 70, true),
            (180, 170, true),
            (600, 60, false),
            (600, 580, true),
            (3_600, 3_540, true),
        ] {
            let hurried = [("scale-down-cooldown-window", "0s"), ("max-scale-down-rate", "10")];
            let spec = format!("scalingStrategy: {strategy}\nobserveWindowSeconds: {window}");
            let mut run = Loop::new(policy(&spec, &hurried), 10);
            run.run(window + 10, 100.0);
            assert_eq!(run.current, 10);
            run.seconds += gap - 10;
            let counts = run.run(window, 5.0);
            let is_held = counts.iter().all(|count| *count == 10);
            assert_eq!(is_held, is_gap, "{strategy} {window} {gap}: {counts:?}");
            assert_eq!(run.share(5.0).desired, Replicas(1), "{strategy} {window}");
        }
    }
}

/// A release that history holds is a recommendation of the current count, so that the cooldown begins after it.
#[test]
fn a_release_after_a_gap_waits_for_a_long_window_and_then_for_the_cooldown() {
    for (cooldown, gap, first) in
        [("300s", 10, 300), ("300s", 70, 470), ("60s", 10, 60), ("60s", 70, 230)]
    {
        let windows = [("scale-down-cooldown-window", cooldown)];
        let mut run = Loop::new(policy("scalingStrategy: APA", &windows), 10);
        assert_eq!(run.run(400, 100.0), [10; 40]);
        run.seconds += gap - 10;
        let held = run.run(first, 0.0);
        assert!(held.iter().all(|count| *count == 10), "{cooldown} {gap}: {held:?}");
        let released = run.share(0.0);
        assert!(released.desired < Replicas(10), "{cooldown} {gap}: {released:?}");
    }
}

/// A tick at which no source has a demand.
fn fail(run: &mut Loop) -> AutoscalerDecision {
    let pods = usize::try_from(run.current).unwrap();
    run.decide(&AutoscalerView { readings: Vec::new(), ..view(run.current, &[vec![1.0; pods]]) })
}

#[test]
fn a_tick_without_a_demand_delays_a_release_by_itself_alone() {
    let mut run = about_to_release("APA");
    assert_eq!(run.share(4.0).desired, Replicas(2));
    let mut run = about_to_release("APA");
    let failed = fail(&mut run);
    assert_eq!((failed.desired, failed.reason()), (Replicas(4), "FailedComputeScale".to_owned()));
    assert_eq!(codes(&failed), ["BaseBounds", "Unmeasured", "NothingMeasured"]);
    assert_eq!(run.share(4.0).desired, Replicas(2));
}

#[test]
fn reads_that_fail_now_and_then_stop_no_growth() {
    for (every, name) in [(usize::MAX, "none"), (6, "every 6th")] {
        let windows = [("scale-up-cooldown-window", "60s")];
        let mut run = Loop::new(policy("scalingStrategy: APA", &windows), 4);
        let counts: Vec<u32> = (1..=12_usize)
            .map(|tick| {
                if tick.is_multiple_of(every) {
                    let failed = fail(&mut run);
                    assert_eq!(failed.reason(), "FailedComputeScale");
                } else {
                    run.share(100.0);
                }
                run.current
            })
            .collect();
        assert_eq!(counts, [4, 4, 4, 4, 4, 4, 8, 10, 10, 10, 10, 10], "{name}");
    }
}
