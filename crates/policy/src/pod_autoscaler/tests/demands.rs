//! Four kinds of silence, and pods that come and go.

use std::collections::BTreeMap;
use std::time::Duration;

use super::over_time::about_to_release;
use super::{READY, at, name, policy, signal, view};
use crate::pod_autoscaler::amounts::{PodsPerReplica, TargetValue};
use crate::pod_autoscaler::demand::{
    AutoscaledPod, MeasuredDemand, PodCounts, SourceGap, SourceReading, measure,
};
use crate::pod_autoscaler::{AutoscalerState, decide};
use crate::signal::{Failure, Signal, StaleBand};
use crate::units::Replicas;

/// The demand of any number of replicas is then finite, as the samples are.
#[test]
fn a_target_is_at_most_what_a_sample_may_be() {
    for accepted in ["1e-3", "1e100"] {
        assert!(TargetValue::parse(accepted).is_ok(), "{accepted}");
    }
    let expected = "must be greater than 0 and at most 1e100; write for example 50";
    for refused in ["0", "1.1e100", "1e308"] {
        let error = TargetValue::parse(refused).unwrap_err();
        assert_eq!(error, expected, "{refused}");
    }
}

/// A signal: a value, `s` or `h` with an old value for growth or for nothing, `x` for a failed read, `a` for
/// an absent sample, `-` for none.
fn sample(text: &str) -> Option<Signal> {
    let age = Duration::from_secs(90);
    let old = |value: &str, band| Signal::Stale { value: value.parse().unwrap(), age, band };
    let why = |why| Some(Signal::Failed { why });
    match text.split_at(1) {
        ("-", _) => None,
        ("x", _) => why(Failure::QueryFailed),
        ("a", _) => why(Failure::Absent),
        ("s", value) => Some(old(value, StaleBand::NoShrink)),
        ("h", value) => Some(old(value, StaleBand::Hold)),
        _ => Some(signal(text.parse().unwrap())),
    }
}

/// A pod: a signal, after `young`, `pending`, `gated`, `draining` or `resharding` with a colon.
fn pod(text: &str) -> (AutoscaledPod, Option<Signal>) {
    let (state, signal) = text.split_once(':').unwrap_or(("", text));
    let state = match state {
        "young" => AutoscaledPod::Ready { ready_for: Duration::from_secs(20) },
        "pending" => AutoscaledPod::Pending,
        "gated" => AutoscaledPod::Gated,
        "draining" => AutoscaledPod::Draining,
        "resharding" => AutoscaledPod::Resharding,
        _ => READY,
    };
    (state, sample(signal))
}

/// Demand at a target of 10, and whether a release may rest on it.
fn demand(current: u32, pods: &str) -> Result<(f64, f64, bool), SourceGap> {
    let measured = measured(current, pods)?;
    let range = measured.range;
    Ok((range.low, range.high, measured.allows_release()))
}

fn measured(current: u32, pods: &str) -> Result<MeasuredDemand, SourceGap> {
    measured_of(current, PodsPerReplica::ONE, pods)
}

fn measured_of(
    current: u32,
    per_replica: PodsPerReplica,
    pods: &str,
) -> Result<MeasuredDemand, SourceGap> {
    let pods: Vec<_> = pods.split_whitespace().map(pod).collect();
    let named = pods.iter().enumerate();
    let all = named.clone().map(|(number, (pod, _))| (name(number), *pod));
    let samples = named.filter_map(|(number, (_, signal))| Some((name(number), (*signal)?)));
    let reading = SourceReading::Pods(samples.collect::<BTreeMap<_, _>>());
    let target = TargetValue::parse("10").unwrap();
    measure(&reading, &all.collect(), Replicas(current), per_replica, target)
}

/// What it shows, replicas, pods, and their demand.
type DemandCase = (&'static str, u32, &'static str, (f64, f64, bool));

const DEMANDS: [DemandCase; 31] = wva_base::cases! {
    ("all measured", 2, "30 5", (35.0, 35.0, true)),
    ("zero is a value", 2, "30 0", (30.0, 30.0, true)),
    ("missing grows nothing", 2, "30 -", (30.0, 40.0, true)),
    ("failed grows nothing", 2, "30 x", (30.0, 40.0, true)),
    ("absent is missing", 2, "30 a", (30.0, 40.0, true)),
    ("old justifies growth", 2, "30 s25", (55.0, 55.0, true)),
    ("old releases nothing", 2, "30 s1", (31.0, 40.0, true)),
    ("older grows nothing", 2, "30 h25", (30.0, 40.0, true)),
    ("young without", 2, "30 young:-", (30.0, 40.0, true)),
    ("young with", 2, "30 young:3", (33.0, 33.0, true)),
    ("pending", 2, "30 pending:-", (30.0, 40.0, true)),
    ("gated", 2, "30 gated:-", (30.0, 30.0, true)),
    ("gated and pending", 3, "30 gated:- pending:-", (30.0, 40.0, true)),
    ("not created", 3, "30", (30.0, 50.0, true)),
    ("resharding", 2, "30 resharding:-", (30.0, 40.0, true)),
    ("resharding, idle", 2, "30 resharding:0", (30.0, 40.0, true)),
    ("resharding, another page", 2, "30 resharding:25", (55.0, 55.0, true)),
    ("draining", 1, "30 draining:7", (30.0, 37.0, true)),
    ("draining in silence", 1, "30 draining:-", (30.0, 40.0, true)),
    ("draining, old", 1, "30 draining:s25", (30.0, 55.0, true)),
    ("draining, too old", 1, "30 draining:h25", (30.0, 40.0, true)),
    ("surge, measured", 1, "30 0", (30.0, 30.0, true)),
    ("surge, missing", 1, "30 -", (30.0, 40.0, true)),
    ("surge, failed", 2, "0 0 x x", (0.0, 20.0, true)),
    ("surge, old", 1, "30 s25", (55.0, 55.0, true)),
    ("surge, too old", 1, "30 h25", (30.0, 40.0, true)),
    ("surge, pending", 1, "30 pending:-", (30.0, 40.0, true)),
    ("surge, gated", 1, "30 gated:-", (30.0, 30.0, true)),
    ("surge, resharding", 1, "0 resharding:-", (0.0, 10.0, true)),
    ("a third", 3, "30 - -", (30.0, 50.0, false)),
    ("a third, resharding", 3, "30 resharding:- resharding:-", (30.0, 50.0, false)),
};

#[test]
fn missing_zero_stale_and_failed_are_four_things() {
    for (case, current, pods, expected) in DEMANDS {
        assert_eq!(demand(current, pods), Ok(expected), "{case}");
    }
}

#[test]
fn each_pod_of_a_replica_carries_a_target() {
    for (current, pods, expected) in [
        (1, "10 10 10", (30.0, 30.0)),
        (2, "10 10 10", (30.0, 60.0)),
        (2, "10 10 10 x - pending:-", (30.0, 60.0)),
        (1, "10 10 10 x", (30.0, 40.0)),
    ] {
        let range = measured_of(current, PodsPerReplica(3), pods).unwrap().range;
        assert_eq!((range.low, range.high), expected, "{current} {pods}");
    }
    let unknown = |pods| measured_of(1, PodsPerReplica(0), pods).map(|_| ());
    assert_eq!(unknown("10 10"), Err(SourceGap::NoPodsPerReplica));
    let nothing = SourceGap::NoServingPod(PodCounts::default());
    assert_eq!(unknown(""), Err(nothing));
}

#[test]
fn a_fleet_is_idle_where_every_serving_pod_reports_zero() {
    for (pods, idle) in [
        ("0 0", true),
        ("0 pending:-", false),
        ("0 1", false),
        ("0 x", false),
        ("0 resharding:-", false),
        ("0 resharding:0", false),
    ] {
        let measured = measured(1, pods).unwrap();
        assert_eq!(measured.is_idle(), idle, "{pods}");
    }
}

#[test]
fn nothing_is_known_without_a_sample() {
    for (pods, text) in [
        ("", "no pod serves"),
        ("pending:-", "no pod serves (1 starting)"),
        ("young:-", "no pod serves (1 starting)"),
        ("young:x", "no pod serves (1 starting)"),
        ("gated:- gated:-", "no pod serves (2 gated)"),
        ("resharding:-", "no pod serves (1 resharding)"),
    ] {
        let gap = demand(1, pods).unwrap_err();
        assert!(matches!(gap, SourceGap::NoServingPod(_)), "{pods}");
        assert_eq!(gap.to_string(), text);
    }
    let (missing, failed, stale) = (
        PodCounts { missing: 1, ..PodCounts::default() },
        PodCounts { failed: 1, ..PodCounts::default() },
        PodCounts { stale: 1, ..PodCounts::default() },
    );
    assert_eq!(demand(1, "-"), Err(SourceGap::NoSample(missing)));
    assert_eq!(demand(1, "x"), Err(SourceGap::NoSample(failed)));
    assert_eq!(demand(1, "h5"), Err(SourceGap::NoSample(stale)));
}

#[test]
fn a_total_is_fresh_old_or_none() {
    let target = TargetValue::parse("10").unwrap();
    let of = |signal: Signal| {
        let reading = SourceReading::Total(signal);
        // What a replica consists of is nothing to a total.
        let measured = [0, 1, 5].map(|pods| {
            let per_replica = PodsPerReplica(pods);
            measure(&reading, &BTreeMap::new(), Replicas(4), per_replica, target)
        });
        assert!(measured.iter().all(|one| *one == measured[0]));
        let [measured, ..] = measured;
        measured.map(|measured| {
            let range = measured.range;
            (range.low, range.high, measured.allows_release())
        })
    };
    assert_eq!(of(signal(25.0)), Ok((25.0, 25.0, true)));
    assert_eq!(of(signal(0.0)), Ok((0.0, 0.0, true)));
    assert_eq!(of(sample("s25").unwrap()), Ok((25.0, 40.0, false)));
    let too_old = Err(SourceGap::NoTotal(Failure::TooOld));
    assert_eq!(of(sample("h25").unwrap()), too_old);
    let failed = of(sample("x").unwrap());
    assert_eq!(failed, Err(SourceGap::NoTotal(Failure::QueryFailed)));
}

#[test]
fn pods_behind_a_gate_have_their_own_word() {
    let starting = PodCounts { loaded: 1, starting: 2, ..PodCounts::default() };
    assert_eq!(starting.to_string(), "1 loaded, 2 starting");
    let gated = PodCounts { starting: 0, gated: 2, ..starting };
    assert_eq!(gated.to_string(), "1 loaded, 2 gated");
}

#[test]
fn a_huge_amount_is_written_in_few_digits() {
    let (policy, state) = (policy("", &[]), AutoscalerState::default());
    let (decision, _) = decide(&policy, &view(1, &[vec![1e99]]), &state, at(100));
    let steps = decision.steps.iter();
    let texts: Vec<String> = steps.map(|step| step.why.to_string()).collect();
    let expected = "pod http://:8000/metrics load: 1e99 now, 1e99 in the short window, 1e99 in the long one, \
                    at 10 a replica (1 loaded)";
    assert!(texts.iter().any(|text| text == expected), "{texts:?}");
}

#[test]
fn a_count_that_only_what_is_seen_now_keeps_is_explained() {
    for strategy in ["APA", "KPA"] {
        for (demand, desired, is_kept) in [(4.0, 2, false), (72.0, 4, true), (40.0, 4, true)] {
            let decision = about_to_release(strategy).share(demand);
            assert_eq!(decision.desired, Replicas(desired), "{strategy} {demand}");
            let texts = decision.steps.iter().map(|step| step.why.to_string());
            let found = texts.filter(|text| text.ends_with(": kept by what is seen now"));
            assert_eq!(found.count(), usize::from(is_kept), "{strategy} {demand}");
        }
    }
}
