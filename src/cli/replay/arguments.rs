//! The arguments of `wva replay`.

use clap::Parser;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::usage::to_time;

/// Repeats recorded decisions with this program, and shows every difference
#[derive(Debug, Parser)]
#[command(
    name = "replay",
    after_help = "Exit code: 0 where every decision is the same, 1 where one differs, 2 where the recording or the \
                  arguments are not accepted."
)]
pub(in crate::cli) struct ReplayFlags {
    /// A recording: DECISION_RECORD_FILE, what /debug/recording writes, or a bundle
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    pub(super) file: String,
    /// Settings in place of the recorded ones, as wva plan reads them
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    pub(super) settings: Option<String>,
    /// Only the last cycle up to this time, like 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = to_time)]
    pub(super) at: Option<jiff::Timestamp>,
    /// Print which version recorded, and nothing else
    #[arg(long)]
    pub(super) version_of: bool,
}
