//! Variants that the SLO analyzer finds too slow to serve with the others.

use std::collections::BTreeMap;

use crate::analyzers::{AnalyzerConfig, Opinions};
use crate::capacity::AnalyzerName;
use crate::change::CountChange;
use crate::combine::Participation;
use crate::key::VariantKey;
use crate::optimize::Candidate;
use crate::plan::Reason;

/// Takes the stragglers of an SLO analyzer that decides alone out of the candidates: they do not grow, and go once the
/// others of their role do all that is needed.
pub(super) fn take(
    candidates: &mut BTreeMap<VariantKey, Candidate>,
    configs: &[AnalyzerConfig],
    opinions: &Opinions,
) -> BTreeMap<VariantKey, CountChange> {
    let mut voters = configs
        .iter()
        .filter(|config| config.participation == Participation::Votes);
    let is_alone = voters.all(|config| config.analyzer == AnalyzerName::Slo);
    let Some(report) = opinions.slo.as_ref().filter(|_| is_alone) else {
        return BTreeMap::new();
    };
    let changes = report.stragglers.iter().filter_map(|(key, straggler)| {
        let Candidate { count, bounds, .. } = candidates.remove(key)?;
        let change = CountChange {
            from: count,
            to: if straggler.is_replaced {
                count.min(bounds.min)
            } else {
                count
            },
            why: Reason::Straggles {
                straggler: *straggler,
            },
        };
        Some((key.clone(), change))
    });
    changes.collect()
}
