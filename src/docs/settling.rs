//! A load that doubles and stays, under the arithmetic of AIBrix's APA and under the one here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::check_block;
use crate::policy::pod_autoscaler::amounts::PodsPerReplica;
use crate::policy::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use crate::policy::pod_autoscaler::{AutoscalerState, AutoscalerView, PodAutoscalerObject, decide};
use crate::policy::signal::FreshnessBands;
use crate::policy::units::Replicas;
use wva_base::moment::{Moment, WallTime};

const TICK: u64 = 10;
const END: u64 = 2_400;
const DOUBLES: u64 = 400;
const MOST: u32 = 50;

/// Full pods that requests amount to.
fn load(second: u64) -> u32 {
    if second < DOUBLES { 2 } else { 4 }
}

/// Counts after each tick, from two pods that start at once.
fn counts(mut step: impl FnMut(u64, u32) -> u32) -> Vec<u32> {
    let mut count = 2;
    let ticks = (0..END).step_by(usize::try_from(TICK).unwrap());
    let after = |second| {
        count = step(second, count);
        count
    };
    ticks.map(after).collect()
}

/// AIBrix: the present count by the mean of what pods reported at past counts, and of recommendations of five minutes
/// the smallest for a release.
fn original() -> Vec<u32> {
    let (mut window, mut recommended) = (BTreeMap::new(), BTreeMap::new());
    counts(|second, count| {
        window.insert(second, f64::from(load(second)) / f64::from(count));
        window.retain(|at, _| *at + 180 >= second);
        let entries = f64::from(u32::try_from(window.len()).unwrap());
        let ratio = window.values().sum::<f64>() / entries;
        let raw = (1..=MOST).find(|one| f64::from(*one) >= f64::from(count) * ratio - 1e-9);
        let raw = raw.unwrap_or(MOST);
        let wanted = if ratio > 1.1 {
            raw.min(2 * count)
        } else if ratio < 0.9 {
            raw.max(count / 2)
        } else {
            count
        };
        let wanted = wanted.clamp(1, MOST);
        recommended.insert(second, wanted);
        recommended.retain(|at, _| *at + 300 > second);
        if wanted < count { *recommended.values().min().unwrap() } else { wanted }
    })
}

fn here() -> Vec<u32> {
    let object: PodAutoscalerObject = serde_json::from_value(json!({
        "metadata": {"namespace": "ns", "name": "a", "uid": "u"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "maxReplicas": MOST, "scalingStrategy": "APA",
            "metricsSources": [{"metricSourceType": "custom", "targetMetric": "q", "targetValue": "1"}],
        },
    }))
    .unwrap();
    let policy = object.check().unwrap();
    let mut state = AutoscalerState::default();
    counts(|second, count| {
        let name = |number: u32| -> Arc<str> { format!("p-{number}").into() };
        let pod = AutoscaledPod::Ready { ready_for: Duration::from_hours(1) };
        let each = f64::from(load(second)) / f64::from(count);
        let signal = FreshnessBands::default().judge(each, Duration::ZERO, 0.0..=f64::MAX);
        let view = AutoscalerView {
            current: Replicas(count),
            pods_per_replica: PodsPerReplica::ONE,
            pods: (0..count).map(|number| (name(number), pod)).collect(),
            readings: vec![SourceReading::Pods(
                (0..count).map(|number| (name(number), signal)).collect(),
            )],
            held: None,
        };
        let now = Moment {
            monotonic: Duration::from_secs(second),
            wall: WallTime(i64::try_from(second).unwrap() * 1_000),
        };
        let (decision, next) = decide(&policy, &view, &state, now);
        state = next;
        decision.desired.0
    })
}

/// One column a half minute, one row five pods.
fn plot(original: &[u32], here: &[u32]) -> String {
    let columns = |counts: &[u32]| -> Vec<u32> {
        let parts = counts.chunks(3);
        parts.map(|part| *part.iter().max().unwrap()).collect()
    };
    let (original, here) = (columns(original), columns(here));
    let rows = (0..=10).rev().map(|row: u32| {
        let is_in = |count: u32| (count + 2) / 5 == row;
        let marks = original.iter().zip(&here).map(|(original, here)| {
            match (is_in(*here), is_in(*original)) {
                (true, _) => '=',
                (_, true) => 'o',
                _ => ' ',
            }
        });
        let marks: String = marks.collect();
        format!("{:>4} | {marks}", row * 5)
    });
    let axis = format!("pods +-{}", "-".repeat(original.len()));
    let minutes: Vec<String> = (0..8).map(|five| format!("{:<10}", five * 5)).collect();
    let minutes = format!("       {}min\n", minutes.concat());
    let lines: Vec<String> = rows.chain([axis, minutes]).collect();
    lines.join("\n")
}

/// The counts at which the direction changes.
fn turns(counts: &[u32]) -> Vec<u32> {
    let mut changes = counts.to_vec();
    changes.dedup();
    let inner = changes.windows(3);
    let turns = inner.filter(|three| (three[0] < three[1]) != (three[1] < three[2]));
    turns.map(|three| three[1]).collect()
}

#[test]
fn a_load_that_doubles_settles() {
    let (original, here) = (original(), here());
    assert_eq!(turns(&original)[..5], [6, 2, 23, 2, 50]);
    assert_eq!(turns(&here).len(), 0);
    assert_eq!((here[0], *here.last().unwrap()), (2, 4));
    let file = "docs/development/differences.md";
    check_block(file, "`a_load_that_doubles_settles`", &plot(&original, &here));
}
