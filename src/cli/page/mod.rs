//! `wva page`: recorded decisions as one document for a browser.

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::Parser;
use clap::builder::NonEmptyStringValueParser;

use super::controller_api::{ControllerApi, ControllerFlags};
use super::usage::Refused;
use super::{block_on, misused, print_or_fail, replay};
use crate::page;
use wva_recording::RecordingReader;

/// Writes recorded decisions as one page for a browser
#[derive(Debug, Parser)]
#[command(
    name = "page",
    after_help = "The page needs no network: counts, load and latency of each model over time, and the steps of each \
                  decision behind its mark.\n\
                  Exit code: 0 with a page, 1 without one, 2 where arguments are not accepted."
)]
pub(super) struct PageFlags {
    /// A recording: DECISION_RECORD_FILE, what /debug/recording writes, or a bundle
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    recording: Option<String>,
    #[command(flatten)]
    controller: ControllerFlags,
}

#[derive(Debug)]
enum PageSource {
    Recording(String),
    Controller(ControllerApi),
}

impl PageFlags {
    /// Checks the flags together.
    ///
    /// # Errors
    /// None or both are given, or a file cannot be used.
    fn source(self) -> Result<PageSource, Refused> {
        let controller = ControllerApi::of(&self.controller).map_err(Refused)?;
        match (self.recording, controller) {
            (Some(file), None) => Ok(PageSource::Recording(file)),
            (None, Some(api)) => Ok(PageSource::Controller(api)),
            (Some(_), Some(_)) => {
                Err(Refused("--recording excludes --address; give one".to_owned()))
            }
            (None, None) => Err(Refused(
                "no recording; give --recording FILE, or --address URL of a controller".to_owned(),
            )),
        }
    }
}

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
