//! How a model is decided on, by its settings.

use crate::capacity::AnalyzerName;
use crate::combine::{Band, Participation, participation};
use crate::params::{
    AnalyzerSettings, DynamicSettings, SLO_RELEASE, SaturationMethod, SaturationPolicy,
};

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

fn own_entry(policy: &SaturationPolicy, analyzer: AnalyzerName) -> Option<&AnalyzerSettings> {
    let mut entries = policy.analyzers.iter();
    entries.find(|entry| entry.enabled && entry.kind == analyzer.as_str())
}

/// The band of an analyzer: of its own entry, else of the model.
pub fn analyzer_band(policy: &SaturationPolicy, analyzer: AnalyzerName) -> Band {
    let own = own_entry(policy, analyzer);
    let common = match analyzer {
        AnalyzerName::Saturation => policy.band,
        AnalyzerName::Throughput | AnalyzerName::QueueingModel => policy.common_band,
        AnalyzerName::Slo => policy.slo_band(),
    };
    let stated = |read: fn(&AnalyzerSettings) -> Option<f64>, otherwise: f64| {
        own.and_then(read).unwrap_or(otherwise)
    };
    let scale_up = stated(|entry| entry.scale_up_threshold, common.scale_up_threshold);
    let below = match analyzer {
        AnalyzerName::Slo => scale_up * SLO_RELEASE,
        _ => common.scale_down_boundary,
    };
    let scale_down = stated(|entry| entry.scale_down_boundary, below);
    let band = Band { scale_up, scale_down };
    if band.scale_up > band.scale_down { band } else { common.into() }
}
