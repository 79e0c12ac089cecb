//! Which analyzers run, and which of them vote.

use serde::{Deserialize, Serialize};

use crate::capacity::AnalyzerName;
use crate::params::AnalyzerSettings;

/// The part that an analyzer takes in decisions about a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Participation {
    /// It runs and votes.
    Votes,
    /// It runs, and votes as long as no voter sizes a variant of the model.
    StandsIn,
    /// It runs for what it knows of variants, and has no vote.
    Identity,
    NotRun,
}

/// Saturation always runs; it votes where the list is empty or names it. Any other analyzer takes
/// an enabled entry of its own.
pub(crate) fn participation(list: &[AnalyzerSettings], analyzer: AnalyzerName) -> Participation {
    let is_listed = list.iter().any(|entry| entry.enabled && entry.kind == analyzer.as_str());
    match analyzer {
        _ if is_listed => Participation::Votes,
        AnalyzerName::Saturation if list.is_empty() => Participation::Votes,
        AnalyzerName::Saturation => Participation::Identity,
        AnalyzerName::Throughput | AnalyzerName::QueueingModel | AnalyzerName::Slo => {
            Participation::NotRun
        }
    }
}

/// Whether a list leaves saturation without a vote, so that nothing vetoes a release on the
/// pressure in KV caches; worth a warning.
pub fn lacks_saturation_vote(list: &[AnalyzerSettings]) -> bool {
    participation(list, AnalyzerName::Saturation) != Participation::Votes
}
