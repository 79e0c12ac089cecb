//! One end at each point: of every role at its occasions, and of the process at its writes.

use std::sync::{Mutex, PoisonError};

use super::campaign::{on_threads, survive};
use super::check::Violation;
use super::fault::Process;
use super::plot::{Probe, plot};
use super::schedule::roles;
use super::trace::Keep;
use crate::kit::{KillAt, Role};

/// The scenario in which points are looked for.
const SCENARIO: &str = "probe";
/// Up to here every occasion is a point in any case.
const EACH: u64 = 10;

/// Which occasions of a role are points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// The first ten, and from then on each that is twice as late.
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
    /// What was ended.
    pub course: Course,
    /// Points at which it was.
    pub ends: u64,
    /// Points after which something was not as it must be.
    pub broken: Vec<(Probe, Violation)>,
}

/// Every course.
fn courses() -> Vec<Course> {
    let variants = plot(SCENARIO, 1).map(|plot| plot.variants());
    let roles = roles(&variants.unwrap_or_default()).into_iter();
    let ways = [
        Process::BeforeWrite,
        Process::DuringWrite,
        Process::AfterWrite,
    ];
    roles
        .map(Course::Role)
        .chain(ways.map(Course::Writes))
        .collect()
}

/// Ends everything at every point, once in each run; `done` hears of each course.
///
/// # Errors
/// When the system gives no thread.
pub fn everywhere(
    points: Points,
    jobs: usize,
    done: impl Fn(&Walked) + Sync,
) -> std::io::Result<Vec<Walked>> {
    let waiting = Mutex::new(courses().into_iter());
    let all = Mutex::new(Vec::new());
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.next()
    };
    let work = || {
        while let Some(course) = next() {
            let walked = walk(course, points);
            done(&walked);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(walked);
        }
    };
    on_threads(jobs, work)?;
    Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// One course to its last point.
fn walk(course: Course, points: Points) -> Walked {
    let mut walked = Walked {
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
            let Some(mut plot) = plot(SCENARIO, 1) else {
                return walked;
            };
            plot.probe = Some(probe.clone());
            let outcome = survive(&plot, 1, &plot.schedule(1), Keep::Tail);
            if let Some((_, violation)) = outcome.violation {
                walked.broken.push((probe, violation));
            } else if !outcome.struck {
                return walked;
            }
            walked.ends += 1;
        }
        number = match &walked.course {
            Course::Role(_) if points == Points::Spread && number >= EACH => number * 2,
            _ => number + 1,
        };
    }
}
