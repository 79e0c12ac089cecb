//! Commands of the simulated cluster.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Command, CommandFactory as _};
use wva::cli::completions::{CompletionsFlags, controller_command};
use wva::cli::controller;
use wva::cli::program::Program;

use crate::kill_route::KillRoute;

pub mod chaos;
pub mod demo;
pub mod lab;

const USAGE: &str = "\
wva-sim: the autoscaler in a simulated cluster

commands:
  wva-sim demo [FLAGS]              play the controller in a simulated cluster
  wva-sim chaos [FLAGS]             break everything around the controller, by seed
  wva-sim lab run [SCENARIO…] --out DIR  play policies against scenarios, with every request scored
  wva-sim controller [FLAGS]        run the controller with a route that kills its roles, for tests
  wva-sim completions SHELL         print the completion script of bash, zsh or fish
  wva-sim help COMMAND              list the flags of a command
  wva-sim --version                 print the version
";

pub(crate) const PROGRAM: Program = Program {
    name: "wva-sim",
    usage: USAGE,
    words: &["demo", "chaos", "lab", "controller", "completions", "help", "--help", "--version"],
    tree,
};

fn tree() -> Command {
    Command::new("wva-sim")
        .version(wva::version::VERSION)
        .subcommand(demo::DemoFlags::command())
        .subcommand(chaos::ChaosFlags::command())
        .subcommand(lab::command())
        .subcommand(controller_command())
        .subcommand(CompletionsFlags::command())
}

/// Runs the command that the arguments name.
pub fn run(arguments: &[String], environment: BTreeMap<String, String>) -> ExitCode {
    let mut rest = arguments.iter().cloned();
    match rest.next().as_deref() {
        Some("demo") => demo::run(rest),
        Some("chaos") => chaos::run(rest),
        Some("lab") => lab::run(rest, &environment),
        Some("controller") => controller::run(rest, environment, Arc::new(KillRoute)),
        other => PROGRAM.run_general(other, arguments, |again| run(again, environment)),
    }
}

#[cfg(test)]
mod tests {
    use super::PROGRAM;

    /// Words between backticks in the sentences of the documentation that are a command of this program.
    fn commands_in_sentences() -> Vec<String> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let text = |file: &str| std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        let mut found = Vec::new();
        for page in text("tests/documents").lines() {
            let page = text(page);
            let prose: String = page.split("```").step_by(2).collect();
            let code = prose.split('`').skip(1).step_by(2);
            let code = code.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
            found.extend(code.filter(|words| words.starts_with("wva-sim ")));
        }
        found
    }

    #[test]
    fn commands_in_sentences_name_what_is_there() {
        let tree = (PROGRAM.tree)();
        let mut seen = 0;
        for command in commands_in_sentences() {
            let mut words = command.split(' ').skip(1);
            let name = words.next().unwrap();
            let known = tree.find_subcommand(name);
            let known = known.unwrap_or_else(|| panic!("{command}"));
            let flags: Vec<&str> = known.get_arguments().filter_map(|arg| arg.get_long()).collect();
            for flag in words.filter_map(|word| word.strip_prefix("--")) {
                assert!(flag == "help" || flags.contains(&flag), "{command}");
            }
            seen += 1;
        }
        assert!(seen > 8, "only {seen}");
    }

    #[test]
    fn a_command_below_another_has_its_whole_name() {
        let help = |name: &str| {
            let mut lab = super::lab::command();
            let command = lab.find_subcommand_mut(name).unwrap();
            command.get_bin_name().map(str::to_owned)
        };
        for name in ["run", "gates", "compare", "explain"] {
            assert_eq!(help(name), Some(format!("wva-sim lab {name}")));
        }
    }

    #[test]
    fn every_command_is_listed() {
        (PROGRAM.tree)().debug_assert();
        let commands = PROGRAM.words.iter();
        for command in commands.filter(|command| **command != "--help") {
            let line = format!("\n  wva-sim {command} ");
            assert!(PROGRAM.usage.contains(&line), "{command}");
        }
    }
}
