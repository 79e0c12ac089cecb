//! The highest request rate at which one replica still meets its targets.

use serde::{Deserialize, Serialize};

use super::bisection::{SearchError, TOLERANCE, bisect_between, is_within};
use super::performance::{Performance, PerformanceError, RateRange, ReplicaModel};
use super::quantity::{Millis, RequestRate};

/// Share of the maximum rate that is left unused where a throughput is asked for, so that the
/// queue stays short.
const THROUGHPUT_MARGIN: f64 = 0.1;

/// What a replica is to keep; an absent target requires nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    /// Longest mean time to first token.
    pub time_to_first_token: Option<Millis>,
    /// Longest mean time between tokens.
    pub inter_token_latency: Option<Millis>,
    /// Tokens generated per second. Any value requires a margin below the maximum rate.
    pub tokens_per_second: Option<f64>,
}

/// The rates that meet each target, and how the replica does at the lowest of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sizing {
    /// Rates searched.
    pub range: RateRange,
    /// Highest rate that keeps the time to first token.
    pub for_time_to_first_token: RequestRate,
    /// Highest rate that keeps the time between tokens.
    pub for_inter_token_latency: RequestRate,
    /// Highest rate that leaves the margin of a throughput target.
    pub for_throughput: RequestRate,
    /// The lowest of them, λ*.
    pub rate: RequestRate,
    /// How the replica does at λ*.
    pub performance: Performance,
    /// Tokens generated per second at λ*.
    pub tokens_per_second: f64,
}

wva_base::named! {
    /// Which latency a target is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Latency {
        TimeToFirstToken = "time to first token",
        InterTokenLatency = "inter-token latency",
    }
}

impl Latency {
    fn of(self, performance: &Performance) -> Millis {
        match self {
            Self::TimeToFirstToken => performance.time_to_first_token,
            Self::InterTokenLatency => performance.inter_token_latency,
        }
    }
}

/// Targets that no rate meets.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SizingError {
    #[error("target {name} {value} must be finite and above 0; leave it out to ask for nothing")]
    Target {
        name: &'static str,
        /// Its value, in ms or tokens/s.
        value: f64,
    },
    #[error(
        "target {} of {target} is below the {least} of a nearly idle replica; raise the target \
         (sloMultiplier where it is inferred), or use a faster accelerator",
        .latency.as_str()
    )]
    Unreachable { latency: Latency, target: Millis, least: Millis },
    #[error(transparent)]
    Performance(#[from] PerformanceError),
    #[error("no request rates lie between {} and {}", .0.min, .0.max)]
    EmptyRange(RateRange),
}

impl ReplicaModel {
    /// The highest rate that meets every target.
    ///
    /// # Errors
    /// If a target is not above zero or cannot be met at any rate.
    pub fn size(&self, targets: &Targets) -> Result<Sizing, SizingError> {
        let Targets { time_to_first_token, inter_token_latency, tokens_per_second } = *targets;
        let range = self.range();
        check("tokens per second", tokens_per_second)?;
        let busiest = self.analyze(range.max);
        let rate_for = |latency, target| self.rate_for(latency, target, &busiest);
        let for_time_to_first_token = rate_for(Latency::TimeToFirstToken, time_to_first_token)?;
        let for_inter_token_latency = rate_for(Latency::InterTokenLatency, inter_token_latency)?;
        let for_throughput = match tokens_per_second {
            Some(_) => RequestRate(range.max.0 * (1.0 - THROUGHPUT_MARGIN)),
            None => range.max,
        };
        let lowest = for_time_to_first_token.0.min(for_inter_token_latency.0).min(for_throughput.0);
        let performance = self.analyze(RequestRate(lowest))?;
        Ok(Sizing {
            range,
            for_time_to_first_token,
            for_inter_token_latency,
            for_throughput,
            rate: RequestRate(lowest),
            performance,
            tokens_per_second: performance.throughput.0 * self.workload.output_tokens,
        })
    }

    /// `busiest` is how the replica does at the end of the range.
    fn rate_for(
        &self,
        latency: Latency,
        target: Option<Millis>,
        busiest: &Result<Performance, PerformanceError>,
    ) -> Result<RequestRate, SizingError> {
        let range = self.range();
        check(latency.as_str(), target.map(|target| target.0))?;
        let Some(target) = target else {
            return Ok(range.max);
        };
        let most = latency.of((*busiest).as_ref().map_err(|error| *error)?).0;
        if most <= target.0 {
            return Ok(range.max);
        }
        let least = latency.of(&self.analyze(range.min)?).0;
        if least > target.0 && !is_within(least, target.0, TOLERANCE) {
            return Err(SizingError::Unreachable { latency, target, least: Millis(least) });
        }
        let reached = |rate: f64| {
            self.analyze(RequestRate(rate)).map(|performance| latency.of(&performance).0)
        };
        let ends = [(range.min.0, least), (range.max.0, most)];
        match bisect_between(ends, target.0, reached) {
            Ok(found) => Ok(RequestRate(found.argument)),
            Err(SearchError::EmptyRange { .. }) => Err(SizingError::EmptyRange(range)),
            Err(SearchError::Function(error)) => Err(SizingError::Performance(error)),
        }
    }
}

fn check(name: &'static str, value: Option<f64>) -> Result<(), SizingError> {
    match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => {
            Err(SizingError::Target { name, value })
        }
        _ => Ok(()),
    }
}
