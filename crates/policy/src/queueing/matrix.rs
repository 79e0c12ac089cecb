//! The little linear algebra that a filter of three states and two observations needs.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matrix<const R: usize, const C: usize>(pub(super) [[f64; C]; R]);

impl<const R: usize, const C: usize> Matrix<R, C> {
    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        let row = self.0.get(row).and_then(|row| row.get(column));
        row.copied().unwrap_or(0.0)
    }

    pub(super) fn from_fn(cell: impl Fn(usize, usize) -> f64) -> Self {
        Self(std::array::from_fn(|row| std::array::from_fn(|column| cell(row, column))))
    }

    pub(super) fn transposed(&self) -> Matrix<C, R> {
        Matrix::from_fn(|row, column| self.at(column, row))
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        Self::from_fn(|row, column| self.at(row, column) + other.at(row, column))
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        Self::from_fn(|row, column| self.at(row, column) - other.at(row, column))
    }

    pub(super) fn times<const D: usize>(&self, other: &Matrix<C, D>) -> Matrix<R, D> {
        Matrix::from_fn(|row, column| {
            (0..C).map(|inner| self.at(row, inner) * other.at(inner, column)).sum()
        })
    }

    pub(super) fn scaled(&self, factor: f64) -> Self {
        Self(self.0.map(|row| row.map(|cell| cell * factor)))
    }

    pub(super) fn apply(&self, vector: [f64; C]) -> [f64; R] {
        self.0.map(|row| dot(row, vector))
    }

    pub(super) fn is_finite(&self) -> bool {
        self.0.iter().flatten().all(|cell| cell.is_finite())
    }
}

impl<const N: usize> Matrix<N, N> {
    pub(super) fn diagonal(values: [f64; N]) -> Self {
        Self::from_fn(|row, column| {
            let value = values.get(row).copied().unwrap_or(0.0);
            if row == column { value } else { 0.0 }
        })
    }

    /// The mean of the matrix and its mirror image; takes rounding out of a covariance. Halves are
    /// added, as the sum of two large numbers may be none.
    pub(super) fn symmetric(&self) -> Self {
        let half = self.scaled(0.5);
        half.plus(&half.transposed())
    }
}

impl Matrix<2, 2> {
    pub(super) fn inverse(&self) -> Option<Self> {
        let [[a, b], [c, d]] = self.0;
        let inverse = Self([[d, -b], [-c, a]]).scaled((a * d - b * c).recip());
        inverse.is_finite().then_some(inverse)
    }
}

pub(super) fn dot<const N: usize>(left: [f64; N], right: [f64; N]) -> f64 {
    left.into_iter().zip(right).map(|(left, right)| left * right).sum()
}
