//! A fluid model of the servers: capacity within the objective, offered load, and the bound of a policy that knows all
//! arrivals.

use std::collections::BTreeMap;
use std::time::Duration;

use super::accounting::{Scored, share};
use super::loads::ModelLoad;
use super::number;
use super::record::Clairvoyant;
use crate::engine::{Limits, Profile};
use crate::world::{ScenarioModel, ScenarioVariant, Slo};
use wva::policy::capacity::ServingRole;

/// Share of the KV cache that sequences fill before requests wait.
const KV_SHARE: f64 = 0.9;
/// What a step costs beyond the profile: queues are never perfectly even.
const OVERHEAD: f64 = 1.03;
/// Time over which the offered load is averaged.
const PEAK: usize = 600;
/// Attainment that counts as meeting the objective.
pub(super) const GOAL: f64 = 0.99;
/// Load over capacity above which no policy can meet the objective.
pub(super) const FEASIBLE: f64 = 0.95;
/// Windows in seconds over which the clairvoyant averages demand.
const WINDOWS: [usize; 9] = [1, 3, 7, 15, 31, 61, 121, 301, 601];
const HEADROOMS: [f64; 8] = [1.0, 1.03, 1.07, 1.15, 1.3, 1.5, 2.0, 3.0];

/// Time that one replica spends on a request while its batch is as large as the objective allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WorkModel {
    profile: Profile,
    pub(super) batch: f64,
}

impl WorkModel {
    pub(super) fn new(
        profile: Profile,
        limits: Limits,
        slo: Slo,
        (prompt, output): (f64, f64),
    ) -> Self {
        let timing = profile.timing;
        let context = prompt + output / 2.0;
        // Each sequence that ends makes room for a prompt, so a step carries `prompt / output` of its tokens.
        let sequence = timing.sequence.seconds()
            + timing.context.seconds() * context
            + timing.prompt_token.seconds() * prompt / output.max(1.0);
        let room = (slo.per_token.as_secs_f64() - timing.step.seconds()) / sequence.max(1e-12);
        let kv = KV_SHARE * f64::from(profile.kv_tokens) / context.max(1.0);
        let batch = room.min(kv).min(f64::from(limits.max_num_seqs)).max(1.0);
        Self { profile, batch }
    }

    pub(super) fn work(&self, prompt: u32, output: u32) -> f64 {
        let timing = self.profile.timing;
        let (prompt, output) = (f64::from(prompt), f64::from(output));
        let token = timing.step.seconds() / self.batch
            + timing.sequence.seconds()
            + timing.context.seconds() * (prompt + output / 2.0);
        OVERHEAD * (output * token + timing.prompt_token.seconds() * prompt)
    }
}

#[derive(Debug, Clone)]
pub(super) struct FluidDemand {
    work: Vec<f64>,
    requests: Vec<u64>,
    ttft: f64,
    start_up: usize,
    gpus: f64,
    /// Replicas of the primary variant, those that others are worth included.
    bounds: (u32, u32),
    /// Replicas of the primary variant that all variants at their maximum are worth.
    capacity: f64,
}

/// The variants of a role, first the one that does a request of this mean length for the least money.
fn by_cost(model: &ScenarioModel, role: ServingRole, lengths: (f64, f64)) -> Vec<&ScenarioVariant> {
    let cost = |variant: &ScenarioVariant| variant.cost * mean_work(variant, model.slo, lengths);
    let own = model.variants.iter().filter(|one| one.role == role);
    let mut own: Vec<&ScenarioVariant> = own.collect();
    own.sort_by(|one, other| cost(one).total_cmp(&cost(other)));
    own
}

pub(super) fn primaries(model: &ScenarioModel, lengths: (f64, f64)) -> Vec<&ScenarioVariant> {
    let roles = model.roles().into_iter();
    roles.filter_map(|role| by_cost(model, role, lengths).first().copied()).collect()
}

/// Fleets of so many replicas a role: of the variant that does a request for the least money up to its maximum, then of
/// the next one; others have their minimum.
pub(super) fn fixed_fleet(
    model: &ScenarioModel,
    lengths: (f64, f64),
    replicas: u32,
) -> BTreeMap<&'static str, u32> {
    let mut fleet = BTreeMap::new();
    for role in model.roles() {
        let mut left = replicas;
        for (place, variant) in by_cost(model, role, lengths).into_iter().enumerate() {
            let (min, max) = variant.bounds;
            let count = left.min(max);
            left -= count;
            let least = if place == 0 { 0 } else { min };
            fleet.insert(variant.name, count.max(least));
        }
    }
    fleet
}

/// Mean tokens of prompts and of answers.
pub(super) fn mean_lengths(load: &ModelLoad) -> (f64, f64) {
    let count = number::length(load.arrivals.len().max(1));
    let sum = load.arrivals.iter().fold((0.0, 0.0), |sum, arrival| {
        (sum.0 + f64::from(arrival.prompt_tokens), sum.1 + f64::from(arrival.output_tokens))
    });
    ((sum.0 / count).max(1.0), (sum.1 / count).max(1.0))
}

fn mean_work(variant: &ScenarioVariant, slo: Slo, (prompt, output): (f64, f64)) -> f64 {
    let model = WorkModel::new(variant.profile, variant.limits, slo, (prompt, output));
    model.work(number::rounded(prompt), number::rounded(output))
}

impl FluidDemand {
    pub(super) fn new(model: &ScenarioModel, load: &ModelLoad, scored: Scored) -> Option<Self> {
        let lengths = mean_lengths(load);
        let primary = *by_cost(model, ServingRole::Both, lengths).first()?;
        let works = WorkModel::new(primary.profile, primary.limits, model.slo, lengths);
        let length = scored.until.saturating_sub(scored.from).as_secs();
        let length = usize::try_from(length).unwrap_or(0);
        let (mut work, mut requests) = (vec![0.0; length], vec![0; length]);
        let arrivals = load.arrivals.iter();
        for arrival in arrivals.filter(|arrival| scored.holds(arrival.at)) {
            let second = arrival.at.saturating_sub(scored.from).as_secs();
            let second = usize::try_from(second).unwrap_or(usize::MAX);
            if let (Some(work), Some(requests)) = (work.get_mut(second), requests.get_mut(second)) {
                *work += works.work(arrival.prompt_tokens, arrival.output_tokens);
                *requests += 1;
            }
        }
        let own = mean_work(primary, model.slo, lengths);
        let variants = model.variants.iter();
        let capacity = variants.map(|variant| {
            f64::from(variant.bounds.1) * own / mean_work(variant, model.slo, lengths).max(1e-12)
        });
        let capacity: f64 = capacity.sum();
        let start_up = primary.start_up;
        // With sleepers it wakes one at every start, so that the bound stays one.
        let start_up = (start_up.asleep).map_or(start_up.median, |asleep| asleep.wake);
        Some(Self {
            work,
            requests,
            ttft: model.slo.first_token.as_secs_f64(),
            start_up: usize::try_from(start_up.as_secs()).unwrap_or(0),
            gpus: f64::from(primary.gpus),
            bounds: (primary.bounds.0, primary.bounds.1.max(number::rounded(capacity.floor()))),
            capacity,
        })
    }

    pub(super) fn load_to_capacity(&self) -> f64 {
        let window = PEAK.min(self.work.len()).max(1);
        let busiest = sliding(&self.work, window).into_iter().fold(0.0, f64::max);
        busiest / self.capacity.max(1e-12)
    }

    /// Share of the requests that begin in time if these replicas serve in each second.
    fn attainment(&self, replicas: impl Fn(usize) -> f64) -> f64 {
        let (mut backlog, mut good, mut all) = (0.0_f64, 0, 0);
        for (second, (work, requests)) in self.work.iter().zip(&self.requests).enumerate() {
            let serving = replicas(second);
            all += requests;
            if serving > 0.0 && backlog / serving <= self.ttft {
                good += requests;
            }
            backlog = (backlog + work - serving).max(0.0);
        }
        share(good, all)
    }

    /// The smallest fixed fleet that meets the objective, by this model.
    pub(super) fn least_static(&self) -> u32 {
        let counts = self.bounds.0.max(1)..=self.bounds.1;
        let mut enough = counts.filter(|count| self.attainment(|_| f64::from(*count)) >= GOAL);
        enough.next().unwrap_or(self.bounds.1)
    }

    /// The cheapest schedule that meets the objective; the best attainment where none does.
    pub(super) fn clairvoyant(&self) -> Clairvoyant {
        let mut best: Option<Clairvoyant> = None;
        for window in WINDOWS {
            let demand = centred(&self.work, window);
            for headroom in HEADROOMS {
                let schedule = self.schedule(&demand, headroom);
                let found = Clairvoyant {
                    gpu_hours: self.gpu_seconds(&schedule) / 3_600.0,
                    attainment: self
                        .attainment(|second| f64::from(schedule.get(second).copied().unwrap_or(0))),
                };
                let is_better = best.is_none_or(|best| {
                    let meets = |one: Clairvoyant| one.attainment >= GOAL;
                    match (meets(found), meets(best)) {
                        (true, true) => found.gpu_hours < best.gpu_hours,
                        (false, false) => found.attainment > best.attainment,
                        (meets, _) => meets,
                    }
                });
                if is_better {
                    best = Some(found);
                }
            }
        }
        best.unwrap_or_default()
    }

    /// Replicas by second: demand with headroom, where a replica stays over a gap that is shorter than a start.
    fn schedule(&self, demand: &[f64], headroom: f64) -> Vec<u32> {
        let (min, max) = self.bounds;
        let need = |work: &f64| number::rounded((work * headroom).ceil()).clamp(min, max);
        let mut schedule: Vec<u32> = demand.iter().map(need).collect();
        for layer in min.saturating_add(1)..=max {
            let mut last_used: Option<usize> = None;
            for second in 0..schedule.len() {
                if schedule.get(second).is_none_or(|count| *count < layer) {
                    continue;
                }
                let gap = last_used.map(|last| (last + 1)..second);
                if let Some(gap) = gap.filter(|gap| gap.len() <= self.start_up) {
                    for count in schedule.get_mut(gap).into_iter().flatten() {
                        *count = (*count).max(layer);
                    }
                }
                last_used = Some(second);
            }
        }
        schedule
    }

    /// With the starts, each paid for before it serves.
    fn gpu_seconds(&self, schedule: &[u32]) -> f64 {
        let mut seconds = 0.0;
        let mut before: Option<u32> = None;
        for (second, count) in schedule.iter().enumerate() {
            seconds += f64::from(*count);
            let started = before.map_or(0, |before| count.saturating_sub(before));
            seconds += f64::from(started) * number::length(self.start_up.min(second));
            before = Some(*count);
        }
        seconds * self.gpus
    }
}

fn sliding(values: &[f64], window: usize) -> Vec<f64> {
    let length = number::length(window);
    let windows = values.windows(window);
    let mut sum: f64 = values.iter().take(window).sum();
    let mut means = Vec::with_capacity(values.len());
    for (place, _) in windows.enumerate() {
        means.push(sum / length);
        sum += values.get(place + window).copied().unwrap_or(0.0)
            - values.get(place).copied().unwrap_or(0.0);
    }
    means
}

fn centred(values: &[f64], window: usize) -> Vec<f64> {
    let half = window / 2;
    let mut sums = vec![0.0];
    let mut sum = 0.0;
    for value in values {
        sum += value;
        sums.push(sum);
    }
    let at = |place: usize| sums.get(place).copied().unwrap_or(sum);
    (0..values.len())
        .map(|second| {
            let (from, to) = (second.saturating_sub(half), (second + half + 1).min(values.len()));
            (at(to) - at(from)) / number::length(to.saturating_sub(from).max(1))
        })
        .collect()
}

pub(super) fn scored(prelude: Duration, duration: Duration) -> Scored {
    Scored { from: prelude, until: prelude + duration }
}
