//! The analyzer in a loop with servers that are a fluid: sequences share a step that takes longer the
//! more of them there are, and requests beyond the limit wait in the router.

use std::time::Duration;

use super::at;
use crate::capacity::ServingRole;
use crate::combine::{Balance, Band};
use crate::key::{ModelKey, VariantKey};
use crate::params::BurstReserve;
use crate::rounding;
use crate::slo::{LearnedSlo, SloGoal, assess};
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::Replicas;

const STEP: f64 = 0.005;
const PER_SEQUENCE: f64 = 0.00002;
const TOKENS: f64 = 300.0;
const START: u64 = 150;
const LOOK: u64 = 15;
const WINDOW: usize = 60;
const BAND: Band = Band { scale_up: 0.85, scale_down: 0.85 * 0.95 };

/// What one second showed.
#[derive(Debug, Clone, Copy)]
struct Second {
    arrivals: f64,
    served: f64,
    concurrency: f64,
}

/// A fleet of one variant in front of which requests wait.
#[derive(Debug)]
struct Fleet {
    most_sequences: f64,
    ready: u32,
    /// When each starting replica is ready.
    starting: Vec<u64>,
    queue: f64,
    seconds: Vec<Second>,
    learned: LearnedSlo,
    reserve: BurstReserve,
}

/// What the loop came to.
#[derive(Debug, Default)]
struct Outcome {
    arrived: f64,
    late: f64,
    replica_seconds: f64,
    /// Counts of replicas whenever they changed.
    counts: Vec<(u64, u32)>,
}

impl Fleet {
    fn new(ready: u32, most_sequences: f64) -> Self {
        Self {
            most_sequences,
            ready,
            starting: Vec::new(),
            queue: 0.0,
            seconds: Vec::new(),
            learned: LearnedSlo::default(),
            reserve: BurstReserve::default(),
        }
    }

    fn rate_of(sequences: f64) -> f64 {
        sequences / (STEP + PER_SEQUENCE * sequences) / TOKENS
    }

    fn pass(&mut self, now: u64, arrivals: f64) {
        let landed = self.starting.iter().filter(|ready| **ready <= now).count();
        self.starting.retain(|ready| *ready > now);
        self.ready += u32::try_from(landed).unwrap();
        let ready = f64::from(self.ready);
        let most = ready * Self::rate_of(self.most_sequences);
        let served = most.min(self.queue + arrivals);
        self.queue += arrivals - served;
        let each = served / ready.max(1.0);
        let concurrency =
            (each * TOKENS * STEP / (1.0 - each * TOKENS * PER_SEQUENCE)).min(self.most_sequences);
        self.seconds.push(Second { arrivals, served, concurrency });
    }

    fn mean(&self, read: fn(&Second) -> f64) -> f64 {
        let recent = self.seconds.iter().rev().take(WINDOW);
        let values: Vec<f64> = recent.map(read).collect();
        values.iter().sum::<f64>() / f64::from(u32::try_from(values.len().max(1)).unwrap())
    }

    fn input(&self, now: u64) -> ThroughputModelInput {
        let served = self.mean(|second| second.served) / f64::from(self.ready.max(1));
        let concurrency = self.mean(|second| second.concurrency);
        let replica = ThroughputReplicaInput {
            kv_capacity: Some(450_000.0),
            usage: Some(0.1),
            running: Some(concurrency),
            waiting: Some(if self.queue > 0.0 { 5.0 } else { 0.0 }),
            inter_token_latency: Some(STEP + PER_SEQUENCE * concurrency),
            time_to_first_token: Some(0.05),
            input_tokens: Some(TOKENS),
            output_tokens: Some(TOKENS),
            completions: Some(served),
            decode_rate: Some(served * TOKENS),
            ..ThroughputReplicaInput::default()
        };
        let replicas = (0..self.ready).map(|number| (format!("pod-{number}").into(), replica));
        let remaining = self.starting.iter().map(|ready| Duration::from_secs(ready - now));
        let variant = ThroughputVariantInput {
            role: ServingRole::Both,
            engine: "one".into(),
            ready: Replicas(self.ready),
            pending: Replicas(u32::try_from(self.starting.len()).unwrap()),
            remaining: remaining.collect(),
            start: Duration::from_secs(START),
            max_sequences: Some(self.most_sequences),
            replicas: replicas.collect(),
            min: Replicas::ZERO,
            max: None,
            cost: None,
            current: Replicas(self.ready + u32::try_from(self.starting.len()).unwrap()),
        };
        let mut input = ThroughputModelInput {
            arrivals: Some(self.mean(|second| second.arrivals)),
            router_queue: Some(self.queue),
            variants: [(VariantKey::new("ns", "v"), variant)].into(),
            ..ThroughputModelInput::default()
        };
        input.params.band = BAND;
        input.params.burst_reserve = self.reserve;
        input
    }

    /// Looks, learns and scales within 1 and `most`.
    fn decide(&mut self, now: u64, most: u32) {
        let key = ModelKey::new("ns", "m");
        let input = self.input(now);
        let goal =
            SloGoal { time_to_first_token: 1.0, inter_token_latency: 0.02, ..SloGoal::default() };
        let models = [(key.clone(), (input.clone(), goal))].into();
        self.learned = self.learned.learn(&models, at(now));
        let (said, _) = assess(&key, &input, goal, &self.learned, at(now));
        let Some(capacity) = said.variants.values().next() else {
            return;
        };
        let demand = said.demand[&ServingRole::Both];
        let count =
            f64::from(self.ready) + input.variants.values().next().unwrap().pending.to_f64();
        let supply = f64::from(self.ready) * capacity.per_replica;
        let balance = Balance::of(demand, supply, count * capacity.per_replica, BAND);
        let ordered = rounding::ceil(balance.required / capacity.per_replica);
        let room = most - rounding::floor(count);
        for _ in 0..ordered.min(room) {
            self.starting.push(now + START);
        }
        if balance.spare > 0.0 && self.starting.is_empty() {
            let released = rounding::floor(balance.releasable / capacity.per_replica);
            self.ready -= released.min(self.ready - 1);
        }
    }

    fn play(&mut self, until: u64, most: u32, rate: impl Fn(u64) -> f64) -> Outcome {
        let mut outcome = Outcome::default();
        for now in 0..until {
            let arrivals = rate(now);
            self.pass(now, arrivals);
            let wait = self.queue / (f64::from(self.ready) * Self::rate_of(self.most_sequences));
            outcome.arrived += arrivals;
            outcome.late += if wait > 1.0 { arrivals } else { 0.0 };
            if now % LOOK == 0 {
                self.decide(now, most);
            }
            let count = self.ready + u32::try_from(self.starting.len()).unwrap();
            outcome.replica_seconds += f64::from(count);
            if outcome.counts.last().is_none_or(|(_, last)| *last != count) {
                outcome.counts.push((now, count));
            }
        }
        outcome
    }
}

/// A replica with 16 sequences serves ten requests a second.
#[test]
fn a_step_is_answered_by_one_jump_and_trimmed() {
    let mut fleet = Fleet::new(2, 16.0);
    let rate = |now| if now < 1_200 { 8.0 } else { 32.0 };
    let outcome = fleet.play(7_200, 16, rate);
    let good = 1.0 - outcome.late / outcome.arrived;
    let hours = outcome.replica_seconds / 3_600.0;
    assert!(good > 0.94, "{good} {hours} {:?}", outcome.counts);
    assert!(hours < 8.5, "{good} {hours} {:?}", outcome.counts);
    assert_eq!(fleet.ready, 4, "{:?}", outcome.counts);
}

#[test]
fn a_constant_load_reverses_nothing() {
    let mut fleet = Fleet::new(8, 16.0);
    let outcome = fleet.play(10_800, 16, |_| 30.0);
    let late = outcome.counts.iter().filter(|(at, _)| *at > 1_800).count();
    assert_eq!(late, 0, "{:?}", outcome.counts);
    assert_eq!(fleet.ready, 4);
}

#[test]
fn a_wave_finds_its_replicas() {
    let mut fleet = Fleet::new(1, 16.0);
    let wave = |now: u64| {
        let phase = f64::from(u32::try_from(now % 480).unwrap()) / 480.0;
        20.0 - 18.0 * (phase * std::f64::consts::TAU).cos()
    };
    let first = fleet.play(960, 16, wave);
    let outcome = fleet.play(7_200, 16, wave);
    assert!(first.late > 0.0);
    assert!(outcome.late <= 0.0, "{outcome:?}");
}

/// Half an hour of load, then a tenth of it.
#[test]
fn a_need_is_held_for_an_hour_where_the_reserve_is_strict() {
    for (reserve, held_from, held_until) in [
        (BurstReserve::None, 900, 1_860),
        (BurstReserve::Economical, 900, 1_860),
        (BurstReserve::Strict, 3_600, 3_720),
    ] {
        let mut fleet = Fleet::new(4, 16.0);
        fleet.reserve = reserve;
        let rate = |now| if now < 1_800 { 30.0 } else { 3.0 };
        let outcome = fleet.play(7_200, 16, rate);
        let released = outcome.counts.iter().find(|(at, _)| *at >= 1_800);
        let held = released.unwrap().0 - 1_800;
        assert!((held_from..=held_until).contains(&held), "{reserve:?} {held}");
    }
}
