//! The cases, in files by subject.

mod engines;
mod external_metrics;
mod servers;
mod workloads;

use crate::harness::suite::Case;

pub(crate) fn all() -> Vec<Case> {
    [
        servers::cases(),
        workloads::cases(),
        external_metrics::cases(),
        engines::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
