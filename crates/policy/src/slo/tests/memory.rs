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
        (
            memory.peak(end),
            memory.held(BurstReserve::Economical).as_secs(),
            memory.unexplained(Replicas(4), end),
        )
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
