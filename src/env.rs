//! What a controller needs from the world around it. In a simulation all of it is virtual and
//! seeded.

mod clock;
mod seed;

pub use clock::Clock;
pub use seed::{Generator, SeedTree};
