//! The arguments of `wva status`.

use clap::{Parser, ValueEnum};

use crate::cli::controller_api::ControllerFlags;
use crate::cli::namespace_flags::NamespaceFlags;

/// The form of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OutputFormat {
    /// A table.
    #[default]
    Text,
    /// One document.
    Json,
}

/// Shows the fleet by model and variant
#[derive(Debug, Parser)]
#[command(
    name = "status",
    after_help = "Reads the objects with the kubeconfig. With --address the controller adds its last decisions and \
                  the ages of its samples.\n\
                  Exit code: 0 with a table, 1 where the cluster cannot be read, 2 where arguments are not accepted."
)]
pub(in crate::cli) struct StatusFlags {
    #[command(flatten)]
    pub(super) namespaces: NamespaceFlags,
    /// Repeat every 5 seconds until interrupted
    #[arg(long)]
    pub(super) watch: bool,
    /// The form of the answer
    #[arg(
        short = 'o',
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "text"
    )]
    pub(super) output: OutputFormat,
    #[command(flatten)]
    pub(super) controller: ControllerFlags,
}
