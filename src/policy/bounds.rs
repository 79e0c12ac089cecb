//! Bounds of one variant: applied last, always, to every variant, with metrics or without.

use super::plan::{BoundSource, Why};
use super::snapshot::DeclaredBounds;
use super::units::Replicas;

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
        if enabled {
            Self::Enabled
        } else {
            Self::Disabled
        }
    }
}

/// Bounds in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Fewest replicas.
    pub min: Replicas,
    /// Where the minimum comes from.
    pub source: BoundSource,
    /// Most replicas; `None` if there is no such limit.
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
        Self {
            min,
            source,
            max: declared.max,
        }
    }

    /// The nearest count within the bounds, and what was done to get there. Where the minimum is
    /// above the maximum, which the schema refuses, the maximum holds.
    pub fn clamp(&self, count: Replicas) -> (Replicas, Why) {
        let Self { min, source, max } = *self;
        match max {
            Some(max) if min > max => (max, Why::BoundsConflict { min, max }),
            Some(max) if count > max => (max, Why::CutToMaximum { max }),
            _ if count < min => (min, Why::RaisedToMinimum { min, source }),
            _ => (count, Why::WithinBounds { min, max }),
        }
    }

    /// Whether one more than `count` is within the maximum.
    pub fn leaves_room_above(&self, count: Replicas) -> bool {
        self.max.is_none_or(|max| count < max)
    }

    /// The count that load alone never takes a variant below: its minimum, and never less than one.
    pub fn floor(&self) -> Replicas {
        self.min.max(Replicas::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, ZeroPolicy};
    use crate::policy::plan::{BoundSource, Why};
    use crate::policy::snapshot::DeclaredBounds;
    use crate::policy::units::Replicas;

    fn bounds(min: Option<u32>, max: Option<u32>, policy: ZeroPolicy) -> Bounds {
        let declared = DeclaredBounds {
            min: min.map(Replicas),
            max: max.map(Replicas),
        };
        Bounds::effective(&declared, policy)
    }

    #[test]
    fn an_absent_minimum_follows_the_policy_and_an_absent_maximum_binds_nothing() {
        let off = bounds(None, None, ZeroPolicy::Disabled);
        let (count, why) = off.clamp(Replicas::ZERO);
        assert_eq!(count, Replicas::ONE);
        assert_eq!(
            why,
            Why::RaisedToMinimum {
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
    fn the_maximum_holds_against_everything() {
        let usual = bounds(Some(2), Some(4), ZeroPolicy::Disabled);
        for (count, expected) in [(1, 2), (2, 2), (3, 3), (4, 4), (5, 4)] {
            assert_eq!(
                usual.clamp(Replicas(count)).0,
                Replicas(expected),
                "{count}"
            );
        }
        assert!(usual.leaves_room_above(Replicas(3)));
        assert!(!usual.leaves_room_above(Replicas(4)));

        let crossed = bounds(Some(5), Some(3), ZeroPolicy::Disabled);
        for count in [0, 3, 4, 9] {
            let (clamped, why) = crossed.clamp(Replicas(count));
            assert_eq!(clamped, Replicas(3), "{count}");
            assert_eq!(
                why.to_string(),
                "minReplicas 5 is above maxReplicas 3: the maximum holds"
            );
        }
    }
}
