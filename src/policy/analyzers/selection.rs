//! How a model is decided on, by its settings.

use crate::policy::capacity::AnalyzerName;
use crate::policy::combine::{Band, Participation, participation};
use crate::settings::DynamicSettings;
use crate::settings::saturation::{Analysis, AnalyzerSettings, SaturationPolicy};

/// Every analyzer, in the order in which they are asked.
const ANALYZERS: [AnalyzerName; 3] = [
    AnalyzerName::Saturation,
    AnalyzerName::Throughput,
    AnalyzerName::QueueingModel,
];

/// How a model is decided on.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::policy) enum Approach {
    /// V1: one step at a time by percentages.
    Percentage,
    /// Analyzers vote on capacity.
    Voted(Vec<Chair>),
    /// Saturation and the queueing model, arbitrated variant by variant.
    Hybrid {
        /// How saturation looks at the model; `None` is V1.
        saturation: Option<Chair>,
        /// The queueing model.
        model: Chair,
    },
}

/// The place of one analyzer among those that look at a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::policy) struct Chair {
    pub(in crate::policy) analyzer: AnalyzerName,
    pub(in crate::policy) participation: Participation,
    pub(in crate::policy) score: f64,
    pub(in crate::policy) band: Band,
}

impl Approach {
    /// Every analyzer that looks at the model.
    pub(in crate::policy) fn chairs(&self) -> Vec<Chair> {
        match self {
            Self::Percentage => Vec::new(),
            Self::Voted(chairs) => chairs.clone(),
            Self::Hybrid { saturation, model } => {
                saturation.iter().copied().chain([*model]).collect()
            }
        }
    }
}

/// How a model is decided on. The queueing model's ConfigMap beats `analyzerName`; analyzers that
/// are listed vote beside it.
pub(in crate::policy) fn approach(
    settings: &DynamicSettings,
    policy: &SaturationPolicy,
) -> Approach {
    let by_tokens = policy.analysis == Analysis::Tokens;
    if settings.proactive_model {
        return Approach::Hybrid {
            saturation: by_tokens
                .then(|| chair(policy, AnalyzerName::Saturation, Participation::Votes)),
            model: chair(policy, AnalyzerName::QueueingModel, Participation::Votes),
        };
    }
    let selected = settings.queueing_model.selected();
    if !by_tokens && !selected {
        return Approach::Percentage;
    }
    let is_listed = !policy.analyzers.is_empty();
    let chairs = ANALYZERS.into_iter().filter_map(|analyzer| {
        let part = match analyzer {
            AnalyzerName::QueueingModel if selected => Participation::Votes,
            AnalyzerName::Saturation if selected && !is_listed => Participation::Identity,
            _ => participation(&policy.analyzers, analyzer),
        };
        (part != Participation::NotRun).then(|| chair(policy, analyzer, part))
    });
    Approach::Voted(chairs.collect())
}

fn chair(policy: &SaturationPolicy, analyzer: AnalyzerName, participation: Participation) -> Chair {
    let own = policy
        .analyzers
        .iter()
        .find(|entry| entry.enabled && entry.kind == analyzer.as_str());
    let common = match analyzer {
        AnalyzerName::Saturation => policy.band,
        AnalyzerName::Throughput | AnalyzerName::QueueingModel => policy.common_band,
    };
    let stated = |read: fn(&AnalyzerSettings) -> Option<f64>, otherwise: f64| {
        own.and_then(read).unwrap_or(otherwise)
    };
    let band = Band {
        scale_up: stated(|entry| entry.scale_up_threshold, common.scale_up_threshold),
        scale_down: stated(
            |entry| entry.scale_down_boundary,
            common.scale_down_boundary,
        ),
    };
    Chair {
        analyzer,
        participation,
        score: own.map_or(1.0, |entry| entry.score),
        band: if band.scale_up > band.scale_down {
            band
        } else {
            common.into()
        },
    }
}
