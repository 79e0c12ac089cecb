//! What there is once everything is at rest, as far as it is the same whatever has happened before.

use std::collections::BTreeSet;

use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::check::series::SCALED_BY;
use super::conditions;
use super::process_manager::ProcessManager;
use crate::apiserver::Insider;
use crate::workloads::object::Object;
use crate::world::AUTOSCALERS;

/// Series of what a process has learned: how long starts took that it has seen.
const LEARNED: &str = "wva_replica_start_seconds";

/// What it is, a line for each fact. Counts of what has happened, times, and what was learned are no part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Quiescence(BTreeSet<String>);

impl Quiescence {
    /// The variants and PodAutoscalers as they are stored, and each process by whether it leads: which one does may differ.
    pub(super) fn of(cast: &ProcessManager, insider: &Insider) -> Self {
        let variants = insider.list("variantautoscalings.llmd.ai").into_iter();
        let autoscalers = insider.list(AUTOSCALERS).into_iter();
        let variants = variants.map(|one| (one, "/status/desiredOptimizedAlloc/numReplicas"));
        let all = variants.chain(autoscalers.map(|one| (one, "/status/desiredScale")));
        let facts = all.flat_map(|(one, count)| stored(&Object(one), count));
        let mut facts: BTreeSet<String> = facts.collect();
        for place in 0..cast.members.len() {
            let Some(door) = cast.door(place) else {
                facts.insert(format!("c{place} does not run"));
                continue;
            };
            let who = if door.leads() { "leader" } else { "follower" };
            let also = (1..).map(|number| format!("{who} {number}"));
            // The second leader, if there is one, is distinguished from the first.
            let mut free = also.filter(|who| !facts.contains(who));
            let who = free.next().unwrap_or_default();
            let page = shown(&door.own_metrics());
            facts.extend(page.into_iter().map(|series| format!("{who} shows {series}")));
            facts.insert(who);
        }
        Self(facts)
    }

    pub(super) fn unlike(&self, other: &Self) -> Option<String> {
        let beyond = |these: &Self, those: &Self| {
            let facts: Vec<String> = these.0.difference(&those.0).cloned().collect();
            facts.join("; ")
        };
        let (more, less) = (beyond(self, other), beyond(other, self));
        (self != other).then(|| format!("there is [{more}] instead of [{less}]"))
    }
}

fn stored(object: &Object, count: &str) -> Vec<String> {
    let name = format!("{}/{}", object.namespace(), object.name());
    let count = object.at(count);
    let conditions = conditions::stored(object).into_iter();
    let conditions = conditions
        .map(|(kind, (status, reason))| format!("{name} is {kind}={status} for {reason}"));
    conditions.chain([format!("{name} has {count}")]).collect()
}

/// The gauges of a page; of those that scalers read with their values. A counter is there once something has
/// been counted.
fn shown(page: &[MetricFamily]) -> Vec<String> {
    let gauges = page
        .iter()
        .filter(|family| family.get_field_type() == MetricType::GAUGE)
        .filter(|family| !family.name().starts_with(LEARNED));
    let series = |family: &MetricFamily, metric: &Metric| {
        let name = family.name();
        let labels = metric.get_label().iter();
        let labels: Vec<String> =
            labels.map(|pair| format!("{}={}", pair.name(), pair.value())).collect();
        let value = if SCALED_BY.contains(&name) {
            format!(" {}", metric.get_gauge().get_value())
        } else {
            String::new()
        };
        format!("{name}{{{}}}{value}", labels.join(","))
    };
    gauges
        .flat_map(|family| family.get_metric().iter().map(move |one| series(family, one)))
        .collect()
}
