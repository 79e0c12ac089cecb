//! The ring and the files, fed as the optimizer feeds them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus::{IntCounterVec, Opts};

use super::{
    AutoscalerEntry, CYCLES, CycleRecord, DecisionRecorder, ITEM_BYTES, QUEUE, QUEUE_BYTES,
    RecordFile, RecordWriter, RecorderEntry,
};
use crate::policy::learned::Learned;
use crate::policy::params::DynamicSettings;
use crate::policy::pod_autoscaler::amounts::PodsPerReplica;
use crate::policy::pod_autoscaler::demand::SourceReading;
use crate::policy::pod_autoscaler::{AutoscalerState, AutoscalerView, PodAutoscalerObject, decide};
use crate::policy::signal::Signal;
use crate::policy::snapshot::{ClusterSnapshot, CycleId, MetricsSnapshot};
use crate::policy::units::Replicas;
use crate::policy::{self};
use crate::scratch::Folder;
use crate::settings::statics::RecordSettings;
use wva_base::moment::{Moment, WallTime};
use wva_recording::{
    DecisionRing, RecordedEntry, RecordingHeader, RecordingReader, SegmentEncoder, replay,
    replay_autoscaler,
};

fn unrecorded() -> IntCounterVec {
    IntCounterVec::new(Opts::new("unrecorded", "unrecorded"), &["reason"]).unwrap()
}

fn cycle(number: u64) -> CycleRecord {
    let now = Moment { monotonic: Duration::from_secs(number), wall: WallTime(0) };
    let snapshot = ClusterSnapshot {
        cycle: CycleId(number),
        variants: BTreeMap::new(),
        metrics: Arc::new(MetricsSnapshot::never()),
        direct: Arc::default(),
        gpus: None,
    };
    let (learned, settings) = (Learned::default(), DynamicSettings::default());
    let plan = policy::plan(&snapshot, &learned, &settings, 1, now);
    CycleRecord {
        now,
        generation: 1,
        snapshot,
        learned: Arc::new(learned),
        settings: Arc::new(settings),
        plan: Arc::new(plan),
    }
}

fn entry(number: u64) -> RecorderEntry {
    RecorderEntry::Cycle(Box::new(cycle(number)))
}

fn numbers(source: impl std::io::Read) -> Vec<u64> {
    let mut reader = RecordingReader::new(source);
    let mut numbers = Vec::new();
    while let Some(cycle) = reader.next_cycle().unwrap() {
        assert_eq!(replay(&cycle, None).unwrap().differences, []);
        numbers.push(cycle.snapshot.cycle.0);
    }
    numbers
}

fn writer(path: &Path, limit: u64) -> RecordWriter {
    RecordWriter {
        cycles: Arc::default(),
        bytes: Arc::default(),
        encoder: SegmentEncoder::new(RecordingHeader::of("1")),
        ring: Arc::new(Mutex::new(DecisionRing::new(1_000_000))),
        file: Some(RecordFile::new(path.to_owned(), limit)),
        unrecorded: unrecorded(),
    }
}

#[test]
fn nothing_runs_where_nothing_is_to_be_recorded() {
    let settings = RecordSettings { history_bytes: 0, file: None, file_bytes: 0 };
    let recorder = DecisionRecorder::start(&settings, "1".to_owned(), unrecorded());
    assert!(!recorder.is_on());
    recorder.record(cycle(1));
    assert_eq!(recorder.recording(), None);
}

#[test]
fn files_are_rotated_and_each_is_a_recording() {
    let folder = Folder::new();
    let path = folder.join("decisions");
    let mut writer = writer(&path, 8_000);
    for number in 1..=400 {
        writer.take(&entry(number));
    }
    let mut files: Vec<PathBuf> =
        fs::read_dir(&*folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 4, "{files:?}");
    let sizes = files.iter().map(|file| fs::metadata(file).unwrap().len());
    assert!(sizes.sum::<u64>() < 16_000);
    let mut last = Vec::new();
    for file in ["decisions.3", "decisions.2", "decisions.1", "decisions"] {
        last.extend(numbers(File::open(folder.join(file)).unwrap()));
    }
    assert_eq!(last.last(), Some(&400));
    assert!(last.windows(2).all(|pair| pair[1] == pair[0] + 1), "{last:?}");
    assert_eq!(writer.unrecorded.with_label_values(&["file"]).get(), 0);
    let ring = numbers(&*super::locked(&writer.ring).recording());
    assert_eq!(ring.last(), Some(&400));
}

#[test]
fn a_file_of_the_process_before_is_kept() {
    let folder = Folder::new();
    let path = folder.join("decisions");
    for number in 1..=2 {
        writer(&path, 1_000_000).take(&entry(number));
    }
    assert_eq!(numbers(File::open(folder.join("decisions.1")).unwrap()), [1]);
    assert_eq!(numbers(File::open(&path).unwrap()), [2]);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}

#[test]
fn only_a_file_with_content_moves_the_older_ones() {
    let folder = Folder::new();
    let path = folder.join("decisions");
    let names = || {
        let entries = fs::read_dir(&*folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    fs::write(folder.join("decisions.1"), "older").unwrap();
    super::rotate(&path).unwrap();
    assert_eq!(names(), ["decisions.1"], "missing");
    File::create(&path).unwrap();
    super::rotate(&path).unwrap();
    assert_eq!(names(), ["decisions.1"], "empty");
    writer(&path, 1_000_000).take(&entry(1));
    assert_eq!(names(), ["decisions", "decisions.1"]);
    super::rotate(&path).unwrap();
    assert_eq!(names(), ["decisions.1", "decisions.2"]);
    assert_eq!(fs::read(folder.join("decisions.2")).unwrap(), b"older");
}

#[test]
fn what_cannot_be_written_is_counted_and_begins_again() {
    let folder = Folder::new();
    let path = folder.join("later").join("decisions");
    let mut writer = writer(&path, 1_000_000);
    for number in 1..=3 {
        writer.take(&entry(number));
    }
    let failures = || writer.unrecorded.with_label_values(&["file"]).get();
    assert_eq!(failures(), 3);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for number in 4..=5 {
        writer.take(&entry(number));
    }
    assert_eq!(numbers(File::open(&path).unwrap()), [4, 5]);
    let ring = numbers(&*super::locked(&writer.ring).recording());
    assert_eq!(ring, [1, 2, 3, 4, 5]);
}

/// A decision on a `PodAutoscaler` without anything to measure.
fn autoscaler() -> AutoscalerEntry {
    let object = serde_yaml::from_str::<PodAutoscalerObject>(
        "{metadata: {namespace: ns, name: a}, spec: {scaleTargetRef: {kind: Deployment, name: a}, maxReplicas: 3, \
         scalingStrategy: APA, metricsSources: [{metricSourceType: external, targetMetric: m, targetValue: '1'}]}}",
    )
    .unwrap();
    let policy = object.check().unwrap();
    let view = AutoscalerView {
        current: Replicas(0),
        pods_per_replica: PodsPerReplica::ONE,
        pods: BTreeMap::new(),
        readings: Vec::new(),
        held: None,
    };
    let before = AutoscalerState::default();
    let now = cycle(1).now;
    let (decision, after) = decide(&policy, &view, &before, now);
    AutoscalerEntry { now, object: Arc::new(object), view, before, decision, after }
}

#[test]
fn a_full_queue_drops_the_newest_entry_and_counts_it() {
    let (entries, receiver) = std::sync::mpsc::sync_channel(QUEUE);
    let counter = unrecorded();
    let recorder = DecisionRecorder(Some(Arc::new(super::RecorderQueue {
        entries,
        cycles: Arc::default(),
        bytes: Arc::default(),
        ring: Arc::new(Mutex::new(DecisionRing::new(0))),
        unrecorded: counter.clone(),
    })));
    let dropped = || counter.with_label_values(&["queue-full"]).get();
    let room = u64::try_from(CYCLES).unwrap();
    (1..=room).for_each(|number| recorder.record(cycle(number)));
    assert_eq!(dropped(), 0);
    recorder.record(cycle(room + 1));
    assert_eq!(dropped(), 1);
    (CYCLES..QUEUE).for_each(|_| recorder.record_autoscaler(autoscaler));
    assert_eq!(dropped(), 1, "cycles leave room for PodAutoscalers");
    recorder.record_autoscaler(autoscaler);
    assert_eq!(dropped(), 2);
    let waiting: Vec<u64> = receiver
        .try_iter()
        .filter_map(|entry| match entry {
            RecorderEntry::Cycle(cycle) => Some(cycle.snapshot.cycle.0),
            RecorderEntry::Autoscaler(_) => None,
        })
        .collect();
    assert_eq!(waiting, (1..=room).collect::<Vec<_>>());
    drop(receiver);
    recorder.record_autoscaler(autoscaler);
    assert_eq!(counter.with_label_values(&["stopped"]).get(), 1);
}

/// About a sixth of the bytes that may wait.
fn large() -> AutoscalerEntry {
    let mut entry = autoscaler();
    let items = QUEUE_BYTES / ITEM_BYTES / 6;
    let age = Duration::ZERO;
    let pods = (0..items).map(|pod| (Arc::from(pod.to_string()), Signal::KnownZero { age }));
    entry.view.readings = vec![SourceReading::Pods(pods.collect())];
    entry
}

#[test]
fn large_entries_fill_the_queue_before_their_number_does() {
    let (entries, receiver) = std::sync::mpsc::sync_channel(QUEUE);
    let folder = Folder::new();
    let mut writer = writer(&folder.join("decisions"), 1_000_000);
    let counter = unrecorded();
    let recorder = DecisionRecorder(Some(Arc::new(super::RecorderQueue {
        entries,
        cycles: Arc::default(),
        bytes: Arc::clone(&writer.bytes),
        ring: Arc::new(Mutex::new(DecisionRing::new(0))),
        unrecorded: counter.clone(),
    })));
    let dropped = || counter.with_label_values(&["queue-full"]).get();
    let large = large();
    let record = || recorder.record_autoscaler(|| large.clone());
    (0..5).for_each(|_| record());
    assert_eq!(dropped(), 0);
    record();
    record();
    assert_eq!(dropped(), 2, "what is left out takes no room");
    writer.take(&receiver.try_recv().unwrap());
    record();
    assert_eq!(dropped(), 2);
    assert_eq!(receiver.try_iter().count(), 5);
}

#[test]
fn decisions_of_both_kinds_are_in_the_ring_in_their_order() {
    let folder = Folder::new();
    let mut writer = writer(&folder.join("decisions"), 1_000_000);
    writer.cycles.store(2, Ordering::Relaxed);
    let autoscaler = || RecorderEntry::Autoscaler(Box::new(autoscaler()));
    for entry in [autoscaler(), entry(1), autoscaler(), entry(2), autoscaler()] {
        writer.take(&entry);
    }
    assert_eq!(writer.cycles.load(Ordering::Relaxed), 0);
    let recording = super::locked(&writer.ring).recording();
    let mut reader = RecordingReader::new(&*recording);
    let mut read = Vec::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        read.push(match entry {
            RecordedEntry::Cycle(cycle) => cycle.snapshot.cycle.to_string(),
            RecordedEntry::Autoscaler(recorded) => {
                assert_eq!(replay_autoscaler(&recorded).unwrap().difference, None);
                recorded.key().to_string()
            }
        });
    }
    assert_eq!(read, ["ns/a", "1", "ns/a", "2", "ns/a"]);
}
