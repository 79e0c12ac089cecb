//! The arguments of `wva bundle`.

use clap::Parser;
use clap::builder::NonEmptyStringValueParser;

use crate::cli::controller_api::ControllerFlags;
use crate::cli::namespace_flags::NamespaceFlags;

/// Writes one archive for a bug report, without secrets
#[derive(Debug, Parser)]
#[command(
    name = "bundle",
    after_help = "The archive has the version, objects with their status, events, findings of wva doctor, and with --address \
                  settings, decisions with their inputs and actors. wva replay repeats its decisions.\n\
                  Exit code: 0 with an archive, 1 without one, 2 where arguments are not accepted."
)]
pub(in crate::cli) struct BundleFlags {
    /// The archive
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, default_value = "wva-bundle.tgz", value_parser = NonEmptyStringValueParser::new())]
    pub(super) output: String,
    #[command(flatten)]
    pub(super) namespaces: NamespaceFlags,
    /// A recording in place of the controller's memory
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    pub(super) recording: Option<String>,
    #[command(flatten)]
    pub(super) controller: ControllerFlags,
}
