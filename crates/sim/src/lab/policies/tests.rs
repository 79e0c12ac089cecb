//! Rules against numbers that can be computed by hand.

use std::time::Duration;

use super::PolicyChoice;
use super::signals::{ModelSignals, Peer, PeerModel, ScrapedSignals};
use crate::engine::Profile;
use crate::world::Slo;

const SECOND: Duration = Duration::from_secs(1);

fn peer(name: &str, bounds: (u32, u32)) -> Box<dyn Peer> {
    let model = PeerModel {
        slo: Slo {
            first_token: SECOND,
            per_token: Duration::from_millis(20),
        },
        profile: Profile::QWEN3_8B_FP8_H100,
        batch: 100.0,
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
    let with = |concurrency| ModelSignals {
        concurrency,
        ..signals(2)
    };
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
    for (usage, replicas) in [
        (0.54, 4),
        (0.56, 5),
        (5.0, 8),
        (0.46, 4),
        (0.3, 3),
        (0.0, 2),
    ] {
        let mut apa = peer("aibrix-apa", (1, 16));
        let signals = ModelSignals {
            kv_usage: usage,
            ..signals(4)
        };
        let decision = apa.decide(&signals, SECOND).unwrap();
        assert_eq!(decision.replicas, replicas, "{usage}");
    }
}

#[test]
fn dynamo_takes_one_step_at_a_time() {
    let mut dynamo = peer("dynamo-load", (1, 16));
    let busy = ModelSignals {
        running: 200.0,
        kv_usage: 0.9,
        concurrency: 800.0,
        ..signals(4)
    };
    assert_eq!(dynamo.decide(&busy, SECOND).unwrap().replicas, 5);
    let starting = ModelSignals {
        wanted: 5,
        existing: 5,
        ..busy
    };
    assert_eq!(dynamo.decide(&starting, SECOND), None);
    let idle = ModelSignals {
        running: 1.0,
        kv_usage: 0.01,
        concurrency: 4.0,
        ..signals(4)
    };
    assert_eq!(dynamo.decide(&idle, SECOND).unwrap().replicas, 3);
}
