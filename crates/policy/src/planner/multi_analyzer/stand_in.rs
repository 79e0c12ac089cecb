//! What decides in the place of an analyzer that cannot, and what it may not do.

use std::collections::BTreeMap;

use super::{Cycle, Work};
use crate::analyzers::{AnalyzerConfig, Opinions, liveness};
use crate::capacity::{AnalyzerName, ServingRole};
use crate::combine::Participation;
use crate::plan::PlanStage;
use crate::reason::{BlockReason, MissingInput, MissingSignal, Reason};
use wva_base::text::LISTED;

/// Until a voter has had the time to speak, percentages in its place release nothing: it may be silent because a signal
/// is missing.
pub(super) fn hold_early_releases(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    configs: &[AnalyzerConfig],
) {
    let live = liveness(cycle.learned, cycle.settings, cycle.now);
    let mut voters = configs.iter().filter(|config| config.votes());
    let undetermined = voters
        .find_map(|one| BlockReason::undetermined(one.analyzer, live(work.key, one.analyzer)));
    let Some(hold) = undetermined else {
        return;
    };
    let released = work.drafts.iter_mut().filter(|draft| draft.count() < draft.base());
    for draft in released {
        let (kept, hold) = (draft.base(), hold.clone());
        draft.step(PlanStage::Optimizer, kept, Reason::Held { hold });
    }
}

/// What stands in for an SLO analyzer releases nothing while replicas work that do not report what it learns from: it has no
/// memory of needs, and a missing signal lowers nothing.
pub(super) fn hold_unlearned_releases(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    configs: &[AnalyzerConfig],
    opinions: &Opinions,
) {
    if !is_stood_in_for(configs, opinions) {
        return;
    }
    let Some((input, _)) = work.inputs(cycle).slo.as_ref() else {
        return;
    };
    let missing: BTreeMap<ServingRole, MissingInput> = (input.variants.values())
        .filter_map(|given| Some((given.role, given.working_without()?)))
        .collect();
    for draft in &mut work.drafts {
        let signal = missing.get(&draft.view.template.role).copied();
        if let Some(signal) = signal.filter(|_| draft.count() < draft.base()) {
            let hold = BlockReason::Unlearned { analyzer: AnalyzerName::Slo, signal };
            draft.step(PlanStage::Optimizer, draft.base(), Reason::Held { hold });
        }
    }
}

/// Records for a variant for which nothing is due that the SLO analyzer cannot judge it yet, and what decides: `by`
/// an analyzer, else percentages.
pub(super) fn name_unmeasured(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    configs: &[AnalyzerConfig],
    opinions: &Opinions,
    by: Option<AnalyzerName>,
) {
    if !is_stood_in_for(configs, opinions) {
        return;
    }
    let analyzer = AnalyzerName::Slo;
    let gap = opinions.gap_of(analyzer, work.key, work.inputs(cycle));
    let missing: Vec<MissingSignal> = gap.missing.into_iter().take(LISTED).collect();
    for draft in &mut work.drafts {
        let Some((stage, why)) = draft.judgement().filter(|(_, why)| why.is_balance()) else {
            continue;
        };
        let why = Reason::NotMeasured {
            analyzer,
            by,
            missing: missing.clone(),
            because: Box::new(why.clone()),
        };
        draft.keep(stage, why);
    }
}

/// Whether another analysis decides in the place of the SLO analyzer, which sizes no variant.
fn is_stood_in_for(configs: &[AnalyzerConfig], opinions: &Opinions) -> bool {
    let stands_in = |config: &AnalyzerConfig| config.participation == Participation::StandsIn;
    let mut informative = opinions.informative();
    configs.iter().any(stands_in) && informative.all(|analyzer| analyzer != AnalyzerName::Slo)
}
