//! Demand ahead of time: a line through the long window.

use std::time::Duration;

use super::check::{SpecProblem, Violations};
use super::object::PredictiveSpec;
use super::tuning::LONGEST_WINDOW;

/// How far ahead demand is forecast where nothing is stated.
const HORIZON: Duration = Duration::from_mins(2);

const FEWEST_SAMPLES: usize = 3;

/// A forecast is at most so many times the mean.
const MOST_MEANS: f64 = 4.0;

wva_base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ForecastMode {
        /// It is shown.
        Preview,
        /// It may raise a count.
        Auto,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    pub mode: ForecastMode,
    pub horizon: Duration,
}

impl Forecast {
    pub(super) fn read(spec: &PredictiveSpec, found: &mut Violations) -> Self {
        let problem = SpecProblem::InvalidSpec;
        let mode = match &*spec.mode {
            "Auto" => ForecastMode::Auto,
            "" | "Preview" => ForecastMode::Preview,
            other => {
                let why = format!("{other:?} is no mode; write Preview or Auto");
                found.add(problem, "spec.predictive.mode", why);
                ForecastMode::Preview
            }
        };
        let seconds = spec.horizon_seconds;
        let length =
            |seconds: i64| u64::try_from(seconds).map_or(Duration::ZERO, Duration::from_secs);
        let horizon = seconds.map_or(HORIZON, length);
        if let Some(seconds) = seconds.filter(|_| horizon.is_zero() || horizon > LONGEST_WINDOW) {
            let why = format!("{seconds} is no horizon; write 1 to 3600");
            found.add(problem, "spec.predictive.horizonSeconds", why);
        }
        Self { mode, horizon }
    }
}

/// The least-squares line through points of time and amount, at a time: between zero and four times the mean.
/// `None` if there are too few points, or they span less than `span`.
pub(super) fn line_at(points: &[(f64, f64)], at: f64, span: f64) -> Option<f64> {
    let ((first, _), (last, _)) = (points.first()?, points.last()?);
    if points.len() < FEWEST_SAMPLES || last - first < span {
        return None;
    }
    let count = f64::from(u32::try_from(points.len()).ok()?);
    let middle = points.iter().map(|(time, _)| time).sum::<f64>() / count;
    let mean = points.iter().map(|(_, amount)| amount).sum::<f64>() / count;
    let (mut spread, mut slope) = (0.0, 0.0);
    for (time, amount) in points {
        spread += (time - middle).powi(2);
        slope += (time - middle) * (amount - mean);
    }
    let ahead = mean + slope / spread * (at - middle);
    (spread > 0.0).then(|| ahead.max(0.0).min(mean * MOST_MEANS))
}
