//! Recordings of planning cycles: everything that a plan is made from, as differences, and what was decided.
//!
//! A recording is a sequence of segments. Each is one gzip member of JSON lines: a header, one whole cycle, and
//! differences. Segments stand alone, so that a ring or a file drops the oldest and stays readable.

mod cycle;
mod patch;
mod reader;
mod replay;
mod ring;
mod segment;

#[cfg(test)]
mod tests;

pub use cycle::{CycleInputs, RecordedCycle, RecordedDecision, RecordedDecisions};
pub use patch::{PatchError, apply, diff};
pub use reader::{MAX_LINE, MAX_RECORDING, RecordingError, RecordingReader};
pub use replay::{DecisionDifference, ReplayedCycle, replay};
pub use ring::DecisionRing;
pub use segment::{EncodedCycle, RecordingHeader, SegmentEncoder};

/// Version of the layout of recordings.
pub const FORMAT: u32 = 1;
