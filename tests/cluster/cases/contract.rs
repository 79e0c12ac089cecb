//! The contract table against the real API server.

use std::time::Duration;

use wva::cluster::{KubeconfigSource, connect};

use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx, case};

#[path = "../../contract/runner.rs"]
mod runner;

pub(crate) fn cases() -> Vec<Case> {
    vec![case!(shared, contract::the_real_server_keeps_it).within(Duration::from_mins(3))]
}

async fn the_real_server_keeps_it(cx: &Cx) -> Result {
    let namespace = &cx.namespace.name;
    // The client of the world repeats what is refused for the moment, which rows ask for.
    let source = KubeconfigSource::File { path: cx.world.api.admin.clone().into(), context: None };
    let client = connect(&source).await?;
    let outcome = runner::run(&client, namespace, runner::Server::Real).await;
    assert!(outcome.rows > 90, "{} rows", outcome.rows);
    if outcome.failures.is_empty() {
        return Ok(());
    }
    Err(Fault::new(outcome.failures.join("\n")))
}
