//! The line of a decode engine in one cycle, and where it comes from.

use serde::{Deserialize, Serialize};

use super::line::{Fit, LatencyLine};
use super::window::{Domain, ObservationWindow};

pub(crate) const SATURATED_USAGE: f64 = 0.85;
/// Latency of a token on an idle engine, in seconds, while none was fitted.
pub(crate) const DEFAULT_INTERCEPT: f64 = 0.006;

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LatencyModelSource {
    /// Fitted to the window.
    #[serde(rename = "T1-ols")]
    Fitted,
    /// Slope of this cycle, intercept of the last fit.
    #[serde(rename = "T2-pinned")]
    Pinned,
    /// Slope of this cycle, intercept by default.
    #[serde(rename = "T2-default")]
    Default,
    /// No valid line.
    #[serde(rename = "T2-failed")]
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyModel {
    /// The line; none with [`LatencyModelSource::Failed`].
    pub line: Option<LatencyLine>,
    pub source: LatencyModelSource,
    /// What a fitted line explains of the variance (R²).
    pub determination: Option<f64>,
}

impl LatencyModel {
    /// Fitted where the window allows, else through this cycle's readings of (usage, latency) and
    /// the intercept of the last fit.
    pub fn of(window: &ObservationWindow, current: &[(f64, f64)], remembered: Option<f64>) -> Self {
        if let Some(Fit { line, determination }) = window.fit(Domain::USAGE) {
            return Self {
                line: Some(line),
                source: LatencyModelSource::Fitted,
                determination: Some(determination),
            };
        }
        let line = LatencyLine::pinned(current, remembered.unwrap_or(DEFAULT_INTERCEPT))
            .filter(|line| line.is_valid(SATURATED_USAGE));
        let source = match (line, remembered) {
            (None, _) => LatencyModelSource::Failed,
            (Some(_), Some(_)) => LatencyModelSource::Pinned,
            (Some(_), None) => LatencyModelSource::Default,
        };
        Self { line, source, determination: None }
    }
}
