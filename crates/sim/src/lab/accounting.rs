//! Every request that arrived in the scored part, counted once.

use std::collections::BTreeMap;
use std::time::Duration;

use super::loads::ModelLoad;
use super::number;
use super::record::{GroupScore, LabScore, Quantiles};
use super::schema::LatencySlo;
use crate::world::{EndedRequest, RequestResult};

/// Attainment of a minute below which it counts as overload.
const OVERLOAD: f64 = 0.9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scored {
    pub(super) from: Duration,
    pub(super) until: Duration,
}

impl Scored {
    pub(super) fn holds(&self, at: Duration) -> bool {
        self.from <= at && at < self.until
    }
}

#[derive(Debug, Default)]
struct Latencies {
    first_token: Vec<f64>,
    per_token: Vec<f64>,
    whole: Vec<f64>,
}

/// Requests of a class that arrived in one minute, and those within each objective.
#[derive(Debug, Default, Clone, Copy)]
struct Window {
    requests: u64,
    first_token: u64,
    per_token: u64,
}

impl Window {
    fn meets(&self, quantile: f64) -> bool {
        [self.first_token, self.per_token]
            .iter()
            .all(|within| share(*within, self.requests) >= quantile)
    }
}

#[derive(Debug)]
pub(super) struct Accounts {
    scored: Scored,
    score: LabScore,
    latencies: Latencies,
    minutes: BTreeMap<u64, GroupScore>,
    /// The quantile of each class that has one, and its minutes.
    windows: BTreeMap<String, (f64, BTreeMap<u64, Window>)>,
}

impl Accounts {
    pub(super) fn new(scored: Scored) -> Self {
        Self {
            scored,
            score: LabScore { from: scored.from.as_secs_f64(), ..LabScore::default() },
            latencies: Latencies::default(),
            minutes: BTreeMap::new(),
            windows: BTreeMap::new(),
        }
    }

    pub(super) fn model(&mut self, name: &str, load: &ModelLoad, outcomes: &[EndedRequest]) {
        let mut ends: Vec<Option<&EndedRequest>> = vec![None; load.arrivals.len()];
        for outcome in outcomes {
            let place = usize::try_from(outcome.index).unwrap_or(usize::MAX);
            if let Some(end) = ends.get_mut(place) {
                *end = Some(outcome);
            }
        }
        let mut group = GroupScore::default();
        let requests = load.arrivals.iter().zip(load.class_of.iter()).zip(ends);
        for ((arrival, class), end) in requests {
            if !self.scored.holds(arrival.at) {
                continue;
            }
            let Some(class) = load.classes.get(*class) else {
                continue;
            };
            let [first_token, per_token] = within(end, class.slo);
            let is_good = first_token && per_token;
            self.request(arrival.at, is_good, end);
            group.add(is_good);
            if let Some(quantile) = class.slo.quantile {
                let minute = self.minute(arrival.at);
                let windows = self.windows.entry(class.name.clone());
                let (_, minutes) = windows.or_insert_with(|| (quantile, BTreeMap::new()));
                let window = minutes.entry(minute).or_default();
                window.requests += 1;
                window.first_token += u64::from(first_token);
                window.per_token += u64::from(per_token);
            }
            let classes = &mut self.score.classes;
            classes.entry(class.name.clone()).or_default().add(is_good);
        }
        self.score.models.insert(name.to_owned(), group);
    }

    fn minute(&self, arrival: Duration) -> u64 {
        arrival.saturating_sub(self.scored.from).as_secs() / 60
    }

    fn request(&mut self, arrival: Duration, is_good: bool, end: Option<&EndedRequest>) {
        let score = &mut self.score;
        score.requests += 1;
        match end.map(|end| (end.at, end.result)) {
            None => score.unfinished += 1,
            Some((_, RequestResult::Refused)) => score.refused += 1,
            Some((_, RequestResult::Failed)) => score.failed += 1,
            Some((at, RequestResult::Answered { first_token, per_token, tokens })) => {
                if is_good {
                    score.good += 1;
                    score.good_tokens += f64::from(tokens);
                } else {
                    score.late += 1;
                }
                let latencies = &mut self.latencies;
                latencies.first_token.push(first_token.as_secs_f64());
                let per_token = per_token.map(|gap| gap.as_secs_f64());
                latencies.per_token.extend(per_token);
                let whole = at.saturating_sub(arrival);
                latencies.whole.push(whole.as_secs_f64());
            }
        }
        let minute = self.minute(arrival);
        self.minutes.entry(minute).or_default().add(is_good);
    }

    pub(super) fn finish(self) -> LabScore {
        let mut score = self.score;
        for (name, (quantile, windows)) in &self.windows {
            let met = windows.values().filter(|window| window.meets(*quantile));
            let share = number::length(met.count()) / number::length(windows.len());
            score.classes.entry(name.clone()).or_default().minutes = Some(share);
        }
        score.attainment = share(score.good, score.requests);
        score.ttft_seconds = quantiles(self.latencies.first_token);
        score.itl_seconds = quantiles(self.latencies.per_token);
        score.e2e_seconds = quantiles(self.latencies.whole);
        let minutes = self.minutes.values();
        let overloaded = minutes.filter(|minute| minute.attainment < OVERLOAD);
        score.overload_seconds = 60.0 * number::length(overloaded.count());
        score
    }
}

/// Whether the first token, and the others, came in time.
fn within(end: Option<&EndedRequest>, slo: LatencySlo) -> [bool; 2] {
    match end.map(|end| end.result) {
        Some(RequestResult::Answered { first_token, per_token, .. }) => {
            [first_token <= slo.ttft.0, per_token.is_none_or(|gap| gap <= slo.itl.0)]
        }
        Some(RequestResult::Refused | RequestResult::Failed) | None => [false; 2],
    }
}

impl GroupScore {
    fn add(&mut self, is_good: bool) {
        self.requests += 1;
        self.good += u64::from(is_good);
        self.attainment = share(self.good, self.requests);
    }
}

/// 1 where nothing arrived: nothing was missed.
pub(super) fn share(good: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { number::real(good) / number::real(all) }
}

pub(super) fn quantiles(mut values: Vec<f64>) -> Quantiles {
    values.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let place = (values.len() * percent).div_ceil(100).checked_sub(1)?;
        values.get(place).copied()
    };
    Quantiles { p50: at(50), p90: at(90), p99: at(99) }
}
