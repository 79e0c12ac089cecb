//! What the filter knows: parameters, how sure it is, and the range that they stay in.

use serde::{Deserialize, Serialize};

use super::{TunerSettings, vector};
use crate::queueing::matrix::Matrix;
use crate::queueing::service::ServiceParameters;

/// Parameters of a replica that nothing is known about: a mid-size model on one accelerator.
const DEFAULT_PARAMETERS: ServiceParameters =
    ServiceParameters { alpha: 5.0, beta: 0.05, gamma: 0.000_05 };

/// Factors between a first guess and the bounds around it.
const BOUND_FACTORS: (f64, f64) = (0.01, 100.0);

/// Largest difference of mirrored covariances.
const ASYMMETRY: f64 = 1e-6;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub parameters: ServiceParameters,
    pub covariance: Covariance,
    /// The range that they stay in.
    pub bounds: ParameterBounds,
}

impl Estimate {
    /// A first guess: as uncertain as one step of the filter makes it.
    pub(crate) fn seeded(parameters: ServiceParameters, settings: &TunerSettings) -> Self {
        let noise = settings.process_noise(&parameters);
        Self {
            parameters,
            covariance: Covariance(Matrix::diagonal(noise).0),
            bounds: ParameterBounds::around(&parameters),
        }
    }
}

impl Default for Estimate {
    fn default() -> Self {
        Self::seeded(DEFAULT_PARAMETERS, &TunerSettings::default())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Range")]
pub struct ParameterBounds {
    pub(super) min: ServiceParameters,
    pub(super) max: ServiceParameters,
}

#[derive(Deserialize)]
struct Range {
    min: ServiceParameters,
    max: ServiceParameters,
}

impl ParameterBounds {
    /// # Errors
    /// If a lower bound is not below its upper one, or one is not finite.
    pub fn new(min: ServiceParameters, max: ServiceParameters) -> Result<Self, InvalidEstimate> {
        let names = ["alpha", "beta", "gamma"];
        for ((name, min), max) in names.into_iter().zip(vector(&min)).zip(vector(&max)) {
            if !(min < max && min.is_finite() && max.is_finite()) {
                return Err(InvalidEstimate::Bounds { name, min, max });
            }
        }
        Ok(Self { min, max })
    }

    /// From a hundredth to a hundred times a guess.
    pub(super) fn around(guess: &ServiceParameters) -> Self {
        let (low, high) = BOUND_FACTORS;
        Self { min: guess.scaled(low), max: guess.scaled(high) }
    }

    pub(super) fn clamp(&self, parameters: &ServiceParameters) -> ServiceParameters {
        let within = |value: f64, min: f64, max: f64| value.max(min).min(max);
        ServiceParameters {
            alpha: within(parameters.alpha, self.min.alpha, self.max.alpha),
            beta: within(parameters.beta, self.min.beta, self.max.beta),
            gamma: within(parameters.gamma, self.min.gamma, self.max.gamma),
        }
    }
}

impl TryFrom<Range> for ParameterBounds {
    type Error = InvalidEstimate;

    fn try_from(range: Range) -> Result<Self, InvalidEstimate> {
        Self::new(range.min, range.max)
    }
}

/// Covariance of (α, β, γ). Stored as nine numbers, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Covariance([[f64; 3]; 3]);

impl Covariance {
    pub(super) fn of(matrix: Matrix<3, 3>) -> Self {
        Self(matrix.symmetric().0)
    }

    pub(super) fn matrix(&self) -> Matrix<3, 3> {
        Matrix(self.0)
    }

    /// Standard deviations held below `limits`; correlations stay. Directions that no observation
    /// informs would grow for ever.
    pub(super) fn limited(&self, limits: &ServiceParameters) -> Self {
        let matrix = self.matrix();
        let limits = vector(limits);
        let factors: [f64; 3] = std::array::from_fn(|index| {
            let deviation = matrix.at(index, index).max(0.0).sqrt();
            let limit = limits.get(index).copied().unwrap_or(deviation);
            if deviation > limit { limit / deviation } else { 1.0 }
        });
        let scale = Matrix::diagonal(factors);
        Self(scale.times(&matrix).times(&scale).0)
    }
}

impl TryFrom<Vec<f64>> for Covariance {
    type Error = InvalidEstimate;

    fn try_from(cells: Vec<f64>) -> Result<Self, InvalidEstimate> {
        let (&[first, second, third], []) = cells.as_chunks::<3>() else {
            return Err(InvalidEstimate::Cells(cells.len()));
        };
        let matrix = Matrix([first, second, third]);
        let skewed = matrix.minus(&matrix.transposed());
        let even = skewed.0.iter().flatten().all(|cell| cell.abs() <= ASYMMETRY);
        if matrix.is_finite() && even && (0..3).all(|index| matrix.at(index, index) >= 0.0) {
            Ok(Self::of(matrix))
        } else {
            Err(InvalidEstimate::Covariance)
        }
    }
}

impl From<Covariance> for Vec<f64> {
    fn from(covariance: Covariance) -> Self {
        covariance.0.concat()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum InvalidEstimate {
    #[error("bounds of {name} are {min} and {max}; the first must be below the second")]
    Bounds { name: &'static str, min: f64, max: f64 },
    #[error("a covariance of three parameters has 9 numbers, not {0}")]
    Cells(usize),
    #[error("a covariance must be finite and symmetric, with no negative variance")]
    Covariance,
}
