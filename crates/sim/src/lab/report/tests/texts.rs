//! Numbers, names and reduced series.

use super::super::downsample::{POINTS, downsample, timeline};
use super::super::text::{cell, escape, percent, quantity, seconds, tick};
use super::super::timeline::moment;
use super::sample;
use crate::lab::record::{LabRecord, LabSeries};

#[test]
fn a_share_below_one_never_reads_100() {
    let cases = [
        (0.0, "0.0"),
        (0.9434, "94.3"),
        (0.9989, "99.9"),
        (0.9995, "99.95"),
        (0.999_999_9, "99.99"),
        (1.0, "100"),
    ];
    for (share, text) in cases {
        assert_eq!(percent(share), text);
    }
}

#[test]
fn quantities_have_three_digits() {
    let cases = [(0.0, "0"), (0.004, "0.00"), (7.5, "7.50"), (12.34, "12.3"), (1234.5, "1234")];
    for (value, text) in cases {
        assert_eq!(quantity(value), text);
    }
    assert_eq!(seconds(0.0204), "20 ms");
    assert_eq!(seconds(1.0), "1.00 s");
    assert_eq!(tick(2.500), "2.5");
    assert_eq!(tick(-0.0), "0");
    assert_eq!(moment(3_725.9), "1:02:05");
}

#[test]
fn names_are_escaped_for_their_place() {
    assert_eq!(escape("a<b>&\"c'\n"), "a&lt;b&gt;&amp;&quot;c&#39; ");
    assert_eq!(cell("a|b_c<d>\n"), "a\\|b\\_c\\<d> ");
}

fn long_run(samples: u32) -> LabRecord {
    let run = sample::long_run("keda-epp", samples, || 1.0);
    serde_json::from_value(run).unwrap()
}

fn reduced(series: &LabSeries) -> LabSeries {
    downsample(series, POINTS)
}

#[test]
fn a_long_series_keeps_its_peaks_and_its_last_counts() {
    let mut run = long_run(1000);
    let model = run.series.models.get_mut("llama").unwrap();
    model.held[7] = Some(90.0);
    model.arrivals[4] = Some(6.0);
    model.ttft_p95[..5].fill(None);
    model.variants.get_mut("llama-h100").unwrap().ready[9] = Some(4.0);
    let series = reduced(&run.series);
    // 1000 samples in bins of five.
    assert_eq!(series.at.len(), 200);
    assert_eq!(&series.at[..3], [0.0, 50.0, 100.0]);
    let model = &series.models["llama"];
    assert_eq!(&model.held[..3], [Some(1.0), Some(90.0), Some(1.0)]);
    assert_eq!(&model.arrivals[..2], [Some(2.0), Some(1.0)]);
    assert_eq!(&model.ttft_p95[..2], [None, Some(1.0)]);
    let ready = &model.variants["llama-h100"].ready;
    assert_eq!(&ready[..3], [Some(1.0), Some(4.0), Some(1.0)]);
}

#[test]
fn a_short_series_stays_as_it_is() {
    for samples in [0, 1, 2, 240] {
        let run = long_run(samples);
        assert_eq!(reduced(&run.series).at, run.series.at);
    }
    assert_eq!(reduced(&long_run(241).series).at.len(), 121);
}

#[test]
fn decisions_close_to_each_other_share_the_mark_of_the_largest() {
    let mut run = long_run(720);
    run.decisions.clear();
    let decision = |at: f64, from: u32, to: u32| {
        let text = format!(
            "{{\"at\":{at},\"variant\":\"llama-h100\",\"from\":{from},\"to\":{to},\"why\":\"load\"}}"
        );
        serde_json::from_str(&text).unwrap()
    };
    // A mark covers a fortieth of 7200 s.
    for (at, from, to) in [(10.0, 2, 3), (20.0, 3, 9), (30.0, 9, 8), (179.0, 8, 8), (180.0, 8, 7)] {
        run.decisions.push(decision(at, from, to));
    }
    let marks = timeline(&run).marks;
    let shown: Vec<(u32, usize)> =
        marks.iter().map(|mark| (mark.decision.to, mark.others)).collect();
    assert_eq!(shown, [(9, 2), (7, 0)]);
}
