//! D, C2: what is decided.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::InvariantViolation;
use super::hearing::{self, Ready};
use crate::chaos::prometheus_proxy::PodObservations;
use wva::policy::key::{ModelKey, VariantKey};
use wva::policy::plan::{Decision, DecisionOutcome, Plan, PlanStage, Step};
use wva::policy::snapshot::{DeclaredBounds, ResolvedTarget, TargetView, VariantView};
use wva::policy::units::Replicas;
use wva::state::Readers;

#[derive(Debug, Default)]
pub(crate) struct Plans {
    last: Option<(u64, u64)>,
    /// When plans of the last minute were published, each with how many had been made since the one
    /// before: of those of one instant the last alone is seen.
    recent: VecDeque<(Duration, u64)>,
    bounds: BTreeMap<VariantKey, DeclaredBounds>,
    term: Option<u64>,
    decided: BTreeMap<VariantKey, Decided>,
    /// What was last said about each variant, without its numbers.
    said: BTreeMap<VariantKey, String>,
}

#[derive(Debug)]
struct Decided {
    target: Replicas,
    uid: Arc<str>,
    /// Whether the plan before it was about the same object: one that has come since a plan was made is
    /// not what that was about.
    is_settled: bool,
}

pub(crate) type Inherited = BTreeMap<VariantKey, Replicas>;

/// Plans that a minute has at most under this interval: an early one each second, and those of ticks, with as
/// many again for ticks without a collection.
fn most_in_a_minute(interval: Option<Duration>) -> u64 {
    let interval = interval.unwrap_or(SHORT).min(SHORT).as_secs().max(1);
    60 + 2 * (60 / interval) + 2
}
/// An interval that is not longer than those of most runs.
const SHORT: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_mins(1);

/// How long before the end of a collection its answers arrive at most: as long as a query may take.
const ASKED: Duration = Duration::from_secs(10);

pub(in crate::chaos) struct Circumstances<'a> {
    pub(crate) now: Duration,
    pub(crate) generation: u64,
    pub(crate) term: u64,
    pub(crate) stored: Inherited,
    pub(crate) shared: &'a Readers,
    pub(crate) views: BTreeMap<VariantKey, Arc<VariantView>>,
    pub(crate) observed: &'a PodObservations,
    pub(crate) ready: &'a Ready,
    pub(crate) stood: &'a BTreeMap<VariantKey, Replicas>,
    /// When the collection ended that the plan rests on; `None` where another one has been published since.
    pub(crate) collected: Option<Duration>,
    pub(crate) usable: Duration,
    /// How old the newest sample of a variant may be that is lowered: fresh when it was collected.
    pub(crate) fresh: Duration,
    pub(crate) shortest: Option<Duration>,
    pub(crate) calm: Option<Duration>,
    pub(crate) budget: BTreeMap<&'a str, u32>,
    pub(crate) fleet: &'a BTreeMap<VariantKey, (String, u32)>,
    pub(crate) may_be_zero: &'a dyn Fn(&VariantKey) -> bool,
    pub(crate) may_sleep: &'a dyn Fn(&ModelKey) -> bool,
}

impl Circumstances<'_> {
    fn target(&self, key: &VariantKey) -> Option<&ResolvedTarget> {
        self.views.get(key)?.target.resolved()
    }

    fn is_unserved(&self, key: &VariantKey) -> bool {
        let target = self.target(key);
        target.is_some_and(|target| target.ready == Replicas::ZERO)
    }

    /// The replicas that exist and stay, which may have changed since the plan was made, in the same moment.
    fn staying(&self, key: &VariantKey) -> Option<Replicas> {
        let now = self.target(key).map(ResolvedTarget::current_excluding_surge);
        now.max(self.stood.get(key).copied())
    }

    fn bounds(&self, key: &VariantKey) -> Option<DeclaredBounds> {
        let view = self.views.get(key)?;
        let is_read = !matches!(view.target, TargetView::Malformed { .. });
        is_read.then_some(view.bounds)
    }

    fn uid(&self, key: &VariantKey) -> Option<Arc<str>> {
        let managed = self.shared.mirrors.managed(key)?;
        Some(Arc::clone(&managed.object.uid))
    }

    fn silent_for(&self, prefix: &str) -> Duration {
        self.now.saturating_sub(self.observed.last(prefix).unwrap_or_default())
    }

    fn variant_silent_for(&self, key: &VariantKey) -> Duration {
        let name = self.target(key).map_or(&key.name, |target| &target.key.name);
        self.silent_for(&format!("{name}-"))
    }

    /// A ready replica of which the collection has no sample, or none that is fresh.
    fn mute(&self, key: &VariantKey) -> Option<Arc<str>> {
        let collected = self.collected?;
        let speaks = |pod: &str| {
            let news = self.observed.of(pod);
            news.is_some_and(|news| {
                news.seen + ASKED >= collected && news.taken + self.fresh >= self.now
            })
        };
        self.ready.silent(self.views.get(key)?, speaks, collected)
    }

    /// Whether a variant has had no series since the last plan: what was decided before is about a target that is
    /// gone.
    fn begins_anew(&self, last: Option<u64>, key: &VariantKey) -> bool {
        let outlived = self.shared.records.get(key).map(|record| record.outlived);
        outlived.is_none_or(|outlived| outlived.is_some_and(|cycle| Some(cycle.0) >= last))
    }
}

impl Plans {
    pub(crate) fn last_at(&self) -> Option<Duration> {
        self.recent.back().map(|(at, _)| *at)
    }

    pub(crate) fn begins(&self, term: u64) -> bool {
        self.term != Some(term)
    }

    pub(crate) fn judge(
        &mut self,
        plan: &Plan,
        circumstances: &Circumstances<'_>,
    ) -> Vec<InvariantViolation> {
        let mut found = Vec::new();
        if let Some((cycle, generation)) = self.last {
            if plan.cycle.0 <= cycle {
                let text = format!("cycle {} is published after cycle {cycle}", plan.cycle);
                found.push(InvariantViolation::new("D7", text));
            }
            if plan.generation < generation {
                let text = format!(
                    "cycle {} is of generation {} after one of {generation}",
                    plan.cycle, plan.generation
                );
                found.push(InvariantViolation::new("C2", text));
            }
        }
        if plan.generation > circumstances.generation {
            let text = format!("cycle {} is of a generation to come", plan.cycle);
            found.push(InvariantViolation::new("C2", text));
        }
        found.extend(late(plan, circumstances));
        found.extend(beyond(plan, circumstances));
        found.extend(sent_to_zero(plan, circumstances));
        found.extend(self.count(plan, most_in_a_minute(circumstances.shortest)));
        let last = self.last.replace((plan.cycle.0, plan.generation));
        let last_cycle = last.map(|(cycle, _)| cycle);
        let decisions = plan.decisions.values();
        found.extend(decisions.filter_map(|decision| judged(decision, circumstances)));
        found.extend(hearing::lowered(plan, &|key| circumstances.mute(key)));
        found.extend(self.outside(plan, circumstances));
        if self.term.replace(circumstances.term) != Some(circumstances.term) {
            found.extend(decided_anew(plan, circumstances));
            self.decided.clear();
        }
        found.extend(self.goes_on(plan, last_cycle, circumstances));
        found
    }

    pub(crate) fn news(&mut self, plan: &Plan) -> Vec<String> {
        let mut news = Vec::new();
        for (key, decision) in &plan.decisions {
            let reason = decision.reason();
            let words: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
            if self.said.get(key) != Some(&words) {
                news.push(format!("{key}: {reason}"));
                self.said.insert(key.clone(), words);
            }
        }
        news
    }

    /// D2: targets outside of bounds that were known at the plan before, and are still.
    fn outside(
        &mut self,
        plan: &Plan,
        circumstances: &Circumstances<'_>,
    ) -> Vec<InvariantViolation> {
        let known = plan.decisions.keys();
        let known = known.filter_map(|key| Some((key.clone(), circumstances.bounds(key)?)));
        let known: BTreeMap<VariantKey, DeclaredBounds> = known.collect();
        let mut found = Vec::new();
        for (key, bounds) in &known {
            let decision = plan.decisions.get(key);
            let Some(target) = decision.and_then(|decision| decision.target) else {
                continue;
            };
            if self.bounds.get(key) == Some(bounds) && is_outside(target, bounds) {
                let text = format!("{key} goes to {target}, outside of its bounds");
                found.push(InvariantViolation::new("D2", text));
            }
        }
        self.bounds = known;
        found
    }

    /// D7: a plan goes on from what the one before it decided.
    fn goes_on(
        &mut self,
        plan: &Plan,
        last_cycle: Option<u64>,
        circumstances: &Circumstances<'_>,
    ) -> Option<InvariantViolation> {
        let mut before = std::mem::take(&mut self.decided);
        let mut found = None;
        for (key, decision) in &plan.decisions {
            let Some((target, uid)) = decision.target.zip(circumstances.uid(key)) else {
                continue;
            };
            let before = before.remove(key).filter(|before| before.uid == uid);
            let before = before.filter(|_| !circumstances.begins_anew(last_cycle, key));
            let last = before.as_ref().filter(|before| before.is_settled);
            let base = decision.steps.first().map(|step| step.from);
            if let Some(last) = last.map(|last| last.target)
                && base.is_some_and(|base| base != last)
            {
                let base = base.unwrap_or_default();
                let text = format!(
                    "cycle {} goes on from {base} for {key}, and not from {last}, which the one before it decided",
                    plan.cycle
                );
                found = Some(InvariantViolation::new("D7", text));
            }
            let decided = Decided { target, uid, is_settled: before.is_some() };
            self.decided.insert(key.clone(), decided);
        }
        found
    }

    fn count(&mut self, plan: &Plan, most: u64) -> Option<InvariantViolation> {
        let now = plan.at.monotonic;
        let before = self.last.map(|(cycle, _)| cycle);
        let made = before.map_or(1, |before| plan.cycle.0.saturating_sub(before));
        self.recent.push_back((now, made));
        let is_over = |(at, _): &mut (Duration, u64)| *at + MINUTE < now;
        while self.recent.pop_front_if(is_over).is_some() {}
        let made: u64 = self.recent.iter().map(|(_, made)| made).sum();
        let text = format!("{made} plans within a minute");
        (made > most).then(|| InvariantViolation::new("T2", text))
    }
}

/// D7: what the first plan of a term does not go on from is older than what its predecessor decided. What
/// it decided itself may be stored already.
fn decided_anew(plan: &Plan, circumstances: &Circumstances<'_>) -> Option<InvariantViolation> {
    plan.decisions.values().find_map(|decision| {
        let key = &decision.key;
        let target = decision.target?;
        let base = decision.steps.first()?.from;
        let stored = *circumstances.stored.get(key)?;
        let text =
            format!("the first plan of a term goes on from {base} for {key}, not from {stored}");
        (stored != base && stored != target).then(|| InvariantViolation::new("D7", text))
    })
}

/// How long after it was made a plan is published at most.
const PUBLISHED: Duration = Duration::from_secs(2);

/// D7: what is published is what was decided just now.
fn late(plan: &Plan, circumstances: &Circumstances<'_>) -> Option<InvariantViolation> {
    let was_calm = circumstances.calm.is_some_and(|since| since <= plan.at.monotonic);
    let age = circumstances.now.saturating_sub(plan.at.monotonic);
    (was_calm && age > PUBLISHED).then(|| {
        let text =
            format!("cycle {} is published {} s after it was decided", plan.cycle, age.as_secs());
        InvariantViolation::new("D7", text)
    })
}

/// D8: no model goes to zero whose policy does not allow that. One of several variants whose minimum is 0 may
/// be given up for want of load, as long as another one serves.
fn sent_to_zero(plan: &Plan, circumstances: &Circumstances<'_>) -> Option<InvariantViolation> {
    let serves = |model: &ModelKey| {
        let mut decisions = plan.decisions.values();
        decisions.any(|one| one.model == *model && one.target > Some(Replicas::ZERO))
    };
    plan.decisions.values().find_map(|decision| {
        let base = decision.steps.first().map(|step| step.from);
        let falls = base > Some(Replicas::ZERO) && decision.target == Some(Replicas::ZERO);
        let mut steps = decision.steps.iter();
        let is_sent = steps.any(|step| step.stage == PlanStage::Zero && step.to < step.from);
        let model = &decision.model;
        let is_odd = falls && (is_sent || !serves(model));
        (is_odd && !(circumstances.may_sleep)(model)).then(|| {
            let text = format!("{} goes to 0, which no policy of {model} allows", decision.key);
            InvariantViolation::new("D8", text)
        })
    })
}

/// D9: what grows keeps within the budget, unless a bound of the object demands more.
fn beyond(plan: &Plan, circumstances: &Circumstances<'_>) -> Option<InvariantViolation> {
    let Circumstances { budget, fleet, .. } = circumstances;
    budget.iter().find_map(|(of_type, limit)| {
        let mut used = 0;
        let mut culprit = None;
        for decision in plan.decisions.values() {
            let gpus = fleet.get(&decision.key).filter(|(name, _)| name == of_type);
            let (Some((_, gpus)), Some(target)) = (gpus, decision.target) else {
                continue;
            };
            used += target.0 * gpus;
            let grows = |step: &&Step| {
                step.to > step.from && !matches!(step.stage, PlanStage::Base | PlanStage::Bounds)
            };
            let base = decision.steps.first().map(|step| step.from);
            let exists = circumstances.staying(&decision.key);
            // A minimum is owed, whatever else is demanded.
            let least = circumstances.bounds(&decision.key).and_then(|bounds| bounds.min);
            let is_new = Some(target) > base.max(exists).max(least);
            if is_new && decision.steps.iter().any(|step| grows(&step)) {
                culprit = Some(decision);
            }
        }
        let decision = culprit.filter(|_| used > *limit)?;
        let steps = decision.steps.iter();
        let steps = steps.map(|step| format!("{} {} {}", step.stage.as_str(), step.to, step.why));
        let text = format!(
            "{} grows, so that {used} {of_type} are used of {limit}: {}",
            decision.key,
            steps.collect::<Vec<_>>().join("; ")
        );
        Some(InvariantViolation::new("D9", text))
    })
}

fn judged(decision: &Decision, circumstances: &Circumstances<'_>) -> Option<InvariantViolation> {
    let key = &decision.key;
    let target = decision.target?;
    let last = decision.steps.last();
    if last.is_some_and(|step| step.to != target) {
        let text = format!("the steps of {key} do not lead to {target}");
        return Some(InvariantViolation::new("D5", text));
    }
    if target == Replicas::ZERO && !(circumstances.may_be_zero)(key) {
        let text = format!("{key} goes to 0, which nothing allows");
        return Some(InvariantViolation::new("D8", text));
    }
    // What one stage adds and another takes back is not lowered.
    let falls = decision.steps.first().is_some_and(|step| target < step.from);
    let lowered_at = |is_meant: fn(PlanStage) -> bool| {
        let mut steps = decision.steps.iter();
        falls && steps.any(|step| step.to < step.from && is_meant(step.stage))
    };
    let lowered = lowered_at(|stage| !matches!(stage, PlanStage::Bounds | PlanStage::Zero));
    if lowered && decision.outcome == DecisionOutcome::SafetyNet {
        let text = format!("{key} is lowered to {target} without metrics");
        return Some(InvariantViolation::new("D4", text));
    }
    // A model goes to zero as a whole, by what is known of any of its variants and of its queue. Where no
    // replica is ready, what the router says itself is enough.
    let (silent, limit) = if lowered && decision.current > Some(Replicas::ZERO) {
        (circumstances.variant_silent_for(key), circumstances.fresh)
    } else if lowered_at(|stage| stage == PlanStage::Zero) && !circumstances.is_unserved(key) {
        (circumstances.silent_for(""), circumstances.usable)
    } else {
        return None;
    };
    if silent > limit {
        let text = format!(
            "{key} is lowered to {target} although there was no sample for {} s",
            silent.as_secs()
        );
        return Some(InvariantViolation::new("D4", text));
    }
    None
}

/// Where the least is above the most, the most holds.
fn is_outside(target: Replicas, bounds: &DeclaredBounds) -> bool {
    let above = bounds.max.is_some_and(|max| target > max);
    let crossed = bounds.max.is_some_and(|max| bounds.min > Some(max));
    above || (!crossed && bounds.min.is_some_and(|min| target < min))
}
