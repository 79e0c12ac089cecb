//! One end at each point: of every role at its occasions, and of the process at its writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::campaign::{on_threads, survive};
use super::check::Violation;
use super::fault::Process;
use super::injector::SATURATION;
use super::outcome::Outcome;
use super::plot::{BY_TOKENS, Plot, Probe, plot, sleeper, to_zero};
use super::rest::Rest;
use super::schedule::roles;
use super::trace::Keep;
use crate::kit::{KillAt, Role};
use crate::sim::world::ConfigMap;

/// The scenario that all scenes begin with, and its seed.
const SCENARIO: (&str, u64) = ("probe", 1);

/// How long after the last server has gone its series are still in an answer at most: the longest window of a
/// query is five minutes, and then come a scrape and a collection.
const FORGOTTEN: Duration = Duration::from_mins(6);

/// Where points are looked for. Each has one resting point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scene {
    /// One model and one controller, with the percentage-based analysis.
    Percentages,
    /// The same with the analysis by tokens.
    Tokens,
    /// With a second controller, which takes over from the first.
    Pair,
    /// With a model that goes to zero, is woken, and goes to zero again.
    Zero,
}

impl Scene {
    /// Every scene, in order.
    pub const ALL: [Self; 4] = [Self::Percentages, Self::Tokens, Self::Pair, Self::Zero];

    /// The plot of the scene.
    fn plot(self) -> Option<Plot> {
        let (name, seed) = SCENARIO;
        let mut plot = plot(name, seed)?;
        match self {
            Self::Percentages => {}
            Self::Tokens => plot.scenario.config.push(ConfigMap {
                name: SATURATION,
                data: vec![("default", BY_TOKENS.to_owned())],
            }),
            Self::Pair => plot.controllers = 2,
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
        }
        Some(plot)
    }

    /// The whole of it, with an end at this point or with none.
    pub(super) fn play(self, probe: Option<Probe>) -> Option<Outcome> {
        let mut plot = self.plot()?;
        plot.probe = probe;
        let (_, seed) = SCENARIO;
        Some(survive(&plot, seed, &plot.schedule(seed), Keep::Tail))
    }

    /// Up to here every occasion is a point in any case, and in the first scene and that with two controllers
    /// every write.
    fn each(self) -> u64 {
        match self {
            Self::Percentages => 10,
            Self::Tokens | Self::Pair | Self::Zero => 2,
        }
    }
}

/// Which occasions of a role are points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// The first ones, and from then on each that is twice as late.
    Spread,
    /// All of them.
    All,
}

/// What is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// A role, before and after its occasions.
    Role(Role),
    /// The process, this way at each of its writes.
    Writes(Process),
}

/// What came of a course.
#[derive(Debug, Clone)]
pub struct Walked {
    /// Where it was.
    pub scene: Scene,
    /// What was ended.
    pub course: Course,
    /// Points at which it was.
    pub ends: u64,
    /// Points after which something was not as it must be.
    pub broken: Vec<(Probe, Violation)>,
}

impl Walked {
    /// Whether there was a point, and everything was as it must be after each.
    pub fn has_held(&self) -> bool {
        self.ends > 0 && self.broken.is_empty()
    }
}

/// Every course of a scene.
fn courses(scene: Scene) -> Vec<(Scene, Course)> {
    let variants = scene.plot().map(|plot| plot.variants());
    let roles = roles(&variants.unwrap_or_default()).into_iter();
    let ways = [
        Process::BeforeWrite,
        Process::DuringWrite,
        Process::AfterWrite,
    ];
    roles
        .map(Course::Role)
        .chain(ways.map(Course::Writes))
        .map(|course| (scene, course))
        .collect()
}

/// Ends everything at every point of every scene, once in each run; `done` hears of each course.
///
/// # Errors
/// When the system gives no thread, or a scene does not hold without any end.
pub fn everywhere(
    points: Points,
    jobs: usize,
    done: impl Fn(&Walked) + Sync,
) -> std::io::Result<Vec<Walked>> {
    let undisturbed: BTreeMap<Scene, Outcome> = Scene::ALL
        .into_iter()
        .filter_map(|scene| Some((scene, scene.play(None)?)))
        .collect();
    if let Some((scene, (_, violation))) = undisturbed
        .iter()
        .find_map(|(scene, outcome)| Some((scene, outcome.violation.as_ref()?)))
    {
        let text = format!("the undisturbed run of {scene:?} is broken itself: {violation}");
        return Err(std::io::Error::other(text));
    }
    let waiting = Mutex::new(Scene::ALL.into_iter().flat_map(courses));
    let all = Mutex::new(Vec::new());
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.next()
    };
    let work = || {
        while let Some((scene, course)) = next() {
            let Some(usual) = undisturbed.get(&scene) else {
                continue;
            };
            let walked = walk((scene, course), points, &usual.rest);
            done(&walked);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(walked);
        }
    };
    on_threads(jobs, work)?;
    Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What is wrong after an end: an invariant is broken, or it comes to rest otherwise than usual.
pub(super) fn wrong(outcome: &Outcome, usual: &Rest) -> Option<Violation> {
    let broken = outcome.violation.as_ref();
    let broken = broken.map(|(_, violation)| violation.clone());
    broken.or_else(|| {
        let unlike = outcome.rest.unlike(usual)?;
        Some(Violation::new("L1", format!("at rest {unlike}")))
    })
}

/// One course to its last point.
fn walk((scene, course): (Scene, Course), points: Points, usual: &Rest) -> Walked {
    let mut walked = Walked {
        scene,
        course,
        ends: 0,
        broken: Vec::new(),
    };
    let mut number = 1;
    loop {
        let probes = match &walked.course {
            Course::Role(role) => [KillAt::Before(number), KillAt::After(number)]
                .map(|moment| Probe::Role(role.clone(), moment))
                .to_vec(),
            Course::Writes(how) => vec![Probe::Write(number, *how)],
        };
        for probe in probes {
            let Some(outcome) = scene.play(Some(probe.clone())) else {
                return walked;
            };
            // Beyond the last occasion nothing ends, and what is wrong then is so without an end.
            let is_beyond = !outcome.struck;
            if !is_beyond || outcome.violation.is_some() {
                let wrong = wrong(&outcome, usual);
                walked.broken.extend(wrong.map(|wrong| (probe, wrong)));
            }
            if is_beyond {
                return walked;
            }
            walked.ends += 1;
        }
        let has_each = matches!(scene, Scene::Percentages | Scene::Pair);
        let is_each = has_each && matches!(walked.course, Course::Writes(_));
        number = match points {
            Points::Spread if !is_each && number >= scene.each() => number * 2,
            _ => number + 1,
        };
    }
}
