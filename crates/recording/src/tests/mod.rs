//! What is recorded is read and repeated to the bit.

mod autoscaled;
mod fleet;
mod golden;
mod patches;
mod recordings;
mod size;
