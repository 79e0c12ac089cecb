//! How fast replicas may change in one direction.

use std::time::Duration;

use wva::policy::rounding;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalingDirection {
    Up,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Pods(u32),
    Percent(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) size: Size,
    pub(crate) period: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Select {
    Max,
    Min,
    Disabled,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScalingRules {
    /// How long back recommendations count.
    pub(crate) window: Duration,
    pub(crate) select: Select,
    pub(crate) policies: Vec<Policy>,
    /// Share around the target within which nothing changes.
    pub(crate) tolerance: f64,
}

/// Of every autoscaler unless it says otherwise.
pub(super) const TOLERANCE: f64 = 0.1;

impl ScalingRules {
    pub(crate) fn standard(direction: ScalingDirection) -> Self {
        let policy = |size| Policy { size, period: Duration::from_secs(15) };
        let (window, policies) = match direction {
            ScalingDirection::Up => (0, vec![policy(Size::Pods(4)), policy(Size::Percent(100))]),
            ScalingDirection::Down => (300, vec![policy(Size::Percent(100))]),
        };
        Self {
            window: Duration::from_secs(window),
            select: Select::Max,
            policies,
            tolerance: TOLERANCE,
        }
    }

    pub(super) fn limit(
        &self,
        direction: ScalingDirection,
        current: u32,
        start_of: impl Fn(Duration) -> i64,
    ) -> i64 {
        let limits =
            self.policies.iter().map(|policy| policy.limit(direction, start_of(policy.period)));
        let current = i64::from(current);
        match (self.select, direction) {
            (Select::Disabled, _) => current,
            (Select::Max, ScalingDirection::Up) => limits.max().unwrap_or(current).max(current),
            (Select::Min, ScalingDirection::Up) => limits.min().unwrap_or(current).max(current),
            (Select::Max, ScalingDirection::Down) => limits.min().unwrap_or(current).min(current),
            (Select::Min, ScalingDirection::Down) => limits.max().unwrap_or(current).min(current),
        }
    }
}

impl Policy {
    fn limit(&self, direction: ScalingDirection, start: i64) -> i64 {
        let share = |percent: u32| f64::from(percent) / 100.0;
        // The controller computes this product in floating point, too.
        let of_start = f64::from(u32::try_from(start).unwrap_or(0));
        match (self.size, direction) {
            (Size::Pods(pods), ScalingDirection::Up) => start.saturating_add(i64::from(pods)),
            (Size::Pods(pods), ScalingDirection::Down) => start.saturating_sub(i64::from(pods)),
            (Size::Percent(percent), ScalingDirection::Up) => {
                i64::from(rounding::ceil(of_start * (1.0 + share(percent))))
            }
            (Size::Percent(percent), ScalingDirection::Down) => {
                i64::from(rounding::floor(of_start * (1.0 - share(percent))))
            }
        }
    }
}
