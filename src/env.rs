//! What a controller needs from the world around it. In a simulation all of it is virtual and
//! seeded.

mod clock;
mod flaw;
mod seed;

pub use clock::Clock;
pub use flaw::{Flaw, Flaws};
pub use seed::{Generator, SeedTree};
