//! Every part by exact values.

use std::collections::BTreeMap;
use std::time::Duration;

use super::at;
use crate::capacity::ServingRole;
use crate::key::{ModelKey, VariantKey};
use crate::slo::capacity::{self, CapacityBound};
use crate::slo::curve::LatencyCurve;
use crate::slo::demand::{DemandObservation, DemandTrack};
use crate::slo::landing::{FluidQueue, StartingReplica};
use crate::slo::{LearnedSlo, SloGoal, SloReport, hidden_sequences};
use crate::throughput::shape::RequestShape;
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::Replicas;

pub(super) const SHAPE: RequestShape = RequestShape { input: 300.0, output: 300.0, hit_rate: 0.0 };

pub(super) fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= expected.abs() * 1e-9 + 1e-12,
        "{found} instead of {expected}"
    );
}

/// A curve that has seen these rates of work of an engine with `latency = 5 ms / (1 - work / 10 000)`.
fn curve(rates: &[f64], is_queued: bool) -> LatencyCurve {
    let mut curve = LatencyCurve::default();
    for work in rates {
        curve.observe(*work, 0.005 / (1.0 - work / 10_000.0), is_queued, at(0));
    }
    curve
}

#[test]
fn a_law_is_fitted_once_work_has_varied() {
    assert_eq!(LatencyCurve::default().law(Some(300.0), 0.02, at(0)), None);
    // One rate: the latency doubles at a quarter of what fits into the cache.
    let one = curve(&[2_000.0], false);
    assert_eq!(one.law(None, 0.02, at(0)), None);
    let law = one.law(Some(300.0), 0.02, at(0)).unwrap();
    assert!(law.is_assumed);
    close(law.at(2_000.0), 0.00625);
    close(law.at(law.work_of(75.0, 1.0)), 2.0 * law.idle);
    assert!(law.at(law.work_of(75.0, 0.8)) > 2.0 * law.idle);
    let law = curve(&[2_000.0, 6_000.0], false);
    let law = law.law(Some(300.0), 0.02, at(0)).unwrap();
    assert!(!law.is_assumed);
    close(law.idle, 0.005);
    close(law.most, 10_000.0);
    close(law.work_within(0.02), 7_500.0);
    close(law.work_within(0.004), 0.0);
    // 4 000 generated tokens per second at 10 ms each are 40 sequences.
    close(law.work_of(40.0, 0.8), 5_000.0);
}

#[test]
fn latency_that_is_first_seen_beyond_its_objective_is_that_of_load() {
    let seen = |points: &[(f64, f64)]| {
        let mut curve = LatencyCurve::default();
        for (work, latency) in points {
            curve.observe(*work, *latency, false, at(0));
        }
        curve
    };
    // At the objective the work that is seen is what a replica does, whatever fits into the cache.
    let within = |points: &[(f64, f64)], resident| {
        let law = seen(points).law(resident, 0.02, at(0));
        law.map(|law| law.work_within(0.02))
    };
    close(within(&[(9_000.0, 0.02)], Some(3_000.0)).unwrap(), 9_000.0);
    assert_eq!(within(&[(9_000.0, 0.02)], None), None);
    // Beyond, an empty engine is twice as fast as the objective at least.
    close(within(&[(9_000.0, 0.04)], Some(3_000.0)).unwrap(), 6_000.0);
    close(within(&[(9_000.0, 0.04)], None).unwrap(), 6_000.0);
    // One that is faster by its cache stays so.
    let by_cache = within(&[(9_000.0, 0.04)], Some(360.0)).unwrap();
    close(by_cache, 9_000.0 / (1.0 - 25.0 / 125.0) * (1.0 - 50.0 / 125.0));
}

#[test]
fn a_slope_that_is_noise_reaches_no_further_than_the_ends_of_what_was_seen() {
    // An empty engine, one look at much work, and many at work that hardly varies, where more looked faster.
    let mut curve = LatencyCurve::default();
    curve.observe(1_000.0, 1.0 / 180.0, false, at(0));
    curve.observe(8_500.0, 1.0 / 75.0, false, at(0));
    for second in 1..40 {
        curve.observe(3_600.0, 1.0 / 115.0, false, at(second * 15));
        curve.observe(6_000.0, 1.0 / 120.0, false, at(second * 15));
    }
    let law = curve.law(Some(300.0), 0.02, at(600)).unwrap();
    close(law.most, 1.5 * (8_500.0 + 75.0 * 7_500.0 / 105.0));
}

#[test]
fn points_that_were_seen_often_bound_the_law_that_is_assumed() {
    // An engine of 12 ms that does 4 000 at most, between a half and three quarters of that.
    let law = |works: &[f64], looks: u64| {
        let mut curve = LatencyCurve::default();
        for second in 0..looks {
            for work in works {
                let latency = 0.012 / (1.0 - work / 4_000.0);
                curve.observe(*work, latency, false, at(second * 15));
            }
        }
        curve.law(Some(4_000.0), 0.05, at(looks * 15)).unwrap()
    };
    let near = law(&[2_000.0, 2_700.0], 8);
    assert!(near.most > 6_100.0, "{near:?}");
    let seldom = law(&[2_000.0, 3_000.0], 7);
    assert!(seldom.most > 6_100.0, "{seldom:?}");
    let often = law(&[2_000.0, 3_000.0], 8);
    close(often.most, 6_000.0);
    // It goes through what was seen.
    close(often.at(2_500.0), 2.0 / (1.0 / 0.024 + 1.0 / 0.048));
}

#[test]
fn points_age() {
    let mut curve = curve(&[2_000.0, 6_000.0], false);
    curve.prune(at(21_600));
    assert!(!curve.is_empty());
    curve.prune(at(21_601));
    assert!(curve.is_empty());
}

#[test]
fn waiting_requests_show_a_full_replica_near_the_most_that_was_seen_alone() {
    assert_eq!(curve(&[2_000.0, 6_000.0], false).full(), None);
    let mut seen = curve(&[6_000.0], true);
    close(seen.full().unwrap(), 6_000.0);
    // Requests waited for a moment of a quiet minute.
    seen.observe(2_000.0, 0.006, true, at(15));
    close(seen.full().unwrap(), 6_000.0);
    // More was done without a queue.
    seen.observe(7_000.0, 0.02, false, at(30));
    close(seen.full().unwrap(), 7_000.0);
}

fn variant(max_sequences: Option<f64>) -> ThroughputVariantInput {
    let replica = ThroughputReplicaInput {
        kv_capacity: Some(450_000.0),
        ..ThroughputReplicaInput::default()
    };
    ThroughputVariantInput {
        max_sequences,
        replicas: [("a".into(), replica)].into_iter().collect(),
        ..ThroughputVariantInput::default()
    }
}

fn goal(inter_token_latency: f64) -> SloGoal {
    SloGoal { inter_token_latency, ..SloGoal::default() }
}

#[test]
fn the_tightest_bound_sizes_a_replica() {
    // 450 tokens of a request: a thousand sequences fit into the cache. Four fifths of the work are generated.
    for (goal_ms, sequences, is_queued, per_second, bound) in wva_base::cases! {
        (20.0, None, false, 7_500.0, CapacityBound::TokenLatency),
        (20.0, Some(10.0), false, 2_000.0, CapacityBound::Sequences),
        (500.0, None, false, 1_000.0 / 0.104, CapacityBound::Sequences),
        (500.0, None, true, 6_000.0, CapacityBound::ObservedQueue),
        // No latency is low enough, or hardly any: a tenth above that of an idle replica.
        (2.0, None, false, 10_000.0 / 11.0, CapacityBound::TokenLatency),
        (5.2, None, false, 10_000.0 / 11.0, CapacityBound::TokenLatency),
        (5.5, None, false, 10_000.0 / 11.0, CapacityBound::TokenLatency),
        (6.0, None, false, 10_000.0 / 6.0, CapacityBound::TokenLatency),
    } {
        let curve = curve(&[6_000.0, 2_000.0], is_queued);
        let given = variant(sequences);
        let found =
            capacity::of(&given, &curve, None, (SHAPE, goal(goal_ms / 1e3)), at(0)).unwrap();
        assert_eq!(found.bound, bound, "{goal_ms} {sequences:?}");
        close(found.per_second, per_second);
        close(found.latency, 0.005 / (1.0 - per_second / 10_000.0));
        close(found.concurrency, per_second * 0.8 * found.latency);
    }
}

#[test]
fn an_objective_below_an_idle_replica_is_named() {
    let found = |goal_ms: f64| {
        let given = variant(None);
        let goal = goal(goal_ms / 1e3);
        let curve = curve(&[6_000.0, 2_000.0], false);
        let size = capacity::of(&given, &curve, None, (SHAPE, goal), at(0)).unwrap();
        let report = SloReport {
            goal,
            demand: None,
            backlog: 0.0,
            derived: Vec::new(),
            roles: BTreeMap::new(),
            variants: BTreeMap::from([(VariantKey::new("ns", "v"), size)]),
            stragglers: BTreeMap::new(),
        };
        let texts = report.unreachable().map(|(_, text)| text);
        texts.collect::<Vec<_>>()
    };
    assert_eq!(found(5.6), Vec::<String>::new());
    for (goal, written) in [(5.4, "5.4"), (2.0, "2")] {
        let begin = format!("no count of replicas keeps {written} ms between tokens (built in), ");
        let found = found(goal);
        assert!(found.iter().all(|text| text.starts_with(&begin)), "{found:?}");
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn a_prompt_waits_for_half_of_another_one_at_the_utilization_that_keeps_its_objective() {
    let given =
        ThroughputVariantInput { role: ServingRole::Prefill, ..ThroughputVariantInput::default() };
    let empty = LatencyCurve::default();
    let goal = SloGoal { time_to_first_token: 0.6, ..SloGoal::default() };
    assert_eq!(capacity::of(&given, &empty, None, (SHAPE, goal), at(0)), None);
    // 0.3 s a prompt: a wait of 0.3 s is rho / (2 (1 - rho)) × 0.3 s at rho = 2/3.
    let found = capacity::of(&given, &empty, Some(0.001), (SHAPE, goal), at(0)).unwrap();
    close(found.per_second, 1_000.0 * 2.0 / 3.0);
    // Prompts that take about as long as the objective, or longer, change nothing at once.
    for seconds in [0.0019, 0.002, 0.0021] {
        let found = capacity::of(&given, &empty, Some(seconds), (SHAPE, goal), at(0)).unwrap();
        close(found.per_second, 0.5 / seconds);
    }
    assert_eq!(found.bound, CapacityBound::FirstToken);
}

#[test]
fn a_backlog_is_projected_to_the_landing() {
    let queue = |backlog, starting: &[(u64, f64)]| FluidQueue {
        backlog,
        arrivals: 30.0,
        service: 15.0,
        starting: (starting.iter())
            .map(|(remaining, per_second)| StartingReplica {
                remaining: Duration::from_secs(*remaining),
                per_second: *per_second,
            })
            .collect(),
    };
    let horizon = Duration::from_secs(100);
    close(queue(0.0, &[]).after(horizon), 1_500.0);
    close(queue(200.0, &[]).after(horizon), 1_700.0);
    // From 60 s on 45 are served per second: 900 more, then 15 a second fewer for 40 s.
    close(queue(0.0, &[(60, 30.0)]).after(horizon), 300.0);
    close(queue(0.0, &[(60, 30.0), (100, 99.0)]).after(horizon), 300.0);
    close(queue(0.0, &[(10, 90.0)]).after(horizon), 0.0);
}

#[test]
fn a_rate_counts_once_it_exceeds_chance() {
    let look = |arrivals, queue| DemandObservation {
        answering: Duration::ZERO,
        arrivals: Some(arrivals),
        completions: Some(20.0),
        placed: None,
        generated: None,
        in_flight: None,
        queue: Some(queue),
        queue_age: Duration::ZERO,
        waiting: None,
        shape: Some(SHAPE),
    };
    let nothing = DemandObservation { arrivals: None, ..look(0.0, 0.0) };
    assert_eq!(DemandTrack::after(None, nothing, at(0)), None);
    let first = DemandTrack::after(None, look(15.0, 0.0), at(0)).unwrap();
    close(first.rate(), 15.0);
    // Four deviations of 15 requests per second in a minute are 2.
    let chance = DemandTrack::after(Some(first), look(16.9, 0.0), at(15)).unwrap();
    assert!(chance.rate() < 16.0, "{}", chance.rate());
    let rise = DemandTrack::after(Some(first), look(20.0, 0.0), at(15)).unwrap();
    close(rise.rate(), 20.0);
    // The router's queue grows by ten a second while twenty are served.
    let queue = DemandTrack::after(Some(first), look(16.0, 150.0), at(15)).unwrap();
    close(queue.rate(), 30.0);
    // A growth on a count that is gone is none.
    let unseen = DemandObservation { queue: None, ..look(16.0, 0.0) };
    let unseen = DemandTrack::after(Some(queue), unseen, at(30)).unwrap();
    assert_eq!((unseen.queue, unseen.queue_growth), (150.0, 0.0));
    assert!(unseen.rate() < 17.0, "{}", unseen.rate());
    // What is served while a queue drains arrived before, also where one request waits anew.
    let served = |queue| DemandObservation { completions: Some(40.0), ..look(16.0, queue) };
    let drained = DemandTrack::after(Some(queue), served(0.0), at(30)).unwrap();
    let next = DemandTrack::after(Some(drained), served(1.0), at(45)).unwrap();
    assert!(next.queue_growth > 0.0);
    assert!(next.rate() < 17.0, "{}", next.rate());
    let later = DemandTrack::after(Some(next), served(900.0), at(91)).unwrap();
    assert!(later.rate() > 40.0, "{}", later.rate());
    // What is not known any more stays.
    let lost = DemandTrack::after(Some(rise), nothing, at(30)).unwrap();
    close(lost.arrivals.recent, 20.0);
}

pub(super) const QUIET: DemandObservation = DemandObservation {
    answering: Duration::ZERO,
    arrivals: Some(15.0),
    completions: Some(15.0),
    placed: Some(15.0),
    generated: Some(4_500.0),
    in_flight: Some(60.0),
    queue: Some(0.0),
    queue_age: Duration::ZERO,
    waiting: None,
    shape: Some(SHAPE),
};

pub(super) fn after(
    before: &DemandTrack,
    observation: DemandObservation,
    second: u64,
) -> DemandTrack {
    DemandTrack::after(Some(*before), observation, at(second)).unwrap()
}

/// The last answers that end are the longest ones.
#[test]
fn the_mean_request_of_a_load_that_is_gone_is_that_of_before() {
    let longer = RequestShape { output: 2.0 * SHAPE.output, ..SHAPE };
    let look = |completions| DemandObservation { completions, shape: Some(longer), ..QUIET };
    let served = DemandTrack::after(None, QUIET, at(0)).unwrap();
    for (completions, shape) in [(Some(0.1), longer), (None, longer), (Some(0.0), SHAPE)] {
        assert_eq!(after(&served, look(completions), 15).shape, Some(shape), "{completions:?}");
    }
    // Where none was known it is better than nothing.
    let first = DemandTrack::after(None, look(Some(0.0)), at(0)).unwrap();
    assert_eq!(after(&first, look(Some(0.0)), 15).shape, Some(longer));
}

#[test]
fn a_queue_grows_between_its_counts_and_not_between_looks() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let counted = |queue, age| DemandObservation {
        queue: Some(queue),
        queue_age: Duration::from_secs(age),
        ..QUIET
    };
    // The same count once more, then one that was made ten seconds after the first.
    let same = after(&first, counted(0.0, 15), 15);
    assert_eq!((same.queue_growth, same.queue_age.as_secs()), (0.0, 15));
    let next = after(&same, counted(100.0, 5), 15 + 15);
    close(next.queue_growth, 4.0);
    let next = after(&next, counted(300.0, 0), 35);
    close(next.queue_growth, 20.0);
}

#[test]
fn longer_answers_are_seen_by_what_is_generated() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    close(first.generated(), 4_500.0);
    // Chance: four deviations of 15 requests in a second, whose sizes vary as much.
    let chance = DemandObservation { generated: Some(5_300.0), ..QUIET };
    assert!(after(&first, chance, 15).generated() < 4_700.0);
    let longer = DemandObservation { generated: Some(9_000.0), ..QUIET };
    close(after(&first, longer, 15).generated(), 9_000.0);
    // The router holds two of three back.
    let held = DemandObservation { placed: Some(5.0), queue: Some(150.0), ..QUIET };
    let held = after(&first, held, 15);
    close(held.generated(), 13_500.0);
    // While the queue drains, requests of before are answered.
    let drained = DemandObservation { placed: Some(40.0), generated: Some(12_000.0), ..QUIET };
    let drained = after(&held, drained, 30);
    close(drained.generated(), 13_500.0);
    let later = after(&drained, longer, 30 + 60);
    assert!(later.generated() < 13_500.0, "{}", later.generated());
}

#[test]
fn requests_in_flight_show_a_surge_before_rates_do() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let running = |in_flight| DemandObservation { in_flight, ..QUIET };
    close(after(&first, running(Some(90.0)), 15).surge, 0.0);
    let surge = after(&first, running(Some(360.0)), 15);
    close(surge.surge, 35.0);
    let lost = after(&surge, running(None), 30);
    close(lost.surge, 35.0);
    close(after(&lost, running(Some(360.0)), 45).surge, 0.0);
    let kept = after(&lost, running(None), 74);
    close(kept.surge, 35.0);
    close(after(&kept, running(None), 75).surge, 0.0);
}

/// Two replicas without a router, which complete so many requests per second.
pub(super) fn completing(rates: [Option<f64>; 2]) -> ThroughputModelInput {
    let replica = |completions: Option<f64>| ThroughputReplicaInput {
        kv_capacity: Some(450_000.0),
        input_tokens: Some(300.0),
        output_tokens: Some(300.0),
        inter_token_latency: Some(0.01),
        decode_rate: Some(1_500.0),
        completions,
        ..ThroughputReplicaInput::default()
    };
    let [a, b] = rates.map(replica);
    let variant = ThroughputVariantInput {
        ready: Replicas(2),
        replicas: [("a".into(), a), ("b".into(), b)].into_iter().collect(),
        ..ThroughputVariantInput::default()
    };
    ThroughputModelInput {
        router_queue: Some(0.0),
        variants: [(VariantKey::new("ns", "v"), variant)].into(),
        ..ThroughputModelInput::default()
    }
}

#[test]
fn the_rate_of_some_replicas_is_not_that_of_all() {
    let key = ModelKey::new("ns", "m");
    let mut learned = LearnedSlo::default();
    let mut rate = |seconds: u64, rates: [Option<f64>; 2]| {
        let models = [(key.clone(), (completing(rates), SloGoal::default()))].into();
        learned = learned.learn(&models, at(seconds));
        learned.get(&key).unwrap().demand.map(|demand| demand.rate())
    };
    assert_eq!(rate(0, [Some(5.0), None]), None);
    assert_eq!(rate(15, [Some(5.0), Some(5.0)]), Some(10.0));
    assert_eq!(rate(7_200, [Some(5.0), None]), Some(10.0));
    assert!(rate(14_400, [Some(3.0), Some(3.0)]) < Some(6.1));
}

#[test]
fn a_replica_that_load_has_just_reached_teaches_nothing() {
    let key = ModelKey::new("ns", "m");
    let learns = |running: Option<f64>| {
        let mut input = completing([Some(5.0), Some(5.0)]);
        for variant in input.variants.values_mut() {
            for replica in variant.replicas.values_mut() {
                replica.running = running;
            }
        }
        let models = [(key.clone(), (input, SloGoal::default()))].into();
        let learned = LearnedSlo::default().learn(&models, at(0));
        let engines = &learned.get(&key).unwrap().engines;
        !engines.values().all(|engine| engine.curve.is_empty())
    };
    // 1 500 tokens per second at 10 ms each are 15 sequences.
    assert!(learns(None));
    assert!(learns(Some(15.0)));
    assert!(learns(Some(28.0)));
    assert!(!learns(Some(29.0)));
    assert!(!learns(Some(2.0)));
}

#[test]
fn a_replica_that_hides_its_tokens_may_hold_more_than_is_seen() {
    let whole = completing([Some(5.0), Some(5.0)]);
    assert_eq!(hidden_sequences(&whole).count(), 0);
    let mut partial = whole;
    for variant in partial.variants.values_mut() {
        for replica in variant.replicas.values_mut() {
            replica.decode_rate = None;
        }
    }
    let hidden: Vec<_> = hidden_sequences(&partial).map(|(_, signal)| signal.as_str()).collect();
    assert_eq!(hidden, ["generation_rate", "generation_rate"]);
}
