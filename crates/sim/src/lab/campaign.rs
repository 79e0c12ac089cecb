//! Many runs on several threads, kept as files, so that a second start plays only what is missing.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;

use super::files::{records, store, stored, write};
use super::fluid::{FluidDemand, GOAL, scored};
use super::number::{self, HASH_OF_NOTHING};
use super::play::{LabRun, PlayError};
use super::policies::{PolicyChoice, PolicyKind};
use super::record::LabRecord;
use super::scenario::{LoadedScenario, prepare};
use super::summary::scenarios;
use super::table;
use crate::threads::{each, locked};
use wva::policy::capacity::ServingRole;

#[derive(Debug)]
pub(crate) struct Campaign {
    pub scenarios: Vec<LoadedScenario>,
    pub policies: Vec<PolicyChoice>,
    /// Seeds, from 1 to this.
    pub seeds: u64,
    pub jobs: usize,
    pub out: PathBuf,
    pub traces: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabProgress {
    pub done: usize,
    pub total: usize,
    /// Runs among them that were found as files.
    pub found: usize,
    /// What ended last, or why it could not be played.
    pub note: String,
}

#[derive(Debug, Clone, Copy)]
struct Task<'a> {
    /// Of its scenario.
    place: usize,
    play: LabRun<'a>,
    /// Whether the policy is searched for, with all seeds.
    is_search: bool,
}

struct Shared<'a> {
    campaign: &'a Campaign,
    program: u64,
    progress: Mutex<LabProgress>,
    refused: Mutex<BTreeMap<usize, String>>,
    report: &'a (dyn Fn(&LabProgress) + Sync),
}

/// Plays what is missing, and writes the summaries of everything in the folder; the problems of single runs, and the
/// table.
pub(crate) fn run(
    campaign: &Campaign,
    report: &(dyn Fn(&LabProgress) + Sync),
) -> Result<(Vec<String>, String), String> {
    let runs = campaign.out.join("runs");
    stored(&runs, fs::create_dir_all(&runs))?;
    let tasks = tasks(campaign);
    let shared = Shared {
        campaign,
        program: program(),
        progress: Mutex::new(LabProgress { total: tasks.len(), ..LabProgress::default() }),
        refused: Mutex::default(),
        report,
    };
    let played = each(campaign.jobs, tasks.into_iter(), |task| shared.play(task))?;
    let mut problems: Vec<String> = played.into_iter().flatten().collect();
    problems.extend(locked(&shared.refused).values().cloned());
    let records = records(&runs)?;
    let scenarios = scenarios(campaign, &records)?;
    write(&campaign.out.join("summary.csv"), table::csv(&records).as_bytes())?;
    if !records.is_empty() {
        super::report::write(&campaign.out)?;
    }
    Ok((problems, table::markdown(&records, &scenarios)))
}

/// Searches first: they take longest.
fn tasks(campaign: &Campaign) -> Vec<Task<'_>> {
    let is_searched = |policy: &PolicyChoice| policy.family.kind == PolicyKind::StaticBest;
    let traces = campaign.traces.as_deref();
    let mut tasks = Vec::new();
    for is_search in [true, false] {
        let seeds = if is_search { 1 } else { campaign.seeds };
        for (place, scenario) in campaign.scenarios.iter().enumerate() {
            let policies = campaign.policies.iter();
            for policy in policies.filter(|one| is_searched(one) == is_search) {
                tasks.extend((1..=seeds).map(|seed| Task {
                    place,
                    play: LabRun { scenario, policy, traces, seed },
                    is_search,
                }));
            }
        }
    }
    tasks
}

impl Shared<'_> {
    /// Why it could not be played, if so.
    fn play(&self, task: Task<'_>) -> Option<String> {
        let perform = || {
            if task.is_search {
                return self.search(task.play);
            }
            Ok(line(&self.record(task.play)?))
        };
        let mut problem = None;
        let is_refused = locked(&self.refused).contains_key(&task.place);
        let note = if is_refused {
            "not played".to_owned()
        } else {
            match catch_unwind(AssertUnwindSafe(perform)) {
                Ok(Ok(note)) => note,
                Ok(Err(PlayError::Scenario(text))) => {
                    locked(&self.refused).insert(task.place, text.clone());
                    text
                }
                Ok(Err(PlayError::Other(text))) => problem.insert(text).clone(),
                Err(_panic) => {
                    problem.insert("a run panicked; its message is above".to_owned()).clone()
                }
            }
        };
        let mut progress = locked(&self.progress);
        progress.done += 1;
        progress.note = note;
        (self.report)(&progress);
        problem
    }

    /// The record of a run: from its file if that has the same key, else by playing it.
    fn record(&self, play: LabRun<'_>) -> Result<LabRecord, PlayError> {
        if let Some(record) = self.kept(play) {
            locked(&self.progress).found += 1;
            return Ok(record);
        }
        let mut record = play.run()?;
        record.key = self.key(play);
        store(&self.path(play), &record)?;
        Ok(record)
    }

    fn kept(&self, play: LabRun<'_>) -> Option<LabRecord> {
        let text = fs::read(self.path(play)).ok()?;
        let record: LabRecord = serde_json::from_slice(&text).ok()?;
        (record.key == self.key(play)).then_some(record)
    }

    fn search(&self, play: LabRun<'_>) -> Result<String, PlayError> {
        let policy = play.policy;
        let seeds = 1..=self.campaign.seeds;
        if seeds.clone().all(|seed| self.kept(LabRun { seed, ..play }).is_some()) {
            locked(&self.progress).found += 1;
            return Ok(format!("{} {}: found", play.scenario.name(), policy.name));
        }
        let (guess, most) = guess(play)?;
        let count = least_count(guess, most, |count| {
            let fixed = PolicyChoice::fixed(count);
            let record = self.record(LabRun { policy: &fixed, ..play })?;
            Ok::<_, PlayError>(record.score.attainment)
        })?;
        let fixed = PolicyChoice::fixed(count);
        let mut last = String::new();
        for seed in seeds {
            let searched = LabRun { seed, ..play };
            let mut record = self.record(LabRun { policy: &fixed, ..searched })?;
            record.policy.clone_from(&policy.name);
            policy.family.name.clone_into(&mut record.family);
            record.key = self.key(searched);
            store(&self.path(searched), &record)?;
            last = line(&record);
        }
        Ok(last)
    }

    fn path(&self, play: LabRun<'_>) -> PathBuf {
        let name = format!("{}__{}__s{}.json", play.scenario.name(), play.policy.name, play.seed);
        self.campaign.out.join("runs").join(name)
    }

    fn key(&self, LabRun { scenario, policy, traces: folder, seed }: LabRun<'_>) -> String {
        let policy = format!("{} {:?} {:?}", policy.family.name, policy.knob, policy.without);
        let models = scenario.spec.models.iter();
        let traces =
            models.flat_map(|model| model.load.iter().filter_map(|part| part.trace.as_ref()));
        // Another file may have the name of an earlier one.
        let traces = traces.map(|trace| {
            let file = folder.map(|folder| folder.join(&trace.file));
            let known = file.and_then(|file| fs::metadata(file).ok());
            format!("{:?}", known.map(|file| (file.len(), file.modified().ok())))
        });
        let traces: String = traces.collect();
        let parts = [&*scenario.text, &policy, &seed.to_string(), &traces];
        let hash = parts
            .iter()
            .fold(self.program, |hash, part| number::hash(hash, part.bytes().chain([0xff])));
        format!("{hash:016x}")
    }
}

/// Where a search begins, and its maximum: of the models together, as each has the same number of replicas.
fn guess(play: LabRun<'_>) -> Result<(u32, u32), PlayError> {
    let spec = &play.scenario.spec;
    let prepared = prepare(spec, play.traces, 1).map_err(PlayError::Scenario)?;
    let scored = scored(spec.prelude.0, spec.duration.0);
    let models = prepared.scenario.models.iter().zip(&prepared.loads);
    let mut guess = 1;
    let mut most = 1;
    for (model, load) in models {
        let demand = FluidDemand::new(model, load, scored);
        guess = guess.max(demand.map_or(1, |demand| demand.least_static()));
        let of_role = |role: ServingRole| {
            let own = model.variants.iter().filter(move |one| one.role == role);
            own.map(|one| one.bounds.1).sum()
        };
        most = model.roles().into_iter().map(of_role).fold(most, u32::max);
    }
    Ok((guess, most))
}

/// Walks from a first guess to the least count whose attainment meets the goal; the maximum where none does.
pub(super) fn least_count<E>(
    guess: u32,
    most: u32,
    mut attainment: impl FnMut(u32) -> Result<f64, E>,
) -> Result<u32, E> {
    let mut count = guess.clamp(1, most.max(1));
    if attainment(count)? >= GOAL {
        while count > 1 && attainment(count - 1)? >= GOAL {
            count -= 1;
        }
        return Ok(count);
    }
    while count < most {
        count += 1;
        if attainment(count)? >= GOAL {
            break;
        }
    }
    Ok(count)
}

fn line(record: &LabRecord) -> String {
    format!(
        "{} {} seed {}: {:.1} % at {:.2} GPU-h, {:.1} s of processor",
        record.scenario,
        record.policy,
        record.seed,
        record.score.attainment * 100.0,
        record.score.gpu_hours(),
        record.cpu_seconds,
    )
}

/// A hash of this program: another build may decide in another way.
fn program() -> u64 {
    let executable = std::env::current_exe().and_then(fs::read);
    let bytes = executable.unwrap_or_default();
    let words = bytes.chunks_exact(8).fold(HASH_OF_NOTHING, |hash, chunk| {
        let word: [u8; 8] = chunk.try_into().unwrap_or_default();
        (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3)
    });
    number::hash(words, wva::version::shown().bytes())
}
