//! Hybrid mode: saturation and the queueing model, arbitrated variant by variant.

use super::multi_analyzer::{self, AnalyzerDecision};
use super::{Cycle, Work};
use crate::analyzers::{AnalyzerConfig, liveness};
use crate::capacity::AnalyzerName;
use crate::combine::{Consensus, Liveness, RoleTarget};
use crate::hybrid;
use crate::hybrid::VariantOpinions;
use crate::pending_decision::PendingDecision;
use crate::plan::{DecisionOutcome, PlanStage};
use crate::reason::{BlockReason, Method, Reason, Shrinking, ViewGap};
use crate::saturation::SaturationAnalysis;
use crate::units::Replicas;

/// Decides one model. `saturation` is absent where V1 is its saturation analysis.
pub(super) fn decide(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    analysis: &SaturationAnalysis,
    saturation: Option<AnalyzerConfig>,
    model: AnalyzerConfig,
) {
    let bases: Vec<Replicas> = work.drafts.iter().map(PendingDecision::count).collect();
    let shrinking = match saturation {
        None if cycle.percentage(work, analysis) => by_percentage(work, analysis),
        None => return,
        Some(config) => by_tokens(cycle, work, config),
    };
    let decision = multi_analyzer::ask(cycle, work, &[model]);
    let changes = decision.changes(Method::LeastCost);
    let live = liveness(cycle.learned, cycle.settings, cycle.now);
    let inputs = work.inputs(cycle);
    let gap = || decision.opinions.gap_of(model.analyzer, work.key, inputs);
    let hold = hold(live(work.key, model.analyzer), gap);
    for (draft, base) in work.drafts.iter_mut().zip(bases) {
        match decision.target(draft, changes.get(&draft.view.key)) {
            Some(wanted) => arbitrate(draft, base, wanted, shrinking),
            None => alone(draft, base, hold.clone()),
        }
    }
    add_figures(work, decision);
}

/// Whether V1 finds the model able to bear one replica less, nothing it rests on is missing, and nothing
/// of the model is in transition.
fn by_percentage(work: &Work<'_>, analysis: &SaturationAnalysis) -> Shrinking {
    let is_whole = work
        .drafts
        .iter()
        .all(|draft| draft.transitions.may_shrink() && !draft.transitions.hold_shrink_of_model());
    let figures = &analysis.figures;
    let has_partial = figures.without_kv > 0 || figures.without_queue > 0;
    let is_known = is_whole && !has_partial && figures.stale == 0;
    if figures.scale_down_safe && is_known && work.group.unseen().is_empty() {
        Shrinking::Safe
    } else {
        Shrinking::Unsafe
    }
}

/// Saturation by tokens has its say first; it is safe to shrink where it would.
fn by_tokens(cycle: &Cycle<'_>, work: &mut Work<'_>, config: AnalyzerConfig) -> Shrinking {
    multi_analyzer::decide_at_once(cycle, work, &[config]);
    let releases = |consensus: &Consensus| {
        let mut roles = consensus.roles.values();
        !consensus.roles.is_empty() && roles.all(|target| matches!(target, RoleTarget::Release(_)))
    };
    let consensus = work.figures.as_ref().and_then(|figures| figures.consensus.as_ref());
    if consensus.is_some_and(releases) { Shrinking::Safe } else { Shrinking::Unsafe }
}

fn arbitrate(
    draft: &mut PendingDecision<'_>,
    base: Replicas,
    wanted: Replicas,
    shrinking: Shrinking,
) {
    let saturation = draft.count();
    let decided =
        hybrid::arbitrate(VariantOpinions { current: base, saturation, model: wanted, shrinking });
    let why = Reason::Arbitrated {
        basis: decided.basis,
        current: base,
        saturation,
        model: wanted,
        shrinking,
        reason: decided.reason.into(),
    };
    draft.step(PlanStage::Hybrid, decided.target, why);
}

/// Why nothing is taken away without the queueing model: it had an opinion recently, or cannot be known
/// to have none. `None` for one that has been silent for long.
fn hold(liveness: Liveness, gap: impl FnOnce() -> ViewGap) -> Option<BlockReason> {
    let analyzer = AnalyzerName::QueueingModel;
    let awaited = || BlockReason::Awaited { analyzer, gap: gap() };
    let awaited = (liveness == Liveness::Live).then(awaited);
    awaited.or_else(|| BlockReason::undetermined(analyzer, liveness))
}

/// Follows saturation, since the queueing model says nothing; what saturation takes away it gives back
/// where the model might want it.
fn alone(draft: &mut PendingDecision<'_>, base: Replicas, hold: Option<BlockReason>) {
    if draft.outcome == DecisionOutcome::SafetyNet {
        return;
    }
    match hold {
        Some(hold) if draft.count() < base => {
            draft.step(PlanStage::Hybrid, base, Reason::Held { hold });
        }
        _ => draft.keep(PlanStage::Hybrid, Reason::LeftToSaturation),
    }
}

fn add_figures(work: &mut Work<'_>, decision: AnalyzerDecision) {
    let asked = decision.figures();
    let figures = work.figures.get_or_insert_default();
    figures.queueing = asked.queueing;
    figures.arguments = asked.arguments;
    if figures.consensus.is_none() {
        figures.consensus = asked.consensus;
    }
}
