//! What a campaign came to, as tables.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::sim::chaos::{Class, Course, Hunt, Summary, Tally, Walked};

/// What became of a planted defect.
pub(super) fn hunt(hunt: &Hunt) -> String {
    let found = match &hunt.found {
        Some((seed, at, violation)) => {
            format!("seed {seed} at {:.0} s: {violation}", at.as_secs_f64())
        }
        None => "NOT FOUND".to_owned(),
    };
    let name = format!("{:?}", hunt.flaw);
    format!("{name:<20} {:>4} seeds  {found}", hunt.seeds)
}

/// What came of a course.
pub(super) fn walked(walked: &Walked) -> String {
    let course = match &walked.course {
        Course::Role(role) => format!("kill of {role}"),
        Course::Writes(how) => format!("end of the process, {how:?}"),
    };
    let ends = format!("{course:<48} {:>5} ends", walked.ends);
    let broken = walked.broken.iter();
    let broken = broken.map(|(probe, violation)| format!("\n  {probe:?}: {violation}"));
    ends + &broken.collect::<String>()
}

/// What came of all of them.
pub(super) fn everywhere(all: &[Walked], took: Duration) -> String {
    let count = |is_role: bool| -> u64 {
        let of = all
            .iter()
            .filter(|walked| matches!(walked.course, Course::Role(_)) == is_role);
        of.map(|walked| walked.ends).sum()
    };
    let broken: usize = all.iter().map(|walked| walked.broken.len()).sum();
    format!(
        "{} kills of {} roles, {} ends of the process at writes; {broken} broken; {:.1} s of wall time\n",
        count(true),
        all.iter()
            .filter(|walked| matches!(walked.course, Course::Role(_)))
            .count(),
        count(false),
        took.as_secs_f64()
    )
}

/// All tables.
pub(super) fn summary(scenario: &str, summary: &Summary, took: Duration) -> String {
    let rest = summary.slowest.map_or_else(
        || "never".to_owned(),
        |time| format!("{} s", time.as_secs()),
    );
    let mut lines = vec![
        format!(
            "scenario {scenario}: {} seeds, {:.1} virtual hours, {:.1} s of wall time",
            summary.seeds,
            summary.lasted.as_secs_f64() / 3_600.0,
            took.as_secs_f64(),
        ),
        format!(
            "{} events, {} writes, {} plans; at rest {rest} after the last fault at the latest",
            summary.events, summary.writes, summary.plans
        ),
        String::new(),
    ];
    lines.extend(faults(summary));
    lines.push(String::new());
    lines.extend(coverage(summary));
    lines.push(String::new());
    if summary.failed.is_empty() {
        lines.push("every invariant held".to_owned());
    }
    for done in &summary.failed {
        if let Some((at, violation)) = &done.outcome.violation {
            let at = at.as_secs_f64();
            lines.push(format!("seed {:<8} {at:>10.3} s  {violation}", done.seed));
        }
    }
    lines.join("\n") + "\n"
}

/// How often each fault was injected, and how often it hit something.
fn faults(summary: &Summary) -> Vec<String> {
    let line = |name: &str, tally: Tally| {
        format!("{name:<28} {:>8} {:>10}", tally.injected, tally.effective)
    };
    let mut lines = vec![format!(
        "{:<28} {:>8} {:>10}",
        "fault", "injected", "effective"
    )];
    for class in Class::ALL {
        let mut sum = Tally::default();
        for ((of, kind), tally) in &summary.tally {
            if *of == class {
                sum.injected += tally.injected;
                sum.effective += tally.effective;
                lines.push(line(&format!("  {kind}"), *tally));
            }
        }
        lines.push(line(class.as_str(), sum));
    }
    lines
}

/// Occasions that roles handled under faults, by class; and how many pairs of role and kind there were.
fn coverage(summary: &Summary) -> Vec<String> {
    let mut by_class: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut roles = BTreeSet::new();
    for ((role, kind), count) in &summary.coverage {
        let class = kind.split('/').next().unwrap_or_default();
        *by_class.entry((role, class)).or_default() += count;
        roles.insert(role.as_str());
    }
    let row = |name: &str, cell: &dyn Fn(Class) -> String| {
        let cells = Class::ALL.map(|class| format!(" {:>11}", cell(class)));
        format!("{name:<16}{}", cells.concat())
    };
    let pairs = summary.coverage.len();
    let mut lines = vec![
        format!("{pairs} pairs of role and fault; occasions handled under faults:"),
        row("role", &|class| class.as_str().to_owned()),
    ];
    for role in roles {
        lines.push(row(role, &|class| {
            let count = by_class.get(&(role, class.as_str()));
            count.copied().unwrap_or(0).to_string()
        }));
    }
    lines
}
