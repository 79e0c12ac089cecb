//! What is found in a plan when it is published.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Checker, CheckerState};
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::hearing::Ready;
use crate::chaos::check::plans::{Circumstances, Inherited};
use crate::chaos::check::spans::Span;
use crate::chaos::check::zero::AFTERGLOW;
use crate::chaos::fleet::Fleet;
use crate::chaos::process_checker::ProcessChecker;
use crate::chaos::prometheus_proxy::PodObservations;
use crate::chaos::surroundings::Surroundings;
use wva::policy::key::{ModelKey, VariantKey};
use wva::policy::plan::Plan;
use wva::policy::snapshot::{DeclaredBounds, ResolvedTarget, TargetView, VariantView};
use wva::policy::units::Replicas;
use wva::settings::Generation;
use wva::state::Readers;

/// How long before the first plan of a term at most its process has read what is stored.
const READ: Duration = Duration::from_mins(1);

/// How long before the end of a collection its answers arrive at most: as long as a query may take.
const ASKED: Duration = Duration::from_secs(10);

const MINUTE: Duration = Duration::from_mins(1);

impl Checker {
    pub(super) fn planned(&self, place: usize, plan: &Plan) {
        let targets: Vec<String> = plan
            .decisions
            .values()
            .map(|one| {
                one.target
                    .map_or_else(|| "-".to_owned(), |count| count.to_string())
            })
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
        let CheckerState {
            seats,
            zero,
            policies,
            around,
            fleet,
            instance,
            ..
        } = &mut *bench;
        let may_be_zero = |key: &VariantKey| {
            zero.get(key)
                .is_some_and(|last| now.saturating_sub(*last) < AFTERGLOW)
        };
        let seat = seats.get_mut(&place)?;
        seat.pace.planned(now);
        let calm = seat.calm();
        let may_sleep = |model: &ModelKey| policies.allow(model, calm, now);
        let in_force = seat.door.shared.settings.load();
        let dynamic = &in_force.generation.dynamic;
        seat.spans.note(dynamic, now);
        let (widest, lag) = behind(seat, plan)?;
        let views = seat.door.shared.board.snapshot();
        let bounds_of = |key: &VariantKey| bounds_of(views.get(key)?);
        let since_told = |prefix: &str| since_told(&seat.heard, prefix, now);
        let unheard = |key: &VariantKey| since_told(&pods_of(&seat.door.shared, key));
        let fresh = widest.fresh + widest.interval.max(lag);
        let rests_on = collected(seat, plan);
        let (heard, ready) = (&seat.heard, &seat.ready);
        let mute =
            |key: &VariantKey| mute((heard, ready), views.get(key)?, rests_on?, (fresh, now));
        let (shared, before) = (&seat.door.shared, seat.plans.last_cycle());
        let begins_anew = |key: &VariantKey| begins_anew(shared, before, key);
        let uid_of = |key: &VariantKey| Some(Arc::clone(&shared.mirrors.managed(key)?.object.uid));
        let target_of = |key: &VariantKey| views.get(key)?.target.resolved();
        let unserved =
            |key: &VariantKey| target_of(key).is_some_and(|target| target.ready == Replicas::ZERO);
        // What exists may have changed since the plan was made, in the same moment.
        let staying = |key: &VariantKey| {
            let now = target_of(key).map(ResolvedTarget::current_excluding_surge);
            now.max(seat.stood.get(key).copied())
        };
        let term = seat.door.shared.claim.term();
        let circumstances = Circumstances {
            term,
            age: now.saturating_sub(plan.at.monotonic),
            calm,
            unserved: &unserved,
            staying: &staying,
            budget: budget(fleet, plan, &in_force.generation),
            fleet: &fleet.gpus,
            stored: self.inherited(seat, (around.clone(), *instance), term),
            generation: in_force.generation.number,
            silent: since_told(""),
            unheard: &unheard,
            mute: &mute,
            usable: widest.usable,
            fresh,
            shortest: seat.spans.shortest_interval(now.saturating_sub(MINUTE)),
            may_be_zero: &may_be_zero,
            may_sleep: &may_sleep,
            begins_anew: &begins_anew,
            uid_of: &uid_of,
            bounds_of: &bounds_of,
        };
        for line in seat.plans.news(plan) {
            self.0.trace.note(&format!("c{place}"), "decides", &line);
        }
        Some(seat.plans.judge(plan, &circumstances))
    }

    /// D8, of the model that may go to zero.
    fn too_early(&self, place: usize, plan: &Plan) -> Option<InvariantViolation> {
        let now = self.now();
        let mut bench = self.bench();
        let CheckerState {
            seats,
            sleep,
            policies,
            ..
        } = &mut *bench;
        let (seat, sleep) = (seats.get(&place)?, sleep.as_mut()?);
        let retention = policies.retention(sleep.model(), seat.calm(), now)?;
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
        all.filter_map(|(key, variant)| Some((key.clone(), Replicas(variant.desired?))))
            .collect()
    }
}

/// The bounds of a variant, if it could be read.
fn bounds_of(view: &VariantView) -> Option<DeclaredBounds> {
    let is_read = !matches!(view.target, TargetView::Malformed { .. });
    is_read.then_some(view.bounds)
}

/// How the names of the pods of a variant begin: they are called after their deployment.
fn pods_of(shared: &Readers, key: &VariantKey) -> String {
    let view = shared.board.get(key);
    let target = view.as_ref().and_then(|view| view.target.resolved());
    let name = target.map_or(&key.name, |target| &target.key.name);
    format!("{name}-")
}

/// Whether a variant has had no series since the last plan: what was decided before is about a target that is
/// gone.
fn begins_anew(shared: &Readers, last: Option<u64>, key: &VariantKey) -> bool {
    let outlived = shared.records.get(key).map(|record| record.outlived);
    outlived.is_none_or(|outlived| outlived.is_some_and(|cycle| Some(cycle.0) >= last))
}

/// What was in force since the collection that a plan may rest on, and how long before it that was.
fn behind(seat: &ProcessChecker, plan: &Plan) -> Option<(Span, Duration)> {
    let made = plan.at.monotonic;
    let collected = seat.door.shared.metrics.load().collected;
    let collected = collected.map_or(made, |at| at.monotonic.min(made));
    Some((
        seat.spans.widest(collected)?,
        made.saturating_sub(collected),
    ))
}

/// When the collection ended that a plan rests on; `None` where another one has been published since.
fn collected(seat: &ProcessChecker, plan: &Plan) -> Option<Duration> {
    let collected = seat.door.shared.metrics.load().collected?.monotonic;
    (collected <= plan.at.monotonic).then_some(collected)
}

/// How long ago the newest sample was taken that was told of pods whose names begin like this.
fn since_told(heard: &PodObservations, prefix: &str, now: Duration) -> Duration {
    let last = heard.last(prefix);
    now.saturating_sub(last.unwrap_or_default())
}

/// A ready replica of a variant of which a collection told nothing, or nothing that is fresh.
fn mute(
    (heard, ready): (&PodObservations, &Ready),
    view: &VariantView,
    collected: Duration,
    (fresh, now): (Duration, Duration),
) -> Option<Arc<str>> {
    let is_heard = |pod: &str| {
        let news = heard.of(pod);
        news.is_some_and(|news| news.told + ASKED >= collected && news.taken + fresh >= now)
    };
    ready.silent(view, is_heard, collected)
}

/// The GPUs that a plan of these settings keeps within; one of earlier ones is not judged by them.
fn budget<'a>(fleet: &'a Fleet, plan: &Plan, in_force: &Generation) -> BTreeMap<&'a str, u32> {
    let is_of_now = plan.generation == in_force.number;
    let budget = is_of_now.then(|| fleet.budget(&in_force.dynamic));
    budget.unwrap_or_default()
}
