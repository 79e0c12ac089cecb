//! Published cases, invariants, and learning over time.

mod answers;
mod knobs;
mod learning;
mod properties;
mod sequences;
mod steady;
mod vectors;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::line::LatencyLine;
use super::{
    LearnedThroughput, ThroughputModelInput, ThroughputReplicaInput, ThroughputReport,
    ThroughputVariantInput, assess,
};
use crate::capacity::{Assessment, ServingRole};
use crate::key::{ModelKey, VariantKey};
use crate::units::Replicas;
use wva_base::moment::{Moment, WallTime};

const ENGINE: LatencyLine = LatencyLine { slope: 0.073, intercept: 0.006 };

fn at(seconds: u64) -> Moment {
    Moment { monotonic: Duration::from_secs(seconds), wall: WallTime(0) }
}

fn key() -> VariantKey {
    VariantKey::new("ns", "v")
}

fn replica(usage: f64, line: LatencyLine) -> ThroughputReplicaInput {
    ThroughputReplicaInput {
        kv_capacity: Some(1_024_000.0),
        usage: Some(usage),
        inter_token_latency: Some(line.at(usage)),
        input_tokens: Some(4500.0),
        output_tokens: Some(200.0),
        ..ThroughputReplicaInput::default()
    }
}

fn variant(replicas: impl IntoIterator<Item = ThroughputReplicaInput>) -> ThroughputVariantInput {
    let replicas: Vec<(Arc<str>, ThroughputReplicaInput)> = (0..)
        .zip(replicas)
        .map(|(index, replica): (u32, _)| (Arc::from(format!("pod-{index}")), replica))
        .collect();
    ThroughputVariantInput {
        ready: Replicas(count(&replicas)),
        replicas: replicas.into_iter().collect(),
        ..ThroughputVariantInput::default()
    }
}

fn count<T>(items: &T) -> u32
where
    for<'a> &'a T: IntoIterator,
{
    u32::try_from(items.into_iter().count()).unwrap()
}

fn model(
    arrivals: f64,
    variants: impl IntoIterator<Item = (VariantKey, ThroughputVariantInput)>,
) -> ThroughputModelInput {
    ThroughputModelInput {
        arrivals: Some(arrivals),
        variants: variants.into_iter().collect(),
        ..ThroughputModelInput::default()
    }
}

#[derive(Debug, Default)]
struct Story {
    learned: LearnedThroughput,
    now: u64,
}

impl Story {
    fn cycle(&mut self, model: &ThroughputModelInput) -> (Assessment, ThroughputReport) {
        self.now += 30;
        let of = ModelKey::new("ns", "m");
        self.learned =
            self.learned.learn(&BTreeMap::from([(of.clone(), model.clone())]), at(self.now));
        assess(&of, model, &self.learned, at(self.now))
    }
}

fn near(actual: f64, expected: f64, what: &str) {
    assert!((actual - expected).abs() <= 1e-6 * expected.abs(), "{what}: {actual}, not {expected}");
}

const BOTH: ServingRole = ServingRole::Both;
