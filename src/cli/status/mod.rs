//! `wva status`: the fleet by model and variant, from the objects and, where it is reached, the controller.

mod arguments;
mod enrich;
mod fleet;
mod objects;
mod render;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::time::Duration;

use self::arguments::OutputFormat;
pub(super) use self::arguments::StatusFlags;
pub(super) use self::enrich::old_note;
pub(super) use self::fleet::FleetStatus;
pub(super) use self::objects::{FleetObjects, list_events};
use super::controller_api::ControllerApi;
use super::{fail, misused, print};
use wva_base::text::printable;

/// Time between two tables of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

/// Runs the command.
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
