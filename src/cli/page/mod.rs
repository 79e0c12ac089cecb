//! `wva page`: recorded decisions as one document for a browser.

mod arguments;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

pub(super) use self::arguments::PageFlags;
use self::arguments::PageSource;
use super::{block_on, misused, print_or_fail, replay};
use crate::page;
use wva_recording::RecordingReader;

/// Runs the command.
pub(super) fn run(flags: PageFlags) -> ExitCode {
    match flags.source() {
        Err(error) => misused([error]),
        Ok(source) => print_or_fail(block_on(document(&source))),
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
