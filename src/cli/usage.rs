//! Command lines that clap reads, with refusals in the words that all commands share.

use std::error::Error as _;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Parser};
use strsim::jaro;

use super::program::Program;
use crate::settings::help::dashed;
use wva_base::duration::parse_duration;

/// Likeness from 0 to 1 above which a flag is suggested. Above 0.7, as clap has it, `--verbose` is like
/// `--version`.
const ALIKE: f64 = 0.75;

/// The outcome of a command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Given<A> {
    /// To run, with these arguments.
    Arguments(A),
    /// The help, which is this text.
    Help(String),
}

/// Why a command line is not accepted, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    /// Refuses a value that its flag does not take; `wanted` is what it takes.
    pub fn value(flag: &str, value: &str, wanted: &str) -> Self {
        Self(format!("{flag} is {value:?}; give {wanted}"))
    }
}

/// Reads a time.
///
/// # Errors
/// What is accepted.
pub(super) fn to_time(text: &str) -> Result<jiff::Timestamp, &'static str> {
    let time = text.parse();
    time.map_err(|_error| "a time with its zone, like 2026-03-01T12:00:00Z")
}

/// Reads a duration.
///
/// # Errors
/// What is accepted.
pub(super) fn to_duration(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).map_err(|_error| "a duration with its unit, like 90s or 5m")
}

/// Reads the arguments after the command.
pub fn read<A: Parser>(
    program: &Program,
    arguments: impl Iterator<Item = String>,
) -> Result<Given<A>, Refused> {
    let command = prepared(program, A::command());
    let mut arguments: Vec<String> = arguments.collect();
    let read = command.clone().try_get_matches_from(&arguments);
    let error = match read.and_then(|mut matches| A::from_arg_matches_mut(&mut matches)) {
        Ok(arguments) => return Ok(Given::Arguments(arguments)),
        Err(error) => error,
    };
    if error.kind() != ErrorKind::DisplayHelp {
        return Err(Refused(worded(program, &error, &command)));
    }
    // Clap stops at --help and reads no argument after it.
    arguments.retain(|argument| !matches!(argument.as_str(), "--help" | "-h"));
    match command.clone().try_get_matches_from(arguments) {
        Err(other) if is_wrong(&other) => Err(Refused(worded(program, &other, &command))),
        _ => Ok(Given::Help(error.to_string())),
    }
}

/// Whether an argument is wrong that is there, not one that is missing.
fn is_wrong(error: &clap::Error) -> bool {
    match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => !value.is_empty(),
        _ => error.kind() == ErrorKind::UnknownArgument,
    }
}

/// Under its whole name, without the name of the program among the arguments.
fn prepared(program: &Program, command: Command) -> Command {
    // One below another command states its whole name.
    let name = match command.get_bin_name() {
        Some(whole) => whole.to_owned(),
        None => format!("{} {}", program.name, command.get_name()),
    };
    command.no_binary_name(true).bin_name(name)
}

/// The one of the `known` words, flags without their dashes, that is most like a word.
pub(super) fn likeliest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.trim_start_matches('-').to_ascii_lowercase();
    known
        .into_iter()
        .map(|known| (jaro(&word, known), known))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

/// What is wrong with an argument that does not exist, with the one of the `known` flags, given without
/// their dashes, that is most like it, else the commands that have it.
pub fn unknown<'a>(
    program: &Program,
    argument: &str,
    known: impl IntoIterator<Item = &'a str>,
    help: &str,
) -> String {
    let remark = match likeliest(argument, known) {
        Some(flag) => format!(", did you mean {:?}?", dashed(flag)),
        None => match program.commands_with(argument).join(" and ") {
            owners if owners.is_empty() => owners,
            owners => format!(", which belongs to {owners}"),
        },
    };
    format!("unknown argument {argument:?}{remark}; {help} lists them")
}

/// What is wrong with a value after a switch.
pub(super) fn takes_no_value(flag: &str, value: &str) -> String {
    format!("{flag} takes no value, and has {value:?}; leave the value out")
}

fn worded(program: &Program, error: &clap::Error, command: &Command) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let argument = context(ContextKind::InvalidArg);
    // clap shows an option with the name of its value.
    let (flag, name) = argument.split_once(' ').unwrap_or((&argument, ""));
    let value = context(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let name = command.get_bin_name().unwrap_or(program.name);
            if let Some(positional) = command.get_positionals().next() {
                let values = positional.get_possible_values();
                let values: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
                let (what, values) = (positional.get_id(), one_of(&values));
                if !values.is_empty() {
                    return format!(
                        "unknown argument {argument:?}; {name} takes a {what}, {values}"
                    );
                }
            }
            let flags = command.get_arguments().filter_map(clap::Arg::get_long);
            unknown(program, &argument, flags.chain(["help"]), &format!("{name} --help"))
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("{flag} needs a value; write {flag}={name}")
        }
        ErrorKind::InvalidValue => {
            let accepted = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(values)) => one_of(values),
                _ => "another one".to_owned(),
            };
            Refused::value(flag, &value, &accepted).0
        }
        ErrorKind::ValueValidation => {
            let wanted = error.source().map(ToString::to_string);
            Refused::value(flag, &value, &wanted.unwrap_or_default()).0
        }
        ErrorKind::TooManyValues => takes_no_value(flag, &value),
        ErrorKind::ArgumentConflict if context(ContextKind::PriorArg) == argument => {
            format!("{flag} is given more than once; give it once")
        }
        ErrorKind::ArgumentConflict => match context(ContextKind::PriorArg).as_str() {
            "" => format!("{flag} excludes all other arguments; give it alone"),
            other => format!("{flag} excludes {other}; give one of them"),
        },
        ErrorKind::MissingRequiredArgument => format!("{argument} is missing; give it"),
        _ => error.to_string().trim_end().to_owned(),
    }
}

/// Lists values as `one of a, b or c`.
pub fn one_of<T: AsRef<str>>(values: &[T]) -> String {
    match values {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("one of {} or {}", first.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, read};
    use crate::cli::PROGRAM;
    use crate::cli::doctor::DoctorFlags;
    use crate::cli::why::WhyFlags;

    fn refused<A: clap::Parser>(line: &str) -> String {
        let given = read::<A>(&PROGRAM, line.split(' ').map(str::to_owned));
        match given {
            Ok(Given::Arguments(_)) => String::new(),
            Ok(Given::Help(text)) => text,
            Err(refused) => refused.to_string(),
        }
    }

    #[test]
    fn a_value_of_a_flag_is_refused_with_one_that_is_accepted() {
        assert_eq!(refused::<WhyFlags>("a/b --at 2026-03-01T12:00:00Z"), "");
        assert_eq!(
            refused::<WhyFlags>("a/b --at 14:05"),
            "--at is \"14:05\"; give a time with its zone, like 2026-03-01T12:00:00Z"
        );
        assert_eq!(refused::<DoctorFlags>("--wait 5s"), "");
        assert_eq!(
            refused::<DoctorFlags>("--wait 5"),
            "--wait is \"5\"; give a duration with its unit, like 90s or 5m"
        );
        assert_eq!(refused::<DoctorFlags>("--files d -n x --variant y"), "");
        assert_eq!(
            refused::<DoctorFlags>("--files d --pre"),
            "--files excludes --pre; give one of them"
        );
    }
}
