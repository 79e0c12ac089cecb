//! The runs of a folder, joined by scenario and policy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::files::{read_run, read_scenarios, run_files, wrong};
use super::super::fluid::FEASIBLE;
use super::super::number::mean;
use super::super::record::{LabRecord, LabScore, ScenarioSummary};
use super::downsample::{Timeline, timeline};

/// Families that know the load in advance: they bound the others and are on no front.
const HINDSIGHT: [&str; 4] = ["best-static", "clairvoyant", "static", "static-best"];

/// The attainment that the best policy of a scenario may lack to the highest one.
const BEST_MARGIN: f64 = 0.01;

#[derive(Debug)]
pub(super) struct Results {
    /// By family, then by knob.
    pub policies: Vec<PolicyLabel>,
    pub scenarios: Vec<ScenarioResult>,
    pub runs: usize,
    pub seeds: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct PolicyLabel {
    pub name: String,
    pub family: String,
    pub knob: Option<f64>,
    /// The position of the family among the families.
    pub family_index: usize,
    pub has_hindsight: bool,
}

#[derive(Debug)]
pub(super) struct ScenarioResult {
    pub name: String,
    pub record: ScenarioSummary,
    /// In the order of the policies; `None` where a policy has no run.
    pub outcomes: Vec<Option<PolicyOutcome>>,
    /// Positions of the policies that no other one dominates, by rising GPU-hours.
    pub front: Vec<usize>,
    /// The cheapest policy within one point of the highest attainment.
    pub best: Option<usize>,
}

#[derive(Debug)]
pub(super) struct PolicyOutcome {
    /// `None` where no seed had a request.
    pub attainment: Option<Spread>,
    pub gpu_hours: Spread,
    pub goodput: Option<Spread>,
    /// 99th percentiles.
    pub e2e: Option<Spread>,
    pub classes: BTreeMap<String, Spread>,
    pub seeds: usize,
    /// Of the lowest seed.
    pub score: LabScore,
    /// Of the lowest seed.
    pub timeline: Timeline,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::lab) struct Spread {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Spread {
    pub(in crate::lab) fn of(values: &[f64]) -> Option<Self> {
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let mean = mean(values.iter().copied())?;
        Some(Self { mean, low, high })
    }

    pub(super) fn is_point(self) -> bool {
        self.high <= self.low
    }
}

impl ScenarioResult {
    pub(super) fn is_feasible(&self) -> bool {
        let load = self.record.load_to_capacity;
        self.record.is_feasible && load.is_none_or(|load| load <= FEASIBLE)
    }

    pub(super) fn outcome(&self, policy: usize) -> Option<&PolicyOutcome> {
        self.outcomes.get(policy).and_then(Option::as_ref)
    }

    pub(super) fn point(&self, policy: usize) -> Option<(f64, f64)> {
        let outcome = self.outcome(policy)?;
        Some((outcome.attainment?.mean, outcome.gpu_hours.mean))
    }
}

struct Gathered {
    path: PathBuf,
    scores: BTreeMap<u64, LabScore>,
    timeline: Timeline,
}

#[derive(Default)]
struct Gathering {
    policies: BTreeMap<String, (String, Option<f64>)>,
    cells: BTreeMap<(String, String), Gathered>,
}

impl Gathering {
    fn add(&mut self, path: &Path, run: &LabRecord) -> Result<(), String> {
        // The best fixed fleet of each scenario has a count of its own.
        let knob = run.knob.filter(|_| run.family != "static-best");
        let family = run.family.clone();
        let known = self.policies.entry(run.policy.clone());
        let known = known.or_insert_with(|| (family.clone(), knob));
        let is_same_knob = known.1.map(f64::to_bits) == knob.map(f64::to_bits);
        if known.0 != family || !is_same_knob {
            let problem = format!("policy `{}` has another family or knob elsewhere", run.policy);
            return Err(wrong(path, "family", &problem));
        }
        let key = (run.scenario.clone(), run.policy.clone());
        let gathered = self.cells.entry(key).or_insert_with(|| Gathered {
            path: path.to_owned(),
            scores: BTreeMap::new(),
            timeline: timeline(run),
        });
        if gathered.scores.insert(run.seed, run.score.clone()).is_some() {
            let problem = format!("{} has another file with this scenario and policy", run.seed);
            return Err(wrong(path, "seed", &problem));
        }
        if run.seed < gathered.timeline.seed {
            gathered.timeline = timeline(run);
        }
        Ok(())
    }

    /// By family, then by knob, then by name.
    fn policies(&self) -> Vec<PolicyLabel> {
        let families: BTreeSet<&str> =
            self.policies.values().map(|(family, _)| &**family).collect();
        let mut policies: Vec<PolicyLabel> = self
            .policies
            .iter()
            .map(|(name, (family, knob))| PolicyLabel {
                name: name.clone(),
                family: family.clone(),
                knob: *knob,
                family_index: families.iter().take_while(|other| **other < family.as_str()).count(),
                has_hindsight: HINDSIGHT.contains(&&**family),
            })
            .collect();
        policies.sort_by(|one, other| {
            let knob = |policy: &PolicyLabel| policy.knob.unwrap_or(f64::NEG_INFINITY);
            let by_family = one.family.cmp(&other.family);
            by_family.then_with(|| knob(one).total_cmp(&knob(other)))
        });
        policies
    }
}

pub(super) fn read_results(dir: &Path) -> Result<Results, String> {
    let records = read_scenarios(dir)?;
    let mut gathering = Gathering::default();
    let files = run_files(dir)?;
    for path in &files {
        gathering.add(path, &read_run(path)?)?;
    }
    let policies = gathering.policies();
    let mut seeds = BTreeSet::new();
    let mut scenarios: BTreeMap<String, (&ScenarioSummary, Vec<Option<PolicyOutcome>>)> =
        BTreeMap::new();
    for ((scenario, policy), gathered) in gathering.cells {
        let Some(record) = records.get(&scenario) else {
            let problem = format!("`{scenario}` is missing in scenarios.json");
            return Err(wrong(&gathered.path, "scenario", &problem));
        };
        seeds.extend(gathered.scores.keys().copied());
        let empty = || (record, policies.iter().map(|_| None).collect());
        let (_, outcomes) = scenarios.entry(scenario).or_insert_with(empty);
        let position = policies.iter().position(|label| label.name == policy);
        if let Some(place) = position.and_then(|position| outcomes.get_mut(position)) {
            *place = outcome(gathered);
        }
    }
    let scenarios = scenarios.into_iter().map(|(name, (record, outcomes))| {
        scenario_result(name, record.clone(), outcomes, &policies)
    });
    Ok(Results { scenarios: scenarios.collect(), policies, runs: files.len(), seeds })
}

fn outcome(gathered: Gathered) -> Option<PolicyOutcome> {
    let scores = gathered.scores;
    let shares: Vec<f64> = scores.values().filter_map(LabScore::share).collect();
    let hours: Vec<f64> = scores.values().map(LabScore::gpu_hours).collect();
    let goodput: Vec<f64> = scores.values().filter_map(LabScore::goodput).collect();
    let e2e = scores.values().filter_map(|score| score.e2e_seconds.p99);
    let e2e: Vec<f64> = e2e.collect();
    let mut classes: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, class) in scores.values().flat_map(|score| &score.classes) {
        classes.entry(name.clone()).or_default().push(class.attainment);
    }
    let classes = classes.into_iter();
    Some(PolicyOutcome {
        attainment: Spread::of(&shares),
        gpu_hours: Spread::of(&hours)?,
        goodput: Spread::of(&goodput),
        e2e: Spread::of(&e2e),
        classes: classes.filter_map(|(name, shares)| Some((name, Spread::of(&shares)?))).collect(),
        seeds: scores.len(),
        score: scores.into_values().next()?,
        timeline: gathered.timeline,
    })
}

fn scenario_result(
    name: String,
    record: ScenarioSummary,
    outcomes: Vec<Option<PolicyOutcome>>,
    policies: &[PolicyLabel],
) -> ScenarioResult {
    let mut result = ScenarioResult { name, record, outcomes, front: Vec::new(), best: None };
    let points = policies.iter().enumerate();
    let points = points.filter(|(_, policy)| !policy.has_hindsight);
    let points: Vec<(usize, f64, f64)> = points
        .filter_map(|(position, _)| {
            let (attainment, gpu_hours) = result.point(position)?;
            Some((position, attainment, gpu_hours))
        })
        .collect();
    result.front = front(points.clone());
    let highest = points.iter().map(|point| point.1).reduce(f64::max);
    let is_close = |position: &&usize| {
        let lacking = result.point(**position).zip(highest);
        lacking.is_some_and(|((attainment, _), highest)| attainment >= highest - BEST_MARGIN)
    };
    result.best = result.front.iter().find(is_close).copied();
    result
}

fn front(mut points: Vec<(usize, f64, f64)>) -> Vec<usize> {
    points.sort_by(|one, other| one.2.total_cmp(&other.2).then(other.1.total_cmp(&one.1)));
    let mut highest = f64::NEG_INFINITY;
    let kept = points.into_iter().filter_map(|(position, attainment, _)| {
        let is_higher = attainment > highest;
        highest = highest.max(attainment);
        is_higher.then_some(position)
    });
    kept.collect()
}

#[derive(Debug, Default)]
pub(super) struct Overall {
    /// GPU-hours relative to the clairvoyant: mean, then the number of scenarios.
    pub to_clairvoyant: Option<(f64, usize)>,
    /// GPU-hours relative to the best static fleet.
    pub to_static: Option<(f64, usize)>,
    pub attainment: Option<Spread>,
    /// The scenario of the lowest attainment.
    pub hardest: Option<String>,
    pub scenarios: usize,
    pub on_front: usize,
    pub best: usize,
}

pub(super) fn overall(results: &Results, policy: usize) -> Overall {
    let mut overall = Overall::default();
    let (mut shares, mut regrets, mut to_static) = (Vec::new(), Vec::new(), Vec::new());
    let mut lowest = f64::INFINITY;
    for scenario in results.scenarios.iter().filter(|it| it.is_feasible()) {
        let Some((attainment, gpu_hours)) = scenario.point(policy) else {
            continue;
        };
        overall.scenarios += 1;
        overall.on_front += usize::from(scenario.front.contains(&policy));
        overall.best += usize::from(scenario.best == Some(policy));
        shares.push(attainment);
        if attainment < lowest {
            lowest = attainment;
            overall.hardest = Some(scenario.name.clone());
        }
        let ratio = |bound: f64| (bound > 0.0).then(|| gpu_hours / bound);
        let bound = scenario.record.clairvoyant.as_ref();
        regrets.extend(bound.and_then(|bound| ratio(bound.gpu_hours)));
        let fleet = scenario.record.best_static.as_ref();
        let fleet = fleet.filter(|fleet| !fleet.misses_goal);
        to_static.extend(fleet.and_then(|fleet| ratio(fleet.gpu_hours)));
    }
    let mean = |ratios: &[f64]| Spread::of(ratios).map(|spread| (spread.mean, ratios.len()));
    overall.to_clairvoyant = mean(&regrets);
    overall.to_static = mean(&to_static);
    overall.attainment = Spread::of(&shares);
    overall
}
