//! The files of a campaign.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::campaign::CampaignError;
use super::record::LabRecord;
use super::report::{ReportError, read_run};

pub(super) fn kept(path: &Path, key: &str) -> Option<LabRecord> {
    let text = fs::read(path).ok()?;
    let record: LabRecord = serde_json::from_slice(&text).ok()?;
    (record.key == key).then_some(record)
}

pub(super) fn store(path: &Path, record: &LabRecord) -> Result<(), CampaignError> {
    let text = serde_json::to_vec(record).map_err(|error| CampaignError::Content {
        path: path.display().to_string(),
        error,
    })?;
    write(path, &text)
}

pub(super) fn write(path: &Path, text: &[u8]) -> Result<(), CampaignError> {
    replace(path, text).map_err(|error| CampaignError::output(path, error))
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
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn records(folder: &Path) -> Result<Vec<LabRecord>, CampaignError> {
    let paths = json_files(folder).map_err(|error| CampaignError::output(folder, error))?;
    let records = paths.iter().map(|path| {
        read_run(path).map_err(|error| match error {
            ReportError::Read { path, source } => CampaignError::output(&path, source),
            other => CampaignError::Record(other),
        })
    });
    records.collect()
}
