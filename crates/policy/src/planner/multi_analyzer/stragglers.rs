//! Variants that the SLO analyzer finds too slow to serve with the others.

use std::collections::BTreeMap;

use crate::analyzers::Opinions;
use crate::capacity::AnalyzerName;
use crate::change::CountChange;
use crate::combine::{Consensus, RoleTarget};
use crate::key::VariantKey;
use crate::optimize::Candidate;
use crate::reason::{BlockReason, Reason, Straggler};

/// Takes stragglers out of the candidates: they do not grow, and go once the others of their role do all that is needed,
/// unless another role grows, which may need them once it has, or something holds their own.
pub(super) fn take(
    candidates: &mut BTreeMap<VariantKey, Candidate>,
    consensus: &Consensus,
    opinions: &Opinions,
) -> BTreeMap<VariantKey, CountChange> {
    let stragglers = opinions.slo.iter().flat_map(|report| &report.stragglers);
    let changes = stragglers.filter_map(|(key, straggler)| {
        let role = candidates.get(key)?.role;
        let held = match consensus.roles.get(&role) {
            None => true,
            Some(RoleTarget::Hold(hold)) => !matches!(
                hold,
                BlockReason::Vetoed { .. }
                    | BlockReason::Waiting { analyzer: AnalyzerName::Slo, .. }
            ),
            Some(RoleTarget::Grow(_) | RoleTarget::Release(_)) => false,
        };
        if held {
            return None;
        }
        let mut others = consensus.roles.iter().filter(|(other, _)| **other != role);
        let is_alone = !others.any(|(_, target)| matches!(target, RoleTarget::Grow(_)));
        let Candidate { count, bounds, .. } = candidates.remove(key)?;
        let straggler = Straggler { is_replaced: straggler.is_replaced && is_alone, ..*straggler };
        let change = CountChange {
            from: count,
            to: if straggler.is_replaced { count.min(bounds.min) } else { count },
            why: Reason::Straggles { straggler },
        };
        Some((key.clone(), change))
    });
    changes.collect()
}
