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

use std::fs;
use std::path::Path;

pub use error::ReportError;

/// Writes `report.html` into a folder from its runs and scenarios. The page is self-contained.
pub fn write(dir: &Path) -> Result<(), ReportError> {
    let results = results::read_results(dir)?;
    let page = page::page(&results)?;
    // A reader never sees half a page.
    let (draft, path) = (dir.join("report.html.tmp"), dir.join("report.html"));
    let unwritten = |source| ReportError::Write {
        path: path.clone(),
        source,
    };
    fs::write(&draft, page).map_err(unwritten)?;
    fs::rename(&draft, &path).map_err(unwritten)
}

/// Returns a Markdown table of two folders: attainment and GPU-hours of each scenario and policy,
/// their differences, and a sign test over five or more seeds.
pub fn compare(a: &Path, b: &Path) -> Result<String, ReportError> {
    compare::comparison(a, b)
}

/// Returns the state of each model and variant at a moment of a run, in seconds since its start, and
/// the last decisions before it with their reasons.
pub fn explain(run: &Path, at: f64) -> Result<String, ReportError> {
    explain::explanation(run, at)
}
