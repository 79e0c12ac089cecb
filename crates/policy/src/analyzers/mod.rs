//! The analyzers that vote: which of them judge a model, their inputs and their results.

mod derived;
mod inputs;
mod load;
mod opinions;
mod role_gap;
mod selection;
mod throughput_input;

pub(super) use inputs::{AnalyzerInputs, InputsFor, analyzer_inputs, occupancy_of, queued_at};
pub(super) use load::{load_of, waiting_of};
pub(super) use opinions::{Opinions, liveness, opinions};
pub(super) use selection::{AnalyzerConfig, DecisionMode, decision_mode};

use super::sample_reader::SampleReader;
use super::snapshot::{ResolvedTarget, VariantView};
use super::startup::StartOutlook;

#[derive(Debug, Clone, Copy)]
pub(super) struct AnalyzedModel<'a> {
    pub(super) members: &'a [(&'a VariantView, &'a ResolvedTarget)],
    pub(super) reader: SampleReader<'a>,
    pub(super) outlook: StartOutlook<'a>,
}
