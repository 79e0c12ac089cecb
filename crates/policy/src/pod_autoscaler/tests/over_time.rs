//! Decisions one after the other.

use super::{Loop, READY, codes, name, policy, signal, view};
use crate::pod_autoscaler::amounts::{DemandRange, TargetValue};
use crate::pod_autoscaler::decide::AutoscalerView;
use crate::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use crate::pod_autoscaler::formula::{WindowMeans, kpa, limited};
use crate::signal::{Failure, Signal};
use crate::units::Replicas;

const APA: &str = "scalingStrategy: APA";

/// A total of a service, and no pods.
pub(super) fn total(current: u32, value: f64) -> AutoscalerView {
    AutoscalerView { readings: vec![SourceReading::Total(signal(value))], ..view(current, &[]) }
}

const EXTERNAL: &str = "
    minReplicas: 0
    metricsSources:
    - {metricSourceType: external, targetMetric: queue, targetValue: '10'}
";

#[test]
fn panic_is_entered_holds_its_peak_and_is_left_after_one_long_window() {
    let mut run = Loop::new(policy("maxReplicas: 40", &[]), 2);
    run.run(400, 20.0);
    assert_eq!(run.current, 2);
    // A burst: the mean of a minute is soon more than twice that of three.
    assert_eq!(run.run(50, 120.0), [3, 3, 4, 4, 5]);
    let burst = run.share(120.0);
    assert_eq!(burst.desired, Replicas(10));
    let steps = ["BaseBounds", "Measured", "LargestNeed", "Panic", "RateLimited", "WithinBounds"];
    assert_eq!(codes(&burst), steps);
    let peak = run.current;
    // Over, and held for a long window after the threshold was exceeded last.
    let exceeded = run.state.panic.unwrap().exceeded;
    let counts = run.run(600, 20.0);
    let held: Vec<u32> = counts.iter().copied().take_while(|count| *count == peak).collect();
    let left = exceeded.monotonic.as_secs() + 180;
    assert!(run.state.panic.is_none());
    assert!(u64::try_from(held.len()).unwrap() * 10 + 100_460 >= left, "{counts:?}");
    // Then the release is stabilised and rate-limited.
    assert!(counts.windows(2).all(|pair| pair[1] * 2 + 1 >= pair[0]), "{counts:?}");
    assert_eq!(run.current, 2);
}

#[test]
fn without_history_nothing_is_released() {
    let mut run = Loop::new(policy(APA, &[("scale-down-cooldown-window", "0s")]), 8);
    let first = run.share(10.0);
    assert_eq!(first.desired, Replicas(8));
    assert!(codes(&first).contains(&"ReleaseNeedsHistory".to_owned()), "{first:?}");
    let counts = run.run(170, 10.0);
    assert_eq!(counts, vec![8; 17]);
    assert_eq!(run.run(40, 10.0), [4, 2, 1, 1]);
    // Growth needs none.
    let mut run = Loop::new(policy(APA, &[]), 2);
    assert_eq!(run.share(40.0).desired, Replicas(4));
    assert_eq!(run.share(40.0).reason(), "stable");
}

#[test]
fn a_release_takes_the_largest_and_growth_the_smallest_recommendation() {
    let windows = [("scale-down-cooldown-window", "5m"), ("scale-up-cooldown-window", "90s")];
    let mut run = Loop::new(policy(APA, &windows), 4);
    // Released five minutes after the first recommendation, which is that of the current count.
    let counts = run.run(600, 10.0);
    let released = counts.iter().position(|count| *count < 4).unwrap();
    assert_eq!(
        released, 47,
        "the release was held last at 170 s, then 300 s of recommendations: {counts:?}"
    );
    assert_eq!(run.current, 1);
    // A load of one cycle does not outlast the window; a lasting one does.
    let mut spike = run.run(10, 90.0);
    spike.extend(run.run(400, 10.0));
    assert!(spike.iter().all(|count| *count == 1), "{spike:?}");
    let growth = run.run(120, 90.0);
    assert!(growth[0] == 1 && growth[11] > 1, "{growth:?}");
}

#[test]
fn a_source_without_a_demand_stops_a_release_and_no_growth() {
    let two = "
        scalingStrategy: APA
        metricsSources:
        - {metricSourceType: custom, targetMetric: a, targetValue: '10'}
        - {metricSourceType: external, targetMetric: b, targetValue: '10'}
    ";
    let failed = Signal::Failed { why: Failure::QueryFailed };
    let with = |current, each: f64, other: Signal| {
        let pods = usize::try_from(current).unwrap();
        let mut view = view(current, &[vec![each; pods]]);
        view.readings.push(SourceReading::Total(other));
        view
    };
    let mut run = Loop::new(policy(two, &[("scale-down-cooldown-window", "0s")]), 4);
    for _ in 0..30 {
        run.decide(&with(4, 10.0, signal(40.0)));
    }
    for _ in 0..30 {
        let held = run.decide(&with(4, 1.0, failed));
        assert_eq!(held.desired, Replicas(4));
    }
    let held = run.decide(&with(4, 1.0, failed));
    assert!(codes(&held).contains(&"ReleaseNeedsSource".to_owned()), "{held:?}");
    // The largest need wins, and the failed source is left out of growth.
    assert_eq!(run.decide(&with(4, 1.0, signal(1e6))).desired, Replicas(8));
    let mut run = Loop::new(policy(two, &[]), 4);
    assert_eq!(run.decide(&with(4, 15.0, failed)).desired, Replicas(6));
    let mut run = Loop::new(policy(two, &[]), 4);
    let nothing =
        AutoscalerView { pods: [(name(0), AutoscaledPod::Pending)].into(), ..with(4, 1.0, failed) };
    let decision = run.decide(&nothing);
    assert_eq!(
        (decision.desired, decision.reason()),
        (Replicas(4), "FailedComputeScale".to_owned())
    );
}

#[test]
fn a_release_needs_samples_of_half_of_the_pods() {
    let mut run = Loop::new(policy(APA, &[("scale-down-cooldown-window", "0s")]), 8);
    let with = |silent: usize| {
        let mut view = view(8, &[vec![0.0; 8 - silent]]);
        view.pods = (0..8).map(|number| (name(number), READY)).collect();
        view
    };
    for _ in 0..30 {
        assert_eq!(run.decide(&with(5)).desired, Replicas(8));
    }
    let held = run.decide(&with(5));
    assert!(codes(&held).contains(&"ReleaseNeedsCoverage".to_owned()), "{held:?}");
    // Half is enough, and silent pods count as at target: never below them.
    for _ in 0..30 {
        run.decide(&with(4));
    }
    let released = run.decide(&with(4));
    assert_eq!(released.desired, Replicas(4));
}

#[test]
fn the_last_replica_goes_only_where_asked_for_and_after_idle_time() {
    let mut run = Loop::new(policy(EXTERNAL, &[]), 1);
    for _ in 0..100 {
        let decision = run.decide(&total(1, 0.0));
        assert_eq!(decision.desired, Replicas(1));
    }
    let opted = policy(EXTERNAL, &[("scale-to-zero", "true")]);
    let mut run = Loop::new(opted, 1);
    let mut count = 0;
    while run.current > 0 {
        run.decide(&total(1, 0.0));
        count += 1;
    }
    assert_eq!(count, 31, "idle for 300 s, which covers both windows");
    // At zero a demand wakes one, and then it doubles.
    assert_eq!(run.decide(&total(0, 0.0)).desired, Replicas(0));
    assert_eq!(run.decide(&total(0, 55.0)).desired, Replicas(1));
    assert_eq!(run.decide(&total(1, 55.0)).desired, Replicas(2));
}

/// Four replicas whose release is about to be due.
pub(super) fn about_to_release(strategy: &str) -> Loop {
    let mut run = Loop::new(policy(&format!("scalingStrategy: {strategy}"), &[]), 4);
    let counts = run.run(470, 4.0);
    assert_eq!(counts, vec![4; 47]);
    run
}

#[test]
fn a_release_leaves_room_for_what_is_seen_now() {
    for strategy in ["APA", "KPA"] {
        let mut run = about_to_release(strategy);
        assert_eq!(run.share(4.0).desired, Replicas(2), "{strategy}");
        let mut run = about_to_release(strategy);
        let loaded = run.share(72.0);
        assert!(loaded.desired >= Replicas(4), "{strategy}: {loaded:?}");
        for away in [AutoscaledPod::Resharding, AutoscaledPod::Pending] {
            let mut run = about_to_release(strategy);
            let mut few = view(4, &[vec![1.0]]);
            few.pods.extend((1..4).map(|number| (name(number), away)));
            assert_eq!(run.decide(&few).desired, Replicas(4), "{strategy}");
        }
    }
    // A total, whose mean alone would release.
    for strategy in ["APA", "KPA"] {
        let spec = format!("{EXTERNAL}    scalingStrategy: {strategy}");
        for (now, desired) in [(23.0, 5), (100.0, 10)] {
            let hurried = [("scale-down-cooldown-window", "0s")];
            let mut run = Loop::new(policy(&spec, &hurried), 10);
            // Until the long window is known, nothing is released.
            for _ in 0..18 {
                assert_eq!(run.decide(&total(10, 23.0)).desired, Replicas(10));
            }
            let last = run.decide(&total(10, now));
            assert_eq!(last.desired, Replicas(desired), "{strategy} {now}: {last:?}");
        }
    }
}

#[test]
fn a_lone_request_is_no_panic_while_it_is_carried() {
    let mut run = Loop::new(policy("", &[]), 4);
    run.run(300, 0.0);
    run.share(15.0);
    assert_eq!(run.state.panic, None);
    // At zero nothing is carried.
    let mut run = Loop::new(policy(EXTERNAL, &[]), 0);
    run.decide(&total(0, 0.0));
    run.decide(&total(0, 0.0));
    run.decide(&total(0, 0.0));
    run.seconds += 60;
    run.decide(&total(0, 15.0));
    assert!(run.state.panic.is_some());
}

#[test]
fn a_target_that_nothing_could_wake_keeps_one_replica() {
    let spec = "minReplicas: 0\nscalingStrategy: APA";
    let mut run = Loop::new(policy(spec, &[("scale-to-zero", "true")]), 1);
    assert_eq!(run.run(900, 0.0), vec![1; 90]);
    let kept = run.share(0.0);
    assert!(codes(&kept).contains(&"ZeroNeedsTotal".to_owned()), "{kept:?}");
}

#[test]
fn a_schedule_that_allows_zero_leaves_nothing_asleep_when_it_ends() {
    // The clock of a loop begins at 03:46:40 of a Friday.
    let spec = "
        minReplicas: 2
        schedules: [{name: night, startTime: '00:00', endTime: '03:00', minReplicas: 0}]
        metricsSources:
        - {metricSourceType: external, targetMetric: queue, targetValue: '10'}
    ";
    let wakes = |annotations: &[(&str, &str)]| {
        let mut run = Loop::new(policy(spec, annotations), 0);
        run.decide(&total(0, 0.0)).desired
    };
    assert_eq!(wakes(&[("scale-to-zero", "true")]), Replicas(2));
    assert_eq!(wakes(&[]), Replicas(0));
}

#[test]
fn a_spike_after_a_held_release_waits_for_the_growth_window() {
    let windows = [("scale-up-cooldown-window", "90s")];
    let mut run = Loop::new(policy(APA, &windows), 4);
    // One recommendation by measurement, then none but held releases.
    run.share(40.0);
    run.run(150, 4.0);
    assert_eq!(run.share(4000.0).desired, Replicas(4));
}

#[test]
fn a_changed_window_or_target_forgets_demands() {
    let mut run = Loop::new(policy(APA, &[("scale-down-cooldown-window", "0s")]), 8);
    run.run(180, 10.0);
    for change in [
        "observeWindowSeconds: 240",
        "panicWindowSeconds: 30",
        "metricsSources: [{metricSourceType: pod, protocolType: http, port: '8000', path: /metrics, targetMetric: load, targetValue: '20'}]",
    ] {
        let spec = format!("{APA}\n{change}");
        let mut changed = Loop::new(policy(&spec, &[("scale-down-cooldown-window", "0s")]), 8);
        changed.state = run.state.clone();
        changed.seconds = run.seconds;
        let held = changed.share(10.0);
        assert_eq!(held.desired, Replicas(8), "{change}");
        assert!(codes(&held).contains(&"ReleaseNeedsHistory".to_owned()), "{held:?}");
    }
    assert_eq!(run.share(10.0).desired, Replicas(4));
}

#[test]
fn time_at_zero_is_no_idle_time() {
    let mut run = Loop::new(policy(EXTERNAL, &[("scale-to-zero", "true")]), 0);
    for _ in 0..100 {
        run.decide(&total(0, 0.0));
    }
    // Woken by hand.
    assert_eq!(run.decide(&total(1, 0.0)).desired, Replicas(1));
    assert_eq!(run.decide(&total(1, 0.0)).desired, Replicas(1));
}

#[test]
fn a_failed_source_at_zero_is_a_failure_and_a_demand_wakes_at_once() {
    let two = "
        minReplicas: 0
        metricsSources:
        - {metricSourceType: custom, targetMetric: a, targetValue: '10'}
        - {metricSourceType: external, targetMetric: b, targetValue: '10'}
    ";
    let with = |other: Signal| {
        let mut view = view(0, &[vec![]]);
        view.readings.push(SourceReading::Total(other));
        view
    };
    let failed = Signal::Failed { why: Failure::QueryFailed };
    let windows = [("scale-up-cooldown-window", "90s")];
    let mut run = Loop::new(policy(two, &windows), 0);
    let decision = run.decide(&with(failed));
    assert_eq!(decision.reason(), "FailedComputeScale");
    assert_eq!(run.decide(&with(signal(0.0))).reason(), "stable");
    assert_eq!(run.decide(&with(signal(5.0))).desired, Replicas(1));
}

#[test]
fn a_target_at_zero_without_pods_is_stable() {
    let mut run = Loop::new(policy("minReplicas: 0\nscalingStrategy: APA", &[]), 0);
    let decision = run.share(0.0);
    assert_eq!((decision.desired, decision.reason()), (Replicas(0), "stable".to_owned()));
}

#[test]
fn a_schedule_acts_at_once_and_an_inherited_minimum_wakes_nothing() {
    let spec = "
        scalingStrategy: APA
        minReplicas: 2
        maxReplicas: 30
        schedules: [{name: small, startTime: '00:00', endTime: '23:59', maxReplicas: 3}]
    ";
    let mut run = Loop::new(policy(spec, &[]), 30);
    let cut = run.share(500.0);
    assert_eq!(
        (cut.desired, cut.reason()),
        (Replicas(3), "current replicas exceed maximum".to_owned())
    );
    assert_eq!(codes(&cut), ["ScheduleActive", "AboveMaximum"]);
    let mut run = Loop::new(policy(spec, &[]), 0);
    let asleep = run.share(0.0);
    assert_eq!(
        (asleep.desired, asleep.reason()),
        (Replicas(0), "scaling disabled: current replicas is 0".to_owned())
    );
    assert_eq!(run.state.windows.len(), 0);
}

#[test]
fn the_worked_table_of_totals() {
    // n, stable, panic, panics, result.
    let tuning = policy("", &[]).tuning;
    let target = TargetValue::parse("8").unwrap();
    for (n, stable, panic, panics, result) in [
        (6, 90.0, 100.0, false, 12),
        (5, 20.0, 50.0, true, 7),
        (4, 33.0, 33.0, false, 5),
        (4, 8.4, 8.4, false, 4),
        (7, 4.0, 4.0, false, 3),
        (1, 0.0, 0.0, false, 0),
    ] {
        let means = WindowMeans {
            now: DemandRange::exactly(stable),
            stable: DemandRange::exactly(stable),
            panic: DemandRange::exactly(panic),
        };
        assert_eq!(means.exceed(Replicas(n), target, &tuning), panics, "{n}, {stable}");
        let wanted = kpa(means, panics, Replicas(n), Replicas::ONE, target, &tuning);
        assert_eq!(limited(wanted, Replicas(n), &tuning), Replicas(result), "{n}, {stable}");
    }
}

#[test]
fn a_total_is_compared_with_the_target_under_kpa_and_pods_with_theirs() {
    let external = |strategy: &str| format!("{EXTERNAL}    scalingStrategy: {strategy}");
    for (strategy, demand, desired) in [
        // Four replicas carry 40; 42 is within a tenth of it, and 11 times that of one replica.
        ("KPA", 42.0, 5),
        ("APA", 42.0, 4),
        // Within a tenth of the target itself.
        ("KPA", 10.5, 4),
    ] {
        let mut run = Loop::new(policy(&external(strategy), &[]), 4);
        let decision = run.decide(&total(4, demand));
        assert_eq!(decision.desired, Replicas(desired), "{strategy} {demand}");
    }
    let mut run = Loop::new(policy("", &[]), 4);
    assert_eq!(run.share(42.0).desired, Replicas(4));
    // Where nothing serves, a total within the tolerance is demand.
    let mut run = Loop::new(policy(EXTERNAL, &[]), 0);
    assert_eq!(run.decide(&total(0, 9.5)).desired, Replicas(1));
}

#[test]
fn a_total_that_one_replica_carries_releases_the_others_after_a_long_window() {
    let mut run = Loop::new(policy(EXTERNAL, &[]), 1);
    let counts = |run: &mut Loop, seconds: u64, demand: f64| -> Vec<u32> {
        let mut decide = || run.decide(&total(run.current, demand)).desired.0;
        (0..seconds / 10).map(|_| decide()).collect()
    };
    assert_eq!(counts(&mut run, 400, 10.0), [1; 40]);
    assert_eq!(counts(&mut run, 120, 100.0).last(), Some(&10));
    // Panic lasts for a long window, the mean needs one to come down, the band holds for one, and the stabilisation for
    // five minutes.
    let after = counts(&mut run, 1_500, 10.0);
    assert_eq!(after[..60], [10; 60]);
    assert!(after.is_sorted_by(|before, next| before >= next), "{after:?}");
    assert_eq!(after.last(), Some(&1));
    // A demand that comes back within the band's time is served by what is there.
    assert_eq!(counts(&mut run, 120, 100.0).last(), Some(&10));
    counts(&mut run, 500, 10.0);
    assert_eq!(counts(&mut run, 10, 95.0), [10]);
    // Two replicas' worth is no band of one.
    assert_eq!(counts(&mut run, 1_200, 19.0).last(), Some(&2));
}

/// Whether the decision on a total of so much at a target of 10 and a tolerance of 0.1 is explained by tolerance.
#[test]
fn tolerance_is_named_where_the_demand_lies_within_it() {
    let tolerated = |strategy: &str, current: u32, demand: f64| {
        let spec = format!("scalingStrategy: {strategy}\nmaxReplicas: 20");
        let decision = Loop::new(policy(&spec, &[]), current).share(demand);
        let why = decision.steps.iter().map(|one| one.why.to_string());
        why.filter(|why| why.ends_with("within tolerance")).count() == 1
    };
    for (strategy, current, demand, expected) in [
        ("APA", 4, 40.0, true),
        ("APA", 4, 36.0, true),
        ("APA", 4, 44.0, true),
        ("APA", 4, 45.0, false),
        // It rounds up to the count that exists.
        ("APA", 4, 32.0, false),
        ("APA", 1, 1.0, false),
        ("KPA", 4, 36.0, true),
        ("KPA", 4, 32.0, false),
    ] {
        assert_eq!(tolerated(strategy, current, demand), expected, "{strategy} {current} {demand}");
    }
}
