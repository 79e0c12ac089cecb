//! Whole recordings: written, read, repeated, damaged, and bounded.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use wva_policy::key::VariantKey;
use wva_policy::params::{AnalyzerSettings, SaturationMethod};
use wva_policy::queueing::LearnedParameters;

use super::fleet::{Cycle, Fleet, settings};
use crate::{
    DecisionDifference, DecisionRing, EncodedEntry, MAX_LINE, RecordedCycle, RecordingError,
    RecordingHeader, RecordingReader, SegmentEncoder, replay,
};

fn encoder() -> SegmentEncoder {
    SegmentEncoder::new(RecordingHeader::of("1.2.3"))
}

fn next(fleet: &mut Fleet, encoder: &mut SegmentEncoder) -> (Cycle, EncodedEntry) {
    let cycle = fleet.next();
    let inputs = cycle.inputs(&fleet.settings);
    let line = encoder.encode(&inputs, &cycle.plan).unwrap();
    (cycle, line)
}

/// The numbers of all cycles, each of which is decided as recorded.
fn repeated(recording: &[u8]) -> Vec<u64> {
    let mut reader = RecordingReader::new(recording);
    let mut read = Vec::new();
    while let Some(cycle) = reader.next_cycle().unwrap() {
        assert_eq!(replay(&cycle, None).unwrap().differences, []);
        read.push(cycle.snapshot.cycle.0);
    }
    read
}

fn recorded(count: usize, method: SaturationMethod) -> (Vec<Cycle>, Vec<u8>) {
    record(count, Fleet::new(4, 6, settings(method)))
}

fn record(count: usize, mut fleet: Fleet) -> (Vec<Cycle>, Vec<u8>) {
    let mut encoder = encoder();
    let mut recording = Vec::new();
    let mut cycles = Vec::new();
    for _ in 0..count {
        let (cycle, line) = next(&mut fleet, &mut encoder);
        recording.extend(line.ends);
        recording.extend(line.bytes);
        cycles.push(cycle);
    }
    (cycles, recording)
}

#[test]
fn every_decision_is_repeated_to_the_bit() {
    for method in [SaturationMethod::Percentage, SaturationMethod::Tokens, SaturationMethod::Slo] {
        let (cycles, recording) = recorded(130, method);
        let mut reader = RecordingReader::new(&*recording);
        let mut changes = 0;
        for cycle in &cycles {
            let read = reader.next_cycle().unwrap().unwrap();
            assert_eq!(read.snapshot, cycle.snapshot);
            assert_eq!(read.learned.slo, cycle.learned.slo);
            assert_eq!(read.learned.tokens, cycle.learned.tokens);
            let replayed = replay(&read, None).unwrap();
            assert_eq!(replayed.differences, []);
            assert_eq!(replayed.plan, cycle.plan);
            let decisions = cycle.plan.decisions.values();
            changes += decisions.filter(|decision| decision.current != decision.target).count();
        }
        // Without objectives the SLO analyzer scales nothing.
        let is_scaled = changes > 0 || method == SaturationMethod::Slo;
        assert!(is_scaled, "{method:?}: nothing was ever scaled");
        assert!(reader.next_cycle().unwrap().is_none());
        assert_eq!(reader.header().unwrap().version, "1.2.3");
    }
}

#[test]
fn what_a_listed_queueing_model_learned_is_recorded() {
    for (enabled, is_recorded) in [(false, false), (true, true)] {
        let mut settings = settings(SaturationMethod::Tokens);
        let entry = settings.saturation.entries.global.default.as_mut().unwrap();
        entry.analyzers = Some(vec![AnalyzerSettings {
            kind: "queueing-model".to_owned(),
            enabled,
            score: 1.0,
            scale_up_threshold: None,
            scale_down_boundary: None,
        }]);
        let (cycles, recording) = record(20, Fleet::new(4, 6, settings));
        let mut reader = RecordingReader::new(&*recording);
        let mut last = None;
        for cycle in &cycles {
            let read = reader.next_cycle().unwrap().unwrap();
            assert_eq!(replay(&read, None).unwrap().plan, cycle.plan);
            last = Some((read.learned.queueing, &cycle.learned.queueing));
        }
        let (read, learned) = last.unwrap();
        assert_ne!(*learned, LearnedParameters::default());
        assert_eq!(read == *learned, is_recorded);
    }
}

#[test]
fn other_settings_show_as_differences() {
    let (_, recording) = recorded(3, SaturationMethod::Percentage);
    let mut reader = RecordingReader::new(&*recording);
    let cycle = reader.next_cycle().unwrap().unwrap();
    let decided = replay(&cycle, Some(&cycle.settings)).unwrap();
    assert_eq!(decided.differences, []);
    let mut eager = cycle.settings.clone();
    let entry = eager.saturation.entries.global.default.as_mut().unwrap();
    entry.kv_spare_trigger = Some(0.79);
    // The same count by the same stage, in other words.
    let replayed = replay(&cycle, Some(&eager)).unwrap();
    assert_ne!(replayed.plan.decisions, decided.plan.decisions);
    assert_eq!(replayed.differences, []);
    let entry = eager.saturation.entries.global.default.as_mut().unwrap();
    (entry.kv_spare_trigger, entry.queue_spare_trigger) = (Some(0.0), Some(0.0));
    let differences = replay(&cycle, Some(&eager)).unwrap().differences;
    let [DecisionDifference::Variant { recorded: Some(before), replayed: Some(after), .. }, ..] =
        &*differences
    else {
        panic!("{differences:?}");
    };
    assert_ne!(before, after);
    let text = differences[0].to_string();
    assert!(text.contains("\n    recorded  2 -> 3 by saturation: queue spare"), "{text}");
    assert!(text.contains("\n    replayed  2 -> 2"), "{text}");
    let mut other = cycle.clone();
    other.decided.digest.clear();
    let differing = |cycle: &RecordedCycle| replay(cycle, None).unwrap().differences;
    let named = Vec::new();
    assert_eq!(differing(&other), [DecisionDifference::Figures { named }]);
    let figures = other.decided.figures.get_mut("serving/llama-0").unwrap();
    let highest = figures["figures"]["max_kv"].take();
    figures["figures"]["max_kv"] = json!(9.5);
    let said = format!(
        "the decisions are the same, their figures differ\n    \
         serving/llama-0 figures max_kv: recorded 9.5, replayed {highest}"
    );
    assert_eq!(differing(&other)[0].to_string(), said);
    for figures in other.decided.figures.values_mut() {
        *figures = json!({ "long": "x".repeat(100) });
    }
    let differences = differing(&other);
    let [DecisionDifference::Figures { named }] = &*differences else {
        panic!("{differences:?}");
    };
    assert_eq!(named.len(), 8);
    assert!(named.iter().all(|one| one.len() < 200), "{named:?}");
    // Cycles behind it have the digest alone.
    let mut later = reader.next_cycle().unwrap().unwrap();
    later.decided.digest.clear();
    let named = Vec::new();
    assert_eq!(differing(&later), [DecisionDifference::Figures { named }]);
}

#[test]
fn a_recording_that_ends_anywhere_is_read_up_to_there() {
    let (_, recording) = recorded(70, SaturationMethod::Percentage);
    let count = |bytes: &[u8]| {
        let mut reader = RecordingReader::new(bytes);
        let mut cycles = 0;
        loop {
            match reader.next_cycle() {
                Ok(Some(_)) => cycles += 1,
                Ok(None) => return (cycles, None),
                Err(error) => return (cycles, Some(error)),
            }
        }
    };
    assert!(matches!(count(&recording), (70, None)));
    let mut before = 70;
    for cut in 1..20 {
        let (cycles, error) = count(&recording[..recording.len() - cut * recording.len() / 20]);
        assert!(cycles <= before);
        before = cycles;
        let is_end =
            matches!(error, None | Some(RecordingError::Truncated | RecordingError::Unreadable(_)));
        assert!(is_end, "{error:?}");
    }
    assert!(before < 5);
}

#[test]
fn what_is_no_recording_is_named() {
    let compressed = |text: &str| {
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap()
    };
    for (bytes, said) in [
        (b"no gzip".to_vec(), "name a recording as DECISION_RECORD_FILE"),
        (compressed("{}\n"), "line 1: "),
        (compressed("{\"delta\": {}}\n"), "line 1: a difference does not fit"),
        (compressed("{\"header\": {\"format\": 9, \"version\": \"7\"}}\n"), "replay it with wva 7"),
        (compressed("{\"cycle\": {}}\n"), "it was recorded by version ?"),
        (compressed("{\"cycle\": "), "ends within an entry"),
    ] {
        let error = RecordingReader::new(&*bytes).next_cycle().unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let empty = RecordingReader::new(&*compressed("")).next_cycle();
    assert!(matches!(empty, Ok(None)));
    let long = compressed(&" ".repeat(MAX_LINE + 2));
    assert!(long.len() < 100_000, "a small file may hold a long line");
    let error = RecordingReader::new(&*long).next_cycle().unwrap_err();
    assert!(matches!(error, RecordingError::TooLarge { .. }), "{error}");
}

#[test]
fn a_cycle_that_is_too_large_costs_no_other() {
    let mut fleet = Fleet::new(1, 1, settings(SaturationMethod::Percentage));
    let mut encoder = encoder();
    let mut recording = Vec::new();
    let mut good = Vec::new();
    for number in 0..6 {
        let mut cycle = fleet.next();
        // Once as a difference, and once as the first of a segment.
        let is_good = number != 1 && number != 3;
        if number == 3 {
            encoder.begin_segment();
        }
        if is_good {
            good.push(cycle.snapshot.cycle.0);
        } else {
            let variants = &mut cycle.snapshot.variants;
            let variant = variants.values().next().unwrap().clone();
            let name = "x".repeat(MAX_LINE);
            variants.insert(VariantKey::new("ns", &*name), variant);
        }
        let written = encoder.encode(&cycle.inputs(&fleet.settings), &cycle.plan);
        assert_eq!(written.is_ok(), is_good, "{number}");
        if let Ok(line) = written {
            assert_eq!(line.begins_segment, [0, 2, 4].contains(&number), "{number}");
            recording.extend(line.ends);
            recording.extend(line.bytes);
        }
    }
    assert_eq!(repeated(&recording), good);
}

#[test]
fn a_ring_without_room_ends_no_segment() {
    let mut fleet = Fleet::new(1, 1, settings(SaturationMethod::Percentage));
    let mut encoder = encoder();
    let mut begun = |mut ring: DecisionRing| {
        encoder.begin_segment();
        let mut begun = 0;
        for _ in 0..3 {
            let (_, line) = next(&mut fleet, &mut encoder);
            begun += u32::from(line.begins_segment);
            if ring.push(&line) {
                encoder.begin_segment();
            }
        }
        assert!(ring.is_empty());
        begun
    };
    assert_eq!(begun(DecisionRing::new(1)), 3);
    assert_eq!(begun(DecisionRing::new(0)), 1);
}

#[test]
fn the_ring_holds_the_newest_cycles_within_its_bytes() {
    let mut fleet = Fleet::new(4, 6, settings(SaturationMethod::Percentage));
    let mut encoder = encoder();
    let mut ring = DecisionRing::new(40_000);
    assert!(ring.is_empty());
    let mut last = None;
    for _ in 0..200 {
        let (cycle, line) = next(&mut fleet, &mut encoder);
        if ring.push(&line) {
            encoder.begin_segment();
        }
        assert!(ring.bytes <= 40_000);
        assert_eq!(ring.recording().len(), ring.bytes);
        last = Some(cycle);
    }
    let read = repeated(&ring.recording());
    assert!(read.len() > 20 && read.len() < 200, "{}", read.len());
    assert_eq!(read.last(), Some(&last.unwrap().snapshot.cycle.0));
    assert!(read.windows(2).all(|pair| pair[1] == pair[0] + 1));
    let mut tiny = DecisionRing::new(10);
    encoder.begin_segment();
    let (_, line) = next(&mut fleet, &mut encoder);
    assert!(tiny.push(&line));
    assert!(tiny.is_empty());
}

#[test]
fn the_same_cycles_make_the_same_bytes() {
    let (_, one) = recorded(65, SaturationMethod::Tokens);
    let (_, other) = recorded(65, SaturationMethod::Tokens);
    assert!(one == other);
}
