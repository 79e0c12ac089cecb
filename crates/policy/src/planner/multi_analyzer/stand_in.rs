//! What decides in the place of an analyzer that cannot, and what it may not do.

use std::collections::BTreeMap;

use super::{Cycle, Work};
use crate::analyzers::{AnalyzerConfig, Opinions, liveness};
use crate::capacity::{AnalyzerName, ServingRole};
use crate::combine::{BlockReason, Participation};
use crate::plan::{PlanStage, Reason};
use crate::reason::MissingInput;

/// Until a voter has had the time to speak, percentages in its place release nothing: it may be silent because a signal
/// is missing.
pub(super) fn hold_early_releases(
    cycle: &Cycle<'_>,
    work: &mut Work<'_>,
    configs: &[AnalyzerConfig],
) {
    let live = liveness(cycle.learned, cycle.settings, cycle.now);
    let mut voters = (configs.iter()).filter(|config| config.participation == Participation::Votes);
    let undetermined = voters
        .find_map(|one| BlockReason::undetermined(one.analyzer, live(work.key, one.analyzer)));
    let Some(hold) = undetermined else {
        return;
    };
    let released = work
        .drafts
        .iter_mut()
        .filter(|draft| draft.count() < draft.base());
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
    let stands_in = |config: &AnalyzerConfig| config.participation == Participation::StandsIn;
    let slo = AnalyzerName::Slo;
    let is_sized = opinions.informative().any(|analyzer| analyzer == slo);
    if is_sized || !configs.iter().any(stands_in) {
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
            let hold = BlockReason::Unlearned {
                analyzer: slo,
                signal,
            };
            draft.step(PlanStage::Optimizer, draft.base(), Reason::Held { hold });
        }
    }
}
