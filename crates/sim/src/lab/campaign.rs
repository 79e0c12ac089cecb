//! Many runs on several threads, kept as files, so that a second start plays only what is missing.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, scope};

use super::files::{kept, records, store, write};
use super::fluid::{FluidDemand, mean_lengths, primaries, scored};
use super::play::{Play, PlayError};
use super::policies::{PolicyChoice, PolicyKind};
use super::record::LabRecord;
use super::scenario::{LoadedScenario, prepare};
use super::search::least_count;
use super::summary::scenarios;
use super::table;

/// Memory of a run's thread: a run holds its state on the heap.
pub(super) const STACK: usize = 16 * 1024 * 1024;

/// What to play.
#[derive(Debug)]
pub struct Campaign {
    /// The scenarios.
    pub scenarios: Vec<LoadedScenario>,
    /// The policies.
    pub policies: Vec<PolicyChoice>,
    /// Seeds, from 1 to this.
    pub seeds: u64,
    /// Runs at a time.
    pub jobs: usize,
    /// The folder of the files.
    pub out: PathBuf,
    /// The folder of the traces.
    pub traces: Option<PathBuf>,
}

/// How far a campaign is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabProgress {
    /// Tasks that are over.
    pub done: usize,
    /// All tasks.
    pub total: usize,
    /// Runs among them that were found as files.
    pub found: usize,
    /// What ended last, or why it could not be played.
    pub note: String,
}

/// Why a campaign cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file or folder.
    #[error("{path}: {error}; check --out")]
    Output {
        /// Which.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// The page.
    #[error(transparent)]
    Report(#[from] super::report::ReportError),
    /// A thread.
    #[error("a thread cannot start: {0}; give fewer --jobs")]
    Thread(io::Error),
    /// A file that holds something else.
    #[error("{path}: {error}; delete it")]
    Content {
        /// Which.
        path: String,
        /// What is wrong.
        error: serde_json::Error,
    },
}

impl CampaignError {
    pub(super) fn output(path: &Path, error: io::Error) -> Self {
        let path = path.display().to_string();
        Self::Output { path, error }
    }
}

/// One thing that a thread does.
#[derive(Debug, Clone)]
enum Task {
    Run {
        scenario: usize,
        policy: PolicyChoice,
        seed: u64,
    },
    Search {
        scenario: usize,
        policy: PolicyChoice,
    },
}

/// What threads share.
struct Shared<'a> {
    campaign: &'a Campaign,
    program: u64,
    tasks: Mutex<VecDeque<Task>>,
    progress: Mutex<LabProgress>,
    /// Scenarios that cannot be played, with the reason.
    refused: Mutex<BTreeMap<usize, String>>,
    report: &'a (dyn Fn(&LabProgress) + Sync),
}

/// Why one run has no record.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Play(#[from] PlayError),
    #[error(transparent)]
    Campaign(#[from] CampaignError),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays what is missing, and writes the summaries of everything in the folder; the problems of single runs, and the
/// table.
///
/// # Errors
/// When the folder cannot be used.
pub fn run(
    campaign: &Campaign,
    report: &(dyn Fn(&LabProgress) + Sync),
) -> Result<(Vec<String>, String), CampaignError> {
    let runs = campaign.out.join("runs");
    fs::create_dir_all(&runs).map_err(|error| CampaignError::output(&runs, error))?;
    let tasks = tasks(campaign);
    let shared = Shared {
        campaign,
        program: program(),
        progress: Mutex::new(LabProgress {
            done: 0,
            total: tasks.len(),
            found: 0,
            note: String::new(),
        }),
        tasks: Mutex::new(tasks),
        refused: Mutex::default(),
        report,
    };
    let mut problems = scope(|threads| {
        let work = || shared.work();
        let mut started = Vec::new();
        for number in 0..campaign.jobs.max(1) {
            let builder = Builder::new()
                .name(format!("lab-{number}"))
                .stack_size(STACK);
            let thread = builder.spawn_scoped(threads, work);
            started.push(thread.map_err(CampaignError::Thread)?);
        }
        let mut problems = Vec::new();
        for thread in started {
            match thread.join() {
                Ok(found) => problems.extend(found),
                Err(_panic) => problems.push("a run panicked; its message is above".to_owned()),
            }
        }
        Ok::<_, CampaignError>(problems)
    })?;
    problems.extend(locked(&shared.refused).values().cloned());
    let records = records(&runs)?;
    let scenarios = scenarios(campaign, &records)?;
    write(
        &campaign.out.join("summary.csv"),
        table::csv(&records).as_bytes(),
    )?;
    if !records.is_empty() {
        super::report::write(&campaign.out)?;
    }
    Ok((problems, table::markdown(&records, &scenarios)))
}

/// Searches first: they take longest.
fn tasks(campaign: &Campaign) -> VecDeque<Task> {
    let is_search = |policy: &&PolicyChoice| policy.family.kind == PolicyKind::StaticBest;
    let mut tasks = VecDeque::new();
    for scenario in 0..campaign.scenarios.len() {
        for policy in campaign.policies.iter().filter(is_search) {
            tasks.push_back(Task::Search {
                scenario,
                policy: policy.clone(),
            });
        }
    }
    for scenario in 0..campaign.scenarios.len() {
        for policy in campaign.policies.iter().filter(|one| !is_search(one)) {
            for seed in 1..=campaign.seeds {
                tasks.push_back(Task::Run {
                    scenario,
                    policy: policy.clone(),
                    seed,
                });
            }
        }
    }
    tasks
}

impl Shared<'_> {
    /// Takes tasks until there are none; the problems met.
    fn work(&self) -> Vec<String> {
        let mut problems = Vec::new();
        loop {
            let Some(task) = locked(&self.tasks).pop_front() else {
                return problems;
            };
            let (Task::Run { scenario, .. } | Task::Search { scenario, .. }) = &task;
            let scenario = *scenario;
            let note = if locked(&self.refused).contains_key(&scenario) {
                "not played".to_owned()
            } else {
                match self.perform(task) {
                    Ok(note) => note,
                    Err(RunError::Play(PlayError::Scenario(error))) => {
                        let text = error.to_string();
                        locked(&self.refused).insert(scenario, text.clone());
                        text
                    }
                    Err(error) => {
                        problems.push(error.to_string());
                        error.to_string()
                    }
                }
            };
            let mut progress = locked(&self.progress);
            progress.done += 1;
            progress.note = note;
            (self.report)(&progress);
        }
    }

    fn perform(&self, task: Task) -> Result<String, RunError> {
        match task {
            Task::Run {
                scenario,
                policy,
                seed,
            } => {
                let Some(scenario) = self.campaign.scenarios.get(scenario) else {
                    return Ok(String::new());
                };
                Ok(line(&self.record(scenario, &policy, seed)?))
            }
            Task::Search { scenario, policy } => {
                let Some(scenario) = self.campaign.scenarios.get(scenario) else {
                    return Ok(String::new());
                };
                self.search(scenario, &policy)
            }
        }
    }

    /// The record of a run: from its file if that has the same key, else by playing it.
    fn record(
        &self,
        scenario: &LoadedScenario,
        policy: &PolicyChoice,
        seed: u64,
    ) -> Result<LabRecord, RunError> {
        let key = self.key(scenario, policy, seed);
        let path = self.path(scenario, policy, seed);
        if let Some(record) = kept(&path, &key) {
            locked(&self.progress).found += 1;
            return Ok(record);
        }
        let play = Play {
            scenario,
            policy,
            traces: self.campaign.traces.as_deref(),
            seed,
            key: &key,
        };
        let record = play.run()?;
        store(&path, &record)?;
        Ok(record)
    }

    /// Finds the least fixed fleet with the first seed, and plays it with the others.
    fn search(&self, scenario: &LoadedScenario, policy: &PolicyChoice) -> Result<String, RunError> {
        let seeds = 1..=self.campaign.seeds;
        let known = seeds.clone().all(|seed| {
            let key = self.key(scenario, policy, seed);
            kept(&self.path(scenario, policy, seed), &key).is_some()
        });
        if known {
            locked(&self.progress).found += 1;
            return Ok(format!("{} {}: found", scenario.name(), policy.name));
        }
        let (guess, bounds) = self.guess(scenario)?;
        let count = least_count(guess, bounds, |count| {
            let fixed = PolicyChoice::fixed(count);
            let record = self.record(scenario, &fixed, 1)?;
            Ok::<_, RunError>(record.score.attainment)
        })?;
        let fixed = PolicyChoice::fixed(count);
        let mut last = String::new();
        for seed in seeds {
            let mut record = self.record(scenario, &fixed, seed)?;
            record.policy.clone_from(&policy.name);
            policy.family.name.clone_into(&mut record.family);
            record.knob = Some(f64::from(count));
            record.key = self.key(scenario, policy, seed);
            store(&self.path(scenario, policy, seed), &record)?;
            last = line(&record);
        }
        Ok(last)
    }

    /// Where a search begins, and its bounds: of the models together, as each has the same number of replicas.
    fn guess(&self, scenario: &LoadedScenario) -> Result<(u32, (u32, u32)), RunError> {
        let spec = &scenario.spec;
        let traces = self.campaign.traces.as_deref();
        let prepared = prepare(spec, traces, 1).map_err(PlayError::from)?;
        let scored = scored(spec.prelude.0, spec.duration.0);
        let models = prepared.scenario.models.iter().zip(&prepared.loads);
        let mut guess = 1;
        let mut most = 1;
        for (model, load) in models {
            let demand = FluidDemand::new(model, load, scored);
            guess = guess.max(demand.map_or(1, |demand| demand.least_static()));
            let primaries = primaries(model, mean_lengths(load)).into_iter();
            most = primaries.map(|one| one.bounds.1).fold(most, u32::max);
        }
        Ok((guess, (1, most)))
    }

    fn path(&self, scenario: &LoadedScenario, policy: &PolicyChoice, seed: u64) -> PathBuf {
        let name = format!("{}__{}__s{seed}.json", scenario.name(), policy.name);
        self.campaign.out.join("runs").join(name)
    }

    fn key(&self, scenario: &LoadedScenario, policy: &PolicyChoice, seed: u64) -> String {
        let policy = format!(
            "{} {:?} {:?}",
            policy.family.name, policy.knob, policy.without
        );
        let parts = [&*scenario.text, &policy, &seed.to_string()];
        let hash = parts.iter().fold(self.program, |hash, part| {
            fold(fold(hash, part.as_bytes()), &[0xff])
        });
        format!("{hash:016x}")
    }
}

fn line(record: &LabRecord) -> String {
    format!(
        "{} {} seed {}: {:.1} % at {:.2} GPU-h, {:.1} s of processor",
        record.scenario,
        record.policy,
        record.seed,
        record.score.attainment * 100.0,
        record.gpu_hours(),
        record.cpu_seconds,
    )
}

/// FNV-1a.
fn fold(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A hash of this program: another build may decide in another way.
fn program() -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    let executable = std::env::current_exe().and_then(fs::read);
    let bytes = executable.unwrap_or_default();
    let words = bytes.chunks_exact(8).fold(OFFSET, |hash, chunk| {
        let word: [u8; 8] = chunk.try_into().unwrap_or_default();
        (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3)
    });
    fold(words, wva::version::shown().as_bytes())
}
