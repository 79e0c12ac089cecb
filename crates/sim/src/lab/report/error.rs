//! Why a report cannot be made.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReportError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: {field}: {problem}", path.display())]
    Field {
        path: PathBuf,
        field: String,
        problem: String,
    },
    #[error("{} holds no run: run `wva-sim lab run --out` first", path.display())]
    NoRuns { path: PathBuf },
    #[error("{}: no sample at {at} s: the run has samples from {from} s to {to} s", path.display())]
    OutsideRun {
        path: PathBuf,
        at: f64,
        from: f64,
        to: f64,
    },
    #[error("cannot draw a chart: {0}")]
    Chart(String),
}

impl ReportError {
    pub(super) fn field(path: &Path, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field {
            path: path.to_owned(),
            field: field.into(),
            problem: problem.into(),
        }
    }
}
