//! What is computed for a case: a tree of values.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{at, count};
use crate::combine::Band;
use crate::key::ModelKey;
use crate::rounding;
use crate::throughput::decode::SATURATED_USAGE;
use crate::throughput::floor::hold;
use crate::throughput::floor::{FloorLoad, Landing, served};
use crate::throughput::line::LatencyLine;
use crate::throughput::readings::RateReadings;
use crate::throughput::shape::RequestShape;
use crate::throughput::supply::{LineCapacity, full_sequences, queue_demand, rate_at};
use crate::throughput::{LearnedThroughput, ThroughputModelInput, assess};
use crate::units::Replicas;

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Given {
    Cycles {
        cycles: Vec<Cycle>,
    },
    Rate {
        usage: f64,
        capacity: f64,
        input: f64,
        output: f64,
        slope: f64,
        intercept: f64,
    },
    Line {
        slope: f64,
        intercept: f64,
    },
    Queue {
        queued: f64,
        drain: f64,
        latency: f64,
    },
    Floor {
        arrivals: f64,
        backlog: f64,
        drain: u64,
        rate: f64,
        threshold: f64,
    },
    Readings {
        rates: Vec<f64>,
    },
    Landing {
        arrivals: f64,
        backlog: f64,
        rate: f64,
        ready: u32,
        remaining: Vec<u64>,
        start: u64,
    },
    Price {
        capacity: f64,
        input: f64,
        output: f64,
        max_sequences: f64,
        usage: f64,
        slope: f64,
        intercept: f64,
    },
    Hold {
        demand: f64,
        supply: f64,
        scale_up: f64,
        scale_down: f64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cycle {
    after: u64,
    model: ThroughputModelInput,
}

fn shape(input: f64, output: f64) -> RequestShape {
    RequestShape { input, output, hit_rate: 0.0 }
}

fn run(cycles: &[Cycle]) -> Value {
    let key = ModelKey::new("ns", "m");
    let mut learned = LearnedThroughput::default();
    let mut now = 0;
    let mut last = Value::Null;
    for Cycle { after, model } in cycles {
        now += after;
        learned = learned.learn(&BTreeMap::from([(key.clone(), model.clone())]), at(now));
        let stored = serde_yaml::to_string(&learned).unwrap();
        let restored: LearnedThroughput = serde_yaml::from_str(&stored).unwrap();
        assert_eq!(restored, learned);
        let (assessment, report) = assess(&key, model, &learned, at(now));
        let known = learned.get(&key).map(|model| model.variants.len());
        last = json!({ "assessment": assessment, "report": report, "learned": known });
    }
    last
}

pub(super) fn answer(given: &Given) -> Value {
    match *given {
        Given::Cycles { ref cycles } => run(cycles),
        Given::Rate { usage, capacity, input, output, slope, intercept } => {
            let line = LatencyLine { slope, intercept };
            let full = full_sequences(capacity, shape(input, output), None);
            json!({ "rate": full.and_then(|full| rate_at(usage, full, line)) })
        }
        Given::Line { slope, intercept } => {
            json!({ "valid": u8::from(LatencyLine { slope, intercept }.is_valid(SATURATED_USAGE)) })
        }
        Given::Queue { queued, drain, latency } => {
            json!({ "demand": queue_demand(queued, drain, latency) })
        }
        Given::Hold { demand, supply, scale_up, scale_down } => {
            let band = Band { scale_up, scale_down };
            json!({ "demand": hold(demand, supply, supply, band) })
        }
        Given::Floor { .. } | Given::Readings { .. } | Given::Landing { .. } => floor(given),
        Given::Price { .. } => price(given),
    }
}

fn floor(given: &Given) -> Value {
    let seconds = Duration::from_secs;
    match *given {
        Given::Floor { arrivals, backlog, drain, rate, threshold } => {
            let replicas = FloorLoad { arrivals, backlog }.replicas(rate, seconds(drain));
            let through = replicas.map(|replicas| replicas / threshold);
            json!({ "replicas": replicas, "through": through, "whole": through.map(rounding::ceil) })
        }
        Given::Readings { ref rates } => {
            let mut readings = RateReadings::default();
            for (minute, rate) in (0..).zip(rates) {
                readings.record(at(60 * minute), *rate);
            }
            json!({ "median": readings.median() })
        }
        Given::Landing { arrivals, backlog, rate, ready, ref remaining, start } => {
            let remaining: Vec<Duration> = remaining.iter().copied().map(seconds).collect();
            let served = served(rate, Replicas(ready), &remaining, seconds(start));
            let landing = Landing::of(FloorLoad { arrivals, backlog }, served, seconds(start));
            let missing = landing.rate / rate - f64::from(ready) - f64::from(count(&remaining));
            json!({ "backlog": landing.backlog, "rate": landing.rate, "missing": missing })
        }
        _ => Value::Null,
    }
}

fn price(given: &Given) -> Value {
    let Given::Price { capacity, input, output, max_sequences, usage, slope, intercept } = *given
    else {
        return Value::Null;
    };
    let line = LatencyLine { slope, intercept };
    let shape = shape(input, output);
    let price = LineCapacity::of(line, capacity, shape, Some(max_sequences), usage);
    json!({
        "kv_tokens": shape.kv_tokens(),
        "sequences": price.map(|price| price.sequences),
        "latency": price.map(|price| price.latency),
        "tokens": price.map(|price| price.tokens_per_second),
        "requests": price.map(|price| price.requests_per_second),
    })
}
