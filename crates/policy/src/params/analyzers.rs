//! Which analyzers take part, and with what weight.

use serde::{Deserialize, Serialize};

/// The analyzer that `analyzerName` and `analyzers[]` select today.
pub const SATURATION: &str = "saturation";

/// The analyzer that sizes a model for its latency objectives.
pub const SLO: &str = "slo";

/// One of `analyzers[]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnalyzerSettings {
    /// Its type, which falls back to its name. Unknown types are kept and ignored.
    pub kind: String,
    /// Whether it takes part.
    pub enabled: bool,
    /// Its weight; a vote without any moves no other one.
    pub score: f64,
    /// Its own utilization target for growth.
    pub scale_up_threshold: Option<f64>,
    /// Its own utilization floor.
    pub scale_down_boundary: Option<f64>,
}

impl AnalyzerSettings {
    /// The analysis that its band is for.
    pub fn analysis(&self) -> SaturationMethod {
        if self.kind == SLO { SaturationMethod::Slo } else { SaturationMethod::Tokens }
    }
}

/// The two ways to look at saturation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SaturationMethod {
    /// V1: shares of KV cache and queue lengths.
    Percentage,
    /// V2: tokens.
    Tokens,
    /// Not by saturation: the SLO analyzer decides.
    Slo,
}
