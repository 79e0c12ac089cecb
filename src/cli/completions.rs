//! The command `completions`: what shells complete, made from the flags that the commands read.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, Command, CommandFactory as _, Parser, ValueHint};
use clap_complete::{Shell, generate};

use super::program::Program;
use super::{bundle, crds, doctor, migrate, page, plan, print, replay, status, why};
use crate::settings::schema::{self, Spec};
use crate::settings::value::ValueKind;

/// Prints the completion script of a shell
#[derive(Debug, Parser)]
#[command(
    name = "completions",
    after_help = "bash: source <(wva completions bash)\n\
                  zsh:  source <(wva completions zsh)\n\
                  fish: wva completions fish | source"
)]
pub struct CompletionsFlags {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = shells())]
    shell: Shell,
}

fn shells() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|shell| shell.parse::<Shell>())
}

pub(super) fn run(program: &Program, arguments: impl Iterator<Item = String>) -> ExitCode {
    program.run_command(arguments, |given: CompletionsFlags| print(&script(program, given.shell)))
}

fn script(program: &Program, shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut (program.tree)(), program.name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

pub(super) fn tree() -> Command {
    Command::new("wva")
        .version(crate::version::VERSION)
        .subcommand(controller_command())
        .subcommand(doctor::DoctorFlags::command())
        .subcommand(plan::PlanFlags::command())
        .subcommand(replay::ReplayFlags::command())
        .subcommand(page::PageFlags::command())
        .subcommand(bundle::BundleFlags::command())
        .subcommand(status::StatusFlags::command())
        .subcommand(migrate::MigrateFlags::command())
        .subcommand(why::WhyFlags::command())
        .subcommand(crds::CrdsFlags::command())
        .subcommand(CompletionsFlags::command())
}

/// Returns the command of the controller, whose flags clap does not read: they have the forms of Go programs.
pub fn controller_command() -> Command {
    let print_config = Arg::new("print-config")
        .long("print-config")
        .help("Show every setting with its value and source, and exit")
        .num_args(0..=1)
        .require_equals(true)
        .value_parser(["text", "json"]);
    let version =
        Arg::new("version").long("version").help("Print the version").action(ArgAction::SetTrue);
    let settings =
        schema::all().flat_map(|spec| spec.flags.iter().map(move |flag| setting(spec, flag)));
    Command::new("controller")
        .about("Runs the controller")
        .arg(print_config)
        .arg(version)
        .args(settings)
}

fn setting(spec: &'static Spec, flag: &'static str) -> Arg {
    let mut letters = flag.chars();
    let arg = match (letters.next(), letters.next()) {
        (Some(letter), None) => Arg::new(flag).short(letter),
        _ => Arg::new(flag).long(flag),
    };
    let arg = arg.help(spec.meaning);
    match spec.kind {
        ValueKind::Bool => arg.action(ArgAction::SetTrue),
        ValueKind::Path => arg.value_hint(ValueHint::FilePath),
        _ => arg.value_hint(ValueHint::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::PROGRAM;
    use super::super::usage::{read, unknown};
    use super::*;

    #[test]
    fn every_shell_completes_every_command_and_flag() {
        tree().debug_assert();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(&PROGRAM, shell);
            for command in tree().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell:?}: {command}");
                for flag in command.get_arguments().filter_map(Arg::get_long) {
                    let is_there = script.contains(flag);
                    assert!(is_there, "{shell:?}: {command} --{flag}");
                }
            }
        }
    }

    #[test]
    fn a_flag_is_answered_with_the_shells_that_there_are() {
        let refused =
            |line: &str| read::<CompletionsFlags>(&PROGRAM, line.split(' ').map(str::to_owned));
        for (line, argument) in [("--shell", "--shell"), ("bash zsh", "zsh")] {
            let said = format!(
                "unknown argument {argument:?}; wva completions takes a shell, one of bash, zsh or fish"
            );
            assert_eq!(refused(line).err().map(|error| error.0), Some(said));
        }
    }

    #[test]
    fn half_a_flag_of_any_command_brings_a_suggestion() {
        for command in tree().get_subcommands() {
            let flags: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
            for flag in &flags {
                let half = format!("--{}", &flag[..flag.len() / 2]);
                let said = unknown(&PROGRAM, &half, flags.iter().copied(), "wva --help");
                assert!(said.contains("did you mean"), "{command}: {said}");
            }
        }
    }
}
