//! `wva status`: the fleet by model and variant, from the objects and, where it is reached, the controller.

mod enrich;
mod fleet;
mod objects;
mod render;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};

pub(super) use self::enrich::old_note;
pub(super) use self::fleet::{FleetStatus, TargetPlace, identity, target_place, title};
pub(super) use self::objects::{FleetObjects, list_events};
use super::controller_api::{ControllerApi, ControllerFlags};
use super::namespace_flags::NamespaceFlags;
use super::{fail, misused, print};
use wva_base::text::printable;

/// Time between two tables of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
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
pub(super) struct StatusFlags {
    #[command(flatten)]
    namespaces: NamespaceFlags,
    /// Repeat every 5 seconds until interrupted
    #[arg(long)]
    watch: bool,
    /// The form of the answer
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: OutputFormat,
    #[command(flatten)]
    controller: ControllerFlags,
}

pub(super) fn run(flags: &StatusFlags) -> ExitCode {
    let controller = match ControllerApi::of(&flags.controller) {
        Ok(controller) => controller,
        Err(error) => return misused([error]),
    };
    match super::block_on(repeat(flags, controller.as_ref())) {
        Ok(code) => code,
        Err(error) => fail([error]),
    }
}

async fn repeat(
    flags: &StatusFlags,
    controller: Option<&ControllerApi>,
) -> Result<ExitCode, String> {
    let (client, namespace) = flags.namespaces.connect().await?;
    loop {
        let objects = FleetObjects::read(&client, namespace.as_deref()).await?;
        let objects = objects.decided(&client).await;
        let objects = objects.with_gated(&client, namespace.as_deref()).await;
        let mut status = FleetStatus::of(&objects);
        if let Some(controller) = controller {
            enrich::enrich(&mut status, controller).await;
        }
        let text = match flags.output {
            OutputFormat::Text => printable(&render::table(&status, namespace.as_deref())),
            OutputFormat::Json => render::json(&status)?,
        };
        let code = print(&text);
        if !flags.watch || code != ExitCode::SUCCESS {
            return Ok(code);
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
        if flags.output == OutputFormat::Text && print("\n") != ExitCode::SUCCESS {
            return Ok(ExitCode::FAILURE);
        }
    }
}
