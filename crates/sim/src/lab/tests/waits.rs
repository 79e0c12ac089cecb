//! Frames made by hand, one a second.

use std::time::Duration;

use super::WaitRecorder;
use crate::lab::record::LongWait;
use crate::lab::scenario::{LoadedScenario, prepare};
use crate::lab::tests::TINY;
use crate::world::{Frame, ModelFrame, VariantFrame};

/// What is recorded in so many seconds of frames with `held` requests and this variant.
fn waits(seconds: u64, held: usize, variant: &VariantFrame) -> Vec<LongWait> {
    let load = "  - constant: {rate: 1}\n    lengths: {prompt: {median: 9}, output: {median: 9}}";
    let text = TINY.replace("  - trace: {file: known.csv, jitter: 0s}", load);
    let scenario = LoadedScenario::read(&text, "tiny.yaml").unwrap();
    let prepared = prepare(&scenario.spec, None, 1).unwrap();
    let mut recorder = WaitRecorder::new(&prepared.scenario);
    let frame = Frame {
        models: vec![ModelFrame {
            name: "m".to_owned(),
            held,
            variants: vec![variant.clone()],
            ..ModelFrame::default()
        }],
        ..Frame::default()
    };
    for second in 0..=seconds {
        recorder.observe(&frame, Duration::from_secs(second));
    }
    recorder.found
}

#[test]
fn a_wait_is_judged_after_two_minutes_a_scrape_and_two_intervals() {
    let variant = VariantFrame {
        scaled_to: 2,
        desired: Some(2),
        unserved: Some("no GPU is free".to_owned()),
        ..VariantFrame::default()
    };
    assert_eq!(waits(194, 1, &variant), []);
    let expected = LongWait {
        at: 195.0,
        model: "m".to_owned(),
        seconds: 195.0,
        grew: false,
        reason: variant.unserved.clone(),
    };
    assert_eq!(waits(195, 1, &variant), [expected]);
    assert_eq!(waits(391, 1, &variant).len(), 2, "each further one as well");
    assert_eq!(waits(900, 0, &variant), [], "nothing waits");
}

#[test]
fn replicas_on_their_way_are_growth_and_a_maximum_is_no_room() {
    let starting = VariantFrame { scaled_to: 2, pending: 1, ..VariantFrame::default() };
    let ordered = VariantFrame { scaled_to: 2, desired: Some(3), ..VariantFrame::default() };
    for variant in [starting, ordered] {
        let found = waits(195, 1, &variant);
        assert!(matches!(&*found, [LongWait { grew: true, .. }]), "{found:?}");
    }
    let full = VariantFrame { scaled_to: 3, ..VariantFrame::default() };
    assert_eq!(waits(900, 1, &full), []);
}
