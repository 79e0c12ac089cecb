//! The contract table, and that a real server is asked the same.

#[path = "../../../../../tests/contract/runner.rs"]
mod runner;

#[tokio::test(start_paused = true)]
async fn the_contract_is_kept() {
    let server = super::server().await;
    let outcome = runner::run(&server.client(), "ns", runner::Server::Embedded).await;
    assert!(outcome.rows > 90, "{} rows", outcome.rows);
    let page = include_str!("../../../../../docs/development/simulator.md");
    let counts = format!("{} rows, of which {} differs", outcome.rows, outcome.differences);
    assert!(page.contains(&counts), "docs/development/simulator.md lacks {counts}");
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert_ne!(runner::Server::Embedded, runner::Server::Real);
}
