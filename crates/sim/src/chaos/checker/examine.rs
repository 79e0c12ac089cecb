//! What is found in a plan when it is published.

use std::sync::Arc;
use std::time::Duration;

use super::{Checker, CheckerState};
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::plans::{Circumstances, Inherited};
use crate::chaos::process_checker::ProcessChecker;
use crate::chaos::scale_to_zero::AFTERGLOW;
use crate::chaos::surroundings::Surroundings;
use wva::policy::key::{ModelKey, VariantKey};
use wva::policy::plan::Plan;
use wva::policy::units::Replicas;

/// How long before the first plan of a term at most its process has read what is stored.
const READ: Duration = Duration::from_mins(1);

const MINUTE: Duration = Duration::from_mins(1);

impl Checker {
    pub(super) fn planned(&self, place: usize, plan: &Plan) {
        let targets: Vec<String> = plan
            .decisions
            .values()
            .map(|one| one.target.map_or_else(|| "-".to_owned(), |count| count.to_string()))
            .collect();
        let text = format!(
            "cycle {:<5} generation {:<3} {}",
            plan.cycle,
            plan.generation,
            targets.join(" ")
        );
        let who = format!("c{place}");
        self.0.trace.note(&who, "plan", &text);
        let found = self.examine(place, plan).unwrap_or_default();
        self.report_all(found);
        self.report_all(self.too_early(place, plan));
        self.claims();
    }

    /// D, C2: judges a plan by what its process and the cluster know.
    fn examine(&self, place: usize, plan: &Plan) -> Option<Vec<InvariantViolation>> {
        let now = self.now();
        let mut bench = self.bench();
        bench.counts.plans += 1;
        let CheckerState { seats, zero, policies, around, fleet, instance, .. } = &mut *bench;
        let may_be_zero = |key: &VariantKey| {
            zero.get(key).is_some_and(|last| now.saturating_sub(*last) < AFTERGLOW)
        };
        let seat = seats.get_mut(&place)?;
        seat.pace.planned(now);
        let calm = seat.calm();
        let may_sleep = |model: &ModelKey| policies.allow(model, calm, now);
        let shared = &seat.door.shared;
        let in_force = shared.settings.load();
        let dynamic = &in_force.generation.dynamic;
        seat.spans.note(dynamic, now);
        let made = plan.at.monotonic;
        let last = shared.metrics.load().collected.map(|at| at.monotonic);
        let collected = last.unwrap_or(made).min(made);
        let widest = seat.spans.widest(collected)?;
        let term = shared.claim.term();
        // One of earlier settings is not judged by the budget of these.
        let is_of_now = plan.generation == in_force.generation.number;
        let budget = is_of_now.then(|| fleet.budget(dynamic));
        let circumstances = Circumstances {
            now,
            term,
            calm,
            shared,
            views: shared.board.snapshot(),
            observed: &seat.observed,
            ready: &seat.ready,
            stood: &seat.stood,
            collected: last.filter(|at| *at <= made),
            budget: budget.unwrap_or_default(),
            fleet: &fleet.gpus,
            stored: self.inherited(seat, (around.clone(), *instance), term),
            generation: in_force.generation.number,
            usable: widest.usable,
            fresh: widest.fresh + widest.interval.max(made.saturating_sub(collected)),
            shortest: seat.spans.shortest_interval(now.saturating_sub(MINUTE)),
            may_be_zero: &may_be_zero,
            may_sleep: &may_sleep,
        };
        for line in seat.plans.news(plan) {
            self.0.trace.note(&format!("c{place}"), "decides", &line);
        }
        Some(seat.plans.judge(plan, &circumstances))
    }

    fn too_early(&self, place: usize, plan: &Plan) -> Option<InvariantViolation> {
        let now = self.now();
        let mut bench = self.bench();
        let CheckerState { seats, sleep, policies, .. } = &mut *bench;
        let (seat, sleep) = (seats.get(&place)?, sleep.as_mut()?);
        let retention = policies.retention(&sleep.of.model, seat.calm(), now)?;
        let widest = seat.spans.widest(now.saturating_sub(MINUTE))?;
        sleep.too_early(plan, (retention, widest), seat.misled_for(now), now)
    }

    /// The counts that the first plan of a term goes on from: what is stored, if the process can have
    /// read it.
    fn inherited(
        &self,
        seat: &ProcessChecker,
        (known, instance): (Option<Arc<Surroundings>>, Option<&str>),
        term: u64,
    ) -> Inherited {
        if !seat.plans.begins(term) || seat.is_misled(READ, self.now()) {
            return Inherited::new();
        }
        let around = Surroundings::follow(known, &self.0.insider, instance);
        let all = around.variants.iter();
        all.filter_map(|(key, variant)| Some((key.clone(), Replicas(variant.desired?)))).collect()
    }
}
