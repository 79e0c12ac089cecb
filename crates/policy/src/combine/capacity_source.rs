//! Whose capacities size a model.

use serde::{Deserialize, Serialize};

use super::AnalyzerResult;
use super::liveness::Liveness;
use super::participation::Participation;
use crate::capacity::AnalyzerName;

/// The analyzer that sizes a model, or why none can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CapacitySource {
    /// Saturation where it votes, else the SLO analyzer, else the one other voter.
    Sized {
        /// The analyzer.
        by: AnalyzerName,
    },
    /// No voter is live and informative: there is nothing to size with.
    #[serde(rename = "Nobody")]
    NoVoter,
    /// Several voters besides these two are, and none of them comes first.
    Ambiguous {
        /// These.
        candidates: Vec<AnalyzerName>,
    },
}

/// Saturation where it votes, is live and says something; else the SLO analyzer, likewise; else the only other voter
/// that does.
pub(super) fn choose(results: &[AnalyzerResult]) -> CapacitySource {
    let candidates: Vec<AnalyzerName> = results
        .iter()
        .filter(|result| {
            result.participation == Participation::Votes
                && result.liveness == Liveness::Live
                && result
                    .assessment
                    .as_ref()
                    .is_some_and(|assessment| !assessment.variants.is_empty())
        })
        .map(|result| result.analyzer)
        .collect();
    match candidates.as_slice() {
        [] => CapacitySource::NoVoter,
        several if several.contains(&AnalyzerName::Saturation) => {
            CapacitySource::Sized { by: AnalyzerName::Saturation }
        }
        several if several.contains(&AnalyzerName::Slo) => {
            CapacitySource::Sized { by: AnalyzerName::Slo }
        }
        [only] => CapacitySource::Sized { by: *only },
        _ => CapacitySource::Ambiguous { candidates },
    }
}
