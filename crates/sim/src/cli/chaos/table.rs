//! What a campaign came to, as tables.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::ValueEnum as _;

use crate::chaos::fault::Class;
use crate::chaos::{
    BrokenInvariant, Course, Done, End, ExhaustiveScenario, FaultTally, Hunt, Summary, Walked,
};

pub(super) fn hunt(hunt: &Hunt) -> String {
    let found = |done: &Done| {
        let violation = done.outcome.violation.iter();
        let violation = violation.map(|(at, why)| format!("{:.0} s: {why}", at.as_secs_f64()));
        format!("seed {} at {}", done.seed, violation.collect::<String>())
    };
    let end = match &hunt.end {
        End::Found(done) => found(done),
        End::Missed => "NOT FOUND".to_owned(),
        End::Unplayed(done) => format!("NOT PLAYED TO ITS END: {}", found(done)),
    };
    let name = format!("{:?}", hunt.mutation);
    format!("{name:<20} {:>4} seeds  {end}", hunt.seeds)
}

pub(super) fn walked(walked: &Walked) -> String {
    let course = match &walked.course {
        Course::Role(role) => format!("kill of {role}"),
        Course::Writes(how) => format!("end of the process, {how:?}"),
    };
    let scene = format!("{:?}", walked.scene);
    format!("{scene:<12} {course:<48} {:>5} ends", walked.ends)
}

/// What was wrong after an end, with the last lines of its trace where there are any, and the command that plays it again.
pub(super) fn broken(broken: &BrokenInvariant, commit: &str) -> String {
    let BrokenInvariant { point, violation, lines } = broken;
    let trace = match lines.join("\n") {
        none if none.is_empty() => none,
        lines => format!("\nlast lines of its trace:\n{lines}\n"),
    };
    let replay = format!("wva-sim chaos --everywhere --point {point}");
    format!("point {point}  commit {commit}\n{violation}\n{trace}replay:  {replay}\n")
}

pub(super) fn everywhere(all: &[Walked], took: Duration) -> String {
    let of = |scene: ExhaustiveScenario| {
        let here = all.iter().filter(|walked| walked.scene == scene);
        let (roles, writes): (Vec<&Walked>, Vec<&Walked>) =
            here.partition(|walked| matches!(walked.course, Course::Role(_)));
        let ends = |of: &[&Walked]| of.iter().map(|walked| walked.ends).sum::<u64>();
        let broken = roles.iter().chain(&writes).map(|walked| walked.broken.len());
        format!(
            "{:<12} {} kills of {} roles, {} ends of the process at writes; {} broken\n",
            format!("{scene:?}"),
            ends(&roles),
            roles.len(),
            ends(&writes),
            broken.sum::<usize>()
        )
    };
    let scenes: BTreeSet<ExhaustiveScenario> = all.iter().map(|walked| walked.scene).collect();
    let scenes: String = scenes.into_iter().map(of).collect();
    format!("{scenes}{:.1} s of wall time\n", took.as_secs_f64())
}

pub(super) fn summary(scenario: &str, summary: &Summary, took: Duration) -> String {
    let rest =
        summary.slowest.map_or_else(|| "never".to_owned(), |time| format!("{} s", time.as_secs()));
    let counts = &summary.counts;
    let mut lines = vec![
        format!(
            "scenario {scenario}: {} seeds, {:.1} virtual hours, {:.1} s of wall time",
            summary.seeds,
            summary.lasted.as_secs_f64() / 3_600.0,
            took.as_secs_f64(),
        ),
        format!(
            "{} events, {} writes, {} plans; at rest {rest} after the last fault at the latest",
            summary.events, counts.writes, counts.plans
        ),
        format!(
            "hash of all traces {:016x}, the same for the same seeds of one build",
            summary.hash
        ),
        format!("{} kB held by one process at most", counts.held / 1_000),
        String::new(),
    ];
    lines.extend(faults(summary));
    lines.push(String::new());
    if summary.failed.is_empty() {
        lines.push("every invariant held".to_owned());
    }
    for done in &summary.failed {
        if let Some((at, violation)) = &done.outcome.violation {
            let at = at.as_secs_f64();
            let seed = done.seed;
            lines.push(format!("seed {seed:<8} {at:>10.3} s  {violation}"));
            lines.push(format!("replay:  wva-sim chaos --scenario {scenario} --replay {seed}"));
        }
    }
    lines.join("\n") + "\n"
}

fn faults(summary: &Summary) -> Vec<String> {
    let line = |name: &str, tally: FaultTally| {
        format!("{name:<28} {:>8} {:>10}", tally.injected, tally.effective)
    };
    let mut lines = vec![format!("{:<28} {:>8} {:>10}", "fault", "injected", "effective")];
    for class in Class::value_variants() {
        let mut sum = FaultTally::default();
        for ((of, kind), tally) in &summary.tally {
            if of == class {
                sum.injected += tally.injected;
                sum.effective += tally.effective;
                lines.push(line(&format!("  {kind}"), *tally));
            }
        }
        lines.push(line(&class.to_string(), sum));
    }
    lines
}
