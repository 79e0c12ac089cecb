//! The files of a laboratory folder, as the report reads them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::ReportError;
use crate::lab::record::SizingTerms;

/// The largest file that is read, in bytes.
const FILE_LIMIT: u64 = 64 * 1024 * 1024;

/// The version of the run files that this reader knows.
const VERSION: u32 = 1;

/// One value a sample; null where there was nothing to measure.
pub(super) type Samples = Vec<Option<f64>>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunRecord {
    pub version: u32,
    pub scenario: String,
    pub policy: String,
    pub family: String,
    pub knob: Option<f64>,
    pub seed: u64,
    pub virtual_seconds: f64,
    pub score: RunScore,
    pub series: RunSeries,
    #[serde(default)]
    pub decisions: Vec<RunDecision>,
    #[serde(default)]
    pub terms: Vec<SizingTerms>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunScore {
    pub from: f64,
    pub requests: u64,
    pub good: u64,
    #[serde(default)]
    pub refused: u64,
    #[serde(default)]
    pub failed: u64,
    #[serde(default)]
    pub late: u64,
    #[serde(default)]
    pub unfinished: u64,
    pub attainment: Option<f64>,
    pub gpu_seconds: GpuSeconds,
    pub cost: Option<f64>,
    #[serde(default)]
    pub ttft_seconds: Quantiles,
    #[serde(default)]
    pub itl_seconds: Quantiles,
    pub overload_seconds: Option<f64>,
    pub scalings: Option<u64>,
    pub reversals: Option<u64>,
    #[serde(default)]
    pub classes: BTreeMap<String, PartScore>,
    #[serde(default)]
    pub models: BTreeMap<String, PartScore>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct GpuSeconds {
    pub total: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Quantiles {
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PartScore {
    pub requests: u64,
    pub attainment: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RunSeries {
    pub at: Vec<f64>,
    pub models: BTreeMap<String, ModelSeries>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelSeries {
    pub arrivals: Samples,
    pub held: Samples,
    pub queue: Samples,
    pub running: Samples,
    pub kv: Samples,
    pub ttft_p95: Samples,
    pub good: Samples,
    pub variants: BTreeMap<String, VariantSeries>,
}

#[derive(Debug, Deserialize)]
pub(super) struct VariantSeries {
    pub desired: Samples,
    pub scale: Samples,
    pub ready: Samples,
    pub starting: Samples,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RunDecision {
    pub at: f64,
    pub variant: String,
    pub from: Option<u32>,
    pub to: u32,
    pub why: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScenarioRecord {
    pub about: String,
    pub load_to_capacity: Option<f64>,
    pub is_feasible: bool,
    pub slo_ttft_seconds: Option<f64>,
    pub slo_itl_seconds: Option<f64>,
    pub seconds: f64,
    pub from: f64,
    pub best_static: Option<StaticFleet>,
    pub clairvoyant: Option<Clairvoyant>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StaticFleet {
    #[serde(default)]
    pub replicas: BTreeMap<String, u32>,
    pub gpu_hours: f64,
    pub attainment: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Clairvoyant {
    pub gpu_hours: f64,
    pub attainment: Option<f64>,
}

impl RunScore {
    /// The share of requests within the SLO, of 1; `None` without requests.
    pub(super) fn share(&self) -> Option<f64> {
        self.attainment.filter(|_| self.requests > 0)
    }

    pub(super) fn gpu_hours(&self) -> f64 {
        self.gpu_seconds.total / 3600.0
    }
}

/// The runs of a folder with their paths, in the order of the paths.
pub(super) fn run_files(dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let runs = dir.join("runs");
    let unreadable = |source| ReportError::Read {
        path: runs.clone(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(&runs).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(ReportError::NoRuns { path: runs });
    }
    found.sort();
    Ok(found)
}

/// The run in a file, after all checks.
pub(super) fn read_run(path: &Path) -> Result<RunRecord, ReportError> {
    let bytes = read(path, FILE_LIMIT)?;
    let run: RunRecord = parse(path, &bytes).map_err(|error| other_version(path, &bytes, error))?;
    if run.version != VERSION {
        return Err(wrong_version(path, run.version));
    }
    check(path, &run)?;
    Ok(run)
}

/// The scenarios of a folder.
pub(super) fn read_scenarios(dir: &Path) -> Result<BTreeMap<String, ScenarioRecord>, ReportError> {
    let path = dir.join("scenarios.json");
    let scenarios: BTreeMap<String, ScenarioRecord> = parse(&path, &read(&path, FILE_LIMIT)?)?;
    for (name, scenario) in &scenarios {
        let attained = scenario
            .best_static
            .iter()
            .map(|fleet| ("bestStatic", fleet.gpu_hours, fleet.attainment))
            .chain(
                scenario
                    .clairvoyant
                    .iter()
                    .map(|bound| ("clairvoyant", bound.gpu_hours, bound.attainment)),
            );
        for (field, gpu_hours, attainment) in attained {
            not_negative(&path, &format!("{name}.{field}.gpuHours"), gpu_hours)?;
            is_share(&path, &format!("{name}.{field}.attainment"), attainment)?;
        }
        not_negative(&path, &format!("{name}.seconds"), scenario.seconds)?;
    }
    Ok(scenarios)
}

/// A regular file of at most `limit` bytes.
pub(super) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReportError> {
    let unreadable = |source| ReportError::Read {
        path: path.to_owned(),
        source,
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(unreadable(source));
    }
    let too_large = |bytes| ReportError::TooLarge {
        path: path.to_owned(),
        bytes,
        limit,
    };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // The file may have grown since.
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if length > limit {
        return Err(too_large(length));
    }
    Ok(bytes)
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
    let problem = format!("{version} is not supported; this report reads version {VERSION}");
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

fn not_negative(path: &Path, field: &str, value: f64) -> Result<(), ReportError> {
    if value >= 0.0 {
        return Ok(());
    }
    Err(ReportError::field(
        path,
        field,
        format!("{value} is negative"),
    ))
}

fn is_share(path: &Path, field: &str, value: Option<f64>) -> Result<(), ReportError> {
    match value {
        Some(share) if !(0.0..=1.0).contains(&share) => {
            let problem = format!("{share} is not between 0 and 1");
            Err(ReportError::field(path, field, problem))
        }
        _ => Ok(()),
    }
}

fn check(path: &Path, run: &RunRecord) -> Result<(), ReportError> {
    for (field, name) in [
        ("scenario", &run.scenario),
        ("policy", &run.policy),
        ("family", &run.family),
    ] {
        if name.is_empty() {
            return Err(ReportError::field(path, field, "is empty"));
        }
    }
    let score = &run.score;
    is_share(path, "score.attainment", score.attainment)?;
    not_negative(path, "score.gpuSeconds.total", score.gpu_seconds.total)?;
    not_negative(path, "score.from", score.from)?;
    not_negative(path, "virtualSeconds", run.virtual_seconds)?;
    if score.good > score.requests {
        let problem = format!("{} of {} requests", score.good, score.requests);
        return Err(ReportError::field(path, "score.good", problem));
    }
    check_series(path, &run.series)
}

fn check_series(path: &Path, series: &RunSeries) -> Result<(), ReportError> {
    let count = series.at.len();
    if !series.at.is_sorted_by(|earlier, later| earlier < later) {
        return Err(ReportError::field(path, "series.at", "does not increase"));
    }
    let same_length = |field: String, samples: &Samples| {
        if samples.len() == count {
            return Ok(());
        }
        let problem = format!("{} samples, but series.at has {count}", samples.len());
        Err(ReportError::field(path, field, problem))
    };
    for (name, model) in &series.models {
        for (field, samples) in model.fields() {
            same_length(format!("series.models.{name}.{field}"), samples)?;
        }
        for (variant, counts) in &model.variants {
            for (field, samples) in counts.fields() {
                let field = format!("series.models.{name}.variants.{variant}.{field}");
                same_length(field, samples)?;
            }
        }
    }
    Ok(())
}

impl ModelSeries {
    /// The series of the model itself, by the names of their fields.
    pub(super) fn fields(&self) -> [(&'static str, &Samples); 7] {
        [
            ("arrivals", &self.arrivals),
            ("held", &self.held),
            ("queue", &self.queue),
            ("running", &self.running),
            ("kv", &self.kv),
            ("ttftP95", &self.ttft_p95),
            ("good", &self.good),
        ]
    }
}

impl VariantSeries {
    /// The series of the variant, by the names of their fields.
    pub(super) fn fields(&self) -> [(&'static str, &Samples); 4] {
        [
            ("desired", &self.desired),
            ("scale", &self.scale),
            ("ready", &self.ready),
            ("starting", &self.starting),
        ]
    }
}
