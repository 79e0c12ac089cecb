//! KEDA on latency over the objective. Source: llm-d guides, d38c9f0c. The guide takes 90th percentiles; here they are
//! the 95th of the world's frames.

use std::collections::VecDeque;
use std::time::Duration;

use super::hpa::HpaPeer;
use super::signals::{ModelSignals, Peer, PeerDecision, PeerModel};
use crate::hpa::{Policy, ScalingDirection, ScalingRules, Size};
use crate::number;

const POLL: Duration = Duration::from_secs(15);
const WINDOW: Duration = Duration::from_secs(45);
const MOST: f64 = 2.0;
const UP: f64 = 0.55;
const DOWN: f64 = 0.40;

/// Latency as a share of the objective, with one threshold for each direction.
pub(super) struct KedaSlo {
    hpa: HpaPeer,
    /// Objectives for the first token and between tokens, in seconds.
    targets: (f64, f64),
    seen: VecDeque<(Duration, f64)>,
}

/// The behavior of the guide: 100 % or 4 pods in 60 s after 30 s, and one pod in 120 s after 180 s.
fn rules(
    direction: ScalingDirection,
    window: u64,
    sizes: &[Size],
    period: Duration,
) -> ScalingRules {
    let policies = sizes.iter().map(|size| Policy { size: *size, period });
    ScalingRules {
        window: Duration::from_secs(window),
        policies: policies.collect(),
        // The thresholds are the dead band.
        tolerance: 0.0,
        ..ScalingRules::standard(direction)
    }
}

impl KedaSlo {
    pub(super) fn new(model: &PeerModel, share: f64) -> Self {
        let minute = Duration::from_mins(1);
        let up = [Size::Percent(100), Size::Pods(4)];
        let up = rules(ScalingDirection::Up, 30, &up, minute);
        let down = rules(ScalingDirection::Down, 180, &[Size::Pods(1)], 2 * minute);
        Self {
            hpa: HpaPeer::counts(model, up, down),
            targets: (
                model.slo.first_token.as_secs_f64() * share,
                model.slo.per_token.as_secs_f64() * share,
            ),
            seen: VecDeque::new(),
        }
    }
}

fn count(replicas: u32, ready: u32, latency: f64) -> f64 {
    let (replicas, ready) = (f64::from(replicas), f64::from(ready));
    if latency > UP {
        (latency * ready / UP).ceil().max(replicas)
    } else if latency < DOWN {
        replicas - (replicas * (1.0 - latency / DOWN)).floor()
    } else {
        replicas
    }
}

impl Peer for KedaSlo {
    fn poll(&self) -> Duration {
        POLL
    }

    fn observe(&mut self, signals: &ModelSignals, now: Duration) {
        if let Some((first_token, per_token)) = signals.latencies {
            let (first, between) = self.targets;
            let latency = (first_token / first).max(per_token / between);
            self.seen.push_back((now, latency.min(MOST)));
        }
        let is_over = |(at, _): &mut (Duration, f64)| now.saturating_sub(*at) >= WINDOW;
        while self.seen.pop_front_if(is_over).is_some() {}
    }

    fn decide(&mut self, signals: &ModelSignals, now: Duration) -> Option<PeerDecision> {
        let latency = number::mean(self.seen.iter().map(|(_, latency)| *latency));
        let count = latency.map(|latency| count(signals.wanted, signals.ready, latency));
        let decision = self.hpa.decide_by(&[count], signals, now)?;
        let latency = latency.unwrap_or_default();
        Some(PeerDecision {
            why: format!("latency {latency:.2} of the objective in 45 s"),
            ..decision
        })
    }
}
