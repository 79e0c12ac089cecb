//! L1: after the faults everything rests where it would have rested without them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::check::InvariantViolation;
use super::check::series::SCALED_BY;
use super::checker::Checker;
use super::conditions::{self, unreported};
use super::deletion_costs::chosen;
use super::process_manager::ProcessManager;
use super::surroundings::{object_of, stored_count};
use super::workload::{is_by_latency, is_by_tokens, may_go_to_zero};
use crate::apiserver::Insider;
use crate::workloads::object::Object;
use crate::world::controller::ControllerView;
use crate::world::{AUTOSCALERS, Frame, Scenario, ScenarioVariant, VariantFrame};
use wva::policy::key::VariantKey;
use wva::policy::plan::{Plan, Reason};
use wva_supervise::RoleState;

/// Requests in the queue of a server, or before all of them, beyond which a model is not served.
const QUEUE: f64 = 10.0;
/// Requests in the shortest queue of a model's servers beyond which all of them counted as full at the last
/// scrape, too: five are enough, and queues swing by two within a minute.
const ROOM: f64 = 8.0;

/// L3: models for whose requests there are too few replicas, although more are allowed: some variant of
/// them is below its most, and no limit of GPUs keeps any there, which `is_kept` says. The percentage-based analysis does
/// not know of requests that a router holds, and rests while one server has room; where none has it has grown.
pub(super) fn wanting(
    frame: &Frame,
    scenario: &Scenario,
    is_kept: &dyn Fn(&VariantKey) -> bool,
) -> Vec<InvariantViolation> {
    let may_grow = |by_routers: bool, variant: &ScenarioVariant, seen: &VariantFrame| {
        let (least, most) = variant.bounds;
        let enough = if by_routers { most } else { least.max(1) + 1 };
        seen.desired < Some(enough)
    };
    let models = scenario.models.iter().zip(&frame.models);
    let wanting = models.filter(|(model, seen)| {
        let by_routers = is_by_tokens(scenario) || is_by_latency(scenario);
        let held = crate::number::real(u64::try_from(seen.held).unwrap_or(u64::MAX));
        let keys = model.variants.iter();
        let mut keys = keys.map(|variant| VariantKey::new(scenario.namespace, variant.name));
        let mut variants = model.variants.iter().zip(&seen.variants);
        let (is_short, can_grow) = if by_routers {
            let can_grow = variants.any(|(variant, seen)| may_grow(true, variant, seen));
            (seen.queue.max(held) > QUEUE, can_grow)
        } else {
            let can_grow = variants.all(|(variant, seen)| may_grow(false, variant, seen));
            (seen.shortest_queue > ROOM, can_grow)
        };
        is_short && can_grow && !keys.any(|key| is_kept(&key))
    });
    wanting
        .map(|(model, seen)| {
            let counts = seen.variants.iter();
            let counts = counts.map(|one| format!("{} of {}", one.ready, one.name));
            let text = format!(
                "{:.1} requests wait at each server, {:.1} at least, of {} and {} before them, with {}",
                seen.queue,
                seen.shortest_queue,
                model.name,
                seen.held,
                counts.collect::<Vec<_>>().join(" and ")
            );
            InvariantViolation::new("L3", text)
        })
        .collect()
}

pub(super) fn is_limited(plan: &Plan, key: &VariantKey) -> bool {
    let decision = plan.decisions.get(key);
    decision.is_some_and(|decision| {
        let mut steps = decision.steps.iter();
        steps.any(|step| {
            matches!(
                step.why,
                Reason::NotGrowing { .. }
                    | Reason::Granted { .. }
                    | Reason::Limited { .. }
                    | Reason::ShareLimited { .. }
                    | Reason::BudgetUnknown { .. }
                    | Reason::GpusNotCounted(_)
                    | Reason::CountedOn { .. }
                    | Reason::FedByPrefill { .. }
                    | Reason::NeedAtMaximum { .. }
                    | Reason::ServedByOthers
            )
        })
    })
}

#[derive(Debug, Default)]
pub(super) struct Stand {
    pub(super) since: Option<Duration>,
    why: String,
}

impl Stand {
    pub(super) fn look(
        &mut self,
        cast: &ProcessManager,
        (scenario, server): (&Scenario, &Insider),
        awaited: Option<String>,
        now: Duration,
    ) {
        match awaited.or_else(|| unrest(cast, scenario, server)) {
            Some(why) => {
                self.since = None;
                self.why = why;
            }
            None => self.since = Some(self.since.unwrap_or(now)),
        }
    }

    pub(super) fn judge(&self, calm: Duration, rest: Duration, judge: &Checker) {
        let why = &self.why;
        let text = match self.since {
            Some(since) if since <= calm + rest => return,
            Some(since) => {
                let late = since.saturating_sub(calm).as_secs();
                format!("at rest only {late} s after the last fault: before, {why}")
            }
            None => format!("not at rest: {why}"),
        };
        judge.report(InvariantViolation::new("L1", text));
    }
}

/// Why everything is not at rest. What is quick to see comes first.
fn unrest(cast: &ProcessManager, scenario: &Scenario, server: &Insider) -> Option<String> {
    let mut doors = Vec::new();
    for place in 0..cast.members.len() {
        match cast.door(place) {
            Some(door) => doors.push(door),
            None => return Some(format!("c{place} does not run")),
        }
    }
    let leaders = doors.iter().copied().filter(|door| door.leads());
    let leaders: Vec<&Arc<ControllerView>> = leaders.collect();
    let [leader] = leaders.as_slice() else {
        return Some(format!("{} processes lead", leaders.len()));
    };
    uneven(leader, scenario, server)
        .or_else(|| autoscaled(scenario, server))
        .or_else(|| unreported(leader, scenario, server))
        .or_else(|| chosen(server))
        .or_else(|| unwell(&doors))
}

fn unwell(doors: &[&Arc<ControllerView>]) -> Option<String> {
    doors.iter().enumerate().find_map(|(place, door)| {
        let mut roles = door.actors.report().into_iter();
        let unwell = roles.find(|one| one.state != RoleState::Running)?;
        Some(format!("{} of c{place} is {:?}", unwell.role, unwell.state))
    })
}

fn autoscaled(scenario: &Scenario, server: &Insider) -> Option<String> {
    let mut models = scenario.autoscaled.iter().map(|one| &one.model);
    models.find_map(|model| {
        let mut variants = model.variants.iter();
        variants.find_map(|variant| {
            let (name, least) = (variant.name, variant.bounds.0);
            let stored = server.get("deployments.apps", scenario.namespace, name)?;
            let count = Object(stored).number("/spec/replicas");
            let text = || format!("{name} has {count} replicas instead of {least}");
            (count != i64::from(least)).then(text)
        })
    })
}

/// A variant that has other counts than its least. A model without minimum whose policy keeps it from zero
/// rests with one replica by tokens. By percentages each of its variants does, but for those that
/// a hand has scaled to nothing, which stay there.
fn uneven(leader: &ControllerView, scenario: &Scenario, server: &Insider) -> Option<String> {
    scenario.models.iter().find_map(|model| {
        let counts =
            |variant: &ScenarioVariant| counts(leader, (scenario.namespace, variant), server);
        let counts: Vec<(&ScenarioVariant, [Option<u32>; 4])> =
            model.variants.iter().map(|variant| (variant, counts(variant))).collect();
        let may_sleep = may_go_to_zero(scenario, model);
        let uneven = counts.iter().find(|(variant, counts)| {
            let least = variant.bounds.0;
            let most = if may_sleep { least } else { least.max(1) };
            !(least..=most).any(|count| *counts == [Some(count); 4])
        });
        if let Some((variant, counts)) = uneven {
            let show = |count: &Option<u32>| {
                count.map_or_else(|| "-".to_owned(), |count| count.to_string())
            };
            let (name, least) = (variant.name, variant.bounds.0);
            let counts = counts.iter().map(show).collect::<Vec<_>>().join("/");
            return Some(format!(
                "{name} has {counts} as shown/stored/replicas/ready instead of {least}"
            ));
        }
        let least: u32 = model.variants.iter().map(|variant| variant.bounds.0).sum();
        let shown: u32 = counts.iter().filter_map(|(_, [shown, ..])| *shown).sum();
        let is_odd = !may_sleep && is_by_tokens(scenario) && shown != least.max(1);
        is_odd.then(|| format!("{} has {shown} replicas", model.name))
    })
}

fn counts(
    leader: &ControllerView,
    of: (&str, &ScenarioVariant),
    server: &Insider,
) -> [Option<u32>; 4] {
    let (namespace, variant) = of;
    let name = variant.name;
    let key = VariantKey::new(namespace, name);
    let desired = leader.shared.records.desired(&key).map(|count| count.0);
    let object = object_of(server, namespace, name);
    let target = server.get(variant.resource(), namespace, name).map(Object);
    let target = target.as_ref();
    let stored = object.as_ref().and_then(stored_count);
    let replicas = target.and_then(|target| target.count("/spec/replicas"));
    // Where none is ready, the field may be left out.
    let ready = target.map(|target| target.count("/status/readyReplicas").unwrap_or_default());
    [desired, stored, replicas, ready]
}

/// Series of what a process has learned: how long starts took that it has seen.
const LEARNED: &str = "wva_replica_start_seconds";

/// What there is once everything is at rest, as far as it is the same whatever happened before; a line for each fact.
/// Counts of what has happened, times, and what was learned are no part of it.
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

#[cfg(test)]
mod tests {
    use super::super::workload::{BY_LATENCY, BY_TOKENS};
    use super::*;
    use crate::world::{ConfigMap, ModelFrame, scenario};

    const BY_PERCENTAGES: &str = "";

    fn want(entry: &str, held: usize, queue: f64, shortest: f64, desired: [u32; 2]) -> bool {
        let mut scenario = scenario("days").unwrap();
        scenario.models.truncate(1);
        scenario.config =
            vec![ConfigMap { name: "any", data: vec![("default", entry.to_owned())] }];
        let variants = desired
            .map(|desired| VariantFrame { desired: Some(desired), ..VariantFrame::default() });
        let model = ModelFrame {
            held,
            queue,
            shortest_queue: shortest,
            variants: variants.into(),
            ..ModelFrame::default()
        };
        let frame = Frame { models: vec![model], ..Frame::default() };
        !wanting(&frame, &scenario, &|_| false).is_empty()
    }

    #[test]
    fn a_model_whose_requests_wait_has_grown_as_far_as_it_may() {
        let scenario = scenario("days").unwrap();
        let variants = scenario.models[0].variants.iter();
        let bounds: Vec<(u32, u32)> = variants.map(|variant| variant.bounds).collect();
        assert_eq!(bounds, [(1, 4), (1, 5)]);
        for (entry, held, queue, shortest, desired, expected) in [
            (BY_TOKENS, 10, 10.0, 10.0, [1, 1], false),
            (BY_TOKENS, 11, 0.0, 0.0, [1, 1], true),
            (BY_LATENCY, 11, 0.0, 0.0, [1, 1], true),
            (BY_TOKENS, 0, 11.0, 0.0, [1, 1], true),
            (BY_TOKENS, 11, 0.0, 0.0, [4, 4], true),
            (BY_LATENCY, 11, 0.0, 0.0, [4, 4], true),
            (BY_TOKENS, 11, 0.0, 0.0, [4, 5], false),
            (BY_LATENCY, 11, 0.0, 0.0, [4, 5], false),
            (BY_PERCENTAGES, 11, 11.0, 8.0, [1, 1], false),
            (BY_PERCENTAGES, 0, 9.0, 9.0, [1, 1], true),
            (BY_PERCENTAGES, 0, 9.0, 9.0, [1, 2], false),
        ] {
            let found = want(entry, held, queue, shortest, desired);
            assert_eq!(found, expected, "{entry} {held} {queue} {desired:?}");
        }
    }
}
