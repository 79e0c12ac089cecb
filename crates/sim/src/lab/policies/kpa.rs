//! Knative's pod autoscaler. Source: knative/serving, pkg/autoscaler/scaling/autoscaler.go.

use std::collections::VecDeque;
use std::time::Duration;

use super::signals::{ModelSignals, Peer, PeerDecision, PeerModel};
use crate::number;

const TICK: Duration = Duration::from_secs(2);
const STABLE: Duration = Duration::from_mins(1);
const PANIC: Duration = Duration::from_secs(6);
/// Share of the container concurrency that is aimed at.
const UTILIZATION: f64 = 0.7;
/// Want over ready replicas at which panic begins.
const PANIC_THRESHOLD: f64 = 2.0;
const MAX_UP: f64 = 1_000.0;
const MAX_DOWN: f64 = 2.0;
/// How long the last replica stays after the load has gone.
const ZERO_GRACE: Duration = Duration::from_secs(30);

pub(super) struct Kpa {
    target: f64,
    bounds: (u32, u32),
    seen: VecDeque<(Duration, f64)>,
    /// When the panic window last wanted panic.
    panicked: Option<Duration>,
    highest: u32,
    idle_since: Option<Duration>,
}

impl Kpa {
    pub(super) fn new(model: &PeerModel, share: f64) -> Self {
        Self {
            // The container concurrency has no default that fits: users set it to what their server holds.
            target: share * model.batch * UTILIZATION,
            bounds: (model.min, model.max),
            seen: VecDeque::new(),
            panicked: None,
            highest: 0,
            idle_since: None,
        }
    }

    fn mean(&self, now: Duration, window: Duration) -> f64 {
        let recent = self.seen.iter().filter(|(at, _)| now.saturating_sub(*at) < window);
        number::mean(recent.map(|(_, value)| *value)).unwrap_or_default()
    }
}

impl Peer for Kpa {
    fn poll(&self) -> Duration {
        TICK
    }

    fn observe(&mut self, signals: &ModelSignals, now: Duration) {
        self.seen.push_back((now, signals.concurrency));
        let is_over = |(at, _): &mut (Duration, f64)| now.saturating_sub(*at) > STABLE;
        while self.seen.pop_front_if(is_over).is_some() {}
    }

    fn decide(&mut self, signals: &ModelSignals, now: Duration) -> Option<PeerDecision> {
        let (stable, panic) = (self.mean(now, STABLE), self.mean(now, PANIC));
        let ready = f64::from(signals.ready.max(1));
        let most = (MAX_UP * ready).ceil();
        let least = (ready / MAX_DOWN).floor();
        let want = |mean: f64| (mean / self.target).ceil();
        let is_over = want(panic) / ready >= PANIC_THRESHOLD;
        let clamped = |want: f64| number::rounded(want.clamp(least, most));
        let (stable_want, panic_want) = (clamped(want(stable)), clamped(want(panic)));
        if is_over {
            self.panicked = Some(now);
        } else if self.panicked.is_some_and(|last| now.saturating_sub(last) >= STABLE) {
            self.panicked = None;
            self.highest = 0;
        }
        let mut replicas = stable_want;
        if self.panicked.is_some() {
            // Panic never takes away.
            self.highest = self.highest.max(panic_want).max(signals.wanted);
            replicas = self.highest;
        }
        let is_idle = stable <= 0.0 && panic <= 0.0;
        let since = *self.idle_since.get_or_insert(now);
        if !is_idle {
            self.idle_since = None;
        }
        let is_kept = !is_idle || now.saturating_sub(since) < ZERO_GRACE;
        if is_kept && signals.wanted > 0 {
            replicas = replicas.max(1);
        }
        let mode = if self.panicked.is_some() { "panic" } else { "stable" };
        Some(PeerDecision {
            replicas: replicas.clamp(self.bounds.0, self.bounds.1),
            why: format!("{mode}: concurrency {stable:.1} in 60 s, {panic:.1} in 6 s"),
        })
    }
}
