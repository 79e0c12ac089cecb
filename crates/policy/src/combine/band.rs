//! Shares of capacity between which nothing happens.

use serde::{Deserialize, Serialize};

use crate::capacity::AnalyzerName;
use crate::params::{AnalyzerSettings, SLO_RELEASE, SaturationPolicy, UtilizationBand};

/// Shares of capacity between which nothing happens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// Utilization that growth aims at; not positive means that nothing grows by it.
    pub scale_up: f64,
    /// Utilization below which capacity is released; not positive means that none is.
    pub scale_down: f64,
}

impl From<UtilizationBand> for Band {
    fn from(band: UtilizationBand) -> Self {
        Self { scale_up: band.scale_up_threshold, scale_down: band.scale_down_boundary }
    }
}

pub(crate) fn own_entry(
    policy: &SaturationPolicy,
    analyzer: AnalyzerName,
) -> Option<&AnalyzerSettings> {
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
