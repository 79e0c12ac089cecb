//! Rules against numbers that can be computed by hand.

use std::time::Duration;

use super::PolicyChoice;
use super::hybrid::TrendFilter;
use super::signals::{ModelSignals, Peer, PeerModel, ScrapedSignals};
use crate::engine::Profile;
use crate::world::Slo;

const SECOND: Duration = Duration::from_secs(1);

fn peer(name: &str, bounds: (u32, u32)) -> Box<dyn Peer> {
    let model = PeerModel {
        slo: Slo { first_token: SECOND, per_token: Duration::from_millis(20) },
        profile: Profile::QWEN3_8B_FP8_H100,
        batch: 100.0,
        lengths: (1_000.0, 200.0),
        sequences: 256,
        min: bounds.0,
        max: bounds.1,
    };
    PolicyChoice::parse(name).unwrap().peer(&model).unwrap()
}

fn signals(replicas: u32) -> ModelSignals {
    ModelSignals {
        scraped: ScrapedSignals::default(),
        concurrency: 0.0,
        queue: 0.0,
        running: 0.0,
        kv_usage: 0.0,
        rate: 0.0,
        latencies: None,
        wanted: replicas,
        existing: replicas,
        ready: replicas,
    }
}

fn router(replicas: u32, queue: f64, running: f64) -> ModelSignals {
    ModelSignals {
        scraped: ScrapedSignals {
            router_queue: Some(queue),
            router_running: Some(running),
            ..ScrapedSignals::default()
        },
        ..signals(replicas)
    }
}

#[test]
fn keda_takes_the_larger_of_two_metrics_and_doubles_at_most() {
    let mut keda = peer("keda-epp", (1, 16));
    let mut at = |second: u32, signals| keda.decide(&signals, SECOND * second).unwrap().replicas;
    assert_eq!(at(0, router(2, 0.0, 30.0)), 2);
    assert_eq!(at(15, router(2, 0.0, 50.0)), 4, "4 for 50 running");
    assert_eq!(at(30, router(4, 40.0, 64.0)), 8, "100 % in 15 s");
    assert_eq!(at(45, router(8, 0.0, 16.0)), 8, "a window of 300 s");
    assert_eq!(at(400, router(8, 0.0, 16.0)), 1);
    let unknown = keda.decide(&signals(4), SECOND * 700);
    assert_eq!(unknown, None, "no sample, no change");
}

#[test]
fn keda_takes_the_saturation_of_a_pool_for_as_much_as_its_owner_does() {
    let mut keda = peer("keda-saturation", (1, 16));
    let mut at = |second: u32, replicas: u32, waiting: f64, kv_usage: f64, running: f64| {
        let mut signals = router(replicas, 100.0, running);
        signals.scraped.waiting = Some(waiting);
        signals.scraped.kv_usage = Some(kv_usage);
        let decision = keda.decide(&signals, SECOND * second).unwrap();
        (decision.replicas, decision.why)
    };
    let expected = |replicas: u32, why: &str| (replicas, why.to_owned());
    // The router's queue is not read.
    assert_eq!(at(0, 1, 0.0, 0.5, 4.0), expected(1, "saturation 625m, running 4"));
    // A pool of any size that is full is worth ceil(1 ÷ 0.7).
    assert_eq!(at(15, 1, 5.0, 0.5, 4.0), expected(2, "saturation 1, running 4"));
    assert_eq!(at(30, 2, 0.0, 1.6, 4.0), expected(2, "saturation 1, running 4"));
    let running = at(45, 2, 0.0, 0.16, 100.0);
    assert_eq!(running, expected(4, "saturation 100m, running 100"), "100 % in 15 s");
    let mut gone = peer("keda-saturation", (0, 16));
    let decision = gone.decide(&router(0, 0.0, 0.0), SECOND).unwrap();
    assert_eq!(decision.replicas, 1, "a pool without servers is full: {decision:?}");
}

#[test]
fn keda_alone_goes_to_zero_and_comes_back() {
    let mut keda = peer("keda-epp", (0, 16));
    let mut at = |second: u32, signals| keda.decide(&signals, SECOND * second).unwrap().replicas;
    assert_eq!(at(0, router(1, 0.0, 0.0)), 1);
    assert_eq!(at(290, router(1, 0.0, 0.0)), 1);
    assert_eq!(at(300, router(1, 0.0, 0.0)), 0, "after the cooldown");
    assert_eq!(at(315, router(0, 0.0, 0.0)), 0);
    assert_eq!(at(330, router(0, 3.0, 0.0)), 1, "one replica at first");
}

#[test]
fn kpa_panics_when_twice_the_ready_replicas_are_wanted() {
    let mut kpa = peer("knative-kpa", (1, 16));
    let with = |concurrency| ModelSignals { concurrency, ..signals(2) };
    let mut replicas = Vec::new();
    for second in 0..=66 {
        let now = SECOND * second;
        // 70 in flight are one replica's.
        let signals = with(if second < 60 { 140.0 } else { 560.0 });
        kpa.observe(&signals, now);
        if second % 2 == 0 {
            replicas.push(kpa.decide(&signals, now).unwrap().replicas);
        }
    }
    assert_eq!(replicas[29], 2, "stable");
    assert_eq!(replicas.last(), Some(&8), "panic: 560 over six seconds");
}

#[test]
fn apa_moves_beyond_its_tolerance_and_doubles_at_most() {
    for (usage, replicas) in [(0.54, 4), (0.56, 5), (5.0, 8), (0.46, 4), (0.3, 3), (0.0, 2)] {
        let mut apa = peer("aibrix-apa", (1, 16));
        let signals = ModelSignals { kv_usage: usage, ..signals(4) };
        let decision = apa.decide(&signals, SECOND).unwrap();
        assert_eq!(decision.replicas, replicas, "{usage}");
    }
}

#[test]
fn dynamo_takes_one_step_at_a_time() {
    let mut dynamo = peer("dynamo-load", (1, 16));
    let busy = ModelSignals { running: 200.0, kv_usage: 0.9, concurrency: 800.0, ..signals(4) };
    assert_eq!(dynamo.decide(&busy, SECOND).unwrap().replicas, 5);
    let starting = ModelSignals { wanted: 5, existing: 5, ..busy };
    assert_eq!(dynamo.decide(&starting, SECOND), None);
    let idle = ModelSignals { running: 1.0, kv_usage: 0.01, concurrency: 4.0, ..signals(4) };
    assert_eq!(dynamo.decide(&idle, SECOND).unwrap().replicas, 3);
    let late = ModelSignals { latencies: Some((0.1, 1.0)), ..idle };
    assert_eq!(dynamo.decide(&late, SECOND).unwrap().replicas, 5);
}

#[test]
fn hpa_kv_holds_the_mean_usage_at_its_target() {
    let mut hpa = peer("hpa-kv", (1, 16));
    let mut at = |second: u32, usage: Option<f64>| {
        let scraped = ScrapedSignals { kv_usage: usage, ..ScrapedSignals::default() };
        let signals = ModelSignals { scraped, ..signals(4) };
        let decision = hpa.decide(&signals, SECOND * second);
        decision.map(|decision| decision.replicas)
    };
    assert_eq!(at(0, Some(3.4)), Some(4), "within a tenth of 4 × 0.8");
    assert_eq!(at(15, Some(4.1)), Some(6), "4.1 ÷ 0.8");
    assert_eq!(at(30, Some(0.8)), Some(6), "a window of 300 s");
    assert_eq!(at(340, Some(0.8)), Some(1));
    assert_eq!(at(355, None), None);
}

#[test]
fn keda_slo_grows_above_one_threshold_and_shrinks_below_another() {
    for (latency, expected) in [
        // ceil(4 × 0.8 ÷ 0.55), after a window of 30 s.
        (0.8, Some((30, 6))),
        // Twice the objective counts at most: ceil(4 × 2 ÷ 0.55), but 100 % in a minute.
        (9.0, Some((30, 8))),
        (0.5, None),
        // 4 − floor(4 × (1 − 0.1 ÷ 0.4)), but one pod at a time, after 180 s.
        (0.1, Some((180, 3))),
    ] {
        let mut keda = peer("keda-slo", (1, 16));
        let signals = ModelSignals { latencies: Some((latency, 0.001)), ..signals(4) };
        let mut changed = None;
        for second in 0..=300 {
            keda.observe(&signals, SECOND * second);
            if second % 15 == 0 && changed.is_none() {
                let replicas = keda.decide(&signals, SECOND * second).unwrap().replicas;
                changed = (replicas != 4).then_some((second, replicas));
            }
        }
        assert_eq!(changed, expected, "{latency}");
    }
}

#[test]
fn apa_releases_to_the_least_count_of_its_window_as_it_is_shipped() {
    let mut apa = peer("aibrix-apa", (1, 16));
    let mut at = |second: u32, usage: f64| {
        let signals = ModelSignals { kv_usage: usage, ..signals(4) };
        apa.decide(&signals, SECOND * second).unwrap().replicas
    };
    assert_eq!(at(0, 0.1), 2, "a rate of 2");
    // Samples of 180 s are averaged, so that the first no longer counts.
    assert_eq!(at(200, 0.3), 2, "4 × 0.6 is 3, and the least of 300 s is 2");
    assert_eq!(at(510, 0.3), 3);
}

#[test]
fn a_trend_is_forecast_once_there_are_five_samples() {
    let mut filter = TrendFilter::new();
    let mut forecasts = Vec::new();
    for sample in 0..40 {
        filter.take(10.0 + f64::from(sample));
        forecasts.push(filter.forecast());
    }
    assert_eq!(forecasts.get(..4), Some(&[10.0, 11.0, 12.0, 13.0][..]));
    let last = forecasts.last().unwrap();
    assert!((last - 50.0).abs() < 0.2, "{last} after 49");
    let mut still = TrendFilter::new();
    for _ in 0..10 {
        still.take(7.0);
    }
    assert!((still.forecast() - 7.0).abs() < 1e-9);
}

#[test]
fn dynamo_hybrid_keeps_a_floor_of_forecast_demand() {
    let mut hybrid = peer("dynamo-hybrid", (1, 16));
    // Steps of 20 ms at 1 100 tokens a sequence: 220 sequences. A prompt takes 3 ms + 1 000 × 24.6 µs, an answer
    // 200 × 20 ms ÷ 220: 46 ms of a replica, so that 80 requests a second need 4 replicas.
    let busy = |replicas: u32, rate: f64| ModelSignals {
        rate,
        running: 1.0,
        kv_usage: 0.01,
        concurrency: 1.0,
        ..signals(replicas)
    };
    let mut at = |second: u32, signals: ModelSignals| {
        hybrid.observe(&signals, SECOND * second);
        hybrid.decide(&signals, SECOND * second)
    };
    assert_eq!(at(0, busy(2, 80.0)).unwrap().replicas, 1, "no floor yet");
    let floor = at(180, busy(2, 80.0)).unwrap();
    assert_eq!(floor.replicas, 4, "{}", floor.why);
    assert_eq!(at(185, busy(4, 80.0)).unwrap().replicas, 4, "the floor");
    assert_eq!(at(190, busy(6, 80.0)).unwrap().replicas, 5, "load above it");
    let far = at(360, busy(4, 2_000.0)).unwrap();
    assert_eq!(far.replicas, 12, "eight more at most: {}", far.why);
}
