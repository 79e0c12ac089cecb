//! Commands of the one binary.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

pub mod args;
#[cfg(feature = "sim")]
pub mod chaos;
mod completions;
pub mod controller;
pub mod crds;
#[cfg(feature = "sim")]
pub mod demo;
pub mod plan;
mod stop;
mod usage;

#[cfg(test)]
mod vectors;

use crate::version;

const USAGE: &str = "\
wva: autoscaler for LLM inference on Kubernetes

commands:
  wva controller [FLAGS]                  run the controller
  wva controller --help                   list its flags and settings
  wva controller --print-config[=json]    show every setting, its value and where it comes from
  wva plan --snapshot FILE                show what the controller would decide, from a file
  wva crds                                print the custom resource definition
  wva completions SHELL                   print the completion script of bash, zsh or fish
  wva help COMMAND                        list the flags of a command
  wva --version                           print the version
";

/// Commands that only builds with the embedded world have.
const USAGE_OF_WORLDS: &str = if cfg!(feature = "sim") {
    "  wva demo [FLAGS]                        play the controller in a simulated cluster
  wva chaos [FLAGS]                       break everything around the controller, by seed
"
} else {
    ""
};

/// Exit code of a command line or an input that is not accepted.
const MISUSED: u8 = 2;

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

fn usage() -> String {
    format!("{USAGE}{USAGE_OF_WORLDS}")
}

/// Words that a command line may begin with.
const COMMANDS: [&str; 9] = [
    "controller",
    "plan",
    "crds",
    "completions",
    "help",
    "--help",
    "--version",
    "demo",
    "chaos",
];

/// The last two belong to the embedded world.
fn commands() -> &'static [&'static str] {
    let worlds = if cfg!(feature = "sim") { 0 } else { 2 };
    let own = COMMANDS.len() - worlds;
    COMMANDS.get(..own).unwrap_or(&COMMANDS)
}

/// Runs the command that the arguments name.
pub fn run(arguments: &[String], environment: BTreeMap<String, String>) -> ExitCode {
    let mut rest = arguments.iter().cloned();
    match rest.next().as_deref() {
        Some("controller") => controller::run(rest, environment, hooks()),
        Some("plan") => plan::run(rest),
        #[cfg(feature = "sim")]
        Some("demo") => demo::run(rest),
        #[cfg(feature = "sim")]
        Some("chaos") => chaos::run(rest),
        Some("crds") => crds::run(rest),
        Some("completions") => completions::run(rest),
        Some("help") => match rest.next().as_deref() {
            None | Some("help" | "--help" | "-h") => alone(rest, print_usage),
            Some(command) => {
                let arguments = [command.to_owned(), "--help".to_owned()];
                alone(rest, || run(&arguments, environment))
            }
        },
        Some("--help" | "-h") => alone(rest, print_usage),
        Some("--version" | "-V") => alone(rest, print_version),
        Some(other) => misused([unknown(other, arguments)]),
        None => {
            complain(&usage());
            ExitCode::from(MISUSED)
        }
    }
}

/// What is changed in the controller.
fn hooks() -> std::sync::Arc<dyn crate::hooks::ControllerHooks> {
    #[cfg(all(feature = "sim", debug_assertions))]
    return std::sync::Arc::new(crate::sim::kill_route::KillRoute);
    #[cfg(not(all(feature = "sim", debug_assertions)))]
    std::sync::Arc::new(crate::hooks::NoHooks)
}

/// Acts, unless an argument is left.
fn alone(mut rest: impl Iterator<Item = String>, act: impl FnOnce() -> ExitCode) -> ExitCode {
    match rest.next() {
        Some(extra) => misused([usage::unknown(&extra, [], "wva --help")]),
        None => act(),
    }
}

/// What is wrong with a command that does not exist.
fn unknown(command: &str, arguments: &[String]) -> String {
    if command.starts_with('-') {
        return unknown_flag(command, arguments);
    }
    let meant = usage::likeliest(command, commands().iter().copied());
    let meant = meant.map_or_else(String::new, |meant| format!(", did you mean {meant:?}?"));
    format!("unknown command {command:?}{meant}; wva --help lists them")
}

/// What is wrong with a flag in the place of a command; it may be one of another command.
fn unknown_flag(argument: &str, arguments: &[String]) -> String {
    let (flag, value) = match argument.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (argument, None),
    };
    if let ("--help" | "-h" | "--version" | "-V", Some(value)) = (flag, value) {
        return usage::takes_no_value(flag, value);
    }
    let owners = completions::commands_with(flag);
    if let [first, ..] = owners.as_slice() {
        let given = arguments.join(" ");
        let owners = owners.join(" and ");
        return format!("{flag} belongs to {owners}; run {first} {given}");
    }
    let flags = completions::flags();
    let known = flags.iter().map(String::as_str);
    let meant = usage::likeliest(flag, known.chain(["help", "version"])).map(args::dashed);
    let owners = meant.as_deref().map(completions::commands_with);
    match (meant, owners.as_deref()) {
        (Some(meant), Some(owners @ [first, ..])) => {
            let owners = owners.join(" and ");
            format!(
                "unknown argument {flag:?}, did you mean {meant:?} of {owners}?; {first} --help lists them"
            )
        }
        _ => usage::unknown(flag, ["help", "version"], "wva --help"),
    }
}

fn print_usage() -> ExitCode {
    print(&usage())
}

/// Prints the version.
fn print_version() -> ExitCode {
    print(&format!("wva {}\n", version::shown()))
}

/// Writes to standard output.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_reader_is_gone) => ExitCode::FAILURE,
    }
}

/// Says everything that is wrong, one line each, and fails.
fn fail<E: std::fmt::Display>(errors: impl IntoIterator<Item = E>) -> ExitCode {
    for error in errors {
        complain(&format!("error: {error}\n"));
    }
    ExitCode::FAILURE
}

/// Says what is wrong with a command line or an input, one line each.
fn misused<E: std::fmt::Display>(errors: impl IntoIterator<Item = E>) -> ExitCode {
    fail(errors);
    ExitCode::from(MISUSED)
}

/// Writes to standard error; nobody is left to tell if that fails.
fn complain(text: &str) {
    drop(std::io::stderr().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::{
        BTreeMap, COMMANDS, ExitCode, MISUSED, command_line, commands, run, unknown, usage,
    };

    #[test]
    fn a_misspelt_command_is_refused_with_the_one_that_was_meant() {
        for (line, said) in [
            (
                "paln",
                "unknown command \"paln\", did you mean \"plan\"?; wva --help lists them",
            ),
            (
                "--verson",
                "unknown argument \"--verson\", did you mean \"--version\"?; wva --help lists them",
            ),
            ("x", "unknown command \"x\"; wva --help lists them"),
            ("-x", "unknown argument \"-x\"; wva --help lists them"),
            (
                "--version=1",
                "--version takes no value, and has \"1\"; leave the value out",
            ),
            (
                "--help=",
                "--help takes no value, and has \"\"; leave the value out",
            ),
            (
                "complete",
                "unknown command \"complete\", did you mean \"completions\"?; wva --help lists them",
            ),
            (
                "--snapshto f.yaml",
                "unknown argument \"--snapshto\", did you mean \"--snapshot\" of wva plan?; \
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
                "--snapshot belongs to wva plan; run wva plan --snapshot f.yaml --explain",
            ),
            (
                "--print-config=json",
                "--print-config belongs to wva controller; run wva controller --print-config=json",
            ),
            (
                "-v 2",
                "-v belongs to wva controller; run wva controller -v 2",
            ),
            (
                "--list",
                "--list belongs to wva demo and wva chaos; run wva demo --list",
            ),
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(unknown(&arguments[0], &arguments), said);
        }
        assert_eq!(commands(), COMMANDS);
        for command in commands().iter().filter(|command| **command != "--help") {
            assert!(
                usage().contains(&format!("\n  wva {command} ")),
                "{command}"
            );
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
    fn as_manager_it_is_the_controller() {
        let given = |line: &str| command_line(line.split(' ').map(str::to_owned));
        assert_eq!(given("/wva controller -v=2"), ["controller", "-v=2"]);
        assert_eq!(given("/manager -v=2"), ["controller", "-v=2"]);
        assert_eq!(given("wva"), Vec::<String>::new());
        assert_eq!(command_line(std::iter::empty()), Vec::<String>::new());
    }
}
