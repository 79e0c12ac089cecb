//! The report of a laboratory folder: one HTML page, a comparison of two folders, one moment of a
//! run. Reads the files that `wva-sim lab run --out` leaves, and nothing else.

mod canvas;
mod compare;
mod downsample;
mod explain;
mod front;
mod page;
mod panel;
mod results;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

use std::path::Path;

use super::files::replace;

pub(crate) use compare::compare;
pub(crate) use explain::explain;
pub(super) use results::Spread;

/// Writes `report.html` into a folder from its runs and scenarios. The page is self-contained.
pub(crate) fn write(dir: &Path) -> Result<(), String> {
    let results = results::read_results(dir)?;
    let page = page::page(&results)?;
    let path = dir.join("report.html");
    let written = replace(&path, page.as_bytes());
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}
