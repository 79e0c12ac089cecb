//! Bounds of one variant: applied last, always, to every variant, with metrics or without.

use super::reason::{BoundSource, Reason};
use super::snapshot::DeclaredBounds;
use super::units::Replicas;

/// Most replicas of any variant, whatever its maximum: the largest signed 32-bit integer. The scale
/// subresource holds no larger count.
pub(crate) const CEILING: Replicas = Replicas(i32::MAX.unsigned_abs());

/// Whether a model may go to zero replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroPolicy {
    /// Scale to zero is enabled for the model.
    Enabled,
    /// It is not.
    Disabled,
}

impl From<bool> for ZeroPolicy {
    fn from(enabled: bool) -> Self {
        if enabled { Self::Enabled } else { Self::Disabled }
    }
}

/// Bounds in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Fewest replicas.
    pub min: Replicas,
    /// Where the minimum comes from.
    pub source: BoundSource,
    /// Most replicas; `None` without this limit.
    pub max: Option<Replicas>,
}

impl Bounds {
    /// Fills in what the object leaves out: the minimum by the model's policy, the maximum by none.
    pub fn effective(declared: &DeclaredBounds, policy: ZeroPolicy) -> Self {
        let (min, source) = match (declared.min, policy) {
            (Some(min), _) => (min, BoundSource::Object),
            (None, ZeroPolicy::Enabled) => (Replicas::ZERO, BoundSource::ScaleToZeroEnabled),
            (None, ZeroPolicy::Disabled) => (Replicas::ONE, BoundSource::ScaleToZeroDisabled),
        };
        Self { min, source, max: declared.max }
    }

    /// The nearest count within the bounds, and what was done to get there. Where the minimum is
    /// above the maximum, which the schema refuses, the maximum holds. No count exceeds [`CEILING`].
    pub fn clamp(&self, count: Replicas) -> (Replicas, Reason) {
        let (count, why) = self.clamp_declared(count);
        if count > CEILING {
            (CEILING, Reason::CutToCeiling { ceiling: CEILING })
        } else {
            (count, why)
        }
    }

    fn clamp_declared(&self, count: Replicas) -> (Replicas, Reason) {
        let Self { min, source, max } = *self;
        match max {
            Some(max) if min > max => (max, Reason::BoundsConflict { min, max }),
            Some(max) if count > max => (max, Reason::CutToMaximum { max }),
            _ if count < min => (min, Reason::RaisedToMinimum { min, source }),
            _ => (count, Reason::WithinBounds { min, max }),
        }
    }

    pub(crate) fn leaves_room_above(&self, count: Replicas) -> bool {
        count < self.max.unwrap_or(CEILING).min(CEILING)
    }

    /// The count that load alone never takes a variant below: its minimum, and never less than one.
    pub fn floor(&self) -> Replicas {
        self.min.max(Replicas::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, CEILING, ZeroPolicy};
    use crate::reason::{BoundSource, Reason};
    use crate::snapshot::DeclaredBounds;
    use crate::units::Replicas;

    fn bounds(min: Option<u32>, max: Option<u32>, policy: ZeroPolicy) -> Bounds {
        let declared = DeclaredBounds { min: min.map(Replicas), max: max.map(Replicas) };
        Bounds::effective(&declared, policy)
    }

    #[test]
    fn an_absent_minimum_follows_the_policy_and_an_absent_maximum_binds_nothing() {
        let off = bounds(None, None, ZeroPolicy::Disabled);
        let (count, why) = off.clamp(Replicas::ZERO);
        assert_eq!(count, Replicas::ONE);
        assert_eq!(
            why,
            Reason::RaisedToMinimum {
                min: Replicas::ONE,
                source: BoundSource::ScaleToZeroDisabled
            }
        );
        assert_eq!(off.clamp(Replicas(1_000_000)).0, Replicas(1_000_000));
        assert!(off.leaves_room_above(Replicas(1_000_000)));

        let on = bounds(None, None, ZeroPolicy::Enabled);
        assert_eq!(on.clamp(Replicas::ZERO).0, Replicas::ZERO);
        let explicit = bounds(Some(0), None, ZeroPolicy::Disabled);
        assert_eq!(explicit.clamp(Replicas::ZERO).0, Replicas::ZERO);
        assert_eq!(explicit.floor(), Replicas::ONE);
    }

    #[test]
    fn no_count_exceeds_what_a_scale_subresource_holds() {
        let unbounded = bounds(None, None, ZeroPolicy::Disabled);
        assert_eq!(unbounded.clamp(CEILING).0, CEILING);
        assert!(!unbounded.leaves_room_above(CEILING));
        let beyond = bounds(None, Some(u32::MAX), ZeroPolicy::Disabled);
        for bounds in [unbounded, beyond] {
            let (count, why) = bounds.clamp(Replicas(u32::MAX));
            assert_eq!(count, Replicas(2_147_483_647));
            assert_eq!(why, Reason::CutToCeiling { ceiling: CEILING });
            assert_eq!(
                why.to_string(),
                "cut to 2147483647, the most replicas that a scale subresource holds"
            );
        }
    }

    #[test]
    fn the_maximum_holds_against_everything() {
        let usual = bounds(Some(2), Some(4), ZeroPolicy::Disabled);
        for (count, expected) in [(1, 2), (2, 2), (3, 3), (4, 4), (5, 4)] {
            assert_eq!(usual.clamp(Replicas(count)).0, Replicas(expected), "{count}");
        }
        assert!(usual.leaves_room_above(Replicas(3)));
        assert!(!usual.leaves_room_above(Replicas(4)));

        let crossed = bounds(Some(5), Some(3), ZeroPolicy::Disabled);
        for count in [0, 3, 4, 9] {
            let (clamped, why) = crossed.clamp(Replicas(count));
            assert_eq!(clamped, Replicas(3), "{count}");
            assert_eq!(why.to_string(), "minReplicas 5 is above maxReplicas 3: the maximum holds");
        }
    }
}
