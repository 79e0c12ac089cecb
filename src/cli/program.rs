//! What every program of this project shares: the general commands, and refusals in the same words.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Arg, Command, Parser};

use super::usage::{Given, read};
use super::{MISUSED, complain, completions, misused, print, print_version, usage};
use crate::settings::help::dashed;

/// A program with commands.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What `--help` prints.
    pub usage: &'static str,
    /// Words that a command line may begin with.
    pub words: &'static [&'static str],
    /// Every command with its flags.
    pub tree: fn() -> Command,
}

impl Program {
    /// Runs a command that every program has, or refuses one that this program does not have. `run` runs another
    /// command line of the program.
    pub fn run_general(
        &self,
        command: Option<&str>,
        arguments: &[String],
        run: impl FnOnce(&[String]) -> ExitCode,
    ) -> ExitCode {
        let mut rest = arguments.iter().skip(1).cloned();
        let print_usage = || print(self.usage);
        match command {
            Some("completions") => completions::run(self, rest),
            Some("help") => match rest.next().as_deref() {
                None | Some("help" | "--help" | "-h") => self.alone(rest, print_usage),
                Some(command) => {
                    let arguments = [command.to_owned(), "--help".to_owned()];
                    self.alone(rest, || run(&arguments))
                }
            },
            Some("--help" | "-h") => self.alone(rest, print_usage),
            Some("--version" | "-V") => self.alone(rest, || print_version(self.name)),
            Some(other) => misused([self.unknown(other, arguments)]),
            None => {
                complain(self.usage);
                ExitCode::from(MISUSED)
            }
        }
    }

    /// Reads the flags of a command, and runs it.
    pub fn run_command<F: Parser>(
        &self,
        arguments: impl Iterator<Item = String>,
        run: impl FnOnce(F) -> ExitCode,
    ) -> ExitCode {
        match read(self, arguments) {
            Ok(Given::Arguments(flags)) => run(flags),
            Ok(Given::Help(text)) => print(&text),
            Err(error) => misused([error]),
        }
    }

    /// Acts, unless an argument is left.
    pub fn alone(
        &self,
        mut rest: impl Iterator<Item = String>,
        act: impl FnOnce() -> ExitCode,
    ) -> ExitCode {
        match rest.next() {
            Some(extra) => misused([usage::unknown(self, &extra, [], &self.help())]),
            None => act(),
        }
    }

    fn help(&self) -> String {
        format!("{} --help", self.name)
    }

    /// Returns what is wrong with a command that does not exist.
    pub fn unknown(&self, command: &str, arguments: &[String]) -> String {
        if command.starts_with('-') {
            return self.unknown_flag(command, arguments);
        }
        let meant = usage::likeliest(command, self.words.iter().copied());
        let meant = meant.map_or_else(String::new, |meant| format!(", did you mean {meant:?}?"));
        format!("unknown command {command:?}{meant}; {} lists them", self.help())
    }

    /// What is wrong with a flag in the place of a command; it may be one of another command.
    fn unknown_flag(&self, argument: &str, arguments: &[String]) -> String {
        let (flag, value) = match argument.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (argument, None),
        };
        if let ("--help" | "-h" | "--version" | "-V", Some(value)) = (flag, value) {
            return usage::takes_no_value(flag, value);
        }
        let owners = self.commands_with(flag);
        if let [first, ..] = owners.as_slice() {
            let given = arguments.join(" ");
            let owners = owners.join(" and ");
            return format!("{flag} belongs to {owners}; run {first} {given}");
        }
        let flags = self.flags();
        let known = flags.iter().map(String::as_str);
        let meant = usage::likeliest(flag, known.chain(["help", "version"])).map(dashed);
        let owners = meant.as_deref().map(|meant| self.commands_with(meant));
        match (meant, owners.as_deref()) {
            (Some(meant), Some(owners @ [first, ..])) => {
                let owners = owners.join(" and ");
                format!(
                    "unknown argument {flag:?}, did you mean {meant:?} of {owners}?; {first} --help lists them"
                )
            }
            _ => usage::unknown(self, flag, ["help", "version"], &self.help()),
        }
    }

    /// The long flags of all commands, without their dashes.
    fn flags(&self) -> BTreeSet<String> {
        let tree = (self.tree)();
        let flags = tree.get_subcommands().flat_map(Command::get_arguments);
        let flags = flags.filter_map(Arg::get_long).map(str::to_owned);
        flags.collect()
    }

    pub(super) fn commands_with(&self, flag: &str) -> Vec<String> {
        let name = flag.trim_start_matches('-');
        let is_it = |arg: &Arg| {
            let short = arg.get_short().map(String::from);
            arg.get_long() == Some(name) || short.as_deref() == Some(name)
        };
        let has_it = |command: &&Command| name != flag && command.get_arguments().any(is_it);
        let tree = (self.tree)();
        let owners = tree.get_subcommands().filter(has_it);
        let names = owners.map(|command| format!("{} {}", self.name, command.get_name()));
        names.filter(|_| name != "version").collect()
    }
}
