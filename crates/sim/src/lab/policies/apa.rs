//! AIBrix's pod autoscaler. Source: vllm-project/aibrix, pkg/controller/podautoscaler, apa.go.

use std::collections::VecDeque;
use std::time::Duration;

use super::signals::{ModelSignals, Peer, PeerDecision, PeerModel};
use crate::number;

const POLL: Duration = Duration::from_secs(10);
const WINDOW: Duration = Duration::from_mins(3);
const TOLERANCE: f64 = 0.1;
const RATE: f64 = 2.0;
/// The cool-down window of a release; that of growth is 0 by default.
const DOWN_WINDOW: Duration = Duration::from_mins(5);

pub(super) struct Apa {
    target: f64,
    bounds: (u32, u32),
    seen: VecDeque<(Duration, f64)>,
    wanted: VecDeque<(Duration, u32)>,
}

impl Apa {
    pub(super) fn new(model: &PeerModel, target: f64) -> Self {
        Self {
            target,
            bounds: (model.min, model.max),
            seen: VecDeque::new(),
            wanted: VecDeque::new(),
        }
    }

    /// The cool-down as it is shipped: a release goes to the least count of its window, not to the largest.
    fn cool_down(&mut self, wanted: u32, count: u32, now: Duration) -> u32 {
        self.wanted.push_back((now, wanted));
        let is_over = |(at, _): &mut (Duration, u32)| now.saturating_sub(*at) >= DOWN_WINDOW;
        while self.wanted.pop_front_if(is_over).is_some() {}
        let least = self.wanted.iter().map(|(_, wanted)| *wanted).min();
        if wanted < count { least.unwrap_or(wanted) } else { wanted }
    }
}

impl Peer for Apa {
    fn poll(&self) -> Duration {
        POLL
    }

    fn decide(&mut self, signals: &ModelSignals, now: Duration) -> Option<PeerDecision> {
        self.seen.push_back((now, signals.kv_usage));
        let is_over = |(at, _): &mut (Duration, f64)| now.saturating_sub(*at) > WINDOW;
        while self.seen.pop_front_if(is_over).is_some() {}
        let usage = number::mean(self.seen.iter().map(|(_, usage)| *usage)).unwrap_or_default();
        let ratio = usage / self.target;
        let count = f64::from(signals.wanted.max(1));
        let wanted = if ratio > 1.0 + TOLERANCE {
            (count * ratio).ceil().min((RATE * count).ceil())
        } else if ratio < 1.0 - TOLERANCE {
            (count * ratio).ceil().max((count / RATE).floor())
        } else {
            f64::from(signals.wanted)
        };
        let wanted = self.cool_down(number::rounded(wanted), signals.wanted, now);
        Some(PeerDecision {
            replicas: wanted.clamp(self.bounds.0.max(1), self.bounds.1),
            why: format!("KV usage {usage:.3} in 180 s, target {}", self.target),
        })
    }
}
