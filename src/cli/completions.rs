//! `wva completions`: what shells complete, made from the flags that the commands read.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command, CommandFactory as _, Parser, ValueEnum, ValueHint};
use clap_complete::{Shell, generate};

use super::usage::{Given, read};
use super::{crds, misused, plan, print};
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
struct CompletionsFlags {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Known,
}

/// Shells with a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

/// Runs the command.
pub(super) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    match read::<CompletionsFlags>(arguments) {
        Ok(Given::Arguments(given)) => print(&script(given.shell)),
        Ok(Given::Help(text)) => print(&text),
        Err(error) => misused([error]),
    }
}

fn script(shell: Known) -> String {
    let shell = match shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut tree(), "wva", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The long flags of all commands, without their dashes.
pub(super) fn flags() -> BTreeSet<String> {
    let tree = tree();
    let flags = tree.get_subcommands().flat_map(Command::get_arguments);
    let flags = flags.filter_map(Arg::get_long).map(str::to_owned);
    flags.collect()
}

/// The commands that have a flag, given with its dashes.
pub(super) fn commands_with(flag: &str) -> Vec<String> {
    let name = flag.trim_start_matches('-');
    let is_it = |arg: &Arg| {
        let short = arg.get_short().map(String::from);
        arg.get_long() == Some(name) || short.as_deref() == Some(name)
    };
    let has_it = |command: &&Command| name != flag && command.get_arguments().any(is_it);
    let tree = tree();
    let owners = tree.get_subcommands().filter(has_it);
    let names = owners.map(|command| format!("wva {}", command.get_name()));
    names.filter(|_| name != "version").collect()
}

/// Every command with its flags.
fn tree() -> Command {
    let tree = Command::new("wva")
        .version(crate::version::VERSION)
        .subcommand(controller())
        .subcommand(plan::PlanFlags::command())
        .subcommand(crds::CrdsFlags::command())
        .subcommand(CompletionsFlags::command());
    #[cfg(feature = "sim")]
    let tree = tree
        .subcommand(super::demo::DemoFlags::command())
        .subcommand(super::chaos::ChaosFlags::command());
    tree
}

/// The controller, whose flags clap does not read: they have the forms of Go programs.
fn controller() -> Command {
    let print_config = Arg::new("print-config")
        .long("print-config")
        .help("Show every setting with its value and source, and exit")
        .num_args(0..=1)
        .require_equals(true)
        .value_parser(["text", "json"]);
    let version = Arg::new("version")
        .long("version")
        .help("Print the version")
        .action(ArgAction::SetTrue);
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
    use super::super::usage::unknown;
    use super::*;

    #[test]
    fn every_shell_completes_every_command_and_flag() {
        tree().debug_assert();
        for shell in [Known::Bash, Known::Zsh, Known::Fish] {
            let script = script(shell);
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
        let refused = |line: &str| read::<CompletionsFlags>(line.split(' ').map(str::to_owned));
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
                let said = unknown(&half, flags.iter().copied(), "wva --help");
                assert!(said.contains("did you mean"), "{command}: {said}");
            }
        }
    }
}
