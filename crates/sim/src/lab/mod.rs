//! The policy laboratory: scenarios as files, policies by name, every request scored, and files that reports are made from.
//!
//! A run is a world on a paused runtime of its own. The controller runs unmodified; other policies act on scraped signals
//! from a task in the same world.

mod accounting;
mod campaign;
mod change;
mod check;
mod files;
mod fixed;
mod fluid;
mod gates;
mod loads;
mod meter;
mod play;
mod policies;
mod random;
mod record;
pub(crate) mod report;
mod scenario;
mod schema;
mod seats;
mod series;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod trace_file;
mod waits;

pub(crate) use campaign::{Campaign, LabProgress, run};
pub(crate) use change::ScenarioChange;
pub(crate) use fixed::FixedFleet;
pub(crate) use gates::gates;
pub(crate) use policies::{POLICIES, PolicyChoice, PolicyKind};
pub(crate) use random::scenario_names;
pub(crate) use scenario::{BUILT_IN, LoadedScenario, load, load_changed};
pub(crate) use seats::Seats;

use super::number;
