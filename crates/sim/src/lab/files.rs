//! The files of a campaign.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::record::LabRecord;
use super::report::parse_run;

pub(super) fn store(path: &Path, record: &LabRecord) -> Result<(), String> {
    let text = serde_json::to_vec(record);
    let text = text.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    write(path, &text)
}

pub(super) fn write(path: &Path, text: &[u8]) -> Result<(), String> {
    stored(path, replace(path, text))
}

/// Names the path of what was done to a file of the results.
pub(super) fn stored<T>(path: &Path, done: io::Result<T>) -> Result<T, String> {
    done.map_err(|error| format!("{}: {error}; check --out", path.display()))
}

/// Writes a file as a whole or not at all: a run that is cut short leaves no half.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("part");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path)
}

pub(super) fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn records(folder: &Path) -> Result<Vec<LabRecord>, String> {
    let paths = stored(folder, json_files(folder))?;
    let records = paths.iter().map(|path| {
        let bytes = stored(path, fs::read(path))?;
        parse_run(path, &bytes).map_err(|error| format!("{error}; delete it"))
    });
    records.collect()
}
