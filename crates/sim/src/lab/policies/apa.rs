//! AIBrix's pod autoscaler. Source: vllm-project/aibrix, pkg/controller/podautoscaler, apa.go.

use std::collections::VecDeque;
use std::time::Duration;

use super::signals::{ModelSignals, Peer, PeerDecision, PeerModel};
use crate::number;

const POLL: Duration = Duration::from_secs(10);
const WINDOW: Duration = Duration::from_mins(3);
const TOLERANCE: f64 = 0.1;
const RATE: f64 = 2.0;

/// KV usage over a window, with tolerances and rates.
pub(super) struct Apa {
    target: f64,
    bounds: (u32, u32),
    seen: VecDeque<(Duration, f64)>,
}

impl Apa {
    pub(super) fn new(model: &PeerModel, target: f64) -> Self {
        Self {
            target,
            bounds: (model.min, model.max),
            seen: VecDeque::new(),
        }
    }
}

impl Peer for Apa {
    fn poll(&self) -> Duration {
        POLL
    }

    fn is_scraping(&self) -> bool {
        false
    }

    fn decide(&mut self, signals: &ModelSignals, now: Duration) -> Option<PeerDecision> {
        self.seen.push_back((now, signals.kv_usage));
        while self
            .seen
            .front()
            .is_some_and(|(at, _)| now.saturating_sub(*at) > WINDOW)
        {
            self.seen.pop_front();
        }
        let sum: f64 = self.seen.iter().map(|(_, usage)| usage).sum();
        let usage = sum / number::length(self.seen.len().max(1));
        let ratio = usage / self.target;
        let count = f64::from(signals.ready.max(1));
        let wanted = if ratio > 1.0 + TOLERANCE {
            (count * ratio).ceil().min((RATE * count).ceil())
        } else if ratio < 1.0 - TOLERANCE {
            (count * ratio).ceil().max((count / RATE).floor())
        } else {
            f64::from(signals.wanted)
        };
        Some(PeerDecision {
            replicas: number::rounded(wanted).clamp(self.bounds.0.max(1), self.bounds.1),
            why: format!("KV usage {usage:.3} in 180 s, target {}", self.target),
        })
    }
}
