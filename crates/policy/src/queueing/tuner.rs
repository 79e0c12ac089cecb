//! Extended Kalman filter that learns the parameters of a replica from its latencies.
//!
//! The state is (α, β, γ), the observation is (time to first token, time between tokens). An
//! observation too far from what the model expects is rejected by its normalised innovation squared
//! (NIS); one that the model finds impossible changes nothing either.

mod estimate;
mod recovery;

use serde::{Deserialize, Serialize};

pub(crate) use estimate::{Covariance, Estimate};
pub(crate) use recovery::{Tuned, tune};
#[cfg(test)]
pub(crate) use {estimate::ParameterBounds, recovery::PATIENCE};

use super::matrix::{Matrix, dot};
use super::observation::ReplicaObservation;
use super::quantity::Millis;
use super::service::ServiceParameters;

/// An innovation whose NIS is this large is rejected: 97.5 % of a chi-square distribution with two
/// degrees of freedom.
pub(crate) const NIS_LIMIT: f64 = 7.378;

/// Step of the numerical derivative, as a share of the parameter.
const DERIVATIVE_STEP: f64 = 0.01;

/// How much the filter trusts the model and the observations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TunerSettings {
    /// Divides the variance of observations.
    pub noise_factor: f64,
    /// Relative error of an observed latency.
    pub error_level: f64,
    /// Standard deviations that the error level stands for.
    pub percentile: f64,
    /// Standard deviation of a parameter's change from one observation to the next, as a share.
    pub change: f64,
}

impl Default for TunerSettings {
    fn default() -> Self {
        Self { noise_factor: 1.0, error_level: 0.05, percentile: 1.96, change: 0.05 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("tuner setting {name} is {value}; it must be finite and above 0")]
pub(crate) struct InvalidTunerSetting {
    pub name: &'static str,
    pub value: f64,
}

impl TunerSettings {
    /// # Errors
    /// Names the first value that is not above zero.
    pub(crate) fn check(&self) -> Result<(), InvalidTunerSetting> {
        let values = [
            ("noise_factor", self.noise_factor),
            ("error_level", self.error_level),
            ("percentile", self.percentile),
            ("change", self.change),
        ];
        values
            .into_iter()
            .find(|(_, value)| !(*value > 0.0 && value.is_finite()))
            .map_or(Ok(()), |(name, value)| Err(InvalidTunerSetting { name, value }))
    }

    /// Variances of the parameters' change around `start`: the diagonal of Q.
    pub(crate) fn process_noise(&self, start: &ServiceParameters) -> [f64; 3] {
        vector(start).map(|value| (self.change * value).powi(2))
    }

    /// Variances of the latencies of an observation: the diagonal of R.
    pub(crate) fn observation_noise(&self, observation: &ReplicaObservation) -> [f64; 2] {
        let relative = (self.error_level / self.percentile).powi(2) / self.noise_factor;
        observation.latencies().map(|value| relative * value * value)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TuningStep {
    pub observation: ReplicaObservation,
    /// Time to first token and time between tokens that were expected.
    pub expected: Option<[Millis; 2]>,
    /// Their derivatives by α, β and γ.
    pub derivatives: Option<[[f64; 3]; 2]>,
    /// Variances of the observed latencies.
    pub observation_noise: [f64; 2],
    /// Normalised innovation squared, where it could be computed.
    pub nis: Option<f64>,
    /// Parameters that the observation leads to, accepted or not.
    pub candidate: Option<ServiceParameters>,
    pub outcome: StepOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    Accepted,
    /// By the parameters so far, the replica could not keep up with the rate: no update.
    Infeasible,
    /// The covariance of the innovation cannot be inverted.
    Singular,
    /// A parameter would not be positive.
    NotPositive,
    /// The NIS reached its limit.
    Outlier,
}

/// A filter with the noise that is fixed for a run of observations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    process_noise: Matrix<3, 3>,
    observation_noise: [f64; 2],
}

impl Filter {
    /// A filter for a run that starts at an estimate with an observation.
    pub(crate) fn new(
        settings: &TunerSettings,
        start: &Estimate,
        first: &ReplicaObservation,
    ) -> Result<Self, InvalidTunerSetting> {
        settings.check()?;
        Ok(Self {
            process_noise: Matrix::diagonal(settings.process_noise(&start.parameters)),
            observation_noise: settings.observation_noise(first),
        })
    }

    /// Learns from one observation. The estimate is returned as it was unless it is accepted.
    pub(crate) fn step(
        &self,
        estimate: &Estimate,
        observation: &ReplicaObservation,
    ) -> (Estimate, TuningStep) {
        let mut step = TuningStep {
            observation: *observation,
            expected: None,
            derivatives: None,
            observation_noise: self.observation_noise,
            nis: None,
            candidate: None,
            outcome: StepOutcome::Infeasible,
        };
        let before = estimate.bounds.clamp(&estimate.parameters);
        let expected = observation.expected(&before);
        let derivatives = derivatives(&before, observation);
        step.expected = expected.map(|expected| expected.map(Millis));
        step.derivatives = derivatives.map(|matrix| matrix.0);
        let (Some(expected), Some(derivatives)) = (expected, derivatives) else {
            return (*estimate, step);
        };
        let predicted = estimate.covariance.matrix().plus(&self.process_noise);
        let noise = Matrix::diagonal(self.observation_noise);
        let cross = predicted.times(&derivatives.transposed());
        let Some(inverse) = derivatives.times(&cross).plus(&noise).inverse() else {
            step.outcome = StepOutcome::Singular;
            return (*estimate, step);
        };
        let [first, second] = observation.latencies();
        let innovation = [first - expected[0], second - expected[1]];
        let nis = dot(innovation, inverse.apply(innovation));
        let gain = cross.times(&inverse);
        let change = gain.apply(innovation);
        let candidate = estimate.bounds.clamp(&moved(&before, change));
        let after = Estimate {
            parameters: candidate,
            covariance: updated(&predicted, &gain, &derivatives, &noise)
                .limited(&estimate.bounds.max),
            bounds: estimate.bounds,
        };
        step.nis = nis.is_finite().then_some(nis);
        step.candidate = Some(candidate);
        step.outcome = judge(&after, step.nis);
        if step.outcome == StepOutcome::Accepted { (after, step) } else { (*estimate, step) }
    }
}

fn judge(after: &Estimate, nis: Option<f64>) -> StepOutcome {
    if !vector(&after.parameters).iter().all(|value| *value > 0.0) {
        return StepOutcome::NotPositive;
    }
    match nis {
        Some(nis) if nis < NIS_LIMIT && after.covariance.matrix().is_finite() => {
            StepOutcome::Accepted
        }
        Some(_) => StepOutcome::Outlier,
        None => StepOutcome::Singular,
    }
}

/// Covariance after an update, in Joseph's form, which rounding cannot make indefinite.
fn updated(
    predicted: &Matrix<3, 3>,
    gain: &Matrix<3, 2>,
    derivatives: &Matrix<2, 3>,
    noise: &Matrix<2, 2>,
) -> Covariance {
    let rest = Matrix::diagonal([1.0; 3]).minus(&gain.times(derivatives));
    let kept = rest.times(predicted).times(&rest.transposed());
    let learned = gain.times(noise).times(&gain.transposed());
    Covariance::of(kept.plus(&learned))
}

/// Central differences of the expected latencies.
fn derivatives(at: &ServiceParameters, observation: &ReplicaObservation) -> Option<Matrix<2, 3>> {
    let mut columns = [[0.0; 2]; 3];
    for (index, (column, value)) in columns.iter_mut().zip(vector(at)).enumerate() {
        let step = if value == 0.0 { DERIVATIVE_STEP } else { DERIVATIVE_STEP * value.abs() };
        let shifted = |by: f64| {
            let change = std::array::from_fn(|other| if other == index { by } else { 0.0 });
            observation.expected(&moved(at, change))
        };
        let (above, below) = (shifted(step)?, shifted(-step)?);
        let slope = |above: f64, below: f64| (above - below) / (2.0 * step);
        *column = [slope(above[0], below[0]), slope(above[1], below[1])];
    }
    Some(Matrix(columns).transposed())
}

fn vector(parameters: &ServiceParameters) -> [f64; 3] {
    [parameters.alpha, parameters.beta, parameters.gamma]
}

fn moved(parameters: &ServiceParameters, [alpha, beta, gamma]: [f64; 3]) -> ServiceParameters {
    ServiceParameters {
        alpha: parameters.alpha + alpha,
        beta: parameters.beta + beta,
        gamma: parameters.gamma + gamma,
    }
}
