//! Commands of the one binary.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

pub mod args;
#[cfg(feature = "sim")]
pub mod chaos;
pub mod controller;
pub mod crds;
#[cfg(feature = "sim")]
pub mod demo;
#[cfg(feature = "sim")]
mod flags;
pub mod plan;
mod stop;

#[cfg(test)]
mod vectors;

const USAGE: &str = "\
wva: autoscaler for LLM inference on Kubernetes

commands:
  wva controller [FLAGS]                  run the controller
  wva controller --help                   list its flags and settings
  wva controller --print-config[=json]    show every setting, its value and where it comes from
  wva plan --snapshot FILE                show what the controller would decide, from a file
  wva crds                                print the custom resource definition
";

/// Commands that only builds with the embedded world have.
const USAGE_OF_WORLDS: &str = if cfg!(feature = "sim") {
    "  wva demo [FLAGS]                        play the controller in a simulated cluster
  wva chaos [FLAGS]                       break everything around the controller, by seed
"
} else {
    ""
};

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

/// Runs the command that the arguments name.
pub fn run(arguments: &[String], environment: BTreeMap<String, String>) -> ExitCode {
    let mut rest = arguments.iter().cloned();
    match rest.next().as_deref() {
        Some("controller") => controller::run(rest, environment),
        Some("plan") => plan::run(rest),
        #[cfg(feature = "sim")]
        Some("demo") => demo::run(rest),
        #[cfg(feature = "sim")]
        Some("chaos") => chaos::run(rest),
        Some("crds") => match (rest.next(), crds::text()) {
            (Some(extra), _) => {
                complain(&format!("wva crds takes no argument, and got {extra:?}\n"));
                ExitCode::from(2)
            }
            (None, Ok(text)) => print(&text),
            (None, Err(error)) => fail([error]),
        },
        Some("help" | "--help" | "-h") => print(&usage()),
        Some(other) => {
            complain(&format!("unknown command {other:?}\n\n{}", usage()));
            ExitCode::from(2)
        }
        None => {
            complain(&usage());
            ExitCode::from(2)
        }
    }
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

/// Writes to standard error; nobody is left to tell if that fails.
fn complain(text: &str) {
    drop(std::io::stderr().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn as_manager_it_is_the_controller() {
        let given = |line: &str| command_line(line.split(' ').map(str::to_owned));
        assert_eq!(given("/wva controller -v=2"), ["controller", "-v=2"]);
        assert_eq!(given("/manager -v=2"), ["controller", "-v=2"]);
        assert_eq!(given("wva"), Vec::<String>::new());
        assert_eq!(command_line(std::iter::empty()), Vec::<String>::new());
    }
}
