//! Targets of PodAutoscalers, as processes write them.

use std::time::Duration;

use wva_base::moment::Moment;

use super::{Checker, CheckerState};
use crate::apiserver::Insider;
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::autoscalers::{GROWN, ScaleWritten, history, overloaded, written};
use crate::chaos::check::claims::Sent;
use crate::chaos::process_checker::ProcessChecker;
use crate::workloads::object::Object;
use crate::world::{AUTOSCALERS, Scenario};

const DEPLOYMENTS: &str = "deployments.apps";
const PODS: &str = "pods.";
const REPLICAS: &str = "/spec/replicas";
/// How old a page is at most that is known: a round, its deadline, and a round that came late.
const KNOWN: Duration = Duration::from_secs(15);

#[derive(Debug, Clone)]
pub(super) struct AutoscaledTarget {
    namespace: &'static str,
    name: &'static str,
    bounds: (u32, u32),
    window: Duration,
    per_replica: f64,
}

impl AutoscaledTarget {
    pub(super) fn of(scenario: &Scenario) -> Vec<Self> {
        let autoscaled = scenario.autoscaled.iter();
        let targets = autoscaled.flat_map(|one| {
            let window = Duration::from_secs(one.windows.0.into());
            one.model.variants.iter().map(move |variant| (variant, window, one.per_replica))
        });
        targets
            .map(|(variant, window, per_replica)| Self {
                namespace: scenario.namespace,
                name: variant.name,
                bounds: variant.bounds,
                window,
                per_replica,
            })
            .collect()
    }

    fn stored(&self, insider: &Insider) -> u32 {
        let stored = insider.get(DEPLOYMENTS, self.namespace, self.name);
        let count = stored.and_then(|stored| Object(stored).count(REPLICAS));
        count.unwrap_or(0)
    }

    fn pods<'a>(&'a self, pods: &'a [Object]) -> impl Iterator<Item = &'a Object> {
        let own = move |pod: &&Object| pod.label("app") == Some(self.name);
        pods.iter().filter(own)
    }

    fn shown(&self, pods: &[Object], process: &ProcessChecker, now: Moment) -> Option<f64> {
        let ready = self.pods(pods).filter(|pod| !pod.is_deleted() && pod.holds("Ready"));
        let known = ready.map(|pod| {
            let read = process.reads.last(pod.text("/status/podIP"))?;
            (now.monotonic.saturating_sub(read.at) <= KNOWN).then_some(read.sum)
        });
        known.sum()
    }
}

impl CheckerState {
    /// A6: a target whose pages show more than its replicas take grows soon.
    pub(super) fn ungrown(&mut self, insider: &Insider, now: Moment) -> Vec<InvariantViolation> {
        if self.autoscaled.is_empty() {
            return Vec::new();
        }
        let pods: Vec<Object> = insider.list(PODS).into_iter().map(Object).collect();
        let mut found = Vec::new();
        for (place, process) in &mut self.seats {
            for target in &self.autoscaled {
                let object = insider.get(AUTOSCALERS, target.namespace, target.name);
                let shown = object.and_then(|_scales| target.shown(&pods, process, now));
                let limit = target.window + GROWN;
                let overload = shown.and_then(|shown| {
                    let counts = (target.stored(insider), target.bounds.1);
                    let what = overloaded(target.name, counts, (shown, target.per_replica))?;
                    Some(format!("c{place}: {what} for {} s", limit.as_secs()))
                });
                let times = process.led(now);
                found.extend(process.patience.judge(("A6", target.name), overload, times, limit));
            }
        }
        found
    }
}

impl Checker {
    pub(super) fn scales(&self, place: usize, sent: &Sent<'_>) -> Vec<InvariantViolation> {
        let Some(path) = sent.path.strip_suffix("/scale") else {
            return Vec::new();
        };
        let now = self.0.clock.now();
        let bench = self.bench();
        let mut targets = bench.autoscaled.iter();
        let target = targets.find(|target| {
            let rest = path.strip_suffix(target.name);
            rest.is_some_and(|rest| rest.ends_with("/deployments/"))
        });
        let (Some(target), Some(process)) = (target, bench.seats.get(&place)) else {
            return Vec::new();
        };
        let insider = &self.0.insider;
        let pods: Vec<Object> = insider.list(PODS).into_iter().map(Object).collect();
        let own = target.pods(&pods);
        let reads = own.filter_map(|pod| process.reads.last(pod.text("/status/podIP")));
        let since = |at: Duration| now.monotonic.saturating_sub(at);
        let scale = ScaleWritten {
            name: target.name,
            from: target.stored(insider),
            to: sent.object().count(REPLICAS).unwrap_or(0),
            bounds: target.bounds,
            window: target.window,
            leads_for: process.leads.map(since),
            read_ago: reads.map(|read| read.at).max().map(since),
        };
        written(place, &scale)
    }

    pub(super) fn histories(&self) -> Vec<InvariantViolation> {
        let stored = self.0.insider.list(AUTOSCALERS).into_iter().map(Object);
        let length = |one: &Object| one.list("/status/scalingHistory").len();
        stored.filter_map(|one| history(one.name(), length(&one))).collect()
    }
}
