//! D, C2: what is decided.

use std::collections::VecDeque;
use std::time::Duration;

use super::Violation;
use crate::policy::key::VariantKey;
use crate::policy::plan::{Decision, Plan, Stage};
use crate::policy::units::Replicas;

/// The plans of one process, as they are published.
#[derive(Debug, Default)]
pub(in crate::sim::chaos) struct Plans {
    last: Option<(u64, u64)>,
    /// When plans of the last minute were published, each with how many had been made since the one
    /// before: of those of one instant the last alone is seen.
    recent: VecDeque<(Duration, u64)>,
}

/// Plans that a minute has at most: an early one each second, and those of ticks five seconds apart or
/// more, with as many again for ticks without a collection.
const PER_MINUTE: u64 = 60 + 2 * 12 + 2;
const MINUTE: Duration = Duration::from_mins(1);

/// What a plan is judged by.
pub(in crate::sim::chaos) struct Circumstances<'a> {
    /// Number of the settings in force.
    pub(in crate::sim::chaos) generation: u64,
    /// How long Prometheus has told nothing.
    pub(in crate::sim::chaos) unheard: Duration,
    /// How long what it told may be used.
    pub(in crate::sim::chaos) usable: Duration,
    /// Whether a variant may have no replicas.
    pub(in crate::sim::chaos) may_be_zero: &'a dyn Fn(&VariantKey) -> bool,
}

impl Plans {
    /// When the last plan was published.
    pub(in crate::sim::chaos) fn last_at(&self) -> Option<Duration> {
        self.recent.back().map(|(at, _)| *at)
    }

    /// Takes in a plan that is published.
    pub(in crate::sim::chaos) fn judge(
        &mut self,
        plan: &Plan,
        circumstances: &Circumstances<'_>,
    ) -> Vec<Violation> {
        let mut found = Vec::new();
        if let Some((cycle, generation)) = self.last {
            if plan.cycle.0 <= cycle {
                let text = format!("cycle {} is published after cycle {cycle}", plan.cycle);
                found.push(Violation::new("D7", text));
            }
            if plan.generation < generation {
                let text = format!(
                    "cycle {} is of generation {} after one of {generation}",
                    plan.cycle, plan.generation
                );
                found.push(Violation::new("C2", text));
            }
        }
        if plan.generation > circumstances.generation {
            let text = format!("cycle {} is of a generation to come", plan.cycle);
            found.push(Violation::new("C2", text));
        }
        found.extend(self.count(plan));
        self.last = Some((plan.cycle.0, plan.generation));
        let decisions = plan.decisions.values();
        found.extend(decisions.filter_map(|decision| judged(decision, circumstances)));
        found
    }

    fn count(&mut self, plan: &Plan) -> Option<Violation> {
        let now = plan.at.monotonic;
        let before = self.last.map(|(cycle, _)| cycle);
        let made = before.map_or(1, |before| plan.cycle.0.saturating_sub(before));
        self.recent.push_back((now, made));
        while self
            .recent
            .front()
            .is_some_and(|(at, _)| *at + MINUTE < now)
        {
            self.recent.pop_front();
        }
        let made: u64 = self.recent.iter().map(|(_, made)| made).sum();
        let text = format!("{made} plans within a minute");
        (made > PER_MINUTE).then(|| Violation::new("T2", text))
    }
}

fn judged(decision: &Decision, circumstances: &Circumstances<'_>) -> Option<Violation> {
    let key = &decision.key;
    let target = decision.target?;
    let last = decision.steps.last();
    if last.is_some_and(|step| step.to != target) {
        let text = format!("the steps of {key} do not lead to {target}");
        return Some(Violation::new("D5", text));
    }
    if target == Replicas::ZERO && !(circumstances.may_be_zero)(key) {
        let text = format!("{key} goes to 0, which nothing allows");
        return Some(Violation::new("D8", text));
    }
    let mut steps = decision.steps.iter();
    let lowered = steps.any(|step| step.to < step.from && step.stage != Stage::Bounds);
    if lowered && circumstances.unheard > circumstances.usable {
        let text = format!(
            "{key} is lowered to {target} although nothing was heard for {} s",
            circumstances.unheard.as_secs()
        );
        return Some(Violation::new("D4", text));
    }
    None
}
