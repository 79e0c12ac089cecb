//! The arguments of `wva page`.

use clap::Parser;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::controller_api::{ControllerApi, ControllerFlags};
use crate::cli::usage::Refused;

/// Writes recorded decisions as one page for a browser
#[derive(Debug, Parser)]
#[command(
    name = "page",
    after_help = "The page needs no network: counts, load and latency of each model over time, and the steps of each \
                  decision behind its mark.\n\
                  Exit code: 0 with a page, 1 without one, 2 where arguments are not accepted."
)]
pub(in crate::cli) struct PageFlags {
    /// A recording: DECISION_RECORD_FILE, what /debug/recording writes, or a bundle
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    recording: Option<String>,
    #[command(flatten)]
    controller: ControllerFlags,
}

/// Where decisions are read.
#[derive(Debug)]
pub(super) enum PageSource {
    /// A file.
    Recording(String),
    /// The controller's memory.
    Controller(ControllerApi),
}

impl PageFlags {
    /// Checks the flags together.
    ///
    /// # Errors
    /// None or both are given, or a file cannot be used.
    pub(super) fn source(self) -> Result<PageSource, Refused> {
        let controller = ControllerApi::of(&self.controller).map_err(Refused)?;
        match (self.recording, controller) {
            (Some(file), None) => Ok(PageSource::Recording(file)),
            (None, Some(api)) => Ok(PageSource::Controller(api)),
            (Some(_), Some(_)) => Err(Refused(
                "--recording excludes --address; give one".to_owned(),
            )),
            (None, None) => Err(Refused(
                "no recording; give --recording FILE, or --address URL of a controller".to_owned(),
            )),
        }
    }
}
