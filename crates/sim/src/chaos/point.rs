//! One end at one point of one scene, as a name.

use std::fmt;
use std::str::FromStr;

use super::exhaustive::{ExhaustiveScenario, scenes};
use super::fault::ProcessFault;
use super::workload::Probe;
use wva::roles::Role;
use wva_supervise::KillAt;

pub(super) const WRITES: [(&str, ProcessFault); 3] = [
    ("before-write", ProcessFault::BeforeWrite),
    ("during-write", ProcessFault::DuringWrite),
    ("after-write", ProcessFault::AfterWrite),
];

/// What is ended, when, and in which scene. As text it is `SCENE/before/NUMBER/ROLE`, with `after` likewise,
/// or `SCENE/during-write/NUMBER`, with `before-write` and `after-write` likewise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) scene: ExhaustiveScenario,
    pub(crate) probe: Probe,
}

impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}/", self.scene)?;
        match &self.probe {
            Probe::Role(role, KillAt::Before(number)) => {
                write!(formatter, "before/{number}/{role}")
            }
            Probe::Role(role, KillAt::After(number)) => write!(formatter, "after/{number}/{role}"),
            Probe::Write(number, how) => {
                let name = WRITES.into_iter().find(|(_, way)| way == how);
                let (name, _) = name.ok_or(fmt::Error)?;
                write!(formatter, "{name}/{number}")
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no point is called so")]
pub(crate) struct NoPoint;

impl FromStr for Point {
    type Err = NoPoint;

    fn from_str(text: &str) -> Result<Self, NoPoint> {
        let mut parts = text.splitn(4, '/');
        let mut part = || parts.next().ok_or(NoPoint);
        let (scene, when, number) = (part()?, part()?, part()?);
        let scene = scenes().find(|known| format!("{known:?}") == scene);
        let number: u64 = number.parse().map_err(|_parse| NoPoint)?;
        // The first is 1.
        let number = Some(number).filter(|number| *number > 0).ok_or(NoPoint)?;
        let way = WRITES.into_iter().find(|(name, _)| *name == when);
        let probe = match (way, when, parts.next()) {
            (Some((_, how)), _, None) => Probe::Write(number, how),
            (None, "before", Some(role)) => Probe::Role(named(role)?, KillAt::Before(number)),
            (None, "after", Some(role)) => Probe::Role(named(role)?, KillAt::After(number)),
            _ => return Err(NoPoint),
        };
        let scene = scene.ok_or(NoPoint)?;
        Ok(Self { scene, probe })
    }
}

fn named(role: &str) -> Result<Role, NoPoint> {
    role.parse().map_err(|_unknown| NoPoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_found_by_its_name() {
        let variant = "Zero/after/40/variant/llm-d/qwen3-8b-fp8";
        for (text, scene, probe) in [
            (
                "Pair/before/7/collector",
                ExhaustiveScenario::Pair,
                Probe::Role(Role::Collector, KillAt::Before(7)),
            ),
            (
                variant,
                ExhaustiveScenario::Zero,
                Probe::Role(
                    "variant/llm-d/qwen3-8b-fp8".parse().unwrap(),
                    KillAt::After(40),
                ),
            ),
            (
                "Percentages/during-write/12",
                ExhaustiveScenario::Percentages,
                Probe::Write(12, ProcessFault::DuringWrite),
            ),
            (
                "Tokens/before-write/1",
                ExhaustiveScenario::Tokens,
                Probe::Write(1, ProcessFault::BeforeWrite),
            ),
            (
                "Tokens/after-write/1",
                ExhaustiveScenario::Tokens,
                Probe::Write(1, ProcessFault::AfterWrite),
            ),
        ] {
            let point = Point { scene, probe };
            assert_eq!(point.to_string(), text);
            assert_eq!(text.parse(), Ok(point));
        }
        for text in [
            "",
            "Pair",
            "Pair/before/7",
            "Pair/before/0/collector",
            "Pair/before/seven/collector",
            "Pair/before/7/unknown",
            "Pair/during/7/collector",
            "Pair/during-write/7/collector",
            "Pair/during-write/0",
            "pair/during-write/7",
        ] {
            assert_eq!(text.parse::<Point>(), Err(NoPoint), "{text}");
        }
    }
}
