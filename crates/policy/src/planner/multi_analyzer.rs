//! A model whose analyzers vote: assess, combine, optimize.

mod guard;
mod stand_in;
mod stragglers;

use std::collections::{BTreeMap, BTreeSet};

use guard::Guard;
use stand_in::{hold_early_releases, hold_unlearned_releases, name_unmeasured};

use super::gates;
use super::rescaled::{Share, Sharing};
use super::{Cycle, Work};
use crate::analyzers::{AnalyzerConfig, Opinions, liveness, load_of, opinions, queued_at};
use crate::bounds::Bounds;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::change::CountChange;
use crate::combine::{Balance, Consensus, Liveness, Participation, RoleTarget};
use crate::key::VariantKey;
use crate::optimize::{Candidate, cost_aware};
use crate::pending_decision::PendingDecision;
use crate::plan::{ModelFigures, PlanStage};
use crate::reason::{CapacitySource, DemandGap, Method, MetricsState, MissingSignal, Reason};
use crate::router_queue::HeldQueue;
use crate::safety_net;
use crate::saturation::SaturationAnalysis;
use crate::slo::assess::TOLERATED_EXCESS;
use crate::snapshot::ResolvedTarget;
use crate::startup::StartProspect;
use crate::total::total;
use crate::units::{Cost, Replicas};
use wva_base::text::LISTED;

#[derive(Debug)]
pub(super) struct Growth {
    pub(super) role_targets: BTreeMap<ServingRole, RoleTarget>,
    pub(super) candidates: BTreeMap<VariantKey, Candidate>,
    /// A role that grows without GPUs holds no other one back, while this may.
    pub(super) guard: Guard,
}

#[derive(Debug)]
pub(super) struct AnalyzerDecision {
    pub(super) opinions: Opinions,
    pub(super) consensus: Consensus,
    pub(super) candidates: BTreeMap<VariantKey, Candidate>,
    pub(super) stragglers: BTreeMap<VariantKey, CountChange>,
    arguments: BTreeMap<VariantKey, Vec<String>>,
    guard: Guard,
    /// Roles whose last release stands, although nothing more is released.
    released: BTreeSet<ServingRole>,
}

/// Decides one model. Growth waits for its share where GPUs limit it. Where the SLO analyzer alone is chosen and
/// nothing can be sized, percentages decide, which need no capacity.
pub(super) fn decide(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    analysis: &SaturationAnalysis,
    configs: &[AnalyzerConfig],
) {
    let decision = match open(cycle, work, configs) {
        Ok(decision) => decision,
        Err(state) => {
            let gap = DemandGap::NoUsableMetrics { state };
            work.sharing = Sharing::of(cycle, work, || Err(gap));
            return;
        }
    };
    let may_stand_in = |config: &AnalyzerConfig| config.participation == Participation::StandsIn;
    if decision.consensus.anchor == CapacitySource::NoVoter && configs.iter().any(may_stand_in) {
        cycle.percentage(work, analysis);
        hold_early_releases(cycle, work, configs);
        hold_unlearned_releases(cycle, work, configs, &decision.opinions);
        name_unmeasured(cycle, work, configs, &decision.opinions, None);
        return;
    }
    let mut targets = decision.consensus.roles.values();
    let grows = targets.any(|target| matches!(target, RoleTarget::Grow(_)));
    work.sharing = Sharing::of(cycle, work, || Share::of(work, configs, &decision));
    if grows && cycle.settings.limits_growth() {
        work.growth = Some(Growth {
            role_targets: decision.consensus.roles.clone(),
            candidates: decision.candidates.clone(),
            guard: decision.guard.clone(),
        });
    } else {
        decision.settle(&mut work.drafts);
        hold_unlearned_releases(cycle, work, configs, &decision.opinions);
        let by = Some(AnalyzerName::Saturation);
        name_unmeasured(cycle, work, configs, &decision.opinions, by);
    }
    work.figures = Some(decision.figures());
}

pub(super) fn decide_at_once(cycle: &Cycle<'_>, work: &mut Work<'_>, configs: &[AnalyzerConfig]) {
    if let Ok(decision) = open(cycle, work, configs) {
        decision.settle(&mut work.drafts);
        work.figures = Some(decision.figures());
    }
}

fn open(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    configs: &[AnalyzerConfig],
) -> Result<AnalyzerDecision, MetricsState> {
    gates::name(&mut work.drafts);
    if let Some(state) = has_no_metrics(cycle, work) {
        let queue = held_queue(cycle, work, state);
        safety_net::hold(&mut work.drafts, state, queue);
        if let Some(queue) = queue {
            size_queue(cycle, work, configs, (state, queue));
        }
        return Err(state);
    }
    for draft in &mut work.drafts {
        draft.metrics = draft.metrics_state(cycle.is_reporting(draft));
    }
    Ok(ask(cycle, work, configs))
}

/// Adds to the reason of a model that does not grow, since none of its replicas reports, the replicas that its
/// queue needs, where the capacity of one is known. The counts stay: what the replicas hold is not known.
fn size_queue(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    configs: &[AnalyzerConfig],
    (state, queue): (MetricsState, HeldQueue),
) {
    let decision = ask_for(cycle, work, configs, |_| true);
    let changes = decision.changes(Method::LeastCost);
    let mut is_sized = false;
    for draft in &mut work.drafts {
        let grown = (changes.get(&draft.view.key))
            .filter(|change| matches!(change.why, Reason::ScaledUp { .. }));
        is_sized |= grown.is_some();
        if draft.scale.current > Replicas::ZERO {
            let needs = grown.map(|change| change.to);
            let queue = Some(HeldQueue { needs, ..queue });
            draft.keep_still(PlanStage::SafetyNet, Reason::NoUsableMetrics { state, queue });
        }
    }
    if is_sized {
        work.figures = Some(decision.figures());
    }
}

/// The requests in the router of a model of which no replica reports, if any wait there.
pub(super) fn held_queue(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    state: MetricsState,
) -> Option<HeldQueue> {
    if state != MetricsState::Missing {
        return None;
    }
    let requests = queued_at(work.key, work.subject(cycle)).filter(|queued| *queued > 0.0)?;
    let needs = None;
    Some(HeldQueue { requests, needs })
}

/// Why no analyzer can be asked; `None` if one can.
fn has_no_metrics(cycle: &Cycle<'_>, work: &Work<'_>) -> Option<MetricsState> {
    let is_reporting = |draft: &PendingDecision<'_>| cycle.is_reporting(draft);
    match cycle.unusable(&work.drafts) {
        Some(MetricsState::Missing)
            if work.drafts.iter().any(is_reporting) || is_asked_at_zero(cycle, work) =>
        {
            None
        }
        state => state,
    }
}

/// Whether requests wait for a model without replicas: the demand of a queue is known without any,
/// by what is remembered of its engines. Roles are left to the boundary, which starts decode
/// before prefill.
fn is_asked_at_zero(cycle: &Cycle<'_>, work: &Work<'_>) -> bool {
    let is_whole_and_empty = |draft: &PendingDecision<'_>| {
        draft.view.template.role == ServingRole::Both && draft.scale.current == Replicas::ZERO
    };
    let load = load_of(work.key, work.subject(cycle));
    work.drafts.iter().all(is_whole_and_empty) && load.queued.is_some_and(|queued| queued > 0.0)
}

/// Asks the analyzers of one model and combines what they say. Variants that report may move, and
/// those without replicas, which have nothing to report.
pub(super) fn ask(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    configs: &[AnalyzerConfig],
) -> AnalyzerDecision {
    ask_for(cycle, work, configs, |draft| {
        draft.scale.current == Replicas::ZERO || cycle.is_reporting(draft)
    })
}

fn ask_for(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    configs: &[AnalyzerConfig],
    may_move: impl Fn(&PendingDecision<'_>) -> bool,
) -> AnalyzerDecision {
    let inputs = work.inputs(cycle);
    let mut opinions = opinions(work.key, configs, inputs, cycle.learned, cycle.now);
    let mut candidates = candidates(cycle, work, may_move);
    let costs: BTreeMap<VariantKey, Cost> =
        candidates.iter().map(|(key, candidate)| (key.clone(), candidate.cost)).collect();
    let live = liveness(cycle.learned, cycle.settings, cycle.now);
    let configs = &opinions.seated(configs);
    let mut consensus = opinions.combine(work.key, configs, &costs, &live);
    consensus.name_gaps(|analyzer| opinions.gap_of(analyzer, work.key, inputs));
    gates::set_apart(cycle, work, &mut opinions, &mut consensus);
    if let Some(role) = unjudged_role(cycle, work, configs, &opinions) {
        consensus.hold_partners_of(role);
    }
    let stragglers = stragglers::take(&mut candidates, &consensus, &opinions);
    let voters: Vec<(AnalyzerName, Liveness)> = (configs.iter())
        .filter(|config| config.votes())
        .map(|config| (config.analyzer, live(work.key, config.analyzer)))
        .collect();
    let guard = Guard {
        queue: held_queue(cycle, work, MetricsState::Missing),
        ..Guard::of(work, inputs, &opinions, &voters)
    };
    let released = released_roles(work, configs, &opinions, &consensus);
    AnalyzerDecision {
        opinions,
        consensus,
        candidates,
        stragglers,
        arguments: inputs.arguments.clone(),
        guard,
        released,
    }
}

/// Roles of which fewer replicas were published than exist, where those do what the SLO analyzer requires, but for what
/// is not worth one more. Until that count is applied, a demand at the lower end of the band would take it back.
fn released_roles(
    work: &Work<'_>,
    configs: &[AnalyzerConfig],
    opinions: &Opinions,
    consensus: &Consensus,
) -> BTreeSet<ServingRole> {
    let slo = AnalyzerName::Slo;
    let config = configs.iter().find(|config| config.analyzer == slo);
    let voter = consensus.voters.iter().find(|voter| voter.analyzer == slo);
    let Some(((config, voter), said)) = config.zip(voter).zip(opinions.assessments.get(&slo))
    else {
        return BTreeSet::new();
    };
    let released = |role: ServingRole| {
        total(work.drafts.iter().filter_map(|draft| {
            let capacity = said.variants.get(&draft.view.key)?;
            let fewer = draft.scale.current.saturating_sub(draft.base());
            (capacity.role == role).then(|| fewer.to_f64() * capacity.per_replica)
        }))
    };
    let stands = |role: ServingRole, balance: &Balance| {
        let released = released(role);
        let most = (1.0 + TOLERATED_EXCESS) * config.band.scale_up;
        released > 0.0 && balance.demand <= most * (balance.anticipated - released)
    };
    let roles = voter.roles.iter();
    roles.filter(|(role, balance)| stands(**role, balance)).map(|(role, _)| *role).collect()
}

/// One of several roles that serves, and whose replicas do not report, or not enough for saturation to
/// state a demand. Other voters abstain from roles that they have no model of.
fn unjudged_role(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    configs: &[AnalyzerConfig],
    opinions: &Opinions,
) -> Option<ServingRole> {
    let roles: BTreeSet<ServingRole> = (work.drafts.iter())
        .filter(|draft| draft.scale.ready > Replicas::ZERO)
        .map(|draft| draft.view.template.role)
        .collect();
    let has_saturation =
        |config: &AnalyzerConfig| config.analyzer == AnalyzerName::Saturation && config.votes();
    let saturation = (configs.iter().any(has_saturation))
        .then(|| opinions.assessments.get(&AnalyzerName::Saturation))
        .flatten();
    let is_reporting = |role: ServingRole| {
        let mut members = work.drafts.iter();
        members.any(|draft| draft.view.template.role == role && cycle.is_reporting(draft))
    };
    let is_judged = |role: &ServingRole| {
        is_reporting(*role) && saturation.is_none_or(|said| said.demand.contains_key(role))
    };
    roles.into_iter().find(|role| !is_judged(role))
}

fn candidates(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    may_move: impl Fn(&PendingDecision<'_>) -> bool,
) -> BTreeMap<VariantKey, Candidate> {
    work.drafts
        .iter()
        .filter(|draft| may_move(draft))
        .map(|draft| {
            let key = &draft.view.key;
            let woken = u32::from(cycle.woken(work.key, draft).is_some());
            let candidate = Candidate {
                role: draft.view.template.role,
                cost: draft.view.cost,
                count: draft.scale.current,
                standing: draft.committed(),
                overdue: draft.overdue(),
                late: match draft.prospect {
                    StartProspect::Open => Replicas::ZERO,
                    StartProspect::Stalled => cycle.outlook().of(key).late(draft.view),
                },
                gated: cycle.outlook().gated_too_long(draft.view),
                prospect: draft.prospect,
                bounds: Bounds { min: draft.bounds.min.max(Replicas(woken)), ..draft.bounds },
            };
            (key.clone(), candidate)
        })
        .collect()
}

impl AnalyzerDecision {
    pub(super) fn changes(&self, method: Method) -> BTreeMap<VariantKey, CountChange> {
        let mut changes = cost_aware(&self.candidates, &self.consensus.roles, method).changes;
        changes.extend(self.stragglers.clone());
        changes
    }

    fn settle(&self, drafts: &mut [PendingDecision<'_>]) {
        let changes = self.changes(Method::LeastCost);
        // A demand that is not known in full lets no release stand.
        let is_judged = self.guard.obstacle().is_none();
        for draft in drafts {
            let change = changes.get(&draft.view.key);
            let is_released = is_judged && self.released.contains(&draft.view.template.role);
            let changes_nothing =
                |change: &&CountChange| change.to == draft.scale.current && change.why.is_opinion();
            match change.filter(changes_nothing) {
                Some(change) if is_released && draft.count() < draft.scale.current => {
                    draft.keep(PlanStage::Optimizer, change.why.clone());
                }
                _ => apply_change(draft, change, &self.guard),
            }
        }
    }

    /// What is missing that might speak against fewer replicas.
    pub(super) fn gap(&self) -> Option<DemandGap> {
        self.guard.gap()
    }

    pub(super) fn missing(&self) -> Vec<MissingSignal> {
        let mut missing: Vec<MissingSignal> = Vec::new();
        for signal in self.guard.gaps.values().flat_map(|gap| &gap.missing) {
            if missing.len() < LISTED && !missing.contains(signal) {
                missing.push(signal.clone());
            }
        }
        missing
    }

    pub(super) fn figures(self) -> ModelFigures {
        ModelFigures {
            tokens: self.opinions.tokens,
            queueing: self.opinions.queueing,
            throughput: self.opinions.throughput,
            slo: self.opinions.slo,
            limited: self.opinions.limited,
            consensus: Some(self.consensus),
            arguments: self.arguments,
            ..ModelFigures::default()
        }
    }

    /// Where a change leads from the count that was published; `None` where that is not known.
    pub(super) fn target(
        &self,
        draft: &PendingDecision<'_>,
        change: Option<&CountChange>,
    ) -> Option<Replicas> {
        let to = reached(draft.scale, draft.base(), change?)?;
        let shrinks = to < draft.base();
        (!shrinks || self.guard.obstacle().is_none()).then_some(to)
    }
}

/// Applies a change, unless its result is not known or something keeps the variant from shrinking.
pub(super) fn apply_change(
    draft: &mut PendingDecision<'_>,
    change: Option<&CountChange>,
    guard: &Guard,
) {
    let Some(change) = change else {
        let (state, queue) = (draft.metrics, guard.queue);
        draft.keep(PlanStage::Optimizer, Reason::NoUsableMetrics { state, queue });
        return;
    };
    let role = draft.view.template.role;
    if let (Reason::NoView { .. }, Some(gap)) = (&change.why, guard.gaps.get(&role)) {
        draft.keep(PlanStage::Optimizer, Reason::no_view(gap, role));
        return;
    }
    let why = change.why.clone();
    match reached(draft.scale, draft.count(), change) {
        None => draft.keep(PlanStage::Optimizer, why),
        Some(to) => match guard.obstacle() {
            Some(obstacle) if to < draft.count() => draft.keep(PlanStage::Optimizer, obstacle),
            _ => draft.step(PlanStage::Optimizer, to, why),
        },
    }
}

/// Where a change leads from the count that was published; `None` where that is not known. Only a
/// release lowers that count: being in balance with fewer replicas is no reason to take back what
/// was asked for. Nor is being in balance with what a rollout has for a while a reason to ask for it: each
/// round of it would bring forth the next one.
pub(super) fn reached(
    scale: &ResolvedTarget,
    published: Replicas,
    change: &CountChange,
) -> Option<Replicas> {
    let is_release = match change.why {
        Reason::ScaledDown { .. } => true,
        Reason::Straggles { straggler } => straggler.is_replaced,
        _ => false,
    };
    change
        .why
        .is_opinion()
        .then(|| if is_release { change.to } else { kept(scale, change.to).max(published) })
}

/// A count, and where it is the one that exists, as much of it as stays.
pub(super) fn kept(scale: &ResolvedTarget, to: Replicas) -> Replicas {
    if to == scale.current { scale.current_excluding_surge() } else { to }
}
