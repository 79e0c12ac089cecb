//! Why a report cannot be made.

use std::io;
use std::path::{Path, PathBuf};

/// Reason that a report, a comparison or an explanation is not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The report cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is larger than the report reads.
    #[error("{} has {bytes} bytes; the limit is {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The size of the file.
        bytes: u64,
        /// The largest size that is read.
        limit: u64,
    },
    /// A file is not of the documented format.
    #[error("{}: {field}: {problem}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The path of the field within the file.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A folder holds no run.
    #[error("{} holds no run: run `wva-sim lab run --out` first", path.display())]
    NoRuns {
        /// The folder that was searched.
        path: PathBuf,
    },
    /// A moment lies outside the run.
    #[error("{}: no sample at {at} s: the run has samples from {from} s to {to} s", path.display())]
    OutsideRun {
        /// The run.
        path: PathBuf,
        /// The moment.
        at: f64,
        /// The first sample.
        from: f64,
        /// The last sample.
        to: f64,
    },
    /// The plotting library refused a chart.
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
