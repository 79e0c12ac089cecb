//! What the crates of this project share and what knows none of them: time, text, documents.

pub mod backoff;
mod cases;
mod debug_of;
mod display_of;
pub mod duration;
pub mod moment;
mod named;
pub mod names;
pub mod nearest;
pub mod text;
pub mod yaml;
