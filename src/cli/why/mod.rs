//! `wva why`: the steps of one decision for people, and what would change it.

mod arguments;
mod render;
mod source;
#[cfg(test)]
mod tests;
mod thresholds;

use std::process::ExitCode;

pub(super) use self::arguments::WhyFlags;
use super::usage::{Given, read};
use super::{fail, misused, print};
use wva_base::text::printable;

/// Runs the command.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let flags: WhyFlags = match read(&super::PROGRAM, arguments) {
        Ok(Given::Arguments(flags)) => flags,
        Ok(Given::Help(text)) => return print(&text),
        Err(error) => return misused([error]),
    };
    match flags.question() {
        Err(error) => misused([error]),
        Ok(question) => match super::block_on(source::answer(&question)) {
            Ok(text) => print(&printable(&text)),
            Err(error) => fail([error]),
        },
    }
}
