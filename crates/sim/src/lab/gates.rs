//! Gates: what a policy must keep to on synthetic loads, short enough for every run of the tests.

use super::change::ScenarioChange;
use super::number;
use super::play::LabRun;
use super::policies::PolicyChoice;
use super::record::LabRecord;
use super::scenario::{LoadedScenario, load_changed};
use crate::threads::each;

/// The scenario that reversals are counted in: its load is constant.
const CONSTANT: &str = "steady";
/// The scenarios of the gates, what is changed in each, and whether fixed fleets are rivals there: one sized for the
/// step has foreseen it.
const GATES: [(&str, Option<&str>, bool); 5] = [
    (CONSTANT, None, true),
    // Fifteen replicas, and no load that ever showed what fewer bear.
    (CONSTANT, Some("models.*.load.*.constant.rate=90"), true),
    ("gate-waves", None, true),
    ("gate-conversation", None, true),
    ("step", None, false),
];
const SEEDS: u64 = 4;
/// Attainment by which a fixed fleet may be better.
const MARGIN: f64 = 0.02;
/// Share by which the costs of two fleets of equal cost may differ.
const EQUAL_COST: f64 = 0.01;
/// Seconds of constant load after which the direction of a scale no longer changes.
const SETTLED: f64 = 1_800.0;

/// One run of a gate.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct GateReport {
    pub line: String,
    pub violations: Vec<String>,
    pub cpu_seconds: f64,
}

struct GateTask {
    has_fixed_rival: bool,
    scenario: LoadedScenario,
    seed: u64,
}

/// Plays a policy through all gates, and fixed fleets of the same cost. `ended` gets each line as its run ends.
pub(crate) fn gates(
    policy: &PolicyChoice,
    jobs: usize,
    ended: &(dyn Fn(&str) + Sync),
) -> Result<Vec<GateReport>, String> {
    let mut tasks = Vec::new();
    for (name, change, has_fixed_rival) in GATES {
        let change: Option<ScenarioChange> = change.map(str::parse).transpose()?;
        let scenario = load_changed(name, change.as_slice())?;
        tasks.extend((1..=SEEDS).map(|seed| GateTask {
            has_fixed_rival,
            scenario: scenario.clone(),
            seed,
        }));
    }
    play_all(&tasks, policy, jobs, ended)
}

fn play_all(
    tasks: &[GateTask],
    policy: &PolicyChoice,
    jobs: usize,
    ended: &(dyn Fn(&str) + Sync),
) -> Result<Vec<GateReport>, String> {
    let play = |(place, task): (usize, &GateTask)| {
        let played = task.play(policy);
        if let Ok(report) = &played {
            ended(&report.line);
        }
        (place, played)
    };
    let mut results = each(jobs, tasks.iter().enumerate(), play)?;
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, played)| played).collect()
}

impl GateTask {
    fn play(&self, policy: &PolicyChoice) -> Result<GateReport, String> {
        let record = self.run(policy)?;
        let fleet = self.has_fixed_rival.then(|| self.affordable(&record));
        let rival = fleet.flatten().map(|count| self.run(&PolicyChoice::fixed(count)));
        Ok(judge(&record, rival.transpose()?.as_ref()))
    }

    fn run(&self, policy: &PolicyChoice) -> Result<LabRecord, String> {
        let play = LabRun { scenario: &self.scenario, policy, traces: None, seed: self.seed };
        play.run().map_err(|error| format!("scenario {}: {error}", self.scenario.name()))
    }

    /// The largest fixed fleet for what the policy has spent: a smaller one is worse. None where one replica costs more.
    fn affordable(&self, record: &LabRecord) -> Option<u32> {
        let spec = &self.scenario.spec;
        let variants = spec.models.iter().flat_map(|model| &model.variants);
        let replica: f64 = variants.map(|variant| variant.cost).sum();
        let hours = spec.duration.0.as_secs_f64() / 3_600.0;
        let count = record.score.cost * (1.0 + EQUAL_COST) / (replica * hours);
        Some(number::rounded(count.floor())).filter(|count| *count > 0)
    }
}

fn judge(record: &LabRecord, rival: Option<&LabRecord>) -> GateReport {
    let place = format!("{} seed {}", record.scenario, record.seed);
    let late_reversals = if record.scenario == CONSTANT { reversals(record) } else { Vec::new() };
    let mut found: Vec<String> = Vec::new();
    found.extend(rival.and_then(|rival| beaten(record, rival)));
    found.extend(first_of(&late_reversals));
    found.extend(first_of(&unexplained(record)));
    let against =
        rival.map_or_else(String::new, |rival| format!(", {} {}", rival.policy, measures(rival)));
    let line = format!(
        "{place}: {} {}{against}, {} late reversals, {} long waits",
        record.policy,
        measures(record),
        late_reversals.len(),
        record.waits.len(),
    );
    GateReport {
        line,
        violations: found.into_iter().map(|one| format!("{place}: {one}")).collect(),
        cpu_seconds: record.cpu_seconds + rival.map_or(0.0, |rival| rival.cpu_seconds),
    }
}

fn first_of(found: &[String]) -> Option<String> {
    let (first, rest) = found.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        count => format!("; and {count} more"),
    };
    Some(format!("{first}{more}"))
}

fn measures(record: &LabRecord) -> String {
    format!("{:.2} % at {:.2} GPU-h", record.score.attainment * 100.0, record.score.gpu_hours())
}

/// A fixed fleet of equal or lower cost is better by more than the margin.
fn beaten(record: &LabRecord, rival: &LabRecord) -> Option<String> {
    let (ours, theirs) = (&record.score, &rival.score);
    let is_cheap = theirs.cost <= ours.cost * (1.0 + EQUAL_COST);
    let lead = theirs.attainment - ours.attainment;
    (is_cheap && lead > MARGIN).then(|| {
        format!(
            "{} serves {:.2} % for {:.2}, {} {:.2} % for {:.2}; at most {:.0} points are allowed",
            rival.policy,
            theirs.attainment * 100.0,
            theirs.cost,
            record.policy,
            ours.attainment * 100.0,
            ours.cost,
            MARGIN * 100.0,
        )
    })
}

/// Changes of a scale against the direction of its last one, after the load has been constant for long.
fn reversals(record: &LabRecord) -> Vec<String> {
    let mut found = Vec::new();
    for (place, change) in record.decisions.iter().enumerate() {
        let earlier = record.decisions.iter().take(place);
        let last = earlier.rev().find(|one| one.variant == change.variant);
        let is_up = change.to > change.from;
        let is_reversal = last.is_some_and(|last| (last.to > last.from) != is_up);
        if is_reversal && change.at > SETTLED {
            found.push(format!(
                "{} goes from {} to {} at {:.0} s of constant load, against its last change ({})",
                change.variant, change.from, change.to, change.at, change.why
            ));
        }
    }
    found
}

/// Waits in which nothing grew and no decision says why.
fn unexplained(record: &LabRecord) -> Vec<String> {
    let waits = record.waits.iter();
    let silent = waits.filter(|wait| !wait.grew && wait.reason.is_none());
    silent
        .map(|wait| {
            format!(
                "at {:.0} s requests for {} have waited for {:.0} s below its maximum; nothing grows and no decision \
                 states a reason",
                wait.at, wait.model, wait.seconds
            )
        })
        .collect()
}

#[cfg(test)]
#[path = "tests/gates.rs"]
mod tests;
