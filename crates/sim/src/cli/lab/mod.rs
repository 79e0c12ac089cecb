//! `wva-sim lab`: policies against scenarios.

mod arguments;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _};

use self::arguments::{CompareFlags, ExplainFlags, GateFlags, LabRunFlags};
use super::PROGRAM;
use crate::lab::report;
use crate::lab::{self, BUILT_IN, Campaign, LabProgress, POLICIES};
use crate::real_clock::real;
use wva::cli::{MISUSED, complain, fail, misused, print, print_or_fail, usage};

const USAGE: &str = "\
wva-sim lab: policies against scenarios, with every request scored

  wva-sim lab run [SCENARIO…] --out DIR     play, and write the results to a folder
  wva-sim lab run --help                    list its flags
  wva-sim lab list                          list scenarios and policies
  wva-sim lab gates                         play the gates of the tests: short synthetic loads
  wva-sim lab compare BEFORE AFTER          compare two folders, policy by policy
  wva-sim lab explain RUN --at SECONDS      show one moment of a run, and the decisions before it
";

const RANDOM: &str =
    "  random-N               Drawn from the number N alone; random-1..24 is each from 1 to 24.\n";

/// Runs the command.
pub fn run(
    mut arguments: impl Iterator<Item = String>,
    environment: &BTreeMap<String, String>,
) -> ExitCode {
    match arguments.next().as_deref() {
        Some("run") => PROGRAM.run_command(arguments, |flags: LabRunFlags| {
            let (campaign, problems) = flags.campaign(environment);
            play(&campaign, problems)
        }),
        Some("list") => PROGRAM.alone(arguments, || print(&list())),
        Some("gates") => PROGRAM.run_command(arguments, |flags| gates(&flags)),
        Some("compare") => PROGRAM.run_command(arguments, |flags: CompareFlags| {
            print_or_fail(report::compare(&flags.before, &flags.after))
        }),
        Some("explain") => PROGRAM.run_command(arguments, |flags: ExplainFlags| {
            print_or_fail(report::explain(&flags.run, flags.at))
        }),
        Some("--help" | "-h") => PROGRAM.alone(arguments, || print(USAGE)),
        Some(other) => misused([usage::unknown(&PROGRAM, other, [], "wva-sim lab --help")]),
        None => {
            complain(USAGE);
            ExitCode::from(MISUSED)
        }
    }
}

pub(super) fn command() -> Command {
    Command::new("lab")
        .about("Plays policies against scenarios and scores every request")
        .subcommand(LabRunFlags::command())
        .subcommand(Command::new("list").about("Lists scenarios and policies"))
        .subcommand(GateFlags::command())
        .subcommand(CompareFlags::command())
        .subcommand(ExplainFlags::command())
}

fn gates(flags: &GateFlags) -> ExitCode {
    let ended = |line: &str| {
        print(&format!("{line}\n"));
    };
    match lab::gates(&flags.policy, arguments::jobs(flags.jobs), &ended) {
        Ok(reports) => {
            let seconds: f64 = reports.iter().map(|report| report.cpu_seconds).sum();
            let printed = print(&format!("{seconds:.0} s of processor\n"));
            let violations = reports.into_iter().flat_map(|report| report.violations);
            let violations: Vec<String> = violations.collect();
            if violations.is_empty() {
                printed
            } else {
                let code = fail(violations);
                complain(
                    "wva-sim lab run SCENARIO --policy NAME --policy static-N --out DIR shows why\n",
                );
                code
            }
        }
        Err(error) => fail([error]),
    }
}

fn list() -> String {
    let scenarios = BUILT_IN.iter().map(|(name, _)| {
        let about = lab::load(name).map(|scenario| scenario.about().to_owned());
        let about = about.unwrap_or_else(|error| error);
        format!("  {name:<22} {about}\n")
    });
    let policies = POLICIES.iter().map(|policy| {
        let points: Vec<String> = policy.sweep.iter().map(ToString::to_string).collect();
        let knob = if points.is_empty() {
            String::new()
        } else {
            format!(" (knob: {}; sweep {})", policy.knob, points.join(", "))
        };
        format!("  {:<22} {}{knob}\n", policy.name, policy.about)
    });
    let (scenarios, policies): (String, String) = (scenarios.collect(), policies.collect());
    format!("scenarios\n{scenarios}{RANDOM}policies\n{policies}")
}

fn play(campaign: &Campaign, mut problems: Vec<String>) -> ExitCode {
    let began = real();
    let is_watched = std::io::stderr().is_terminal();
    let report = |progress: &LabProgress| {
        let passed = began.elapsed();
        let played = progress.done.saturating_sub(progress.found);
        let missing = progress.total.saturating_sub(progress.done);
        let left = u32::try_from(missing).ok().zip(u32::try_from(played).ok());
        let left = left.and_then(|(missing, played)| (passed * missing).checked_div(played));
        let left = left.map_or_else(String::new, |left| format!(", {} s left", left.as_secs()));
        let line = format!("{}/{}{left}: {}", progress.done, progress.total, progress.note);
        complain(&if is_watched { format!("\r\x1b[K{line}") } else { format!("{line}\n") });
    };
    let played = lab::run(campaign, &report);
    if is_watched {
        complain("\n");
    }
    match played {
        Ok((more, table)) => {
            problems.extend(more);
            let printed = print(&table);
            if problems.is_empty() { printed } else { fail(problems) }
        }
        Err(error) => fail([error]),
    }
}
