//! `wva page`: recorded decisions as one document for a browser.

mod arguments;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

pub(super) use self::arguments::PageFlags;
use self::arguments::PageSource;
use super::usage::{Given, read};
use super::{fail, misused, print, replay};
use crate::page;
use wva_recording::RecordingReader;

/// Runs the command.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let flags: PageFlags = match read(&super::PROGRAM, arguments) {
        Ok(Given::Arguments(flags)) => flags,
        Ok(Given::Help(text)) => return print(&text),
        Err(error) => return misused([error]),
    };
    match flags.source() {
        Err(error) => misused([error]),
        Ok(source) => match super::block_on(document(&source)) {
            Ok(document) => print(&document),
            Err(error) => fail([error]),
        },
    }
}

/// Reads a recording, and draws it.
///
/// # Errors
/// What cannot be read, with the remedy.
async fn document(source: &PageSource) -> Result<String, String> {
    match source {
        PageSource::Recording(file) => {
            let document = page::document(&mut replay::open(file)?);
            document.map_err(|error| format!("{file}: {error}"))
        }
        PageSource::Controller(api) => {
            let recording = api.page("/debug/recording").await?;
            page::document(&mut RecordingReader::new(&*recording))
        }
    }
}
