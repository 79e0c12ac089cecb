//! The arguments of `wva plan`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, ValueEnum};

use crate::cli::usage::{Given, Refused, read};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlanCommand {
    Help(String),
    Schema,
    Plan(PlanArguments),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanArguments {
    pub(super) snapshot: String,
    pub(super) settings: Option<String>,
    pub(super) format: Format,
    pub(super) detail: Detail,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Detail {
    #[default]
    Decisions,
    Everything,
}

/// Shows what the controller would decide, from a file
#[derive(Debug, Parser)]
#[command(
    name = "plan",
    after_help = "Exit code: 0 with a plan, 2 where the input is not accepted."
)]
pub(in crate::cli) struct PlanFlags {
    /// What is known of the fleet, as YAML or JSON; /debug/snapshot writes one
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    snapshot: Option<String>,
    /// Keys of --config-file, and the sections saturation, scaleToZero, queueingModel, serviceClasses and namespaces;
    /// without it every default applies
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    settings: Option<String>,
    /// The form of the answer
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    format: Format,
    /// Every step with its numbers; as json or yaml also every intermediate figure
    #[arg(long)]
    explain: bool,
    /// Print the JSON schema of a snapshot
    #[arg(long, exclusive = true)]
    schema: bool,
}

/// Reads the arguments after the command.
///
/// # Errors
/// The first argument that is not accepted, with the remedy.
pub(super) fn parse(arguments: impl Iterator<Item = String>) -> Result<PlanCommand, Refused> {
    let given: PlanFlags = match read(&crate::cli::PROGRAM, arguments)? {
        Given::Arguments(given) => given,
        Given::Help(text) => return Ok(PlanCommand::Help(text)),
    };
    match given.snapshot {
        _ if given.schema => Ok(PlanCommand::Schema),
        Some(snapshot) => Ok(PlanCommand::Plan(PlanArguments {
            snapshot,
            settings: given.settings,
            format: given.format,
            detail: if given.explain {
                Detail::Everything
            } else {
                Detail::Decisions
            },
        })),
        None => Err(Refused(
            "--snapshot is missing; name the file, or --schema to see its form".to_owned(),
        )),
    }
}
