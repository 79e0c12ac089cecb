//! `wva why`: the steps of one decision for people, and what would change it.

mod arguments;
mod render;
mod source;
#[cfg(test)]
mod tests;
mod thresholds;

use std::process::ExitCode;

pub(super) use self::arguments::WhyFlags;
use super::{block_on, misused, print_or_fail};
use wva_base::text::printable;

pub(super) fn run(flags: WhyFlags) -> ExitCode {
    match flags.question() {
        Err(error) => misused([error]),
        Ok(question) => {
            let answer = block_on(source::answer(&question));
            print_or_fail(answer.map(|text| printable(&text)))
        }
    }
}
