//! D8, L2: a model that may go to zero does not while it is in use, and comes back when a request waits. Which models
//! may, and how long after their last use, follows from the ConfigMaps that are stored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::check::InvariantViolation;
use super::check::settings::{CollectionTimes, stored};
use super::fleet::Fleet;
use super::process_checker::ProcessChecker;
use crate::apiserver::Insider;
use crate::workloads::object::Object;
use crate::world::{LoadSource, Scenario, World};
use wva::policy::key::{ModelKey, VariantKey};
use wva::policy::params::DynamicSettings;
use wva::policy::plan::{Decision, Plan, PlanStage};
use wva::policy::signal::LOOK;
use wva::policy::units::Replicas;
use wva::settings::generation::transition;
use wva::settings::problem::Diagnostics;
use wva::settings::purpose::Purpose;
use wva::settings::{Generation, Sources};
use wva::state::Readers;
use wva_base::moment::Moment;

/// How old what a decision knows of use may be: a sample that is still fresh, and a collection.
const KNOWN_AGE: Duration = Duration::from_secs(90);
/// How much sooner than its retention a model may sleep: seconds are looked at, and retention is counted
/// from the last collection that saw a use.
const SLACK: Duration = Duration::from_secs(20);
/// How long use is remembered: the longest retention that is drawn.
pub(super) const REMEMBERED: Duration = Duration::from_hours(1);
/// How long requests wait at most, besides two intervals, until a start is ordered: a list of routers that
/// has no answer, the longest pause until it is requested again, and what is read then.
const WOKEN: Duration = Duration::from_secs(75);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScaleToZeroModel {
    pub(crate) number: usize,
    pub(crate) model: ModelKey,
    pub(crate) variants: Vec<VariantKey>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Use {
    pub(super) comes: bool,
    pub(super) waits: bool,
    pub(super) answers: bool,
}

impl Use {
    pub(super) fn of(
        sleeper: &ScaleToZeroModel,
        (scenario, world): (&Scenario, &World),
        insider: &Insider,
        now: Duration,
    ) -> Option<Self> {
        let model = scenario.models.get(sleeper.number)?;
        let comes = match &model.load {
            LoadSource::Flow { shape, .. } => shape.rate(now) > 0.0,
            _ => false,
        };
        let waits = world.frame().models.get(sleeper.number)?.held > 0;
        let answers = waits && {
            let name = format!("{}-epp-0", model.name);
            let pod = insider.get("pods.", scenario.namespace, &name);
            pod.map(Object).is_some_and(|pod| {
                let outages = world.workloads.outages();
                pod.holds("Ready") && !outages.holds(pod.text("/spec/nodeName"))
            })
        };
        Some(Self { comes, waits, answers })
    }
}

#[derive(Debug)]
pub(super) struct Sleep {
    pub(super) of: ScaleToZeroModel,
    used: VecDeque<(Duration, Duration)>,
    now: Use,
    started: Option<Duration>,
}

impl Sleep {
    pub(super) fn new(of: ScaleToZeroModel) -> Self {
        Self { of, used: VecDeque::new(), now: Use::default(), started: None }
    }

    pub(super) fn note(&mut self, now: Use, at: Duration) {
        let was = self.now.comes || self.now.waits;
        self.now = now;
        if !(now.comes || now.waits) {
            return;
        }
        match self.used.back_mut() {
            Some((_, to)) if was => *to = at,
            _ => self.used.push_back((at, at)),
        }
        let oldest = at.saturating_sub(REMEMBERED);
        while self.used.pop_front_if(|(_, to)| *to < oldest).is_some() {}
    }

    fn used_lately(
        &self,
        (retention, age): (Duration, Duration),
        now: Duration,
    ) -> Option<Duration> {
        let from = now.saturating_sub(retention.saturating_sub(SLACK));
        let to = now.checked_sub(age)?;
        let mut known = self.used.iter().rev();
        let (_, last) = known.find(|(begin, end)| *begin <= to && *end >= from)?;
        Some(now.saturating_sub(*last))
    }

    /// D8: no plan sends it to zero within its retention, or within that of its start. `retention` is the
    /// shortest that may be in force, `widest` what else was in force lately, and `misled` how long ago Prometheus last
    /// answered falsely, as if it were not in use.
    pub(super) fn too_early(
        &mut self,
        plan: &Plan,
        (retention, widest): (Duration, CollectionTimes),
        misled: Option<Duration>,
        now: Duration,
    ) -> Option<InvariantViolation> {
        // While it is renamed a variant serves another model, and another object may have its target.
        let decisions = || {
            let all = plan.decisions.values();
            all.filter(|one| one.model == self.of.model)
        };
        let is_none_of_it =
            |one: &Decision| one.target.is_none() && !self.of.variants.contains(&one.key);
        let sleeps =
            decisions().all(|one| one.target == Some(Replicas::ZERO) || is_none_of_it(one));
        let falls = decisions().any(|one| {
            let base = one.steps.first().map(|step| step.from);
            base > Some(Replicas::ZERO) && one.target == Some(Replicas::ZERO)
        });
        let starts = decisions().any(|one| {
            let mut steps = one.steps.iter();
            steps.any(|step| step.stage == PlanStage::Zero && step.to > step.from)
        });
        if starts {
            self.started = Some(now);
        }
        if !(sleeps && falls) {
            return None;
        }
        let since = |at: Duration| now.saturating_sub(at);
        // However long the interval is, use is looked for once a minute.
        let age = KNOWN_AGE.max(widest.fresh + widest.interval.min(LOOK));
        let started = self.started.map(since);
        let started = started.filter(|ago| *ago < retention);
        let is_misled = misled.is_some_and(|ago| ago < retention + age);
        let used = self.used_lately((retention, age), now).filter(|_| !is_misled);
        let (what, ago) = match (started, used) {
            (Some(ago), _) => ("started", ago),
            (None, Some(ago)) => ("in use", ago),
            (None, None) => return None,
        };
        let text =
            format!("{} goes to 0 although it was {what} {} s ago", self.of.model, ago.as_secs());
        Some(InvariantViolation::new("D8", text))
    }

    /// L2: who leads starts it when a request waits for it, whatever Prometheus says.
    pub(super) fn unwoken(
        &self,
        place: usize,
        seat: &mut ProcessChecker,
        fleet: &Fleet,
        now: Moment,
    ) -> Vec<InvariantViolation> {
        let shared = &seat.door.shared;
        let limit = shared.settings.load().generation.dynamic.interval * 2 + WOKEN;
        let is_due = self.now.waits && self.now.answers && self.sleeps(shared, fleet);
        let present = is_due.then(|| {
            let (model, limit) = (&self.of.model, limit.as_secs());
            format!("c{place}: requests wait for {model}, and nothing was started for {limit} s")
        });
        seat.patience.judge(("L2", "asleep"), present, seat.beats(now), limit)
    }

    /// Whether all of it is seen, at zero and kept there, and not for want of GPUs: a start is refused where
    /// there is no room for it.
    fn sleeps(&self, shared: &Readers, fleet: &Fleet) -> bool {
        let plan = shared.last_plan();
        let settings = shared.settings.load();
        let is_refused = |key| {
            let plan = plan.as_ref()?;
            let is_refused = plan.decisions.get(key)?.is_refused_wake();
            Some(is_refused && !fleet.has_room(&settings.generation.dynamic, plan, key))
        };
        self.of.variants.iter().all(|key| {
            let view = shared.board.get(key);
            let at_zero = view.is_some_and(|view| {
                let target = view.target.resolved();
                view.model == self.of.model
                    && target.is_some_and(|target| target.current == Replicas::ZERO)
            });
            at_zero
                && shared.records.desired(key) == Some(Replicas::ZERO)
                && is_refused(key) != Some(true)
        })
    }
}

const CONFIG_MAPS: &str = "configmaps.";
/// How soon in calm no process acts on what was in force before.
const SETTLED: Duration = Duration::from_secs(30);
/// How long after a permission to go to zero has ended a process may still act on it that may not know:
/// mirrors are listed afresh every ten minutes.
pub(crate) const AFTERGLOW: Duration = Duration::from_mins(12);

/// The policy that follows from what is stored, and those before it that a process may still act on. Content
/// that is refused ends nothing: what was valid before it stays in force.
#[derive(Debug, Default)]
pub(crate) struct ZeroPolicies {
    version: u64,
    now: Option<Generation>,
    /// Whether some of what is stored is refused, so that a process may keep anything that it had.
    is_refused: bool,
    past: VecDeque<(Duration, Arc<DynamicSettings>)>,
}

impl ZeroPolicies {
    /// Takes in what is stored. `of` is what some process has in force, whose names of ConfigMaps count, and
    /// its flags and environment.
    pub(crate) fn note(
        &mut self,
        (of, fixed): (&Generation, &Sources),
        insider: &Insider,
        now: Duration,
    ) {
        if self.now.is_none() || insider.changed_since(self.version, &[CONFIG_MAPS]) {
            let before = self.now.get_or_insert_with(|| of.clone());
            let transition = transition(before, &stored(before, fixed, insider));
            self.is_refused = is_refused(&transition.diagnostics);
            if let Some(next) = transition.next {
                let before = std::mem::replace(before, next);
                self.past.push_back((now, before.dynamic));
            }
        }
        self.version = insider.version();
        self.past.retain(|(at, _)| now.saturating_sub(*at) < AFTERGLOW);
        if self.is_refused {
            self.past.iter_mut().for_each(|(at, _)| *at = now);
        }
    }

    fn in_force(
        &self,
        calm: Option<Duration>,
        now: Duration,
    ) -> impl Iterator<Item = &DynamicSettings> {
        let may_last = move |at: Duration| match calm {
            Some(since) => now < at.max(since) + SETTLED,
            None => true,
        };
        let past = self.past.iter().filter(move |(at, _)| may_last(*at));
        let present = self.now.iter().map(|generation| &*generation.dynamic);
        past.map(|(_, dynamic)| &**dynamic).chain(present)
    }

    /// Whether the process may send a model to zero; also before anything is known.
    pub(crate) fn allow(&self, model: &ModelKey, calm: Option<Duration>, now: Duration) -> bool {
        let mut all = self.in_force(calm, now);
        self.now.is_none() || all.any(|dynamic| dynamic.may_go_to_zero(model))
    }

    /// How long a model must have been idle before the process sends it to zero.
    pub(crate) fn retention(
        &self,
        model: &ModelKey,
        calm: Option<Duration>,
        now: Duration,
    ) -> Option<Duration> {
        let all = self.in_force(calm, now);
        all.map(|dynamic| dynamic.scale_to_zero.retention(model)).min()
    }
}

fn is_refused(diagnostics: &Diagnostics) -> bool {
    let mut problems = diagnostics.problems.iter();
    problems.any(|problem| matches!(problem.purpose(), Purpose::ScaleToZero | Purpose::Saturation))
}
