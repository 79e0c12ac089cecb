//! The numbers that answer a case.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::queueing::assess::supply;
use crate::queueing::bisection::{Position, bisect, is_within};
use crate::queueing::chain::BirthDeathQueue;
use crate::queueing::observation::ReplicaObservation;
use crate::queueing::performance::{Performance, ReplicaModel};
use crate::queueing::quantity::{Millis, RequestRate};
use crate::queueing::service::{ReplicaRoom, ServiceParameters, Workload};
use crate::queueing::sizing::Targets;
use crate::queueing::targets::{Latencies, from_observed};
use crate::queueing::tuner::{
    Covariance, Estimate, Filter, NIS_LIMIT, ParameterBounds, StepOutcome, TunerSettings, tune,
};
use crate::units::Replicas;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replica {
    alpha: f64,
    beta: f64,
    gamma: f64,
    input: f64,
    output: f64,
    batch: u32,
    queue: u32,
}

impl Replica {
    fn parameters(&self) -> ServiceParameters {
        parameters([self.alpha, self.beta, self.gamma])
    }

    fn workload(&self) -> Workload {
        Workload { input_tokens: self.input, output_tokens: self.output }
    }

    fn model(&self) -> Result<ReplicaModel, String> {
        let shape = ReplicaRoom { batch: self.batch, queue: self.queue };
        ReplicaModel::new(self.parameters(), self.workload(), shape).map_err(text)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seen {
    /// Requests per minute.
    rate: f64,
    input: f64,
    output: f64,
    batch: u32,
    ttft: f64,
    itl: f64,
}

impl Seen {
    fn observation(&self) -> ReplicaObservation {
        ReplicaObservation {
            rate: RequestRate(self.rate / 60.0),
            workload: Workload { input_tokens: self.input, output_tokens: self.output },
            batch: self.batch,
            time_to_first_token: Millis(self.ttft),
            inter_token_latency: Millis(self.itl),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Given {
    Service {
        replica: Replica,
    },
    Range {
        replica: Replica,
    },
    Queue {
        room: u32,
        rates: Vec<f64>,
        arrivals: f64,
    },
    Analyze {
        replica: Replica,
        rate: f64,
    },
    Size {
        replica: Replica,
        ttft: f64,
        itl: f64,
        tps: f64,
    },
    Tolerance {
        value: f64,
        reference: f64,
        tolerance: f64,
    },
    Search {
        line: [f64; 2],
        range: [f64; 2],
        target: f64,
    },
    Filter {
        start: [f64; 3],
        #[serde(flatten)]
        seen: Seen,
    },
    Guess {
        #[serde(flatten)]
        seen: Seen,
    },
    Gate,
    Settings {
        percentile: Option<f64>,
        change: Option<f64>,
    },
    Bounds {
        min: [f64; 3],
        max: [f64; 3],
    },
    Covariance {
        cells: Vec<f64>,
    },
    Observed {
        ttft: f64,
        itl: f64,
    },
    Supply {
        rates: Vec<f64>,
        capacity: f64,
        ready: u32,
        pending: u32,
    },
}

type Answer = Result<BTreeMap<String, f64>, String>;

#[expect(clippy::too_many_lines, reason = "one short arm for each kind of case")]
pub(super) fn answer(given: &Given) -> Answer {
    match given {
        Given::Service { replica } => {
            let (parameters, work) = (replica.parameters(), replica.workload());
            let batch = f64::from(replica.batch);
            let prefill = parameters.prefill(work, batch).0;
            let decode = parameters.decode_step(work, batch).0;
            let rate = batch / (prefill + work.output_tokens * decode);
            numbers(&[("prefill", prefill), ("decode", decode), ("rate", rate)])
        }
        Given::Range { replica } => {
            let range = replica.model()?.range();
            numbers(&[("min", range.min.0), ("max", range.max.0)])
        }
        Given::Queue { room, rates, arrivals } => queue(*room, rates, *arrivals),
        Given::Analyze { replica, rate } => {
            let performance = replica.model()?.analyze(RequestRate(*rate)).map_err(text)?;
            numbers(&of_performance(&performance))
        }
        Given::Size { replica, ttft, itl, tps } => size(replica, *ttft, *itl, *tps),
        Given::Tolerance { value, reference, tolerance } => {
            let is_within = is_within(*value, *reference, *tolerance);
            numbers(&[("is_within", f64::from(u8::from(is_within)))])
        }
        Given::Search { line: [slope, base], range: [from, to], target } => {
            let function = |x: f64| Ok::<f64, std::fmt::Error>(slope * x + base);
            let found = bisect(*from, *to, *target, function).map_err(text)?;
            let position = match found.position {
                Position::Before => -1.0,
                Position::Inside => 0.0,
                Position::Beyond => 1.0,
            };
            numbers(&[("x", found.argument), ("position", position)])
        }
        Given::Filter { start, seen } => filter(*start, &seen.observation()),
        Given::Guess { seen } => {
            let guess = seen.observation().guess().ok_or("no guess")?;
            let ServiceParameters { alpha, beta, gamma } = guess;
            numbers(&[("alpha", alpha), ("beta", beta), ("gamma", gamma)])
        }
        Given::Gate => numbers(&[("limit", NIS_LIMIT)]),
        Given::Settings { percentile, change } => {
            let defaults = TunerSettings::default();
            let settings = TunerSettings {
                percentile: percentile.unwrap_or(defaults.percentile),
                change: change.unwrap_or(defaults.change),
                ..defaults
            };
            settings.check().map_err(text)?;
            numbers(&[])
        }
        Given::Bounds { min, max } => {
            ParameterBounds::new(parameters(*min), parameters(*max)).map_err(text)?;
            numbers(&[])
        }
        Given::Covariance { cells } => {
            Covariance::try_from(cells.clone()).map_err(text)?;
            numbers(&[])
        }
        Given::Observed { ttft, itl } => {
            let targets = from_observed(Latencies {
                time_to_first_token: Millis(*ttft),
                inter_token_latency: Millis(*itl),
            });
            let (first, step) = (targets.time_to_first_token, targets.inter_token_latency);
            numbers(&[("ttft", first.0), ("itl", step.0)])
        }
        Given::Supply { rates, capacity, ready, pending } => {
            let demand: f64 = rates.iter().sum();
            let (ready, pending) = (Replicas(*ready), Replicas(*pending));
            let found = supply(RequestRate(demand), RequestRate(*capacity), ready, pending);
            numbers(&[
                ("needed", found.needed.to_f64()),
                ("supply", found.ready.0),
                ("anticipated", found.anticipated.0),
                ("per_replica", found.per_replica.0),
                ("utilisation", found.utilisation.unwrap_or(f64::NAN)),
                ("required", (demand - found.anticipated.0).max(0.0)),
                ("spare", (found.ready.0 - demand).max(0.0)),
            ])
        }
    }
}

fn queue(room: u32, rates: &[f64], arrivals: f64) -> Answer {
    let queue = BirthDeathQueue::new(rates.to_vec(), room).map_err(text)?;
    let found = queue.solve(arrivals).map_err(text)?;
    let mut answer = numbers(&[
        ("offered_load", found.offered_load),
        ("utilisation", found.utilisation),
        ("blocked", found.blocked),
        ("in_service", found.in_service),
        ("in_system", found.in_system),
        ("throughput", found.throughput),
        ("response", found.response_time),
        ("service", found.service_time),
        ("wait", found.wait_time),
    ])?;
    for (state, probability) in queue.probabilities(arrivals).unwrap().iter().enumerate() {
        answer.insert(format!("p{state}"), *probability);
    }
    Ok(answer)
}

fn size(replica: &Replica, ttft: f64, itl: f64, tps: f64) -> Answer {
    // In the tables, zero requires nothing.
    let stated = |value: f64| (value != 0.0).then_some(value);
    let targets = Targets {
        time_to_first_token: stated(ttft).map(Millis),
        inter_token_latency: stated(itl).map(Millis),
        tokens_per_second: stated(tps),
    };
    let sizing = replica.model()?.size(&targets).map_err(text)?;
    let mut answer = numbers(&of_performance(&sizing.performance))?;
    answer.extend(numbers(&[
        ("for_ttft", sizing.for_time_to_first_token.0),
        ("for_itl", sizing.for_inter_token_latency.0),
        ("for_tps", sizing.for_throughput.0),
        ("tokens", sizing.tokens_per_second),
    ])?);
    Ok(answer)
}

fn filter(start: [f64; 3], observation: &ReplicaObservation) -> Answer {
    let settings = TunerSettings::default();
    let estimate = Estimate::seeded(parameters(start), &settings);
    let tuned = tune(None, &[*observation], &settings);
    let filter = Filter::new(&settings, &estimate, observation).map_err(text)?;
    let (after, step) = filter.step(&estimate, observation);
    let [q1, q2, q3] = settings.process_noise(&estimate.parameters);
    let [r1, r2] = step.observation_noise;
    let x = after.parameters;
    let flag = |set: bool| f64::from(u8::from(set));
    let mut answer = numbers(&[
        ("usable", flag(observation.is_usable() && tuned.is_some())),
        ("q1", q1),
        ("q2", q2),
        ("q3", q3),
        ("r1", r1),
        ("r2", r2),
        ("x1", x.alpha),
        ("x2", x.beta),
        ("x3", x.gamma),
        ("accepted", flag(step.outcome == StepOutcome::Accepted)),
        ("infeasible", flag(step.outcome == StepOutcome::Infeasible)),
    ])?;
    answer.extend(step.nis.map(|nis| ("nis".to_owned(), nis)));
    if let Some([first, second]) = step.expected {
        answer.extend(numbers(&[("h1", first.0), ("h2", second.0)])?);
    }
    if let Some(candidate) = step.candidate {
        let ServiceParameters { alpha, beta, gamma } = candidate;
        answer.extend(numbers(&[("c1", alpha), ("c2", beta), ("c3", gamma)])?);
    }
    for (row, cells) in (1..).zip(step.derivatives.into_iter().flatten()) {
        for (column, cell) in (1..).zip(cells) {
            answer.insert(format!("d{row}{column}"), cell);
        }
    }
    Ok(answer)
}

fn of_performance(performance: &Performance) -> [(&'static str, f64); 8] {
    [
        ("throughput", performance.throughput.0),
        ("response", performance.response_time.0),
        ("wait", performance.wait_time.0),
        ("in_service", performance.in_service),
        ("prefill", performance.prefill_time.0),
        ("itl", performance.inter_token_latency.0),
        ("ttft", performance.time_to_first_token.0),
        ("utilisation", performance.utilisation),
    ]
}

pub(super) fn parameters([alpha, beta, gamma]: [f64; 3]) -> ServiceParameters {
    ServiceParameters { alpha, beta, gamma }
}

#[expect(clippy::unnecessary_wraps, reason = "ends the arms of `answer`")]
fn numbers(pairs: &[(&str, f64)]) -> Answer {
    Ok(pairs.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect())
}

#[expect(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
fn text(error: impl ToString) -> String {
    error.to_string()
}
