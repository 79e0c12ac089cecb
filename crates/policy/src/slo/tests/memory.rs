//! What is remembered of needs, and expected of them.

use std::time::Duration;

use super::at;
use super::parts::close;
use crate::params::BurstReserve;
use crate::slo::memory::NeedMemory;
use crate::units::Replicas;

#[test]
fn growth_within_a_start_is_held_in_reserve() {
    let start = Duration::from_mins(2);
    let ten = Duration::from_mins(10);
    let play = |rises: &dyn Fn(u64) -> f64| {
        let mut memory = NeedMemory::new(at(0), ten, Replicas(2));
        let mut reserves = Vec::new();
        for bucket in 0..60 {
            memory.observe(rises(bucket), 0.0, ten, at(bucket * 30));
            reserves.push(memory.reserve(start));
        }
        (reserves[18], reserves[59])
    };
    // Too little is known of the first ten minutes.
    assert_eq!(play(&|_| 10.0), (0.2, 0.0));
    // One rise in an hour is no habit.
    let (_, once) = play(&|bucket| if bucket < 58 { 10.0 } else { 30.0 });
    close(once, 0.0);
    let (_, habit) = play(&|bucket| if bucket % 8 < 6 { 10.0 } else { 11.0 });
    close(habit, 0.2);
    let (_, most) = play(&|bucket| if bucket % 8 < 6 { 10.0 } else { 14.0 });
    close(most, 0.35);
    // No reserve meets a need that triples within a start.
    let (_, burst) = play(&|bucket| if bucket % 8 < 6 { 10.0 } else { 30.0 });
    close(burst, 0.0);
    // A start of eight minutes sees the one rise in more than a tenth of the time.
    let mut memory = NeedMemory::new(at(0), ten, Replicas(2));
    for bucket in 0..120 {
        let need = if bucket < 60 { 10.0 } else { 30.0 };
        memory.observe(need, 0.0, ten, at(bucket * 30));
    }
    close(memory.reserve(Duration::from_mins(8)), 0.0);
}

#[test]
fn requests_that_become_more_steadily_grow_until_a_start_is_over() {
    let ten = Duration::from_mins(10);
    let shared = |ahead: u64, noise: f64, size: &dyn Fn(f64) -> f64, rate: &dyn Fn(f64) -> f64| {
        let mut memory = NeedMemory::new(at(0), ten, Replicas(2));
        for second in (0..=615).step_by(15) {
            let now = f64::from(u32::try_from(second).unwrap());
            memory.observe(rate(now) * size(now), 0.0, ten, at(second));
            memory.observe_requests(rate(now));
        }
        memory.growth(Duration::from_secs(ahead), noise, at(615))
    };
    let grown = |noise: f64, rate: &dyn Fn(f64) -> f64| shared(300, noise, &|_| 500.0, rate);
    close(grown(0.05, &|_| 100.0), 0.0);
    // A tenth per second, from 40 on.
    let ramp = |second: f64| 40.0 + second / 10.0;
    close(grown(0.05, &ramp), 30.0 / 101.5);
    // Chance may be as much in two minutes.
    close(grown(0.3, &ramp), 0.0);
    // No more than as much again.
    close(shared(1_100, 0.05, &|_| 500.0, &ramp), 1.0);
    // It must last for four minutes,
    let late = |second: f64| 40.0 + (second - 490.0).max(0.0) / 10.0;
    close(grown(0.05, &late), 0.0);
    // and go on: this is what smoothing leaves of a step.
    let step = |second: f64| 100.0 - 50.0 * (-(second - 300.0).max(0.0) / 60.0).exp();
    assert!(grown(0.05, &step) < 0.1, "{}", grown(0.05, &step));
    // Requests that are larger from now on show so in their mean for minutes.
    let larger = |second: f64| 500.0 + (second - 300.0).max(0.0);
    close(shared(300, 0.05, &larger, &|_| 100.0), 0.0);
    // Clearly more was needed before.
    let after = |first: f64| move |second: f64| if second < 60.0 { first } else { ramp(second) };
    close(grown(0.05, &after(113.0)), 0.0);
    close(grown(0.05, &after(112.0)), 30.0 / 101.5);
}

#[test]
fn a_need_is_remembered_for_longer_once_it_came_back() {
    let ten = Duration::from_mins(10);
    let mut memory = NeedMemory::new(at(0), ten, Replicas(2));
    let mut seen = |from: u64, until: u64, need: f64| {
        for second in (from..until).step_by(30) {
            memory.observe(need, 0.0, ten, at(second));
        }
        let end = at(until - 30);
        let (peak, horizon) = memory.remembered(BurstReserve::Economical, end);
        (peak, horizon.as_secs(), memory.unexplained(Replicas(4), end))
    };
    assert_eq!(seen(0, 120, 50.0), (50.0, 600, 1.0));
    assert_eq!(seen(120, 690, 10.0), (50.0, 600, 0.0));
    assert_eq!(seen(690, 900, 10.0), (10.0, 600, 0.0));
    // It comes back after it was forgotten.
    assert_eq!(seen(900, 930, 50.0), (50.0, 1_200, 0.5));
    assert_eq!(seen(930, 2_130, 10.0), (50.0, 1_200, 0.0));
    assert_eq!(seen(2_130, 2_160, 10.0), (10.0, 1_200, 0.0));
    // Four horizons of rest after the change.
    assert_eq!(seen(2_160, 5_700, 10.0).1, 1_200);
    assert_eq!(seen(5_700, 5_760, 10.0).1, 600);
    // To have remembered the ten, half of which would do, would not have helped a need of thirty.
    assert_eq!(seen(5_760, 6_420, 5.0), (5.0, 600, 0.0));
    assert_eq!(seen(6_420, 6_450, 30.0), (30.0, 600, 0.0));
}

/// It would miss its objective for a start once more.
#[test]
fn a_need_that_grows_faster_than_replicas_start_is_held_for_sixteen_starts() {
    let (ten, landing) = (Duration::from_mins(10), Duration::from_mins(2));
    // Seconds for which a peak is remembered that begins at second 600 and lasts for a bucket.
    let play = |rise: f64, landing: Duration, chosen: BurstReserve| {
        let mut memory = NeedMemory::new(at(0), ten, Replicas(2));
        for second in (0..=6_000_u32).step_by(15) {
            let slow = 50.0 - (600.0 - f64::from(second)) * rise;
            let now = at(u64::from(second));
            let need = if second < 615 { slow.max(10.0) } else { 10.0 };
            memory.observe(need, 0.0, ten, now);
            memory.observe_growth(landing, true, now);
            if second > 600 && memory.remembered(chosen, now).0 < 50.0 {
                return second - 615;
            }
        }
        0
    };
    let (step, hour) = (50.0, Duration::from_hours(1));
    assert_eq!(play(step, landing, BurstReserve::Economical), 1_920);
    assert_eq!(play(step, landing, BurstReserve::None), 600);
    assert_eq!(play(step, landing, BurstReserve::Strict), 3_600);
    // An hour at most.
    assert_eq!(play(step, hour, BurstReserve::Economical), 3_600);
    // From 31.3 or 31.2 to 50 within the time of a start: a reserve meets growth by 0.6.
    assert_eq!(play(18.7 / 135.0, landing, BurstReserve::Economical), 600);
    assert_eq!(play(18.8 / 135.0, landing, BurstReserve::Economical), 1_920);
}

/// Requests do not wait for what is held: that is why it is held on.
#[test]
fn a_need_that_was_held_is_held_once_more_when_it_comes_back() {
    let (ten, landing) = (Duration::from_mins(10), Duration::from_mins(2));
    // Bursts of half a minute; requests wait for replicas at the first, or at none.
    let forgotten = |waits: bool, bursts: &[u64]| {
        let mut memory = NeedMemory::new(at(0), ten, Replicas(2));
        let last = bursts[bursts.len() - 1];
        (0..).step_by(15).find(|second| {
            let is_peak = bursts.iter().any(|begin| (*begin..begin + 30).contains(second));
            memory.observe(if is_peak { 50.0 } else { 10.0 }, 0.0, ten, at(*second));
            memory.observe_growth(landing, waits && *second < 1_000, at(*second));
            let (peak, _) = memory.remembered(BurstReserve::Economical, at(*second));
            *second > last && peak < 50.0
        })
    };
    assert_eq!(forgotten(false, &[600]), Some(600 + 615));
    assert_eq!(forgotten(true, &[600]), Some(600 + 1_935));
    assert_eq!(forgotten(true, &[600, 2_400]), Some(2_400 + 1_935));
    // Not once it is held no more, where nothing waits: what came back after it was forgotten doubles the horizon.
    assert_eq!(forgotten(true, &[600, 2_700]), Some(2_700 + 1_215));
}
