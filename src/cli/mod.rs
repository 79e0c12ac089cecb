//! Commands of the one binary.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

pub mod args;
mod bundle;
pub mod completions;
pub mod controller;
mod controller_api;
mod crds;
mod doctor;
mod migrate;
mod namespace_flags;
mod page;
mod plan;
pub mod program;
mod replay;
mod status;
pub mod stop;
pub mod usage;
mod why;

#[cfg(test)]
mod vectors;

use self::program::Program;
use crate::hooks::NoHooks;
use crate::version;

const USAGE: &str = "\
wva: autoscaler for LLM inference on Kubernetes

commands:
  wva controller [FLAGS]                  run the controller
  wva controller --help                   list its flags and settings
  wva controller --print-config[=json]    show every setting, its value and where it comes from
  wva doctor                              name what keeps an installation from working
  wva status [-n NAMESPACE | -A]          show the fleet by model and variant
  wva why NAMESPACE/NAME                  show the steps of a decision and what would change it
  wva plan --snapshot FILE                show what the controller would decide, from a file
  wva replay FILE                         repeat recorded decisions and show what differs
  wva page                                write recorded decisions as one page for a browser
  wva migrate                             print variants as annotations of scalers, or as objects
  wva bundle                              write one archive for a bug report, without secrets
  wva crds                                print the custom resource definitions
  wva completions SHELL                   print the completion script of bash, zsh or fish
  wva help COMMAND                        list the flags of a command
  wva --version                           print the version
";

/// Exit code of a command line or an input that is not accepted.
pub const MISUSED: u8 = 2;

/// The name under which the original's image has its program.
const MANAGER: &str = "manager";

/// What was asked for: the arguments without the program's own name. Under the name `manager` the
/// program is the controller, so that a manifest written for the original's image works.
pub fn command_line(mut given: impl Iterator<Item = String>) -> Vec<String> {
    let program = given.next().unwrap_or_default();
    let name = Path::new(&program).file_name();
    let is_manager = name.is_some_and(|name| name == MANAGER);
    let command = is_manager.then(|| "controller".to_owned());
    command.into_iter().chain(given).collect()
}

pub(crate) const PROGRAM: Program = Program {
    name: "wva",
    usage: USAGE,
    words: &[
        "controller",
        "doctor",
        "status",
        "why",
        "plan",
        "replay",
        "page",
        "migrate",
        "bundle",
        "crds",
        "completions",
        "help",
        "--help",
        "--version",
    ],
    tree: completions::tree,
};

/// Runs the command that the arguments name.
pub fn run(arguments: &[String], environment: BTreeMap<String, String>) -> ExitCode {
    let mut rest = arguments.iter().cloned();
    match rest.next().as_deref() {
        Some("controller") => controller::run(rest, environment, Arc::new(NoHooks)),
        Some("doctor") => PROGRAM.run_command(rest, |flags| doctor::run(&flags, environment)),
        Some("status") => PROGRAM.run_command(rest, |flags| status::run(&flags)),
        Some("why") => PROGRAM.run_command(rest, why::run),
        Some("plan") => PROGRAM.run_command(rest, |flags| plan::run(&flags)),
        Some("replay") => PROGRAM.run_command(rest, |flags| replay::run(&flags)),
        Some("page") => PROGRAM.run_command(rest, page::run),
        Some("migrate") => PROGRAM.run_command(rest, |flags| migrate::run(&flags)),
        Some("bundle") => PROGRAM.run_command(rest, |flags| bundle::run(&flags)),
        Some("crds") => PROGRAM.run_command(rest, |crds::CrdsFlags| print_or_fail(crds::text())),
        other => PROGRAM.run_general(other, arguments, |again| run(again, environment)),
    }
}

/// Runs a future to its end, on a runtime of its own.
fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => Err(format!("the runtime cannot start: {error}")),
    }
}

fn print_version(program: &str) -> ExitCode {
    print(&format!("{program} {}\n", version::shown()))
}

/// Writes to standard output.
pub fn print(text: &str) -> ExitCode {
    write_to(&mut std::io::stdout(), text)
}

fn write_to(output: &mut impl Write, text: &str) -> ExitCode {
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of a pipe has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => fail([format!("standard output: {error}; write to another place")]),
    }
}

/// Prints an answer, or says why there is none.
pub fn print_or_fail<E: std::fmt::Display>(answer: Result<String, E>) -> ExitCode {
    match answer {
        Ok(text) => print(&text),
        Err(error) => fail([error]),
    }
}

/// Adds notes below an answer, one line each.
fn add_notes<N: std::fmt::Display>(text: &mut String, notes: impl IntoIterator<Item = N>) {
    text.extend(notes.into_iter().map(|note| format!("note: {note}\n")));
}

/// A value in a table.
fn or_dash(value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Says everything that is wrong, one line each, and fails.
pub fn fail<E: std::fmt::Display>(errors: impl IntoIterator<Item = E>) -> ExitCode {
    for error in errors {
        complain(&format!("error: {error}\n"));
    }
    ExitCode::FAILURE
}

/// Says what is wrong with a command line or an input, one line each.
pub fn misused<E: std::fmt::Display>(errors: impl IntoIterator<Item = E>) -> ExitCode {
    fail(errors);
    ExitCode::from(MISUSED)
}

/// Writes to standard error; a failure of that cannot be reported.
pub fn complain(text: &str) {
    drop(std::io::stderr().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, ExitCode, MISUSED, PROGRAM, command_line, run, write_to};

    #[test]
    fn a_misspelt_command_is_refused_with_the_one_that_was_meant() {
        for (line, said) in [
            ("paln", "unknown command \"paln\", did you mean \"plan\"?; wva --help lists them"),
            (
                "--verson",
                "unknown argument \"--verson\", did you mean \"--version\"?; wva --help lists them",
            ),
            ("x", "unknown command \"x\"; wva --help lists them"),
            ("-x", "unknown argument \"-x\"; wva --help lists them"),
            ("--version=1", "--version takes no value, and has \"1\"; leave the value out"),
            ("--help=", "--help takes no value, and has \"\"; leave the value out"),
            (
                "complete",
                "unknown command \"complete\", did you mean \"completions\"?; wva --help lists them",
            ),
            (
                "--snapshto f.yaml",
                "unknown argument \"--snapshto\", did you mean \"--snapshot\" of wva plan and wva why?; \
                 wva plan --help lists them",
            ),
            (
                "--leader-elct=true",
                "unknown argument \"--leader-elct\", did you mean \"--leader-elect\" of wva controller?; \
                 wva controller --help lists them",
            ),
            (
                "--print-confg",
                "unknown argument \"--print-confg\", did you mean \"--print-config\" of wva controller?; \
                 wva controller --help lists them",
            ),
            (
                "--snapshot f.yaml --explain",
                "--snapshot belongs to wva plan and wva why; run wva plan --snapshot f.yaml --explain",
            ),
            (
                "--print-config=json",
                "--print-config belongs to wva controller; run wva controller --print-config=json",
            ),
            ("-v 2", "-v belongs to wva controller; run wva controller -v 2"),
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(PROGRAM.unknown(&arguments[0], &arguments), said);
        }
        let commands = PROGRAM.words.iter();
        for command in commands.filter(|command| **command != "--help") {
            let line = format!("\n  wva {command} ");
            assert!(PROGRAM.usage.contains(&line), "{command}");
        }
    }

    #[test]
    fn an_argument_that_has_no_effect_is_refused() {
        for line in [
            "--version extra",
            "-V extra",
            "--help extra",
            "help plan extra",
            "crds --help extra",
            "completions --help extra",
            "controller --help extra",
            "controller --help --foo",
            "controller --version extra",
            "plan --schema --snapshot f.yaml",
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let code = run(&arguments, BTreeMap::new());
            assert_eq!(code, ExitCode::from(MISUSED), "{line}");
        }
    }

    #[test]
    fn an_output_that_takes_nothing_fails() {
        let mut taken = Vec::new();
        assert_eq!(write_to(&mut taken, "text"), ExitCode::SUCCESS);
        assert_eq!(taken, b"text");
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(write_to(&mut full, "text"), ExitCode::FAILURE);
    }

    #[test]
    fn as_manager_it_is_the_controller() {
        let given = |line: &str| command_line(line.split(' ').map(str::to_owned));
        assert_eq!(given("/wva controller -v=2"), ["controller", "-v=2"]);
        assert_eq!(given("/manager -v=2"), ["controller", "-v=2"]);
        assert_eq!(given("wva"), Vec::<String>::new());
        assert_eq!(command_line(std::iter::empty()), Vec::<String>::new());
    }
}
