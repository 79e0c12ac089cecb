//! A model whose analyzers vote: assess, combine, optimize.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rescaled::Sharing;
use super::{Cycle, Work};
use crate::policy::analyzers::{
    Chair, Opinions, Told, liveness, load_of, opinions, queued_at, told,
};
use crate::policy::bounds::Bounds;
use crate::policy::capacity::{AnalyzerName, ServingRole};
use crate::policy::change::Change;
use crate::policy::combine::{Consensus, Hold, Liveness, Mandate, Participation};
use crate::policy::draft::Draft;
use crate::policy::key::VariantKey;
use crate::policy::limit::DemandGap;
use crate::policy::optimize::{Candidate, Method, WhyOptimized, cost_aware};
use crate::policy::plan::{MetricsState, MissingSignal, ModelFigures, Stage, Why};
use crate::policy::router_queue::HeldQueue;
use crate::policy::safety_net;
use crate::policy::snapshot::ResolvedTarget;
use crate::policy::units::{Cost, Replicas};
use crate::policy::why::LISTED;

/// Growth of a model that waits for its share of GPUs.
#[derive(Debug)]
pub(super) struct Growth {
    pub(super) mandates: BTreeMap<ServingRole, Mandate>,
    pub(super) candidates: BTreeMap<VariantKey, Candidate>,
    /// Requests in the router, which raise no variant without a report.
    pub(super) queue: Option<HeldQueue>,
}

/// What keeps a voted model from shrinking, whatever the votes say.
#[derive(Debug)]
struct Guard {
    /// Variants that may have replicas nobody sees.
    unseen: Arc<[VariantKey]>,
    /// Replicas with samples that are too old to shrink on.
    stale: u32,
    /// Whether the router has such samples.
    is_router_stale: bool,
    /// A live voter that can size a role and cannot judge it this cycle: it might want the role, and
    /// then nothing of the model would shrink.
    unjudged: Option<AnalyzerName>,
    /// A voter that was never heard and may yet speak.
    unheard: Option<Hold>,
    /// What the voters do not know, by role.
    missing: BTreeMap<ServingRole, Vec<MissingSignal>>,
    /// Requests in the router, which raise no variant without a report.
    queue: Option<HeldQueue>,
}

/// The outcome of asking the analyzers of one model.
#[derive(Debug)]
pub(super) struct Ballot {
    pub(super) opinions: Opinions,
    pub(super) consensus: Consensus,
    pub(super) candidates: BTreeMap<VariantKey, Candidate>,
    /// What could not be read of the arguments of engines.
    arguments: BTreeMap<VariantKey, Vec<String>>,
    guard: Guard,
}

/// Decides one model. Growth waits for its share where GPUs limit it.
pub(super) fn decide(cycle: &Cycle<'_>, work: &mut Work<'_>, chairs: &[Chair]) {
    let is_limited = cycle.settings.limits_growth();
    let ballot = match open(cycle, work, chairs) {
        Ok(ballot) => ballot,
        Err(state) => {
            if is_limited {
                work.sharing = Sharing::unheard(cycle, work, state);
            }
            return;
        }
    };
    let grows = ballot
        .consensus
        .roles
        .values()
        .any(|mandate| matches!(mandate, Mandate::Grow { .. }));
    if is_limited {
        work.sharing = Sharing::of(cycle, work, chairs, &ballot);
    }
    if grows && is_limited {
        work.growth = Some(Growth {
            mandates: ballot.consensus.roles.clone(),
            candidates: ballot.candidates.clone(),
            queue: ballot.guard.queue,
        });
    } else {
        ballot.settle(&mut work.drafts);
    }
    work.figures = Some(ballot.figures());
}

/// Decides one model, whatever GPUs allow.
pub(super) fn decide_at_once(cycle: &Cycle<'_>, work: &mut Work<'_>, chairs: &[Chair]) {
    if let Ok(ballot) = open(cycle, work, chairs) {
        ballot.settle(&mut work.drafts);
        work.figures = Some(ballot.figures());
    }
}

/// Asks, if anybody is heard; else the safety net holds the model.
fn open(cycle: &Cycle<'_>, work: &mut Work<'_>, chairs: &[Chair]) -> Result<Ballot, MetricsState> {
    if let Some(state) = deaf(cycle, work) {
        let queue = held_queue(cycle, work, state);
        safety_net::hold(&mut work.drafts, state, queue);
        if let Some(queue) = queue {
            size_queue(cycle, work, chairs, (state, queue));
        }
        return Err(state);
    }
    mark_metrics(cycle, &mut work.drafts);
    Ok(ask(cycle, work, chairs))
}

/// Adds to the reason of a model that does not grow, since none of its replicas reports, the replicas that its
/// queue needs, where the capacity of one is known. The counts stay: what the replicas hold is not known.
fn size_queue(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    chairs: &[Chair],
    (state, queue): (MetricsState, HeldQueue),
) {
    let ballot = ask_for(cycle, work, chairs, |_| true);
    let changes = ballot.changes(Method::LeastCost);
    let mut is_sized = false;
    for draft in &mut work.drafts {
        let grown = (changes.get(&draft.view.key))
            .filter(|change| matches!(change.why, WhyOptimized::Grown { .. }));
        is_sized |= grown.is_some();
        if draft.scale.current > Replicas::ZERO {
            let needs = grown.map(|change| change.to);
            let queue = Some(HeldQueue { needs, ..queue });
            draft.keep_still(Stage::SafetyNet, Why::NoUsableMetrics { state, queue });
        }
    }
    if is_sized {
        work.figures = Some(ballot.figures());
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

/// Why nobody can be asked; `None` if somebody can.
fn deaf(cycle: &Cycle<'_>, work: &Work<'_>) -> Option<MetricsState> {
    let is_heard = |draft: &Draft<'_>| cycle.listener.hears(draft.view);
    match cycle.unusable(&work.drafts) {
        Some(MetricsState::Missing)
            if work.drafts.iter().any(is_heard) || is_asked_at_zero(cycle, work) =>
        {
            None
        }
        state => state,
    }
}

/// Whether requests wait for a model without replicas: what a queue asks for can be told without
/// any, by what is remembered of its engines. Roles are left to the boundary, which starts decode
/// before prefill.
fn is_asked_at_zero(cycle: &Cycle<'_>, work: &Work<'_>) -> bool {
    let is_whole_and_empty = |draft: &Draft<'_>| {
        draft.view.template.role == ServingRole::Both && draft.scale.current == Replicas::ZERO
    };
    let load = load_of(work.key, work.subject(cycle));
    work.drafts.iter().all(is_whole_and_empty) && load.queued.is_some_and(|queued| queued > 0.0)
}

/// Asks the analyzers of one model and combines what they say. Variants that report may move, and
/// those without replicas, which have nothing to report.
pub(super) fn ask(cycle: &Cycle<'_>, work: &Work<'_>, chairs: &[Chair]) -> Ballot {
    ask_for(cycle, work, chairs, |draft| {
        draft.scale.current == Replicas::ZERO || cycle.listener.hears(draft.view)
    })
}

/// Asks for the variants that may move.
fn ask_for(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    chairs: &[Chair],
    may_move: impl Fn(&Draft<'_>) -> bool,
) -> Ballot {
    let subject = work.subject(cycle);
    let told = told(work.key, subject, chairs, cycle.settings, &work.policy);
    let opinions = opinions(work.key, chairs, &told, cycle.learned, cycle.now);
    let candidates = candidates(cycle, work, may_move);
    let costs: BTreeMap<VariantKey, Cost> = candidates
        .iter()
        .map(|(key, candidate)| (key.clone(), candidate.cost))
        .collect();
    let live = liveness(cycle.learned, cycle.settings, cycle.now);
    let mut consensus = opinions.combine(work.key, chairs, &costs, &live);
    if let Some(role) = unjudged_role(cycle, work, chairs, &opinions) {
        consensus.hold_partners_of(role);
    }
    let voters: Vec<(AnalyzerName, Liveness)> = (chairs.iter())
        .filter(|chair| chair.participation == Participation::Votes)
        .map(|chair| (chair.analyzer, live(work.key, chair.analyzer)))
        .collect();
    let guard = Guard {
        queue: held_queue(cycle, work, MetricsState::Missing),
        ..Guard::of(work, &told, &opinions, &voters)
    };
    Ballot {
        opinions,
        consensus,
        candidates,
        arguments: told.arguments,
        guard,
    }
}

/// A role beside others that serves, and whose replicas are not heard, or not enough for saturation to
/// state a demand. Other voters abstain from roles that they have no model of.
fn unjudged_role(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    chairs: &[Chair],
    opinions: &Opinions,
) -> Option<ServingRole> {
    let roles: BTreeSet<ServingRole> = (work.drafts.iter())
        .filter(|draft| draft.scale.ready > Replicas::ZERO)
        .map(|draft| draft.view.template.role)
        .collect();
    let has_saturation = |chair: &Chair| {
        chair.analyzer == AnalyzerName::Saturation && chair.participation == Participation::Votes
    };
    let saturation = (chairs.iter().any(has_saturation))
        .then(|| opinions.assessments.get(&AnalyzerName::Saturation))
        .flatten();
    let is_heard = |role: ServingRole| {
        let mut members = work.drafts.iter();
        members.any(|draft| draft.view.template.role == role && cycle.listener.hears(draft.view))
    };
    let is_judged = |role: &ServingRole| {
        is_heard(*role) && saturation.is_none_or(|said| said.demand.contains_key(role))
    };
    roles.into_iter().find(|role| !is_judged(role))
}

/// Variants that may move. The others only supply.
fn candidates(
    cycle: &Cycle<'_>,
    work: &Work<'_>,
    may_move: impl Fn(&Draft<'_>) -> bool,
) -> BTreeMap<VariantKey, Candidate> {
    work.drafts
        .iter()
        .filter(|draft| may_move(draft))
        .map(|draft| {
            let key = &draft.view.key;
            let woken = cycle.woken_floor(work.key, draft.view);
            let candidate = Candidate {
                role: draft.view.template.role,
                cost: draft.view.cost,
                count: draft.scale.current,
                standing: draft.standing(),
                bounds: Bounds {
                    min: draft.bounds.min.max(woken),
                    ..draft.bounds
                },
            };
            (key.clone(), candidate)
        })
        .collect()
}

fn mark_metrics(cycle: &Cycle<'_>, drafts: &mut [Draft<'_>]) {
    for draft in drafts {
        draft.metrics = if cycle.listener.hears(draft.view) {
            MetricsState::Available
        } else if draft.is_idle() {
            MetricsState::NoReplicas
        } else if draft.figures.outdated > 0 {
            MetricsState::Stale
        } else {
            MetricsState::Missing
        };
    }
}

impl Ballot {
    /// What the optimizer makes of the consensus.
    pub(super) fn changes(&self, method: Method) -> BTreeMap<VariantKey, Change<WhyOptimized>> {
        cost_aware(&self.candidates, &self.consensus.roles, method).changes
    }

    /// Takes the optimizer's answer over.
    fn settle(&self, drafts: &mut [Draft<'_>]) {
        let changes = self.changes(Method::LeastCost);
        for draft in drafts {
            take(draft, changes.get(&draft.view.key), &self.guard);
        }
    }

    /// What is missing that might speak against fewer replicas.
    pub(super) fn gap(&self) -> Option<DemandGap> {
        self.guard.gap()
    }

    /// What the voters do not know; a few inputs.
    pub(super) fn missing(&self) -> Vec<MissingSignal> {
        let all = self.guard.missing.values().flatten();
        all.take(LISTED).cloned().collect()
    }

    /// Every figure.
    pub(super) fn figures(self) -> ModelFigures {
        ModelFigures {
            tokens: self.opinions.tokens,
            queueing: self.opinions.queueing,
            throughput: self.opinions.throughput,
            consensus: Some(self.consensus),
            arguments: self.arguments,
            ..ModelFigures::default()
        }
    }

    /// Where a change leads from the count that was published; `None` where nobody could tell.
    pub(super) fn target(
        &self,
        draft: &Draft<'_>,
        change: Option<&Change<WhyOptimized>>,
    ) -> Option<Replicas> {
        let to = reached(draft.scale, draft.base(), change?)?;
        let shrinks = to < draft.base();
        (!shrinks || self.guard.obstacle().is_none()).then_some(to)
    }
}

impl Guard {
    fn of(
        work: &Work<'_>,
        told: &Told,
        opinions: &Opinions,
        voters: &[(AnalyzerName, Liveness)],
    ) -> Self {
        let is_unjudged = |analyzer: &AnalyzerName| {
            let half_told = told.is_half_told(*analyzer);
            opinions.assessments.get(analyzer).is_some_and(|said| {
                let mut sized = said.variants.values();
                sized.any(|variant| half_told || !said.demand.contains_key(&variant.role))
            })
        };
        let is_live = |(analyzer, liveness): &(AnalyzerName, Liveness)| {
            (*liveness == Liveness::Live).then_some(*analyzer)
        };
        let has_vote = |analyzer| voters.iter().any(|(voter, _)| *voter == analyzer);
        let unjudged = voters.iter().filter_map(is_live).find(is_unjudged);
        let unheard =
            |(analyzer, liveness): &(AnalyzerName, Liveness)| Hold::unheard(*analyzer, *liveness);
        Self {
            unseen: work.group.unseen().into_iter().cloned().collect(),
            stale: told.stale,
            is_router_stale: told.is_router_stale,
            unjudged,
            unheard: voters.iter().find_map(unheard),
            missing: opinions.missing(told, has_vote),
            queue: None,
        }
    }

    /// What keeps the demand from being known in full.
    fn gap(&self) -> Option<DemandGap> {
        if !self.unseen.is_empty() {
            let variants = Arc::clone(&self.unseen);
            return Some(DemandGap::Unseen { variants });
        }
        if self.stale > 0 {
            let replicas = self.stale;
            return Some(DemandGap::Stale { replicas });
        }
        if self.is_router_stale {
            return Some(DemandGap::StaleRouter);
        }
        self.hold().map(|hold| DemandGap::Held { hold })
    }

    /// Why nothing may shrink.
    fn obstacle(&self) -> Option<Why> {
        if !self.unseen.is_empty() {
            return Some(Why::ShrinkWaits {
                transitions: Arc::clone(&self.unseen),
            });
        }
        if self.stale > 0 {
            return Some(Why::ShrinkOnStale {
                replicas: self.stale,
            });
        }
        if self.is_router_stale {
            return Some(Why::ShrinkOnStaleRouter);
        }
        let hold = self.hold()?;
        Some(Why::Optimized(WhyOptimized::Held { hold }))
    }

    fn hold(&self) -> Option<Hold> {
        let awaited = |analyzer| Hold::Awaited { analyzer };
        (self.unheard.clone()).or_else(|| self.unjudged.map(awaited))
    }
}

/// Takes a change over, unless nobody could tell or something keeps the variant from shrinking.
fn take(draft: &mut Draft<'_>, change: Option<&Change<WhyOptimized>>, guard: &Guard) {
    let Some(change) = change else {
        let (state, queue) = (draft.metrics, guard.queue);
        draft.keep(Stage::Optimizer, Why::NoUsableMetrics { state, queue });
        return;
    };
    let role = draft.view.template.role;
    if let (WhyOptimized::NoMandate { .. }, Some(missing)) = (&change.why, guard.missing.get(&role))
    {
        let missing = missing.clone();
        draft.keep(Stage::Optimizer, Why::NoView { role, missing });
        return;
    }
    let why = Why::Optimized(change.why.clone());
    match reached(draft.scale, draft.count(), change) {
        None => draft.keep(Stage::Optimizer, why),
        Some(to) => match guard.obstacle() {
            Some(obstacle) if to < draft.count() => draft.keep(Stage::Optimizer, obstacle),
            _ => draft.step(Stage::Optimizer, to, why),
        },
    }
}

/// Where a change leads from the count that was published; `None` where nobody could tell. Only a
/// release lowers that count: being in balance with fewer replicas is no reason to take back what
/// was asked for. Nor is being in balance with what a rollout has for a while a reason to ask for it: each
/// round of it would bring forth the next one.
pub(super) fn reached(
    scale: &ResolvedTarget,
    published: Replicas,
    change: &Change<WhyOptimized>,
) -> Option<Replicas> {
    let is_release = matches!(change.why, WhyOptimized::Released { .. });
    is_informed(&change.why).then(|| {
        if is_release {
            change.to
        } else {
            kept(scale, change.to).max(published)
        }
    })
}

/// A count, and where it is the one that exists, as much of it as stays.
pub(super) fn kept(scale: &ResolvedTarget, to: Replicas) -> Replicas {
    if to == scale.current {
        scale.staying()
    } else {
        to
    }
}

/// Whether a reason rests on a view of the variant's role. Where it does not, the count that was
/// published stays, not the one that exists.
pub(super) fn is_informed(why: &WhyOptimized) -> bool {
    match why {
        WhyOptimized::Grown { .. }
        | WhyOptimized::NotChosen { .. }
        | WhyOptimized::Ordered { .. }
        | WhyOptimized::AtMaximum { .. }
        | WhyOptimized::FedByPrefill { .. }
        | WhyOptimized::Released { .. }
        | WhyOptimized::Kept { .. }
        | WhyOptimized::ModelGrows => true,
        WhyOptimized::NotSized
        | WhyOptimized::LeftToSaturation
        | WhyOptimized::NoMandate { .. } => false,
        WhyOptimized::Held { hold } => matches!(hold, Hold::Vetoed { .. } | Hold::Waiting { .. }),
    }
}
