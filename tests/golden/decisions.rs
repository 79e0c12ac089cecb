//! Plans as lines: one for each decision.

use wva::policy::document::{Situation, SnapshotDocument};
use wva::policy::learned::Learned;
use wva::policy::params::DynamicSettings;
use wva::policy::plan::{Decision, Plan};
use wva::policy::units::Replicas;
use wva::policy::{learn, plan};

/// The generation of settings that come from a text.
const GENERATION: u64 = 1;

/// What each line of a decision holds.
pub(crate) const COLUMNS: &str = "\
# variant  existing replicas: counts that stages went through, the last one published  action  decisive stage: reason
";

/// A plan, and what is known after it.
pub(crate) struct Made {
    pub(crate) situation: Situation,
    pub(crate) learned: Learned,
    pub(crate) plan: Plan,
}

/// Plans a snapshot; what it states about the past precedes what `before` knows.
pub(crate) fn made(
    name: &str,
    document: &SnapshotDocument,
    before: Learned,
    settings: &DynamicSettings,
) -> Made {
    let situation = document.situation(&settings.freshness);
    let situation = situation.unwrap_or_else(|error| panic!("{name}: {error}"));
    let before = situation.learned.clone().unwrap_or(before);
    let now = situation.now;
    let learned = learn(&situation.snapshot, &before, settings, now);
    let plan = plan(&situation.snapshot, &learned, settings, GENERATION, now);
    Made { situation, learned, plan }
}

/// Returns the decision as one line.
pub(crate) fn line(decision: &Decision) -> String {
    let current = count(decision.current);
    let (key, path, action) = (&decision.key, path(decision), decision.action());
    let stage = decision.decisive().map_or("none", |step| step.stage.as_str());
    let action = action.to_string();
    let reason = decision.reason().replace('\n', " ");
    format!("{key}  {current}: {path:<11} {action:<10} {stage}: {reason}")
}

/// Returns a count, or `-` where it is not known.
pub(crate) fn count(count: Option<Replicas>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// The count that the stages start from and each that one of them made of it.
fn path(decision: &Decision) -> String {
    if decision.target.is_none() {
        return "-".to_owned();
    }
    let mut counts = Vec::new();
    for step in &decision.steps {
        if counts.is_empty() || step.from != step.to {
            counts.push(step.to);
        }
    }
    // No stage publishes another count than the last step, and a line that shows one is worth a look.
    if counts.last().copied() != decision.target {
        counts.extend(decision.target);
    }
    let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
    counts.join(" -> ")
}
