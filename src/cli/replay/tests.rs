//! Recordings of one small fleet, and of one PodAutoscaler.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use clap::Parser as _;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{ReplayFlags, ReplayReport, answer};
use crate::policy::document::SnapshotDocument;
use crate::policy::learn;
use crate::policy::params::DynamicSettings;
use crate::policy::pod_autoscaler::amounts::PodsPerReplica;
use crate::policy::pod_autoscaler::demand::SourceReading;
use crate::policy::pod_autoscaler::{AutoscalerState, AutoscalerView, PodAutoscalerObject, decide};
use crate::policy::signal::Signal;
use crate::policy::units::Replicas;
use crate::scratch::Folder;
use crate::version;
use wva_base::moment::{Moment, WallTime};
use wva_recording::{
    AutoscalerInputs, CycleInputs, RecordedAutoscalerDecision, RecordingHeader, SegmentEncoder,
};

fn encoder() -> SegmentEncoder {
    SegmentEncoder::new(RecordingHeader::of("9.9.9"))
}

/// Three cycles, a minute apart, whose KV share grows.
pub(in crate::cli) fn recording(argument: &str) -> Vec<u8> {
    cycles(&mut encoder(), argument)
}

/// Decisions on a `PodAutoscaler`, and the same cycles behind them.
pub(in crate::cli) fn both_recording(argument: &str) -> Vec<u8> {
    named_recording("chat", argument)
}

/// The same, where the `PodAutoscaler` has this name.
pub(in crate::cli) fn named_recording(name: &str, argument: &str) -> Vec<u8> {
    let mut encoder = encoder();
    let mut bytes = autoscalers(&mut encoder, name, argument);
    bytes.extend(cycles(&mut encoder, argument));
    bytes
}

/// Decisions on a `PodAutoscaler` alone.
pub(in crate::cli) fn autoscaler_recording() -> Vec<u8> {
    autoscalers(&mut encoder(), "chat", "--x")
}

fn cycles(encoder: &mut SegmentEncoder, argument: &str) -> Vec<u8> {
    let settings = DynamicSettings::default();
    let mut bytes = Vec::new();
    let mut learned = crate::policy::learned::Learned::default();
    for (minute, kv) in [(0, 0.2), (1, 0.5), (2, 0.78)] {
        let text = format!(
            "{{version: 1, cycle: {}, time: {{now: \"2026-03-01T12:0{minute}:00Z\", uptime: 1{minute}m}}, variants: \
             [{{namespace: ns, name: a, model: m, target: {{current: 1}}, containers: [{{args: ['{argument}']}}], pods: \
             [{{name: p, age: 5m, signals: {{kvUsage: {kv}, queueLength: 0}}}}]}}]}}",
            minute + 1
        );
        let document = SnapshotDocument::parse(&text).unwrap();
        let situation = document.situation(&settings.freshness).unwrap();
        learned = learn(&situation.snapshot, &learned, &settings, situation.now);
        let inputs = CycleInputs {
            now: situation.now,
            generation: 1,
            snapshot: &situation.snapshot,
            learned: &learned,
            settings: &settings,
        };
        let plan = crate::policy::plan(&situation.snapshot, &learned, &settings, 1, situation.now);
        bytes.extend(encoder.encode(&inputs, &plan).unwrap().bytes);
    }
    bytes
}

/// Two decisions on a `PodAutoscaler`, a minute apart, whose external total grows.
fn autoscalers(encoder: &mut SegmentEncoder, name: &str, annotation: &str) -> Vec<u8> {
    let object = format!(
        "{{metadata: {{namespace: ns, name: {name}, annotations: {{example.com/x: '{annotation}'}}}}, spec: {{scaleTargetRef: \
         {{apiVersion: apps/v1, kind: Deployment, name: llm}}, maxReplicas: 5, scalingStrategy: APA, metricsSources: \
         [{{metricSourceType: external, targetMetric: queue, targetValue: '10'}}]}}}}"
    );
    let object: PodAutoscalerObject = serde_yaml::from_str(&object).unwrap();
    let policy = object.check().unwrap();
    let mut state = AutoscalerState::default();
    let mut bytes = Vec::new();
    for (minute, value) in [(0, 9.0), (1, 30.0)] {
        let wall = format!("2026-03-01T12:0{minute}:00Z").parse::<jiff::Timestamp>().unwrap();
        let now = Moment {
            monotonic: Duration::from_mins(10 + minute),
            wall: WallTime(wall.as_millisecond()),
        };
        let age = Duration::ZERO;
        let view = AutoscalerView {
            current: Replicas(1),
            pods_per_replica: PodsPerReplica::ONE,
            pods: BTreeMap::new(),
            readings: vec![SourceReading::Total(Signal::Known { value, age })],
            held: None,
        };
        let (decision, after) = decide(&policy, &view, &state, now);
        let inputs = AutoscalerInputs { now, object: &object, view: &view, state: &state };
        let decided = RecordedAutoscalerDecision::of(&decision, &after).unwrap();
        bytes.extend(encoder.encode_autoscaler(&inputs, &decided).unwrap().bytes);
        state = after;
    }
    bytes
}

/// Writes a file, and returns its path as an argument.
fn written(folder: &Folder, name: &str, content: &[u8]) -> String {
    folder.write(name, content).display().to_string()
}

pub(in crate::cli) fn replayed(arguments: &[&str]) -> Result<ReplayReport, String> {
    let words = ["replay"].iter().chain(arguments);
    answer(&ReplayFlags::try_parse_from(words).unwrap())
}

#[test]
fn a_recording_is_repeated_as_a_whole_and_at_one_time() {
    let folder = Folder::new();
    let file = written(&folder, "recording.gz", &recording("--x"));
    let whole = replayed(&[&file]).unwrap();
    assert!(!whole.has_differences);
    assert_eq!(
        whole.text,
        "3 cycles from 2026-03-01T12:00:00Z to 2026-03-01T12:02:00Z, recorded by wva 9.9.9: \
         every decision is the same\n"
    );
    let one = replayed(&[&file, "--at", "2026-03-01T12:01:59Z"]).unwrap();
    let said = "cycle 2 at 2026-03-01T12:01:00Z: every decision is the same\n";
    assert_eq!(one.text, said);
    let early = replayed(&[&file, "--at", "2026-03-01T11:00:00Z"]).unwrap_err();
    assert!(early.contains("begins at 2026-03-01T12:00:00Z"), "{early}");
    let recorded = replayed(&[&file, "--version-of"]).unwrap();
    let (own, name) = (RecordingHeader::of(version::shown()), version::shown());
    let rest = format!("format 1, learned state {}", own.learned);
    let said = format!("wva 9.9.9, {rest}; this program differs: wva {name}, {rest}\n");
    assert_eq!(recorded.text, said);
    let bytes = cycles(&mut SegmentEncoder::new(own), "--x");
    let ours = written(&folder, "ours.gz", &bytes);
    let recorded = replayed(&[&ours, "--version-of"]).unwrap();
    let said = format!("wva {name}, {rest}; as this program\n");
    assert_eq!(recorded.text, said);
}

#[test]
fn decisions_on_pod_autoscalers_are_repeated_with_those_on_variants() {
    let folder = Folder::new();
    let file = written(&folder, "recording.gz", &both_recording("--x"));
    let whole = replayed(&[&file]).unwrap();
    let said = "3 cycles, 2 decisions on PodAutoscalers from 2026-03-01T12:00:00Z to 2026-03-01T12:02:00Z, recorded by \
                wva 9.9.9: every decision is the same\n";
    assert_eq!(whole.text, said);
    let one = replayed(&[&file, "--at", "2026-03-01T12:00:30Z"]).unwrap();
    // The cycle of that time comes after a later decision.
    assert_eq!(
        one.text,
        "cycle 1 at 2026-03-01T12:00:00Z: every decision is the same\n\
         ns/chat at 2026-03-01T12:00:00Z: every decision is the same\n"
    );
    let settings =
        written(&folder, "settings.yaml", b"saturation: {default: {kvSpareTrigger: 0.4}}");
    let other = replayed(&[&file, "--settings", &settings]).unwrap();
    assert!(other.has_differences && !other.text.contains("chat"), "{}", other.text);
}

#[test]
fn other_settings_show_the_cycles_that_differ() {
    let folder = Folder::new();
    let file = written(&folder, "recording.gz", &recording("--x"));
    let settings =
        written(&folder, "settings.yaml", b"saturation: {default: {kvSpareTrigger: 0.4}}");
    let report = replayed(&[&file, "--settings", &settings]).unwrap();
    assert!(report.has_differences);
    let text = report.text;
    assert!(!text.contains("cycle 1 at "), "{text}");
    for part in [
        "cycle 2 at 2026-03-01T12:01:00Z\n  ns/a\n    recorded  1 -> 1 by saturation",
        "\n    replayed  1 -> 2 by saturation: KV spare",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn settings_name_what_they_leave_at_its_default() {
    let folder = Folder::new();
    let file = written(&folder, "recording.gz", &recording("--x"));
    let recorded = replayed(&[&file]).unwrap().text;
    assert!(!recorded.contains("note: "), "{recorded}");
    for (content, absent) in wva_base::cases! {
        ("", ", like the sections saturation, scaleToZero, queueingModel, serviceClasses"),
        ("GLOBAL_OPT_INTERVAL: 5s", ", like the sections saturation, scaleToZero, queueingModel, serviceClasses"),
        ("saturation: {default: {kvSpareTrigger: 0.4}}", ", like the sections scaleToZero, queueingModel, serviceClasses"),
        ("{saturation: {}, scaleToZero: {}, queueingModel: {}, serviceClasses: {}}", ""),
    } {
        let settings = written(&folder, "settings.yaml", content.as_bytes());
        let text = replayed(&[&file, "--settings", &settings]).unwrap().text;
        let note = format!(
            "\nnote: {settings} replaces all recorded settings; what it does not state is at its default{absent}\n"
        );
        assert!(text.ends_with(&note), "{text}");
    }
}

#[test]
fn a_file_that_is_no_recording_is_named_with_the_remedy() {
    let folder = Folder::new();
    let file = written(&folder, "text", b"no recording");
    let error = replayed(&[&file]).unwrap_err();
    assert!(error.starts_with(&file) && error.contains("name a recording"), "{error}");
    let error = replayed(&["/none/such"]).unwrap_err();
    assert!(error.contains("name a file that can be read"), "{error}");
    let mut cut = recording("--x");
    cut.truncate(cut.len() - 20);
    let file = written(&folder, "cut.gz", &cut);
    let report = replayed(&[&file]).unwrap();
    assert!(!report.has_differences && report.text.starts_with("2 cycles"), "{}", report.text);
}

#[test]
fn the_versions_of_a_recording_that_ends_within_an_entry_are_named() {
    let folder = Folder::new();
    let mut lines = Vec::new();
    let recorded = recording("--x");
    let mut decoder = MultiGzDecoder::new(&*recorded);
    decoder.read_to_end(&mut lines).unwrap_err();
    let versions = |end: usize| {
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        writer.write_all(&lines[..end]).unwrap();
        let file = written(&folder, "recording.gz", &writer.finish().unwrap());
        replayed(&[&file, "--version-of"]).map(|report| report.text)
    };
    let whole = versions(lines.len()).unwrap();
    assert!(!whole.contains("note"), "{whole}");
    let why = "the recording ends within an entry; the entries before are whole";
    let cut = versions(lines.len() - 1);
    assert_eq!(cut, Ok(format!("{whole}note: {why}\n")));
    let error = versions(5).unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn an_entry_that_cannot_be_read_ends_a_recording_behind_the_time_asked_for() {
    let folder = Folder::new();
    let mut lines = Vec::new();
    let mut whole = recording("--x");
    MultiGzDecoder::new(&*whole).read_to_end(&mut lines).unwrap_err();
    let lines: Vec<&str> = str::from_utf8(&lines).unwrap().lines().collect();
    assert_eq!(lines.len(), 4);
    let damaged = |name: &str, line: usize| {
        let mut lines = lines.clone();
        lines[line] = "{\"cycle\": 7}";
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        writer.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        written(&folder, name, &writer.finish().unwrap())
    };
    let third = damaged("third.gz", 3);
    let why = "line 4: invalid type: integer `7`";
    let refused = |file: &str, at: &[&str]| replayed(&[&[file][..], at].concat()).unwrap_err();
    // The whole, and a time that the damaged entry may have.
    assert!(refused(&third, &[]).contains(why));
    let error = refused(&third, &["--at", "2026-03-01T12:01:01Z"]);
    assert!(error.contains(why), "{error}");
    assert!(
        error.ends_with("up to 2026-03-01T12:01:00Z it can be read: give that time to --at"),
        "{error}"
    );
    for (at, cycle) in [
        ("12:00:30", "cycle 1 at 2026-03-01T12:00:00Z"),
        ("12:01:00", "cycle 2 at 2026-03-01T12:01:00Z"),
    ] {
        let at = format!("2026-03-01T{at}Z");
        let report = replayed(&[&third, "--at", &at]).unwrap();
        let begin = format!("{cycle}: every decision is the same\nnote: {why}");
        assert!(report.text.starts_with(&begin), "{}", report.text);
        assert!(
            report.text.ends_with("; the recording is not read any further\n"),
            "{}",
            report.text
        );
    }
    let first = damaged("first.gz", 1);
    let error = refused(&first, &["--at", "2026-03-01T12:00:30Z"]);
    assert!(error.contains("line 2: ") && !error.contains("--at"), "{error}");
    // An end within a line needs no note: what comes before is whole.
    whole.truncate(whole.len() - 20);
    let cut = written(&folder, "cut.gz", &whole);
    let report = replayed(&[&cut, "--at", "2026-03-01T12:01:00Z"]).unwrap();
    assert_eq!(report.text, "cycle 2 at 2026-03-01T12:01:00Z: every decision is the same\n");
}

#[test]
fn a_recording_without_a_cycle_is_refused() {
    let folder = Folder::new();
    let path = written(&folder, "recording", &recording("x"));
    assert!(replayed(&[&path]).unwrap().text.starts_with("3 cycles"));
    let empty = GzEncoder::new(Vec::new(), Compression::default());
    std::fs::write(&path, empty.finish().unwrap()).unwrap();
    let error = replayed(&[&path]).unwrap_err();
    assert!(error.contains("the recording has no cycle"), "{error}");
}
