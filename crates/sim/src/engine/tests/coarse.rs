use std::time::Duration;

use super::{engine, request};
use crate::engine::{CoarseEngine, Dialect, Limits, Mix, Profile};
use crate::number;

pub(super) const MIX: Mix = Mix { prompt_tokens: 1_000, output_tokens: 200, cached: 0.0 };

/// One that begins at this time.
pub(super) fn coarse(start: Duration) -> CoarseEngine {
    let profile = Profile::QWEN3_8B_BF16_H100;
    CoarseEngine::new(profile, Limits::default(), MIX, start)
}

/// Mean of running requests over the second half of five minutes, on a server that knows each one.
fn exact(rate: u32) -> f64 {
    /// Looks between two arrivals.
    const LOOKS: u32 = 20;
    let mut engine = engine(376_000, Limits::default());
    let mut running = Vec::new();
    for look in 0..rate * 300 * LOOKS {
        let at = Duration::from_secs(1) * look / (rate * LOOKS);
        engine.advance(at);
        if look.is_multiple_of(LOOKS) {
            let request = request(u64::from(look), 1_000, 200);
            engine.submit(request, at).unwrap();
        }
        if look >= rate * 150 * LOOKS {
            running.push(engine.reading().running);
        }
    }
    number::length(running.iter().sum()) / number::length(running.len())
}

#[test]
fn it_agrees_with_the_server_that_knows_each_request() {
    for rate in [1, 5, 10, 20] {
        let mut coarse = coarse(Duration::ZERO);
        coarse.advance(Duration::from_mins(5), f64::from(rate));
        let (rough, exact) = (coarse.running(), exact(rate));
        assert!(
            (rough / exact - 1.0).abs() < 0.1,
            "{rate}/s: {rough:.1} run, {exact:.1} on the other"
        );
        assert!(coarse.waiting() < 1e-9);
    }
}

#[test]
fn beyond_its_capacity_a_queue_grows_and_then_drains() {
    let mut coarse = coarse(Duration::ZERO);
    coarse.advance(Duration::from_mins(5), 60.0);
    let waiting = coarse.waiting();
    assert!(waiting > 5_000.0, "{waiting}");
    assert!(coarse.kv_usage() > 0.99);
    let finished = number::real(coarse.statistics.finished);
    let known = finished + coarse.running() + waiting;
    assert!((known - 18_000.0).abs() <= 1.0, "{known}");
    coarse.advance(Duration::from_hours(1), 0.0);
    assert!(coarse.waiting() < 1e-6 && coarse.running() < 1e-3);
    assert!(coarse.statistics.finished.abs_diff(18_000) <= 1);
}

#[test]
fn it_shows_the_series_of_the_other() {
    let mut coarse = coarse(Duration::ZERO);
    coarse.pour(10.0);
    coarse.advance(Duration::from_mins(5), 0.0);
    let rough = coarse.page(Dialect::Vllm, "m");
    let exact = engine(376_000, Limits::default());
    let exact = exact.page(Dialect::Vllm, "m").unwrap();
    let names = |page: &crate::exposition::Page| -> Vec<(String, usize)> {
        let families = page.families.iter();
        let shape = families.map(|family| (family.name.to_string(), family.samples().count()));
        shape.collect()
    };
    assert_eq!(names(&rough), names(&exact));
    let finished = rough.samples().find(|sample| sample.name == "vllm:request_success_total");
    assert!(finished.unwrap().value >= 9.0);
}

/// How fast it is: the time that this takes is the measurement.
#[test]
#[ignore = "a measurement: 100 virtual hours of nine coarse servers"]
fn a_hundred_virtual_hours_of_nine_servers() {
    for _ in 0..9 {
        let mut coarse = coarse(Duration::ZERO);
        for second in 1..=360_000 {
            coarse.advance(Duration::from_secs(second), 3.0);
        }
        assert!(coarse.statistics.finished > 1_000_000);
    }
}
