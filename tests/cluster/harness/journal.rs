//! What a controller decided and showed over a while, so that a test can check every step and not
//! only the end.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::sleep;
use wva::policy::plan::{Decision, DecisionOutcome, Plan, PlanStage};
use wva::policy::snapshot::CycleId;
use wva::policy::units::Replicas;

use super::background::Background;
use super::controller::Controller;
use super::fault::{Fault, Result};
use super::wait::{eventually, seen};

/// Much shorter than a cycle, so that none is missed while the page is served.
const POLL: Duration = Duration::from_millis(200);

/// Records the decisions about one variant, and its gauge, from now on.
pub(crate) struct Journal {
    _task: Background,
    controller: Arc<Controller>,
    record: Arc<Mutex<Record>>,
}

#[derive(Default)]
struct Record {
    decisions: BTreeMap<CycleId, Decision>,
    /// Every value of the gauge, and that there was none, without repetitions.
    gauge: Vec<Option<f64>>,
}

impl Journal {
    /// Pages that are not served for a while are left out.
    pub(crate) fn follow(controller: &Arc<Controller>, namespace: &str, variant: &str) -> Self {
        let record = Arc::new(Mutex::new(Record::default()));
        let (polled, shared) = (Arc::clone(controller), Arc::clone(&record));
        let (namespace, variant) = (namespace.to_owned(), variant.to_owned());
        let task = Background::start(async move {
            loop {
                if let Ok(value) = polled.desired(&namespace, &variant).await {
                    let mut record = shared.lock().unwrap();
                    if record.gauge.last() != Some(&value) {
                        record.gauge.push(value);
                    }
                }
                if let Ok(Some(plan)) = last_plan(&polled).await {
                    let decisions = plan.decisions.into_values();
                    let found = decisions
                        .into_iter()
                        .find(|one| *one.key.namespace == namespace && *one.key.name == variant);
                    let mut record = shared.lock().unwrap();
                    record.decisions.extend(found.map(|decision| (plan.cycle, decision)));
                }
                sleep(POLL).await;
            }
        });
        Self { _task: task, controller: Arc::clone(controller), record }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    /// Waits for so many further cycles that looked at usable metrics, and checks that none of them
    /// wanted anything but what there is. The next cycle does not count: it may have begun before
    /// what the caller has just seen.
    pub(crate) async fn stays(&self, replicas: u32, cycles: usize, within: Duration) -> Result {
        let begun = last_plan(&self.controller).await?.map(|plan| plan.cycle);
        let first = begun.map(|cycle| CycleId(cycle.0 + 1));
        let wanted = (Some(Replicas(replicas)), Some(Replicas(replicas)));
        let further = || -> Vec<Decision> {
            let record = self.record();
            let further = record.decisions.iter();
            further
                .filter(|(cycle, _)| Some(**cycle) > first)
                .map(|(_, decision)| decision.clone())
                .collect()
        };
        let what = format!("{cycles} cycles at {replicas} replicas");
        eventually(what, within, async || {
            let decisions = further();
            for decision in &decisions {
                if (decision.current, decision.target) != wanted {
                    let text = format!("{wanted:?} is wanted in every cycle, not {decision:?}");
                    return Err(Fault::fatal(text));
                }
            }
            let analyzed = decisions
                .iter()
                .filter(|decision| decision.outcome == DecisionOutcome::Analyzed)
                .count();
            seen(&(analyzed >= cycles), &true)
        })
        .await
    }

    /// Checks the values of the gauge, in order and without repetitions. A gauge that went missing
    /// is a deviation.
    pub(crate) fn gauge_went(&self, wanted: &[u32]) -> Result {
        let mut way = self.record().gauge.clone();
        // Before its first value it is rightly missing.
        if way.first() == Some(&None) {
            way.remove(0);
        }
        let wanted: Vec<Option<f64>> = wanted.iter().map(|n| Some(f64::from(*n))).collect();
        at(&"the way of the gauge", &way, &wanted)
    }

    /// Checks every recorded decision: a count changes by one, and only when as many replicas are
    /// ready and report as exist; nothing leaves `least..=most`.
    pub(crate) fn takes_single_steps_from_rest(&self, least: u32, most: u32) -> Result {
        for (cycle, decision) in &self.record().decisions {
            // Before the target has been seen, nothing is published.
            let Some(Replicas(target)) = decision.target else {
                continue;
            };
            if target < least || target > most {
                let text = format!("{cycle}: beyond {least} to {most}: {decision:?}");
                return Err(Fault::new(text));
            }
            let moves = decision.steps.iter().filter(|step| step.from != step.to);
            for step in moves {
                let figures = &decision.figures;
                let rest = (
                    step.stage,
                    step.from.0.abs_diff(step.to.0),
                    decision.current,
                    figures.ready,
                    figures.reporting,
                );
                let from = step.from;
                let wanted = (PlanStage::Saturation, 1, Some(from), from.0, from.0);
                at(&format!("{cycle}: {step:?}"), &rest, &wanted)?;
            }
        }
        Ok(())
    }

    /// How many decisions were made while fewer replicas were ready than existed; none of them may
    /// be a step, and without any the other checks say little.
    pub(crate) fn cycles_with_pending_replicas(&self) -> usize {
        let record = self.record();
        let pending = record
            .decisions
            .values()
            .filter(|decision| decision.current > Some(Replicas(decision.figures.ready)));
        pending.count()
    }
}

async fn last_plan(controller: &Controller) -> Result<Option<Plan>> {
    Ok(serde_json::from_value(controller.debug("decisions").await?)?)
}

/// [`seen`], with the name of what was seen.
fn at<T: PartialEq + Debug>(what: &dyn std::fmt::Display, actual: &T, wanted: &T) -> Result {
    seen(actual, wanted).map_err(|fault| Fault::new(format!("{what}: {}", fault.text())))
}
