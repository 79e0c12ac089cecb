//! The files of a campaign.

use std::fs;
use std::path::Path;

use super::campaign::CampaignError;
use super::record::LabRecord;

/// The record of a file, if it has this key.
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

/// Writes a file as a whole or not at all: a run that is cut short leaves no half.
pub(super) fn write(path: &Path, text: &[u8]) -> Result<(), CampaignError> {
    let unfinished = path.with_extension("part");
    fs::write(&unfinished, text).map_err(|error| CampaignError::output(&unfinished, error))?;
    fs::rename(&unfinished, path).map_err(|error| CampaignError::output(path, error))
}

/// All records of a folder in the order of their names.
pub(super) fn records(folder: &Path) -> Result<Vec<LabRecord>, CampaignError> {
    let unreadable = |error| CampaignError::output(folder, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            paths.push(path);
        }
    }
    paths.sort();
    let mut records: Vec<LabRecord> = Vec::new();
    for path in paths {
        let text = fs::read(&path).map_err(|error| CampaignError::output(&path, error))?;
        let record = serde_json::from_slice(&text).map_err(|error| CampaignError::Content {
            path: path.display().to_string(),
            error,
        });
        records.push(record?);
    }
    Ok(records)
}
