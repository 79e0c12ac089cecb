//! What the kit needs of the environment.

use super::clock::Clock;
use super::registry::ActorRegistry;
use super::seed::SeedTree;

/// What the kit needs of the environment.
#[derive(Debug, Clone)]
pub struct Kit<R> {
    /// The time.
    pub clock: Clock,
    /// Randomness: the jitter of restarts.
    pub seed: SeedTree,
    /// Who is alive.
    pub actors: ActorRegistry<R>,
}
