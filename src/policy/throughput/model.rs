//! The line of a decode engine in one cycle, and where it comes from.

use serde::{Deserialize, Serialize};

use super::line::{Fit, Line};
use super::window::{Domain, Window};

/// KV usage of a replica that counts as full.
pub const SATURATED_USAGE: f64 = 0.85;
/// Latency of a token on an idle engine, in seconds, while none was fitted.
pub const DEFAULT_INTERCEPT: f64 = 0.006;

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
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

/// A line, or none, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The line; none with [`Source::Failed`].
    pub line: Option<Line>,
    /// Where it comes from.
    pub source: Source,
    /// What a fitted line explains of the variance (R²).
    pub determination: Option<f64>,
}

impl Model {
    /// Fitted where the window allows, else through this cycle's readings of (usage, latency) and
    /// the intercept of the last fit.
    pub fn of(window: &Window, current: &[(f64, f64)], remembered: Option<f64>) -> Self {
        if let Some(Fit {
            line,
            determination,
        }) = window.fit(Domain::USAGE)
        {
            return Self {
                line: Some(line),
                source: Source::Fitted,
                determination: Some(determination),
            };
        }
        let line = Line::pinned(current, remembered.unwrap_or(DEFAULT_INTERCEPT))
            .filter(|line| line.is_valid(SATURATED_USAGE));
        let source = match (line, remembered) {
            (None, _) => Source::Failed,
            (Some(_), Some(_)) => Source::Pinned,
            (Some(_), None) => Source::Default,
        };
        Self {
            line,
            source,
            determination: None,
        }
    }
}
