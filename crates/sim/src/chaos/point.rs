//! One end at one point of one scene, as a name.

use std::fmt;

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

impl Point {
    /// The point that is called so, if there is one.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let (scene, when, number) = (parts.next()?, parts.next()?, parts.next()?);
        let scene = scenes().find(|known| format!("{known:?}") == scene)?;
        // The first is 1.
        let number = number.parse::<u64>().ok().filter(|number| *number > 0)?;
        let way = WRITES.into_iter().find(|(name, _)| *name == when);
        let role = |role: &str| -> Option<Role> { role.parse().ok() };
        let probe = match (way, when, parts.next()) {
            (Some((_, how)), _, None) => Probe::Write(number, how),
            (None, "before", Some(name)) => Probe::Role(role(name)?, KillAt::Before(number)),
            (None, "after", Some(name)) => Probe::Role(role(name)?, KillAt::After(number)),
            _ => return None,
        };
        Some(Self { scene, probe })
    }
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
                Probe::Role("variant/llm-d/qwen3-8b-fp8".parse().unwrap(), KillAt::After(40)),
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
            assert_eq!(Point::named(text), Some(point));
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
            assert_eq!(Point::named(text), None, "{text}");
        }
    }
}
