//! How large a day is.

use wva_policy::params::SaturationMethod;

use super::fleet::{Fleet, settings};
use crate::{RecordingHeader, SegmentEncoder};

const DAY: usize = 2880;

/// One segment, which repeats over a day.
const MEASURED: usize = 60;

#[test]
fn a_day_of_100_variants_has_its_bytes() {
    // Analyzers that size a model read thirteen signals of a pod instead of two, and learn from them.
    for (method, replicas, most) in [
        (SaturationMethod::Percentage, 6, 15_000_000),
        (SaturationMethod::Tokens, 1, 27_000_000),
        (SaturationMethod::Slo, 1, 50_000_000),
    ] {
        let mut fleet = Fleet::new(100, replicas, settings(method));
        let mut encoder = SegmentEncoder::new(RecordingHeader::of("1.2.3"));
        let (mut bytes, mut pods) = (0, 0);
        for _ in 0..MEASURED {
            let cycle = fleet.next();
            let line = encoder.encode(&cycle.inputs(&fleet.settings), &cycle.plan).unwrap();
            bytes += line.ends.len() + line.bytes.len();
            pods += cycle.snapshot.variants.values().map(|view| view.pods.len()).sum::<usize>();
        }
        let day = bytes * DAY / MEASURED;
        assert!(
            day < most,
            "{method:?}: {} pods, {} bytes a cycle, {day} a day",
            pods / MEASURED,
            bytes / MEASURED
        );
    }
}
