//! `wva-sim chaos`: everything around the controller is broken, by seed.

mod arguments;
mod commit;
mod signals;
mod table;

use std::io::IsTerminal;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use self::arguments::ChaosCommand;
pub(super) use self::arguments::ChaosFlags;
use self::signals::Asked;
use crate::chaos::Mutation;
use crate::chaos::{
    Done, End, FailureReport, Keep, PLOTS, Played, Point, Points, campaign, disturbed, exhaustive,
    hunt, plot, survive,
};
use wva::cli::{complain, fail, misused, print};

/// Violations after which a campaign ends.
const ENOUGH: usize = 20;
/// Violations of which fewer faults are looked for.
const SHOWN: usize = 3;
/// Runs that making a schedule smaller may take.
const REDUCTION: usize = 40;
/// Time between two lines of progress, where nobody watches them.
const QUIET: Duration = Duration::from_secs(30);

/// Runs the command.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    match arguments::parse(arguments) {
        Ok(ChaosCommand::Help(text)) => print(&text),
        Ok(ChaosCommand::List) => {
            let lines = PLOTS.map(|(name, about)| format!("{name:<10} {about}\n"));
            print(&lines.concat())
        }
        Ok(ChaosCommand::Play {
            scenario,
            seeds,
            jobs,
        }) => heard(|asked| many(scenario, seeds, jobs, asked)),
        Ok(ChaosCommand::Mutants {
            scenario,
            mutations,
            seeds,
            jobs,
        }) => heard(|asked| mutants(scenario, &mutations, seeds, jobs, asked)),
        Ok(ChaosCommand::Everywhere { points, jobs }) => {
            heard(|asked| everywhere_once(points, jobs, asked))
        }
        Ok(ChaosCommand::At(point)) => replay_point(&point),
        Ok(ChaosCommand::Replay {
            scenario,
            seed,
            only,
            mutation,
        }) => replay(scenario, seed, only.as_deref(), mutation),
        Err(error) => misused([error]),
    }
}

/// Plays something that ends early, with all that is known by then, when the process is asked to end.
fn heard(play: impl FnOnce(&Asked) -> ExitCode) -> ExitCode {
    match Asked::listen() {
        Ok(asked) => play(&asked),
        Err(error) => fail([format!("signals cannot be heard: {error}")]),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a campaign takes in the real world is asked of no simulated clock"
)]
fn real() -> Instant {
    Instant::now()
}

struct Progress {
    began: Instant,
    total: u64,
    state: Mutex<(u64, u64, Option<Instant>)>,
}

impl Progress {
    fn step(&self, done: &Done) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (played, failed, told) = &mut *state;
        *played += 1;
        let watched = std::io::stderr().is_terminal();
        if let Some((at, violation)) = &done.outcome.violation {
            *failed += 1;
            // In place of the bar, which is longer than some words.
            let (line, at) = (if watched { "\r\x1b[K" } else { "" }, at.as_secs_f64());
            complain(&format!(
                "{line}seed {} at {at:.3} s: {violation}\n",
                done.seed
            ));
        }
        let due = told.is_none_or(|told| told.elapsed() >= QUIET);
        if !watched && !due && *played < self.total {
            return;
        }
        *told = Some(real());
        self.show(*played, *failed, watched);
    }

    fn show(&self, played: u64, failed: u64, watched: bool) {
        let share = played * 30 / self.total.max(1);
        let bar: String = (0..30)
            .map(|at| if at < share { '#' } else { '.' })
            .collect();
        let line = format!(
            "[{bar}] {played}/{} seeds, {failed} with violations, {} s",
            self.total,
            self.began.elapsed().as_secs()
        );
        let (before, after) = if watched { ("\r", "") } else { ("", "\n") };
        complain(&format!("{before}{line}{after}"));
    }
}

fn mutants(
    scenario: &'static str,
    mutations: &[Mutation],
    seeds: Range<u64>,
    jobs: usize,
    asked: &Asked,
) -> ExitCode {
    let hunts = hunt(scenario, mutations, seeds, jobs, &asked.enough, |hunt| {
        asked.note(matches!(hunt.end, End::Missed | End::Unplayed(_)));
        complain(&format!("{}\n", table::hunt(hunt)));
    });
    let hunts = match hunts {
        Ok(hunts) => hunts,
        Err(error) => return fail([format!("a thread cannot start: {error}; give fewer --jobs")]),
    };
    let lines: Vec<String> = hunts.iter().map(table::hunt).collect();
    let mut printed = print(&format!("{}\n", lines.join("\n")));
    let mut is_whole = !hunts.iter().any(|hunt| matches!(hunt.end, End::Left));
    // Who names one defect wants to know everything about it.
    if let [hunt] = hunts.as_slice()
        && let End::Found(done) = &hunt.end
    {
        (printed, is_whole) = failure(scenario, Some(hunt.mutation), (done, REDUCTION), asked);
    }
    asked.code(is_whole, printed)
}

fn everywhere_once(points: Points, jobs: usize, asked: &Asked) -> ExitCode {
    let (began, commit) = (real(), commit::of_this());
    let signs = (&asked.enough, &asked.broken);
    let walked = exhaustive(points, jobs, signs, |walked| {
        complain(&format!("{}\n", table::walked(walked)));
        for broken in &walked.broken {
            complain(&table::broken(broken, &commit));
        }
    });
    let walked = match walked {
        Ok(walked) => walked,
        Err(error) => return fail([format!("not played: {error}")]),
    };
    let printed = print(&table::everywhere(&walked, began.elapsed()));
    asked.code(walked.iter().all(|walked| walked.is_whole), printed)
}

fn many(scenario: &'static str, seeds: Range<u64>, jobs: usize, asked: &Asked) -> ExitCode {
    let progress = Progress {
        began: real(),
        total: seeds.end - seeds.start,
        state: Mutex::new((0, 0, None)),
    };
    let total = progress.total;
    // The first seed takes its time, of some scenarios the best part of a minute.
    progress.show(0, 0, std::io::stderr().is_terminal());
    let played = campaign(scenario, seeds, jobs, (ENOUGH, &asked.enough), |done| {
        asked.note(done.outcome.violation.is_some());
        progress.step(done);
    });
    let mut summary = match played {
        Ok(summary) => summary,
        Err(error) => return fail([format!("a thread cannot start: {error}; give fewer --jobs")]),
    };
    complain("\n");
    let took = progress.began.elapsed();
    summary.failed.sort_by_key(|done| done.seed);
    let is_whole = summary.seeds == total;
    if !is_whole {
        complain(&format!(
            "stopped after {} of {total} seeds\n",
            summary.seeds
        ));
    }
    let mut printed = print(&table::summary(scenario, &summary, took));
    for (number, done) in summary.failed.iter().enumerate() {
        let runs = if number < SHOWN { REDUCTION } else { 0 };
        (printed, _) = failure(scenario, None, (done, runs), asked);
    }
    asked.code(is_whole, printed)
}

/// Prints everything about a run that broke an invariant, and then looks for fewer faults that do, in so many runs;
/// whether that was not cut short. It takes long, and what is known already must not be lost when somebody ends it.
fn failure(
    scenario: &str,
    mutation: Option<Mutation>,
    (done, runs): (&Done, usize),
    asked: &Asked,
) -> (ExitCode, bool) {
    let Some(mut plot) = plot(scenario, done.seed) else {
        return (ExitCode::SUCCESS, true);
    };
    plot.mutation = mutation;
    let played = Played {
        plot: &plot,
        seed: done.seed,
        schedule: &plot.schedule(done.seed),
        outcome: &done.outcome,
    };
    let commit = commit::of_this();
    let Some(report) = FailureReport::of(played, &commit) else {
        return (ExitCode::SUCCESS, true);
    };
    // A reader that is gone is noticed at the last text as well.
    let printed = print(&report.to_string());
    if runs == 0 {
        return (printed, true);
    }
    if !asked.is_enough() {
        complain(&format!(
            "seed {}: looks for the fewest faults that break it, in {runs} runs at most\n",
            done.seed
        ));
    }
    let smaller = report.smaller(runs, &asked.enough);
    (print(&format!("\n{smaller}")), !smaller.is_cut())
}

/// The command that plays one end again.
fn at(point: &Point) -> String {
    format!("wva-sim chaos --everywhere --point {point}")
}

fn replay_point(point: &Point) -> ExitCode {
    let (outcome, wrong) = match disturbed(point) {
        Ok(played) => played,
        Err(error) => return fail([format!("not played: {error}")]),
    };
    let end = wrong.as_ref().map_or_else(
        || "it came to rest where it does undisturbed".to_owned(),
        ToString::to_string,
    );
    let printed = print(&format!(
        "point {point}  commit {}\n\n{}\n\n{} events, hash {:016x}: {end}\n",
        commit::of_this(),
        outcome.lines.join("\n"),
        outcome.events,
        outcome.hash
    ));
    if wrong.is_none() {
        printed
    } else {
        ExitCode::FAILURE
    }
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
    let commit = commit::of_this();
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
    if outcome.violation.is_none() {
        printed
    } else {
        ExitCode::FAILURE
    }
}
