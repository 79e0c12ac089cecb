//! How a model is decided on, by its settings.

use crate::capacity::AnalyzerName;
use crate::combine::{Band, Participation, analyzer_band, own_entry, participation};
use crate::params::{DynamicSettings, SaturationMethod, SaturationPolicy};

/// Every analyzer, in the order in which they are asked.
pub(super) const ANALYZERS: [AnalyzerName; 4] = [
    AnalyzerName::Saturation,
    AnalyzerName::Throughput,
    AnalyzerName::QueueingModel,
    AnalyzerName::Slo,
];

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DecisionMode {
    /// V1: one step at a time by percentages.
    Percentage,
    MultiAnalyzer(Vec<AnalyzerConfig>),
    /// Saturation and the queueing model, arbitrated variant by variant.
    Hybrid {
        saturation: Option<AnalyzerConfig>,
        model: AnalyzerConfig,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AnalyzerConfig {
    pub(crate) analyzer: AnalyzerName,
    pub(crate) participation: Participation,
    pub(crate) score: f64,
    pub(crate) band: Band,
}

impl AnalyzerConfig {
    pub(crate) fn votes(&self) -> bool {
        self.participation == Participation::Votes
    }
}

impl DecisionMode {
    /// Whether the SLO analyzer votes, which itself keeps what failed to last.
    pub(crate) fn remembers_needs(&self) -> bool {
        self.configs().iter().any(|one| one.analyzer == AnalyzerName::Slo && one.votes())
    }

    pub(crate) fn configs(&self) -> Vec<AnalyzerConfig> {
        match self {
            Self::Percentage => Vec::new(),
            Self::MultiAnalyzer(configs) => configs.clone(),
            Self::Hybrid { saturation, model } => {
                saturation.iter().copied().chain([*model]).collect()
            }
        }
    }
}

/// How a model is decided on. The queueing model's ConfigMap beats `analyzerName`; analyzers that
/// are listed vote as well.
pub(crate) fn decision_mode(settings: &DynamicSettings, policy: &SaturationPolicy) -> DecisionMode {
    let by_tokens = policy.analysis == SaturationMethod::Tokens;
    if settings.proactive_model {
        return DecisionMode::Hybrid {
            saturation: by_tokens
                .then(|| analyzer_config(policy, AnalyzerName::Saturation, Participation::Votes)),
            model: analyzer_config(policy, AnalyzerName::QueueingModel, Participation::Votes),
        };
    }
    let selected = settings.queueing_model.selected();
    let is_slo = policy.analysis == SaturationMethod::Slo && !selected;
    if policy.analysis == SaturationMethod::Percentage && !selected {
        return DecisionMode::Percentage;
    }
    let is_listed = !policy.analyzers.is_empty();
    let configs = ANALYZERS.into_iter().filter_map(|analyzer| {
        let part = match analyzer {
            AnalyzerName::QueueingModel if selected => Participation::Votes,
            AnalyzerName::Slo if is_slo => Participation::Votes,
            AnalyzerName::Saturation if is_slo && !is_listed => Participation::StandsIn,
            AnalyzerName::Saturation if selected && !is_listed => Participation::Identity,
            _ => participation(&policy.analyzers, analyzer),
        };
        (part != Participation::NotRun).then(|| analyzer_config(policy, analyzer, part))
    });
    DecisionMode::MultiAnalyzer(configs.collect())
}

fn analyzer_config(
    policy: &SaturationPolicy,
    analyzer: AnalyzerName,
    participation: Participation,
) -> AnalyzerConfig {
    let own = own_entry(policy, analyzer);
    AnalyzerConfig {
        analyzer,
        participation,
        score: own.map_or(1.0, |entry| entry.score),
        band: analyzer_band(policy, analyzer),
    }
}
