//! The reference engine under constant load: the count settles and stays, also after the requests
//! have become others.

use std::time::Duration;

use proptest::prelude::*;

use super::{BOTH, ENGINE, Story, count, key, model, replica, variant};
use crate::combine::{Balance, Band};
use crate::params::UtilizationBand;
use crate::rounding;
use crate::throughput::ThroughputReplicaInput;
use crate::throughput::shape::RequestShape;
use crate::units::Replicas;

const CYCLE: f64 = 30.0;
/// Cycles that a replica takes to start.
const START_CYCLES: u32 = 3;
const CAPACITY: f64 = 1_024_000.0;
/// Occupancy of an engine that has more requests than it can hold.
const FULL: f64 = 0.95;

fn shape(input: f64, output: f64) -> RequestShape {
    RequestShape { input, output, hit_rate: 0.0 }
}

fn full_rate(shape: RequestShape) -> f64 {
    FULL * CAPACITY / shape.kv_tokens() / ENGINE.at(FULL) / shape.output
}

#[derive(Debug)]
struct Fleet {
    story: Story,
    ready: u32,
    /// Cycles until each replica on its way is ready.
    starting: Vec<u32>,
    queue: f64,
    is_sized: bool,
}

impl Fleet {
    fn new(ready: u32) -> Self {
        Self { story: Story::default(), ready, starting: Vec::new(), queue: 0.0, is_sized: false }
    }

    fn observe(&mut self, arrivals: f64, shape: RequestShape) -> ThroughputReplicaInput {
        let ready = f64::from(self.ready);
        let rate = full_rate(shape);
        self.queue = (self.queue + CYCLE * (arrivals - rate * ready)).max(0.0);
        // Occupancy where as many tokens are generated as arrive.
        let weight = arrivals / ready * shape.output * shape.kv_tokens() / CAPACITY;
        let balanced = weight * ENGINE.intercept / (1.0 - weight * ENGINE.slope);
        let is_full = self.queue > 0.0 || !(0.0..FULL).contains(&balanced);
        ThroughputReplicaInput {
            waiting: Some(self.queue / ready),
            decode_rate: is_full.then_some(rate * shape.output),
            input_tokens: Some(shape.input),
            output_tokens: Some(shape.output),
            ..replica(if is_full { FULL } else { balanced }, ENGINE)
        }
    }

    fn cycle(&mut self, arrivals: f64, shape: RequestShape) -> u32 {
        for left in &mut self.starting {
            *left -= 1;
        }
        let before = count(&self.starting);
        self.starting.retain(|left| *left > 0);
        let pending = count(&self.starting);
        self.ready += before - pending;
        let shown = self.observe(arrivals, shape);
        let mut input = variant((0..self.ready).map(|_| shown));
        input.pending = Replicas(pending);
        input.start = Duration::from_secs(30) * START_CYCLES;
        input.remaining =
            (self.starting.iter()).map(|left| Duration::from_secs(30) * *left).collect();
        let (assessment, _) = self.story.cycle(&model(arrivals, [(key(), input)]));
        if let Some(capacity) = assessment.variants.get(&key()).map(|one| one.per_replica) {
            self.is_sized = true;
            let supply = f64::from(self.ready) * capacity;
            let anticipated = supply + f64::from(pending) * capacity;
            let band = Band::from(UtilizationBand::default());
            let balance = Balance::of(assessment.demand[&BOTH], supply, anticipated, band);
            let added = rounding::ceil(balance.required / capacity);
            self.starting.extend((0..added).map(|_| START_CYCLES));
            if self.starting.is_empty() {
                self.ready -= rounding::floor(balance.releasable / capacity).min(self.ready - 1);
            }
        }
        self.ready + count(&self.starting)
    }

    fn run(&mut self, cycles: u32, arrivals: f64, shape: RequestShape) -> Vec<u32> {
        (0..cycles).map(|_| self.cycle(arrivals, shape)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(10)))]
    #[test]
    fn constant_load_reaches_a_fixed_point(arrivals in 3.0..150.0_f64, begin in 1_u32..12) {
        let shape = shape(4500.0, 200.0);
        let mut fleet = Fleet::new(begin);
        let history = fleet.run(120, arrivals, shape);
        let settled = &history[60..];
        prop_assert!(settled.iter().all(|count| *count == settled[0]), "{history:?}");
        let needed = arrivals / full_rate(shape);
        prop_assert!(f64::from(settled[0]) >= needed, "{arrivals}: {history:?}");
        // Engines that are all but idle teach nothing, and nothing is released on that.
        let most = if fleet.is_sized { (needed / 0.5).ceil() + 1.0 } else { f64::from(begin) };
        prop_assert!(f64::from(settled[0]) <= most, "{arrivals}: {history:?}");
    }

    #[test]
    fn other_requests_at_the_same_rate_lead_to_no_collapse(arrivals in 2.0..20.0_f64) {
        for (first, second) in [
            (shape(6000.0, 1000.0), shape(1000.0, 4000.0)),
            (shape(1000.0, 4000.0), shape(6000.0, 1000.0)),
            (shape(1000.0, 6000.0), shape(8000.0, 1000.0)),
            (shape(8000.0, 1000.0), shape(1000.0, 6000.0)),
        ] {
            let mut fleet = Fleet::new(2);
            fleet.run(60, arrivals, first);
            let history = fleet.run(80, arrivals, second);
            let least = history.iter().min().unwrap();
            let needed = arrivals / full_rate(second);
            prop_assert!(f64::from(*least) >= needed.min(f64::from(history[0])), "{first:?} {needed}: {history:?}");
            let settled = &history[40..];
            prop_assert!(settled.iter().all(|count| *count == settled[0]), "{first:?}: {history:?}");
            prop_assert!(f64::from(settled[0]) >= needed, "{first:?} {needed}: {history:?}");
        }
    }
}
