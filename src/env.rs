//! What a controller needs from the world around it. In a simulation all of it is virtual and
//! seeded.

mod clock;
mod mutation;
mod seed;

pub use clock::Clock;
pub use mutation::{Mutation, Mutations};
pub use seed::{Generator, SeedTree};
