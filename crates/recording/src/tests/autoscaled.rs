//! Decisions on PodAutoscalers: a small loop of one object and its target, recorded, repeated, and measured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wva_base::moment::{Moment, WallTime};
use wva_policy::pod_autoscaler::amounts::PodsPerReplica;
use wva_policy::pod_autoscaler::check::AutoscalerPolicy;
use wva_policy::pod_autoscaler::demand::{AutoscaledPod, SourceReading};
use wva_policy::pod_autoscaler::{AutoscalerState, AutoscalerView, PodAutoscalerObject, decide};
use wva_policy::signal::{FreshnessBands, Signal};
use wva_policy::units::Replicas;

use crate::{
    AutoscalerInputs, DecisionDifference, EncodedEntry, RecordedAutoscaler,
    RecordedAutoscalerDecision, RecordedEntry, RecordingHeader, RecordingReader, SegmentEncoder,
    replay_autoscaler,
};

/// Seconds from one decision to the next.
const TICK: u64 = 10;

/// One object whose target follows it.
struct Autoscaled {
    object: PodAutoscalerObject,
    policy: AutoscalerPolicy,
    state: AutoscalerState,
    /// When each pod became ready, in seconds of the process.
    pods: Vec<u64>,
    seconds: u64,
    counts: Vec<u32>,
}

impl Autoscaled {
    fn new(name: &str, strategy: &str) -> Self {
        let object: PodAutoscalerObject = serde_json::from_value(json!({
            "metadata": {
                "namespace": "serving", "name": name, "labels": {"team": "search"},
                "annotations": {
                    "autoscaling.aibrix.ai/scale-down-cooldown-window": "60s",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}",
                },
            },
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "minReplicas": 1, "maxReplicas": 8, "scalingStrategy": strategy,
                "metricsSources": [{
                    "metricSourceType": "pod", "protocolType": "http", "port": "8000", "path": "/metrics",
                    "targetMetric": "vllm:num_requests_running", "targetValue": "10",
                }],
            },
        }))
        .unwrap();
        Self {
            policy: object.check().unwrap(),
            object,
            state: AutoscalerState::default(),
            pods: vec![0],
            seconds: 90_000,
            counts: Vec::new(),
        }
    }

    /// Decides on a load that all ready pods share, and records it.
    fn next(&mut self, encoder: &mut SegmentEncoder, load: f64) -> EncodedEntry {
        self.seconds += TICK;
        let millis = i64::try_from(self.seconds).unwrap() * 1_000 + 1_772_000_000_000;
        let now = Moment {
            // No two ticks are equally late.
            monotonic: Duration::from_nanos(self.seconds * 1_000_000_007),
            wall: WallTime(millis),
        };
        let name = |number: usize| -> Arc<str> { format!("llama-6c9f8d7b5-{number:05}").into() };
        let is_ready = |since: u64| since <= self.seconds;
        let ready = self.pods.iter().filter(|since| is_ready(**since)).count();
        let each = load / f64::from(u32::try_from(ready).unwrap());
        let pods = self.pods.iter().enumerate().map(|(number, since)| {
            let pod = match self.seconds.checked_sub(*since) {
                Some(seconds) => AutoscaledPod::Ready { ready_for: Duration::from_secs(seconds) },
                None => AutoscaledPod::Pending,
            };
            (name(number), pod)
        });
        let age = Duration::from_nanos(1_234_567_891 + self.seconds * 7919 % 1_000_000);
        let ready = (self.pods.iter().enumerate()).filter(|(_, since)| is_ready(**since));
        let samples = ready.map(|(number, _)| {
            let value = (each * 16.0).round() / 16.0;
            let judged = FreshnessBands::default().judge(value, age, 0.0..=f64::MAX);
            (name(number), judged)
        });
        let view = AutoscalerView {
            current: Replicas(u32::try_from(self.pods.len()).unwrap()),
            pods_per_replica: PodsPerReplica::ONE,
            pods: pods.collect(),
            readings: vec![SourceReading::Pods(samples.collect::<BTreeMap<_, Signal>>())],
            held: None,
        };
        let (decision, after) = decide(&self.policy, &view, &self.state, now);
        let inputs =
            AutoscalerInputs { now, object: &self.object, view: &view, state: &self.state };
        let decided = RecordedAutoscalerDecision::of(&decision, &after).unwrap();
        let lines = encoder.encode_autoscaler(&inputs, &decided).unwrap();
        let desired = usize::try_from(decision.desired.0).unwrap();
        self.pods.resize(desired, self.seconds + 30);
        self.counts.push(decision.desired.0);
        self.state = after;
        lines
    }
}

fn entries(recording: &[u8]) -> Vec<RecordedAutoscaler> {
    let mut reader = RecordingReader::new(recording);
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        let RecordedEntry::Autoscaler(recorded) = entry else {
            panic!("{entry:?}");
        };
        entries.push(*recorded);
    }
    entries
}

/// So many ticks of two objects under a load that rises, and the counts of each.
fn recorded(ticks: u64) -> (Vec<u8>, [Vec<u32>; 2]) {
    scene(ticks, |tick| if tick < 30 { 8.0 } else { 35.0 })
}

/// The recording of two objects, KPA and APA, under a load by tick, and the counts of each.
pub(super) fn scene(ticks: u64, load: fn(u64) -> f64) -> (Vec<u8>, [Vec<u32>; 2]) {
    let mut encoder = SegmentEncoder::new(RecordingHeader::of("golden"));
    let mut both = [Autoscaled::new("kpa", "KPA"), Autoscaled::new("apa", "APA")];
    let mut recording = Vec::new();
    for tick in 0..ticks {
        if tick == 100 {
            encoder.begin_segment();
        }
        for one in &mut both {
            let lines = one.next(&mut encoder, load(tick));
            recording.extend(lines.ends);
            recording.extend(lines.bytes);
        }
    }
    (recording, both.map(|one| one.counts))
}

#[test]
fn every_decision_on_a_pod_autoscaler_is_repeated_to_the_bit() {
    let (recording, [kpa, apa]) = recorded(150);
    assert_eq!((kpa[0], apa[0]), (1, 1));
    assert_eq!((kpa[149], apa[149]), (4, 4));
    let read = entries(&recording);
    assert_eq!(read.len(), 300);
    for (place, one) in read.iter().enumerate() {
        let replayed = replay_autoscaler(one).unwrap();
        assert_eq!(replayed.difference, None, "{place}");
        let counts = if place % 2 == 0 { &kpa } else { &apa };
        assert_eq!(one.decided.desired.0, counts[place / 2]);
        let metadata = &one.object.metadata;
        assert!(metadata.labels.is_empty() && metadata.annotations.len() == 1);
        let is_changed = one.decided.current != one.decided.desired;
        assert_eq!(is_changed, !one.decided.steps.is_empty());
    }
    let cycles = RecordingReader::new(&*recording).next_cycle().unwrap();
    assert_eq!(cycles, None);
}

#[test]
fn what_a_decision_is_made_from_and_what_it_is_show_as_a_difference() {
    let (recording, _) = recorded(40);
    let rises = |one: &RecordedAutoscaler| one.decided.current < one.decided.desired;
    let one = entries(&recording).into_iter().find(rises).unwrap();
    let mut other = one.clone();
    other.decided.digest = "0".repeat(16);
    let figures = |other: &RecordedAutoscaler| {
        let Some(DecisionDifference::Figures { named }) =
            replay_autoscaler(other).unwrap().difference
        else {
            panic!("figures differ");
        };
        named
    };
    assert_eq!(figures(&other), Vec::<String>::new());
    let from = other.decided.steps[0].from;
    other.decided.steps[0].from = Replicas(7);
    let said = format!("serving/apa steps 0 from: recorded 7, replayed {from}");
    assert_eq!(figures(&other), [said]);

    let mut other = one.clone();
    other.object.spec.max_replicas = Some(1);
    let difference = replay_autoscaler(&other).unwrap().difference.unwrap();
    let said = difference.to_string();
    assert!(said.starts_with("serving/apa\n    recorded  1 -> 2: apa above"), "{said}");
    assert!(said.contains("\n    replayed  1 -> 1: stable"), "{said}");

    let mut other = one;
    other.object.spec.max_replicas = Some(0);
    let replayed = replay_autoscaler(&other).unwrap();
    let said = replayed.difference.unwrap().to_string();
    assert!(replayed.decision.is_none());
    assert!(said.contains("replayed  none: ") && said.contains("spec.maxReplicas"), "{said}");
}

#[test]
fn a_new_segment_begins_with_whole_decisions() {
    let mut encoder = SegmentEncoder::new(RecordingHeader::of("1.2.3"));
    let mut one = Autoscaled::new("a", "APA");
    let lines: Vec<EncodedEntry> = (0..4)
        .map(|tick| {
            if tick == 3 {
                encoder.begin_segment();
            }
            one.next(&mut encoder, 5.0)
        })
        .collect();
    let begins: Vec<bool> = lines.iter().map(|one| one.begins_segment).collect();
    assert_eq!(begins, [true, false, false, true]);
    assert!(lines[2].bytes.len() * 2 < lines[3].bytes.len());
}

/// A day of 100 objects, measured on a fifth of them over one segment.
#[test]
fn a_day_of_100_pod_autoscalers_has_its_bytes() {
    const TICKS: u64 = 180;
    let mut encoder = SegmentEncoder::new(RecordingHeader::of("1.2.3"));
    let mut all: Vec<Autoscaled> =
        (0..20).map(|number| Autoscaled::new(&format!("llama-{number}"), "APA")).collect();
    let mut bytes = 0;
    for tick in 0..TICKS {
        for (number, one) in all.iter_mut().enumerate() {
            let phase = f64::from(u32::try_from(tick).unwrap()) / 40.0;
            let load = 15.0 + 6.0 * (phase + f64::from(u32::try_from(number).unwrap())).sin();
            let lines = one.next(&mut encoder, load);
            bytes += lines.ends.len() + lines.bytes.len();
        }
    }
    let day = u64::try_from(bytes).unwrap() * 5 * (86_400 / TICK) / TICKS;
    assert!(day < 65_000_000, "{day} bytes a day");
}
