//! Whose capacities size a model.

use serde::{Deserialize, Serialize};

use super::Seat;
use super::liveness::Liveness;
use super::participation::Participation;
use crate::policy::capacity::AnalyzerName;

/// Who sizes a model, or why nobody can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Anchor {
    /// Saturation where it votes, else the one other voter.
    Sized {
        /// The analyzer.
        by: AnalyzerName,
    },
    /// No voter is live and informative: there is nothing to size with.
    Nobody,
    /// Several voters besides saturation are, and none of them comes first.
    Ambiguous {
        /// These.
        candidates: Vec<AnalyzerName>,
    },
}

/// Saturation where it votes, is live and says something; else the only other voter that is.
pub(super) fn choose(seats: &[Seat]) -> Anchor {
    let candidates: Vec<AnalyzerName> = seats
        .iter()
        .filter(|seat| {
            seat.participation == Participation::Votes
                && seat.liveness == Liveness::Live
                && seat
                    .assessment
                    .as_ref()
                    .is_some_and(|assessment| !assessment.variants.is_empty())
        })
        .map(|seat| seat.analyzer)
        .collect();
    match candidates.as_slice() {
        [] => Anchor::Nobody,
        several if several.contains(&AnalyzerName::Saturation) => Anchor::Sized {
            by: AnalyzerName::Saturation,
        },
        [only] => Anchor::Sized { by: *only },
        _ => Anchor::Ambiguous { candidates },
    }
}
