//! The shares of a capacity between which a model is left alone.

use serde::{Deserialize, Serialize};

use super::analyzers::{AnalyzerSettings, SaturationMethod};
use wva_base::text::decimal;

/// Share of the utilization that growth aims at down to which the SLO analyzer releases.
pub(crate) const SLO_RELEASE: f64 = 0.95;

/// Shares of a model's capacity between which the token-based analysis leaves it alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UtilizationBand {
    /// Utilization that growth aims at; above it the model grows.
    pub scale_up_threshold: f64,
    /// Utilization below which the model may shrink.
    pub scale_down_boundary: f64,
}

impl Default for UtilizationBand {
    fn default() -> Self {
        Self { scale_up_threshold: 0.85, scale_down_boundary: 0.70 }
    }
}

impl UtilizationBand {
    /// What is wrong with the pair, in the documented words.
    pub fn fault(self) -> Option<String> {
        StatedBand::from(self).fault()
    }
}

/// The shares that an entry states of a band.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StatedBand {
    /// Utilization that growth aims at.
    pub scale_up_threshold: Option<f64>,
    /// Utilization below which the model may shrink.
    pub scale_down_boundary: Option<f64>,
}

impl StatedBand {
    /// These shares, and where there is none that of the layer below.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            scale_up_threshold: self.scale_up_threshold.or(below.scale_up_threshold),
            scale_down_boundary: self.scale_down_boundary.or(below.scale_down_boundary),
        }
    }

    /// The band, with the built-in share where none is stated. The SLO analyzer releases just below what it grows at, so
    /// that its boundary follows a threshold that is lower than the built-in boundary.
    pub fn completed(self, analysis: SaturationMethod) -> UtilizationBand {
        let built_in = UtilizationBand::default();
        let up = self.scale_up_threshold.unwrap_or(built_in.scale_up_threshold);
        let down = match analysis {
            SaturationMethod::Slo => built_in.scale_down_boundary.min(up * SLO_RELEASE),
            SaturationMethod::Tokens | SaturationMethod::Percentage => built_in.scale_down_boundary,
        };
        UtilizationBand {
            scale_up_threshold: up,
            scale_down_boundary: self.scale_down_boundary.unwrap_or(down),
        }
    }

    /// What is wrong with the shares that are stated, in the documented words.
    pub fn fault(self) -> Option<String> {
        self.unusable().or_else(|| self.disorder())
    }

    /// What no analyzer can use of the shares that are stated, in the documented words.
    pub fn unusable(self) -> Option<String> {
        let is_unusable = |share: &f64| !(*share > 0.0 && *share <= 1.0);
        if let Some(up) = self.scale_up_threshold.filter(is_unusable) {
            return Some(format!(
                "scaleUpThreshold must be in (0, 1], got {}: write a share like 0.85",
                decimal(up, 2)
            ));
        }
        if let Some(down) = self.scale_down_boundary.filter(is_unusable) {
            return Some(format!(
                "scaleDownBoundary must be in (0, 1], got {}: write a share like 0.70",
                decimal(down, 2)
            ));
        }
        None
    }

    fn disorder(self) -> Option<String> {
        let (up, down) = self.scale_up_threshold.zip(self.scale_down_boundary)?;
        (up <= down).then(|| {
            format!(
                "scaleUpThreshold ({up:.2}) must be > scaleDownBoundary ({down:.2}): raise the first or lower the second"
            )
        })
    }
}

impl From<UtilizationBand> for StatedBand {
    fn from(band: UtilizationBand) -> Self {
        Self {
            scale_up_threshold: Some(band.scale_up_threshold),
            scale_down_boundary: Some(band.scale_down_boundary),
        }
    }
}

impl From<&AnalyzerSettings> for StatedBand {
    fn from(own: &AnalyzerSettings) -> Self {
        Self {
            scale_up_threshold: own.scale_up_threshold,
            scale_down_boundary: own.scale_down_boundary,
        }
    }
}
