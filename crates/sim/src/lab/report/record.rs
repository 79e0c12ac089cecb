//! The files of a laboratory folder, as the report reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::files::json_files;
use super::super::record::{LabRecord, ScenarioSummary, VERSION};
use super::error::ReportError;

/// The runs of a folder with their paths, in the order of the paths.
pub(super) fn run_files(dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let runs = dir.join("runs");
    let found = json_files(&runs).map_err(|source| ReportError::Read {
        path: runs.clone(),
        source,
    })?;
    if found.is_empty() {
        return Err(ReportError::NoRuns { path: runs });
    }
    Ok(found)
}

pub(in crate::lab) fn read_run(path: &Path) -> Result<LabRecord, ReportError> {
    let bytes = read(path)?;
    let run: LabRecord = parse(path, &bytes).map_err(|error| other_version(path, &bytes, error))?;
    if run.version != VERSION {
        return Err(wrong_version(path, run.version));
    }
    Ok(run)
}

pub(super) fn read_scenarios(dir: &Path) -> Result<BTreeMap<String, ScenarioSummary>, ReportError> {
    let path = dir.join("scenarios.json");
    parse(&path, &read(&path)?)
}

fn read(path: &Path) -> Result<Vec<u8>, ReportError> {
    fs::read(path).map_err(|source| ReportError::Read {
        path: path.to_owned(),
        source,
    })
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ReportError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = match error.path().to_string() {
            root if root == "." => "the top level".to_owned(),
            field => field,
        };
        ReportError::field(path, field, error.into_inner().to_string())
    })?;
    reader
        .end()
        .map_err(|error| ReportError::field(path, "after the object", error.to_string()))?;
    Ok(value)
}

fn wrong_version(path: &Path, version: u32) -> ReportError {
    let problem = format!("{version} is not supported, only {VERSION} is");
    ReportError::field(path, "version", problem)
}

/// A file of another version has other fields: its version explains more than the first difference.
fn other_version(path: &Path, bytes: &[u8], error: ReportError) -> ReportError {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    match serde_json::from_slice::<Versioned>(bytes) {
        Ok(found) if found.version != VERSION => wrong_version(path, found.version),
        _ => error,
    }
}
