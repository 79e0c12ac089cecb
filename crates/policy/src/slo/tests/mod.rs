//! Tests of the SLO analyzer: its parts by exact values, and the whole in a loop with servers.

mod balance;
mod bursts;
mod closed_loop;
mod cold_start;
mod memory;
mod parts;
mod roles;
mod stragglers;
mod terms;

use std::time::Duration;

use wva_base::moment::{Moment, WallTime};

fn at(seconds: u64) -> Moment {
    Moment {
        monotonic: Duration::from_secs(seconds),
        wall: WallTime(i64::try_from(seconds).unwrap() * 1_000),
    }
}
