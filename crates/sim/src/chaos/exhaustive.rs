//! One end at each point: of every role at its occasions, and of the process at its writes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use clap::ValueEnum;

use super::campaign::survive;
use super::check::InvariantViolation;
use super::fault::ProcessFault;
use super::liveness::Quiescence;
use super::run::RunOutcome;
use super::schedule::{autoscaler_roles, roles as roles_of};
use super::trace::Keep;
use super::workload::autoscaled::add_one;
use super::workload::{BY_TOKENS, ChaosWorkload, INVENTORY, Probe, drawn, sleeper, to_zero};
use crate::threads::each;
use crate::world::{ConfigMap, Replica};
use wva::roles::Role;
use wva_supervise::KillAt;

const SCENARIO: (&str, u64) = ("probe", 1);

/// How long after the last request, or the end of the last server, that is still in an answer at most: the
/// longest window of a query is five minutes, and then come a scrape and a collection. Before that it hangs on
/// seconds which series are shown.
const FORGOTTEN: Duration = Duration::from_mins(6);

/// Where points are looked for. Each has one resting point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum ExhaustiveScenario {
    Percentages,
    Tokens,
    Pair,
    Zero,
    /// With fewer GPUs than the load needs, within which growth is kept, and one variant of groups.
    Limited,
    /// With a Deployment that a PodAutoscaler scales; its roles, those above them and its writes alone are ended.
    Autoscaled,
}

impl ExhaustiveScenario {
    fn plot(self) -> ChaosWorkload {
        let (name, seed) = SCENARIO;
        let mut plot = drawn(name, seed);
        match self {
            Self::Percentages => {}
            Self::Tokens => {
                plot.scenario.config.push(ConfigMap::saturation(BY_TOKENS));
                plot.stays = FORGOTTEN;
            }
            Self::Pair => plot.controllers = 2,
            Self::Autoscaled => add_one(&mut plot.scenario, plot.faults_until),
            Self::Zero => {
                for model in &mut plot.scenario.models {
                    for variant in &mut model.variants {
                        variant.bounds.0 = 0;
                    }
                    plot.scenario.config.push(to_zero(name, model, true));
                }
                plot.sleeper = sleeper(&plot.scenario);
                plot.stays = FORGOTTEN;
            }
            Self::Limited => {
                plot.scenario.config.push(ConfigMap::saturation(INVENTORY));
                for nodes in &mut plot.scenario.nodes {
                    nodes.gpus = FEW;
                }
                let models = plot.scenario.models.iter_mut();
                let last = models.filter_map(|model| model.variants.last_mut());
                last.for_each(|variant| variant.replica = GROUP);
            }
        }
        plot
    }

    pub(super) fn play(self, probe: Option<Probe>, keep: Keep) -> RunOutcome {
        let mut plot = self.plot();
        plot.probe = probe;
        let (_, seed) = SCENARIO;
        survive(&plot, seed, &plot.schedule(seed), keep)
    }

    /// Up to here every occasion of a role is a point in any case.
    fn each(self) -> u64 {
        match self {
            Self::Percentages => 10,
            Self::Tokens | Self::Pair | Self::Zero | Self::Limited | Self::Autoscaled => 2,
        }
    }
}

/// GPUs of the one node where growth is limited: for one replica more of each variant than there are at first.
const FEW: u32 = 6;

const GROUP: Replica = Replica::Group { workers: 1, gpus: 1 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Points {
    /// Of a role the first ones, and from then on each that is twice as late; of writes all.
    Spread,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Course {
    Role(Role),
    Writes(ProcessFault),
}

#[derive(Debug, Clone)]
pub(crate) struct BrokenInvariant {
    pub(crate) point: CrashPoint,
    pub(crate) violation: InvariantViolation,
    pub(crate) lines: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Walked {
    pub(crate) scene: ExhaustiveScenario,
    pub(crate) course: Course,
    pub(crate) ends: u64,
    pub(crate) broken: Vec<BrokenInvariant>,
}

impl Walked {
    pub(crate) fn is_broken(&self) -> bool {
        !self.broken.is_empty() || self.ends == 0
    }
}

pub(super) fn scenes() -> impl Iterator<Item = ExhaustiveScenario> + Clone {
    ExhaustiveScenario::value_variants().iter().copied()
}

/// Every course of a scene. The end of the root is that of the process, after which another one begins.
fn courses(scene: ExhaustiveScenario) -> Vec<(ExhaustiveScenario, Course)> {
    let plot = scene.plot();
    let roles: Vec<Role> = if scene == ExhaustiveScenario::Autoscaled {
        let above = [Role::Root, Role::Leadership, Role::Egress, Role::Engine];
        above.into_iter().chain(autoscaler_roles(&plot.autoscalers())).collect()
    } else {
        let roles = [Role::Root].into_iter();
        roles.chain(roles_of(&plot.variants())).chain(plot.also()).collect()
    };
    let ways = WRITES.map(|(_, how)| how);
    roles
        .into_iter()
        .map(Course::Role)
        .chain(ways.map(Course::Writes))
        .map(|course| (scene, course))
        .collect()
}

/// Ends everything at every point of one scene or of all, once in each run; `done` gets each course at its end.
pub(crate) fn exhaustive(
    only: Option<ExhaustiveScenario>,
    points: Points,
    jobs: usize,
    done: impl Fn(&Walked) + Sync,
) -> Result<Vec<Walked>, String> {
    let played = scenes().filter(|scene| only.is_none_or(|only| only == *scene));
    let mut usual = BTreeMap::new();
    for scene in played.clone() {
        usual.insert(scene, at_rest(scene)?);
    }
    each(jobs, played.flat_map(courses), |(scene, course)| {
        let mut walked = Walked { scene, course, ends: 0, broken: Vec::new() };
        if let Some(usual) = usual.get(&scene) {
            walk(&mut walked, points, usual);
        }
        done(&walked);
        walked
    })
}

fn at_rest(scene: ExhaustiveScenario) -> Result<Quiescence, String> {
    let outcome = scene.play(None, Keep::Tail);
    if let Some((_, violation)) = outcome.violation {
        return Err(format!("the undisturbed run of {scene:?} is broken itself: {violation}"));
    }
    Ok(outcome.rest)
}

/// Plays a scene with an end at one point, with its whole trace, and says what was wrong after it.
pub(crate) fn disturbed(
    point: &CrashPoint,
) -> Result<(RunOutcome, Option<InvariantViolation>), String> {
    let CrashPoint { scene, probe } = point;
    let outcome = scene.play(Some(probe.clone()), Keep::All);
    let usual = at_rest(*scene)?;
    if !outcome.struck && outcome.violation.is_none() {
        return Err(format!("{point} never comes; the run ends before"));
    }
    let wrong = wrong(&outcome, &usual);
    Ok((outcome, wrong))
}

pub(super) fn wrong(outcome: &RunOutcome, usual: &Quiescence) -> Option<InvariantViolation> {
    let broken = outcome.violation.as_ref();
    let broken = broken.map(|(_, violation)| violation.clone());
    broken.or_else(|| {
        let unlike = outcome.rest.unlike(usual)?;
        Some(InvariantViolation::new("L1", format!("at rest {unlike}")))
    })
}

fn walk(walked: &mut Walked, points: Points, usual: &Quiescence) {
    let mut number = 1;
    loop {
        let probes = match &walked.course {
            Course::Role(role) => [KillAt::Before(number), KillAt::After(number)]
                .map(|moment| Probe::Role(role.clone(), moment))
                .to_vec(),
            Course::Writes(how) => vec![Probe::Write(number, *how)],
        };
        for probe in probes {
            let outcome = walked.scene.play(Some(probe.clone()), Keep::Tail);
            // Beyond the last occasion nothing ends, and what is wrong then is so without an end.
            let is_beyond = !outcome.struck;
            if (!is_beyond || outcome.violation.is_some())
                && let Some(violation) = wrong(&outcome, usual)
            {
                let is_first = walked.broken.is_empty();
                walked.broken.push(BrokenInvariant {
                    point: CrashPoint { scene: walked.scene, probe },
                    violation,
                    lines: if is_first { outcome.lines } else { Vec::new() },
                });
            }
            walked.ends += u64::from(!is_beyond);
            if is_beyond {
                return;
            }
        }
        let is_each = matches!(walked.course, Course::Writes(_));
        number = match points {
            Points::Spread if !is_each && number >= walked.scene.each() => number * 2,
            _ => number + 1,
        };
    }
}

const WRITES: [(&str, ProcessFault); 3] = [
    ("before-write", ProcessFault::BeforeWrite),
    ("during-write", ProcessFault::DuringWrite),
    ("after-write", ProcessFault::AfterWrite),
];

/// What is ended, when, and in which scene. As text it is `SCENE/before/NUMBER/ROLE`, with `after` likewise,
/// or `SCENE/during-write/NUMBER`, with `before-write` and `after-write` likewise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CrashPoint {
    pub(crate) scene: ExhaustiveScenario,
    pub(crate) probe: Probe,
}

impl fmt::Display for CrashPoint {
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

impl CrashPoint {
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
            let point = CrashPoint { scene, probe };
            assert_eq!(point.to_string(), text);
            assert_eq!(CrashPoint::named(text), Some(point));
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
            assert_eq!(CrashPoint::named(text), None, "{text}");
        }
    }
}
