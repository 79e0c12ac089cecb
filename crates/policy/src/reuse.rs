//! How long a collection may be used again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use wva_base::moment::Moment;

/// A cycle always decides on the collection of its own tick, which is up to this old by then.
const OWN_COLLECTION: Duration = Duration::from_secs(1);

/// How long a collection may be used again by cycles that have none of their own: early ones, and
/// those whose collection did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reuse(Duration);

impl Reuse {
    /// For so long, at least for the cycle that it was made for.
    pub fn within(limit: Duration) -> Self {
        Self(limit.max(OWN_COLLECTION))
    }

    /// Whether what was collected then has been kept for longer. What was never collected has not.
    pub fn has_ended(self, collected: Option<Moment>, now: Moment) -> bool {
        collected.is_some_and(|collected| now.since(collected) > self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva_base::moment::WallTime;

    #[test]
    fn a_collection_may_be_used_again_until_the_limit_and_always_by_its_own_cycle() {
        let at = |millis| Moment { monotonic: Duration::from_millis(millis), wall: WallTime(0) };
        let collected = Some(at(1_000));
        let half_a_minute = Reuse::within(Duration::from_secs(30));
        assert!(!half_a_minute.has_ended(collected, at(31_000)));
        assert!(half_a_minute.has_ended(collected, at(31_001)));
        assert!(!half_a_minute.has_ended(None, at(99_000)));

        let never = Reuse::within(Duration::ZERO);
        assert!(!never.has_ended(collected, at(2_000)));
        assert!(never.has_ended(collected, at(2_001)));
    }
}
