//! The report of a laboratory folder: one HTML page, a comparison of two folders, one moment of a
//! run. Reads the files that `wva-sim lab run --out` leaves, and nothing else.

mod canvas;
mod compare;
mod downsample;
mod error;
mod explain;
mod front;
mod page;
mod panel;
mod record;
mod results;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

use std::path::Path;

use super::files::replace;

pub(crate) use error::ReportError;
pub(super) use record::read_run;

/// Writes `report.html` into a folder from its runs and scenarios. The page is self-contained.
pub(crate) fn write(dir: &Path) -> Result<(), ReportError> {
    let results = results::read_results(dir)?;
    let page = page::page(&results)?;
    let path = dir.join("report.html");
    replace(&path, page.as_bytes()).map_err(|source| ReportError::Write { path, source })
}

/// Returns a Markdown table of two folders: attainment and GPU-hours of each scenario and policy, and
/// their differences.
pub(crate) fn compare(a: &Path, b: &Path) -> Result<String, ReportError> {
    compare::comparison(a, b)
}

/// Returns the state of each model and variant at a moment of a run, in seconds since its start, and
/// the last decisions before it with their reasons.
pub(crate) fn explain(run: &Path, at: f64) -> Result<String, ReportError> {
    explain::explanation(run, at)
}
