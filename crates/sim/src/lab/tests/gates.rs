//! Records made by hand that do not pass, each by one gate.

use std::sync::Mutex;

use super::{GateReport, GateTask, judge, play_all};
use crate::lab::policies::PolicyChoice;
use crate::lab::record::{LabRecord, LabScore, LabSeries, LongWait, ScaleChange};
use crate::lab::scenario::LoadedScenario;

fn record(policy: &str, attainment: f64, cost: f64) -> LabRecord {
    LabRecord {
        version: 1,
        scenario: "steady".to_owned(),
        policy: policy.to_owned(),
        family: policy.to_owned(),
        knob: None,
        seed: 1,
        key: String::new(),
        virtual_seconds: 0.0,
        cpu_seconds: 2.0,
        score: LabScore { attainment, cost, ..LabScore::default() },
        series: LabSeries::default(),
        decisions: Vec::new(),
        terms: Vec::new(),
        waits: Vec::new(),
    }
}

fn change(at: f64, from: u32, to: u32) -> ScaleChange {
    ScaleChange { at, variant: "v".to_owned(), from, to, why: "because".to_owned() }
}

fn wait(grew: bool, reason: Option<&str>) -> LongWait {
    LongWait {
        at: 4_000.0,
        model: "m".to_owned(),
        seconds: 165.0,
        grew,
        reason: reason.map(str::to_owned),
    }
}

fn violations(record: &LabRecord, rival: &LabRecord) -> Vec<String> {
    judge(record, Some(rival)).violations
}

#[test]
fn a_fixed_fleet_of_equal_cost_may_lead_by_two_points() {
    let ours = record("wva-slo", 0.97, 35.0);
    for (attainment, cost, expected) in [
        (0.989, 35.0, 0),
        (0.995, 35.3, 1),
        (0.995, 20.0, 1),
        // Dearer by more than one per cent.
        (0.995, 35.4, 0),
    ] {
        let found = violations(&ours, &record("static-5", attainment, cost));
        assert_eq!(found.len(), expected, "{attainment} for {cost}: {found:?}");
    }
    let found = violations(&ours, &record("static-5", 0.995, 35.0));
    let expected = "steady seed 1: static-5 serves 99.50 % for 35.00, wva-slo 97.00 % for 35.00; at most 2 points are allowed";
    assert_eq!(found, [expected]);
}

#[test]
fn settled_scales_do_not_reverse() {
    let rival = record("static-5", 0.9, 35.0);
    let mut ours = record("wva-slo", 0.97, 35.0);
    ours.decisions = vec![change(600.0, 5, 6), change(900.0, 6, 5), change(2_000.0, 5, 4)];
    assert_eq!(violations(&ours, &rival), Vec::<String>::new());
    ours.decisions.push(change(2_500.0, 4, 5));
    let expected = "steady seed 1: v goes from 4 to 5 at 2500 s of constant load, against its last change (because)";
    assert_eq!(violations(&ours, &rival), [expected]);
    ours.decisions.push(change(3_000.0, 5, 4));
    assert_eq!(violations(&ours, &rival), [format!("{expected}; and 1 more")]);
    // Where the load changes they may.
    ours.scenario = "gate-waves".to_owned();
    assert_eq!(judge(&ours, None).violations.len(), 0);
}

#[test]
fn long_waits_end_in_growth_or_have_a_reason() {
    let rival = record("static-5", 0.9, 35.0);
    let mut ours = record("wva-slo", 0.97, 35.0);
    ours.waits = vec![wait(true, None), wait(false, Some("no GPU is free"))];
    assert_eq!(violations(&ours, &rival), Vec::<String>::new());
    ours.waits.push(wait(false, None));
    let expected = "steady seed 1: at 4000 s requests for m have waited for 165 s below its maximum; nothing grows and no \
                    decision states a reason";
    assert_eq!(violations(&ours, &rival), [expected]);
}

#[test]
fn a_report_names_both_runs_and_their_processor_time() {
    let ours = record("wva-slo", 0.97, 35.0);
    let report = judge(&ours, Some(&record("static-5", 0.96, 35.0)));
    let line = "steady seed 1: wva-slo 97.00 % at 0.00 GPU-h, static-5 96.00 % at 0.00 GPU-h, 0 late reversals, 0 \
                long waits";
    let expected = GateReport { line: line.to_owned(), violations: Vec::new(), cpu_seconds: 4.0 };
    assert_eq!(report, expected);
}

#[test]
fn a_line_is_given_as_each_run_ends() {
    let text = crate::lab::tests::TINY.replace(
        "  - trace: {file: known.csv, jitter: 0s}",
        "  - constant: {rate: 1}\n    lengths: {prompt: {median: 100}, output: {median: 10}}",
    );
    let scenario = LoadedScenario::read(&text, "tiny.yaml").unwrap();
    let task = |seed| GateTask { has_fixed_rival: false, scenario: scenario.clone(), seed };
    let policy = PolicyChoice::parse("static-1").unwrap();
    let lines = Mutex::new(Vec::new());
    let ended = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let reports = play_all(&[task(1), task(2)], &policy, 1, &ended).unwrap();
    let expected: Vec<String> = reports.into_iter().map(|report| report.line).collect();
    assert_eq!(*lines.lock().unwrap(), expected);
    assert!(expected[0].starts_with("tiny seed 1: static-1 100.00 % at "), "{expected:?}");
    assert!(expected[1].starts_with("tiny seed 2: "), "{expected:?}");
}
