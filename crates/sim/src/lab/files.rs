//! The files of a campaign, as it leaves them and as the report reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::record::{LabRecord, ScenarioSummary, VERSION};

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
    let paths = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
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

/// What is wrong with a field of a file.
pub(super) fn wrong(path: &Path, field: &str, problem: &str) -> String {
    format!("{}: {field}: {problem}", path.display())
}

/// The runs of a folder with their paths, in the order of the paths.
pub(super) fn run_files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let runs = dir.join("runs");
    let found = readable(&runs, json_files(&runs))?;
    if found.is_empty() {
        let runs = runs.display();
        return Err(format!("{runs} holds no run: run `wva-sim lab run --out` first"));
    }
    Ok(found)
}

pub(super) fn read_run(path: &Path) -> Result<LabRecord, String> {
    parse_run(path, &readable(path, fs::read(path))?)
}

/// A file of another version has other fields: its version explains more than the first difference.
fn parse_run(path: &Path, bytes: &[u8]) -> Result<LabRecord, String> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    match serde_json::from_slice(bytes) {
        Ok(Versioned { version }) if version != VERSION => {
            let problem = format!("{version} is not supported, only {VERSION} is");
            Err(wrong(path, "version", &problem))
        }
        _ => parse(path, bytes),
    }
}

pub(super) fn read_scenarios(dir: &Path) -> Result<BTreeMap<String, ScenarioSummary>, String> {
    let path = dir.join("scenarios.json");
    parse(&path, &readable(&path, fs::read(&path))?)
}

fn readable<T>(path: &Path, read: io::Result<T>) -> Result<T, String> {
    read.map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = match error.path().to_string() {
            root if root == "." => "the top level".to_owned(),
            field => field,
        };
        wrong(path, &field, &error.into_inner().to_string())
    })?;
    reader.end().map_err(|error| wrong(path, "after the object", &error.to_string()))?;
    Ok(value)
}
