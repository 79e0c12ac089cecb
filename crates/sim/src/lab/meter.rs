//! GPU-seconds, cost, and changes of scales: what a policy spends.

use std::collections::BTreeMap;
use std::time::Duration;

use super::accounting::Scored;
use super::record::{GpuSeconds, LabScore, ScaleChange};
use super::scenario::NAMESPACE;
use crate::apiserver::Insider;
use crate::number;
use crate::workloads::object::Object;
use crate::world::Scenario;

const VARIANT: &str = "llm-d.ai/variant";
const PODS: &str = "pods.";
const DEPLOYMENTS: &str = "deployments.apps";

#[derive(Debug, Clone, Copy)]
struct Price {
    gpus: f64,
    cost: f64,
}

#[derive(Debug)]
pub(super) struct Meter {
    server: Insider,
    scored: Scored,
    prices: BTreeMap<String, Price>,
    version: u64,
    now: Duration,
    /// What one second spends now, and what an hour costs.
    spending: (GpuSeconds, f64),
    scales: BTreeMap<String, u32>,
    gpu_seconds: GpuSeconds,
    cost: f64,
    pub(super) changes: Vec<ScaleChange>,
}

impl Meter {
    pub(super) fn new(server: Insider, scenario: &Scenario, scored: Scored) -> Self {
        let prices = scenario.variants().map(|variant| {
            let price = Price { gpus: f64::from(variant.gpus), cost: variant.cost };
            (variant.name.to_owned(), price)
        });
        Self {
            server,
            scored,
            prices: prices.collect(),
            version: 0,
            now: Duration::ZERO,
            spending: (GpuSeconds::default(), 0.0),
            scales: BTreeMap::new(),
            gpu_seconds: GpuSeconds::default(),
            cost: 0.0,
            changes: Vec::new(),
        }
    }

    /// Adds up to `now` what the state at the last call has cost, and takes the present state.
    pub(super) fn advance(&mut self, now: Duration, why: impl Fn(&str) -> String) {
        let begins = self.now.max(self.scored.from);
        let ends = now.min(self.scored.until);
        let seconds = ends.saturating_sub(begins).as_secs_f64();
        let (spending, cost) = self.spending;
        self.gpu_seconds.starting += spending.starting * seconds;
        self.gpu_seconds.serving += spending.serving * seconds;
        self.gpu_seconds.draining += spending.draining * seconds;
        self.cost += cost * seconds / 3_600.0;
        self.now = now;
        let version = self.server.version();
        if version == self.version {
            return;
        }
        let before = std::mem::replace(&mut self.version, version);
        if self.server.changed_since(before, &[PODS]) {
            self.spending = self.spent();
        }
        if self.server.changed_since(before, &[DEPLOYMENTS]) {
            self.follow_scales(now, why);
        }
    }

    fn spent(&self) -> (GpuSeconds, f64) {
        let (mut spending, mut cost) = (GpuSeconds::default(), 0.0);
        for pod in self.server.list(PODS).into_iter().map(Object) {
            let Some(price) = pod.label(VARIANT).and_then(|name| self.prices.get(name)) else {
                continue;
            };
            let is_over = matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
            if pod.text("/spec/nodeName").is_empty() || is_over {
                continue;
            }
            let state = if pod.is_deleted() {
                &mut spending.draining
            } else if pod.holds("Ready") {
                &mut spending.serving
            } else {
                &mut spending.starting
            };
            *state += price.gpus;
            cost += price.cost;
        }
        (spending, cost)
    }

    fn follow_scales(&mut self, now: Duration, why: impl Fn(&str) -> String) {
        for deployment in self.server.list(DEPLOYMENTS).into_iter().map(Object) {
            let name = deployment.name();
            if deployment.namespace() != NAMESPACE || !self.prices.contains_key(name) {
                continue;
            }
            let to = deployment.count("/spec/replicas").unwrap_or(0);
            let known = self.scales.insert(name.to_owned(), to);
            if let Some(from) = known.filter(|from| *from != to) {
                self.changes.push(ScaleChange {
                    at: now.as_secs_f64(),
                    variant: name.to_owned(),
                    from,
                    to,
                    why: why(name),
                });
            }
        }
    }

    pub(super) fn finish(&self, score: &mut LabScore) {
        score.gpu_seconds = self.gpu_seconds;
        score.gpu_seconds.total =
            self.gpu_seconds.starting + self.gpu_seconds.serving + self.gpu_seconds.draining;
        score.cost = self.cost;
        let mut directions: BTreeMap<&str, bool> = BTreeMap::new();
        for change in &self.changes {
            if !self.scored.holds(number::duration(change.at)) {
                continue;
            }
            score.scalings += 1;
            let is_up = change.to > change.from;
            let before = directions.insert(&change.variant, is_up);
            score.reversals += u64::from(before.is_some_and(|before| before != is_up));
        }
    }
}
