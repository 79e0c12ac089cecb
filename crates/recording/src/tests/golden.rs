//! Recorded scenes of variants, and one of PodAutoscalers. `UPDATE=1 cargo test -p wva-recording golden` records them again; their texts show
//! every changed decision for review.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use wva_policy::params::SaturationMethod::{self, Percentage, Slo, Tokens};
use wva_policy::plan::Plan;

use super::autoscaled;
use super::fleet::{Fleet, settings};
use crate::cycle::figures;
use crate::{
    DecisionDifference, RecordedCycle, RecordedEntry, RecordingHeader, RecordingReader,
    SegmentEncoder, replay, replay_autoscaler,
};

const CYCLES: u64 = 14;

/// A name, the method, and what is special.
type Scene = (&'static str, SaturationMethod, fn(&mut Fleet));

const SCENES: [Scene; 10] = [
    ("percentages-rise", Percentage, |fleet| {
        fleet.load = Some(|cycle| if cycle < 4 { 0.5 } else { 1.6 });
    }),
    ("percentages-fall", Percentage, |fleet| {
        fleet.load = Some(|cycle| if cycle < 4 { 1.2 } else { 0.1 });
    }),
    ("percentages-silent", Percentage, |fleet| {
        fleet.reports = |cycle| cycle < 5;
    }),
    ("percentages-slow-start", Percentage, |fleet| {
        fleet.load = Some(|_| 1.6);
        fleet.start = 600;
    }),
    ("percentages-limited", Percentage, |fleet| {
        fleet.load = Some(|_| 1.6);
        fleet.gpus = Some(5);
        fleet.settings.limited_mode = true;
    }),
    ("tokens-rise", Tokens, |fleet| {
        fleet.load = Some(|cycle| if cycle < 4 { 0.4 } else { 1.7 });
    }),
    ("tokens-fall", Tokens, |fleet| {
        fleet.load = Some(|cycle| if cycle < 6 { 1.5 } else { 0.1 });
    }),
    ("tokens-flicker", Tokens, |fleet| {
        fleet.reports = |cycle| cycle % 3 != 0;
    }),
    ("slo-rise", Slo, |fleet| {
        fleet.load = Some(|cycle| if cycle < 4 { 0.4 } else { 1.7 });
    }),
    ("slo-silent", Slo, |fleet| {
        fleet.reports = |cycle| cycle < 5;
    }),
];

const AUTOSCALED: &str = "pod-autoscalers";

fn recorded(name: &str) -> Vec<u8> {
    let scene = SCENES.iter().find(|scene| scene.0 == name);
    scene.map_or_else(pod_autoscalers, record)
}

/// Growth, a burst, and releases of a KPA and an APA object.
fn pod_autoscalers() -> Vec<u8> {
    let load = |tick| match tick {
        0..24 => 8.0,
        24..50 => 38.0,
        _ => 6.0,
    };
    autoscaled::scene(90, load).0
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/recordings")
}

fn record((_, method, special): &Scene) -> Vec<u8> {
    let mut fleet = Fleet::new(4, 6, settings(*method));
    special(&mut fleet);
    let mut encoder = SegmentEncoder::new(RecordingHeader::of("golden"));
    let mut recording = Vec::new();
    for number in 0..CYCLES {
        // The first cycle of a segment has its figures.
        if number == CYCLES / 2 {
            encoder.begin_segment();
        }
        let cycle = fleet.next();
        let line = encoder.encode(&cycle.inputs(&fleet.settings), &cycle.plan).unwrap();
        recording.extend(line.ends);
        recording.extend(line.bytes);
    }
    recording
}

/// Whether figures are the same but for the last bits of their numbers.
fn is_near(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= 1e-9 * one.abs().max(1.0)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_near(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_same = |name: &String| {
                let other = other.get(name);
                other.is_some_and(|other| is_near(&one[name], other))
            };
            one.len() == other.len() && one.keys().all(is_same)
        }
        _ => one == other,
    }
}

/// The objects whose recorded figures are not those of this program.
fn stale(cycle: &RecordedCycle, plan: &Plan) -> Vec<String> {
    let recorded = &cycle.decided.figures;
    let objects = figures(plan).map(Result::unwrap);
    let stale = objects.filter(|(object, now)| {
        let then = recorded.get(object);
        then.is_some_and(|then| !is_near(then, now))
    });
    stale.map(|(object, _)| format!("figures of {object}")).collect()
}

/// Every decision of this program on a recording, and what differs from it.
fn decisions(recording: &[u8]) -> (String, Vec<String>) {
    let mut reader = RecordingReader::new(recording);
    let (mut text, mut differences) = (String::new(), Vec::new());
    let (mut place, mut last) = (0, BTreeMap::new());
    while let Some(entry) = reader.next_entry().unwrap() {
        let cycle = match entry {
            RecordedEntry::Cycle(cycle) => cycle,
            RecordedEntry::Autoscaler(recorded) => {
                let replayed = replay_autoscaler(&recorded).unwrap();
                let decision = replayed.decision.unwrap();
                let (current, desired) = (decision.current, decision.desired);
                let (key, reason) = (recorded.key(), decision.reason());
                place += 1;
                let line = format!("{key} {current} -> {desired} {reason}");
                if last.insert(key, line.clone()).as_ref() != Some(&line) {
                    writeln!(text, "{place} {line}").unwrap();
                }
                let differing = replayed.difference;
                let differing =
                    differing.filter(|one| !matches!(one, DecisionDifference::Figures { .. }));
                differences.extend(differing.map(|one| format!("{place}: {one}")));
                continue;
            }
        };
        let replayed = replay(&cycle, None).unwrap();
        let number = cycle.snapshot.cycle;
        // Logarithms and exponents of another machine may differ in their last bit.
        let differing = (replayed.differences.iter())
            .filter(|one| !matches!(one, DecisionDifference::Figures { .. }));
        differences.extend(differing.map(|one| format!("cycle {number}: {one}")));
        if text.is_empty() && cycle.decided.figures.is_empty() {
            differences.push("no figure is recorded".to_owned());
        }
        let stale = stale(&cycle, &replayed.plan).into_iter();
        differences.extend(stale.map(|one| format!("cycle {number}: {one}")));
        for (key, decision) in &replayed.plan.decisions {
            let count =
                |count: Option<wva_policy::units::Replicas>| count.map_or(0, |count| count.0);
            let (current, target) = (count(decision.current), count(decision.target));
            writeln!(text, "{number} {key} {current} -> {target} {}", decision.reason()).unwrap();
        }
    }
    (text, differences)
}

#[test]
fn every_golden_recording_is_repeated() {
    let is_update = std::env::var_os("UPDATE").is_some();
    fs::create_dir_all(folder()).unwrap();
    let mut all = String::new();
    let mut differences = Vec::new();
    let names = SCENES.iter().map(|scene| scene.0);
    for name in names.chain([AUTOSCALED]) {
        let path = folder().join(format!("{name}.jsonl.gz"));
        if is_update {
            fs::write(&path, recorded(name)).unwrap();
        }
        let stored = fs::read(&path).unwrap_or_default();
        let (text, differing) = decisions(&stored);
        assert!(stored.len() < 40_000, "{name}: {} bytes", stored.len());
        writeln!(all, "{name}\n{text}").unwrap();
        differences.extend(differing.into_iter().map(|one| format!("{name}: {one}")));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let path = folder().join("decisions.txt");
    if is_update {
        fs::write(&path, &all).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == all, "decisions.txt is out of date; see the header of this file");
}
