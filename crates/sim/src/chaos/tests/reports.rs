//! What a failure prints.

use super::*;

/// Three faults, of which one shows that series of a variant that is gone stay.
fn faults() -> FaultSchedule {
    let faults = [
        (240, ChaosFault::Workload(1, WorkloadFaultKind::Crash(1))),
        (250, ChaosFault::Object(0, ObjectFault::Removed)),
        (255, ChaosFault::Workload(1, WorkloadFaultKind::Evict(1))),
    ];
    schedule(70, &faults)
}

/// What a run with these faults prints.
fn reported(plot: &ChaosWorkload, keep: Keep) -> (RunOutcome, Option<String>) {
    let outcome = survive(plot, 1, &faults(), keep);
    let report = failure_report(plot, 1, &outcome, "0123456789ab");
    (outcome, report)
}

#[test]
fn a_failure_is_printed_with_all_that_is_needed_to_look_into_it() {
    let mut plot = plot("probe", 1).unwrap();
    let (outcome, report) = reported(&plot, Keep::Tail);
    assert_eq!(outcome.violation, None);
    assert!(report.is_none());

    plot.mutation = Some(Mutation::SeriesKept);
    let (outcome, report) = reported(&plot, Keep::Tail);
    let (at, violation) = outcome.violation.clone().unwrap();
    assert_eq!(violation.invariant, "E4");
    let report = report.unwrap();
    let lines: Vec<&str> = report.lines().collect();
    let head = format!(
        "seed 1  commit 0123456789ab  scenario probe  planted SeriesKept  at {:.3} s",
        at.as_secs_f64()
    );
    assert_eq!(lines[..3], ["", &head, &violation.to_string()]);

    let mut whole = survive(&plot, 1, &faults(), Keep::All).lines;
    let all = whole.len();
    whole.retain(|line| ![" renews ", " reads "].iter().any(|hum| line.contains(hum)));
    assert!(whole.len() < all, "{all}");
    assert!(whole.len() > TAIL, "{}", whole.len());
    let begin = lines.iter().position(|line| *line == "last lines of its trace:");
    let trace: Vec<&str> =
        lines[begin.unwrap() + 1..].iter().copied().take_while(|line| !line.is_empty()).collect();
    assert_eq!(trace, whole[whole.len() - TAIL..]);
    assert!(trace[TAIL - 1].contains("VIOLATION"), "{trace:?}");

    let replay = "wva-sim chaos --scenario probe --replay 1 --mutant SeriesKept";
    let rest = &lines[begin.unwrap() + TAIL + 2..];
    assert_eq!(rest, [format!("replay:  {replay}")]);
}

/// Every line of a run of `probe` with these faults, each from its second on for a minute.
fn traced(faults: &[(u64, ChaosFault)]) -> String {
    let plot = plot("probe", 1).unwrap();
    let outcome = survive(&plot, 1, &schedule(60, faults), Keep::All);
    assert_eq!(outcome.violation, None);
    outcome.lines.join("\n")
}

#[test]
fn a_trace_names_who_leads_what_fails_and_who_scales() {
    let usual = [
        "c0    claim        leads in term 1, until ",
        "hpa   scales       deployments llm-d/qwen3-8b-fp8 from 1 to 2",
        "pod   is not ready llm-d/qwen3-8b-fp8-",
        "pod   is ready     llm-d/qwen3-8b-fp8-",
        "pod   ends         llm-d/qwen3-8b-fp8-",
        "pod   is gone      llm-d/qwen3-8b-fp8-",
    ];
    let odd = [
        "hand  scales       deployments llm-d/qwen3-8b-fp8 from 2 to 4",
        "c0    fails        PATCH llm-d/variantautoscalings/qwen3-8b-fp8/status: 503 by #1",
        "c0    fails        GET wva-system/leases/72dd1cf1.llm-d.ai: 503 by #1",
        "c0    claim        has run out, of term 1",
        "c0    claim        leads in term 3, until ",
        "c0    fails        prometheus: 502 by #2",
    ];
    let quiet = traced(&[]);
    let disturbed = traced(&[
        (45, ChaosFault::Object(0, ObjectFault::ScaledTo(4))),
        (70, ChaosFault::Api(0, Api::Refuse(503, None))),
        (130, ChaosFault::Prometheus(0, Prom::Status(502))),
    ]);
    for line in usual {
        assert!(quiet.contains(line), "{line}\n{quiet}");
        assert!(disturbed.contains(line), "{line}\n{disturbed}");
    }
    for line in odd {
        assert!(!quiet.contains(line), "{line}\n{quiet}");
        assert!(disturbed.contains(line), "{line}\n{disturbed}");
    }
}
