//! Hashes of traces of chaos, with counts that show where a difference comes from.

use std::fmt::Write as _;

use wva::sim::chaos::{Keep, plot, survive};

use super::is_golden;

/// Plots and seeds that take seconds.
const RUNS: [(&str, u64); 3] = [("probe", 1), ("probe", 2), ("brief", 3)];

#[test]
fn traces_of_chaos() {
    let mut page = String::from("# plot  seed  hash of its trace, and what it counts\n");
    for (name, seed) in RUNS {
        let plot = plot(name, seed).unwrap();
        let outcome = survive(&plot, seed, &plot.schedule(seed), Keep::Tail);
        assert_eq!(
            outcome.violation.map(|(_, why)| why.to_string()),
            None,
            "{name} {seed}"
        );
        let injected: u64 = outcome.tally.values().map(|tally| tally.injected).sum();
        writeln!(
            page,
            "{name} {seed} {:016x} events {} writes {} plans {} faults {injected} seconds {}",
            outcome.hash,
            outcome.events,
            outcome.counts.writes,
            outcome.counts.plans,
            outcome.lasted.as_secs()
        )
        .unwrap();
    }
    is_golden("chaos.txt", &page);
}
