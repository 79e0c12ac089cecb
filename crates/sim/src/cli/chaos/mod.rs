//! `wva-sim chaos`: everything around the controller is broken, by seed.

mod arguments;
mod table;

use std::ops::Range;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(super) use self::arguments::ChaosFlags;
use self::arguments::Ids;
use super::PROGRAM;
use crate::chaos::Mutation;
use crate::chaos::{
    CrashPoint, Done, End, ExhaustiveScenario, Hunt, Keep, PLOTS, Points, Walked, campaign,
    disturbed, exhaustive, failure_report, hunt, plot, survive,
};
use crate::real_clock::real;
use crate::threads::locked;
use wva::cli::{complain, fail, misused, print};

const ENOUGH: usize = 20;
const QUIET: Duration = Duration::from_secs(30);

/// Runs the command.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    PROGRAM.run_command(arguments, |flags| {
        play(&flags).unwrap_or_else(|error| fail([format!("not played: {error}")]))
    })
}

fn play(flags: &ChaosFlags) -> Result<ExitCode, String> {
    let (scenario, jobs) = (flags.scenario, flags.jobs);
    if flags.list {
        let lines = PLOTS.map(|(name, about)| format!("{name:<10} {about}\n"));
        return Ok(print(&lines.concat()));
    }
    if let Some(point) = &flags.point {
        return replay_point(point);
    }
    if flags.everywhere {
        let points = if flags.every_occasion { Points::All } else { Points::Spread };
        return everywhere_once(flags.scene, points, jobs);
    }
    if let Some(seed) = flags.replay {
        let only = flags.only.as_ref().map(|Ids(ids)| ids.as_slice());
        return Ok(replay(scenario, seed, only, flags.mutant));
    }
    let mutations = flags.mutations();
    if mutations.is_empty() {
        many(scenario, flags.range(), jobs)
    } else {
        mutants(scenario, &mutations, flags.range(), jobs)
    }
}

struct Progress {
    total: u64,
    state: Mutex<(u64, u64, Instant)>,
}

impl Progress {
    fn step(&self, done: &Done) {
        let mut state = locked(&self.state);
        let (played, failed, printed) = &mut *state;
        *played += 1;
        if let Some((at, violation)) = &done.outcome.violation {
            *failed += 1;
            let at = at.as_secs_f64();
            complain(&format!("seed {} at {at:.3} s: {violation}\n", done.seed));
        }
        if printed.elapsed() >= QUIET || *played == self.total {
            *printed = real();
            let total = self.total;
            complain(&format!("{played} of {total} seeds, {failed} with violations\n"));
        }
    }
}

fn mutants(
    scenario: &'static str,
    mutations: &[Mutation],
    seeds: Range<u64>,
    jobs: usize,
) -> Result<ExitCode, String> {
    let hunts = hunt(scenario, mutations, seeds, jobs, |hunt| {
        complain(&format!("{}\n", table::hunt(hunt)));
    })?;
    let lines: Vec<String> = hunts.iter().map(table::hunt).collect();
    let mut printed = print(&format!("{}\n", lines.join("\n")));
    // Who names one defect wants to know everything about it.
    if let [hunt] = hunts.as_slice()
        && let End::Found(done) = &hunt.end
    {
        printed = failure(scenario, Some(hunt.mutation), done);
    }
    let is_missed = |hunt: &Hunt| !matches!(hunt.end, End::Found(_));
    Ok(code(hunts.iter().any(is_missed), printed))
}

fn everywhere_once(
    scene: Option<ExhaustiveScenario>,
    points: Points,
    jobs: usize,
) -> Result<ExitCode, String> {
    let (began, commit) = (real(), commit());
    let walked = exhaustive(scene, points, jobs, |walked| {
        complain(&format!("{}\n", table::walked(walked)));
        for broken in &walked.broken {
            complain(&table::broken(broken, &commit));
        }
    })?;
    let printed = print(&table::everywhere(&walked, began.elapsed()));
    Ok(code(walked.iter().any(Walked::is_broken), printed))
}

fn many(scenario: &'static str, seeds: Range<u64>, jobs: usize) -> Result<ExitCode, String> {
    let (began, total) = (real(), seeds.end - seeds.start);
    let progress = Progress { total, state: Mutex::new((0, 0, began)) };
    let mut summary = campaign(scenario, seeds, jobs, ENOUGH, |done| progress.step(done))?;
    let took = began.elapsed();
    summary.failed.sort_by_key(|done| done.seed);
    if summary.seeds < total {
        complain(&format!("stopped after {} of {total} seeds\n", summary.seeds));
    }
    let mut printed = print(&table::summary(scenario, &summary, took));
    for done in &summary.failed {
        printed = failure(scenario, None, done);
    }
    Ok(code(!summary.failed.is_empty(), printed))
}

fn failure(scenario: &str, mutation: Option<Mutation>, done: &Done) -> ExitCode {
    let Some(mut plot) = plot(scenario, done.seed) else {
        return ExitCode::SUCCESS;
    };
    plot.mutation = mutation;
    let report = failure_report(&plot, done.seed, &done.outcome, &commit());
    report.map_or(ExitCode::SUCCESS, |report| print(&report))
}

fn code(is_broken: bool, printed: ExitCode) -> ExitCode {
    if is_broken { ExitCode::FAILURE } else { printed }
}

fn replay_point(point: &CrashPoint) -> Result<ExitCode, String> {
    let (outcome, wrong) = disturbed(point)?;
    let end = wrong.as_ref().map_or_else(
        || "it came to rest where it does undisturbed".to_owned(),
        ToString::to_string,
    );
    let printed = print(&format!(
        "point {point}  commit {}\n\n{}\n\n{} events, hash {:016x}: {end}\n",
        commit(),
        outcome.lines.join("\n"),
        outcome.events,
        outcome.hash
    ));
    Ok(code(wrong.is_some(), printed))
}

fn replay(
    scenario: &str,
    seed: u64,
    only: Option<&[usize]>,
    mutation: Option<Mutation>,
) -> ExitCode {
    let Some(mut plot) = plot(scenario, seed) else {
        return fail([format!("no scenario is called {scenario:?}")]);
    };
    plot.mutation = mutation;
    let mut schedule = plot.schedule(seed);
    if let Some(only) = only {
        let known = schedule.ids();
        if let Some(unknown) = only.iter().find(|id| !known.contains(id)) {
            let there = match known.len() {
                0 => "no faults".to_owned(),
                count => format!("the faults 0 to {}", count - 1),
            };
            return misused([format!(
                "--only names fault {unknown}; seed {seed} of {scenario} has {there}"
            )]);
        }
        schedule = schedule.only(only);
    }
    let outcome = survive(&plot, seed, &schedule, Keep::All);
    let end = match &outcome.violation {
        Some((at, violation)) => format!("{violation} at {:.3} s", at.as_secs_f64()),
        None => "every invariant held".to_owned(),
    };
    let commit = commit();
    let text = format!(
        "seed {seed}  commit {commit}  scenario {scenario}  controllers {}  faults {}\n{}\n{}\n\n\
         {} events, hash {:016x}: {end}\n",
        plot.controllers,
        schedule.0.len(),
        schedule,
        outcome.lines.join("\n"),
        outcome.events,
        outcome.hash
    );
    let printed = print(&text);
    code(outcome.violation.is_some(), printed)
}

/// What the variable `WVA_COMMIT` says; where it is unset or empty, what git says now of the tree that this was
/// built in, with `-dirty` where that differs from it.
#[expect(clippy::disallowed_methods, reason = "it changes what is printed and nothing else")]
fn commit() -> String {
    let given = std::env::var("WVA_COMMIT").ok();
    let given = given.filter(|given| !given.is_empty());
    given.or_else(of_tree).unwrap_or_else(|| "unknown".to_owned())
}

fn of_tree() -> Option<String> {
    let mut git = Command::new("git");
    // No tag is to stand for a commit.
    git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"]);
    let printed = git.current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8(printed.stdout).ok()?.trim().to_owned();
    (printed.status.success() && !text.is_empty()).then_some(text)
}
