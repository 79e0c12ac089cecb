//! Recordings of planning cycles and of decisions about PodAutoscalers: everything that they are made from, as
//! differences, and what was decided.
//!
//! A recording is a sequence of segments. Each is one gzip member of JSON lines: a header, one whole cycle, one
//! whole decision about each `PodAutoscaler`, and differences. Segments stand alone, so that a ring or a file drops the oldest and stays readable.

mod autoscaler;
mod cycle;
mod patch;
mod reader;
mod replay;
mod ring;
mod segment;

#[cfg(test)]
mod tests;

pub use autoscaler::{AutoscalerInputs, RecordedAutoscaler, RecordedAutoscalerDecision};
pub use cycle::{CycleInputs, RecordedCycle, RecordedDecision, RecordedDecisions};
pub use patch::{PatchError, apply, diff};
pub use reader::{MAX_RECORDING, RecordedEntry, RecordingError, RecordingReader};
pub use replay::{
    DecisionDifference, ReplayedAutoscaler, ReplayedCycle, replay, replay_autoscaler,
};
pub use ring::DecisionRing;
pub use segment::{EncodedEntry, MAX_LINE, RecordingHeader, SegmentEncoder};

/// Version of the layout of recordings.
pub const FORMAT: u32 = 1;
