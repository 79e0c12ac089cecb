//! Makes one plan per tick, as soon as the tick's snapshot is there or its deadline has passed, and
//! an early one when a variant becomes resolved, requests come for a model at zero, or load jumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::actors::collector;
use crate::policy;
use crate::policy::learned::Learned;
use crate::policy::metrics_gap::metrics_gaps;
use crate::policy::plan::Plan;
use crate::policy::snapshot::{ClusterSnapshot, CycleId};
use crate::state::recorder::CycleRecord;
use crate::state::{InForce, PlanProposal, Readers};
use crate::telemetry::in_cycle;
use wva_base::moment::Moment;
use wva_supervise::{Address, Context, Event, Slot, StateMachine, TimerEpoch};

/// Early cycles are at least this far from any other.
const EARLY_CYCLE_GAP: Duration = Duration::from_secs(1);

/// Messages of the optimizer.
#[derive(Debug)]
pub enum OptimizerMessage {
    /// The snapshot of this tick is published.
    SnapshotReady,
    /// To itself: the tick's query deadline has passed. Deadlines of an older epoch are overtaken.
    Deadline(TimerEpoch),
    /// Settings changed; the schedule may have.
    GenerationChanged,
    /// This process gained or lost the right to write.
    ClaimChanged,
    /// Something is to be decided without waiting for the tick: a variant became resolved, more requests wait in a
    /// router than replicas take, or load jumped in a collection between two ticks.
    EarlyCycleWanted,
    /// To itself: the gap between early cycles is over.
    EarlyCycle,
}

/// What the optimizer asks its shell to do.
#[derive(Debug)]
pub enum OptimizerEffect {
    /// Hand a plan to the emitter.
    Publish(PlanProposal),
    /// Come back.
    Arm(Duration, OptimizerMessage),
    /// Have the collector read before its next tick.
    Refresh,
}

/// The machine behind the role.
#[derive(Debug, Clone)]
pub struct Optimizer {
    shared: Readers,
    /// Number of the last cycle of all lives.
    cycles: Arc<AtomicU64>,
    plans: Slot<PlanProposal>,
    collector: Address<collector::CollectorMessage>,
    timer: TimerEpoch,
    planned: Option<Moment>,
    /// Whether an early cycle is on its way.
    is_early_armed: bool,
}

impl Optimizer {
    /// What every life of the role begins as.
    pub fn new(
        shared: Readers,
        plans: Slot<PlanProposal>,
        collector: Address<collector::CollectorMessage>,
    ) -> Self {
        Self {
            shared,
            cycles: Arc::default(),
            plans,
            collector,
            timer: TimerEpoch::default(),
            planned: None,
            is_early_armed: false,
        }
    }

    /// Waits for the end of the next tick's collection, should its snapshot never come.
    fn arm(&mut self, now: Moment, effects: &mut Vec<OptimizerEffect>) {
        let schedule = self.shared.settings.load().schedule;
        let wait = schedule.until_next(now) + schedule.query_deadline();
        let message = OptimizerMessage::Deadline(self.timer.advance());
        effects.push(OptimizerEffect::Arm(wait, message));
    }

    fn plan(&mut self, now: Moment, effects: &mut Vec<OptimizerEffect>) {
        if !self.shared.claim.may_write(now) {
            return;
        }
        // Before anything is read: what is read later is of this term or of a later one.
        let term = self.shared.claim.term();
        let duration =
            self.shared.series.engine.optimization_duration.with_label_values(&["success"]);
        let timer = duration.start_timer();
        let in_force = self.shared.settings.load();
        let cycle = self.cycles.fetch_add(1, Ordering::Relaxed) + 1;
        let cycle = CycleId(self.shared.hooks.cycle(cycle, self.timer.number() + 1));
        let _entered = in_cycle(Some(cycle)).entered();
        let snapshot = self.shared.hooks.snapshot(self.shared.snapshot(cycle));
        let settings = &in_force.generation.dynamic;
        let learned = self.shared.learned.load();
        let read = self.shared.hooks.planning_settings(settings);
        let plan = policy::plan(&snapshot, &learned, &read, in_force.generation.number, now);
        if let Err(violation) = policy::check_plan(&snapshot, settings, &plan) {
            tracing::error!(cycle = %plan.cycle, %violation, "plan breaks an invariant");
            let counter = &self.shared.series.engine.invariant_violations;
            counter.with_label_values(&[violation.number()]).inc();
        }
        timer.observe_duration();
        self.planned = Some(now);
        let plan = self.shared.hooks.plan(plan);
        let gaps = Arc::new(metrics_gaps(&snapshot, &plan));
        let plan = Arc::new(plan);
        self.record(now, &in_force, snapshot, learned, &plan);
        let proposal = PlanProposal { term, plan, gaps };
        let proposal = self.shared.hooks.proposal(proposal);
        effects.push(OptimizerEffect::Publish(proposal));
    }

    /// Hands a cycle to the record, which never waits. A planted defect of the settings is not recorded.
    fn record(
        &self,
        now: Moment,
        in_force: &InForce,
        snapshot: ClusterSnapshot,
        learned: Arc<Learned>,
        plan: &Arc<Plan>,
    ) {
        if !self.shared.recorder.is_on() {
            return;
        }
        self.shared.recorder.record(CycleRecord {
            now,
            generation: in_force.generation.number,
            snapshot,
            learned,
            settings: Arc::clone(&in_force.generation.dynamic),
            plan: Arc::clone(plan),
        });
    }

    /// Decides on the last snapshot, or has another one made if it is too old to be used again.
    /// Before the first collection there is nothing to decide on; what is stored is shown.
    fn plan_early(&mut self, now: Moment, effects: &mut Vec<OptimizerEffect>) {
        let metrics = self.shared.metrics.load();
        let reuse = self.shared.settings.load().generation.dynamic.cache.reuse;
        if reuse.has_ended(metrics.collected, now) {
            effects.push(OptimizerEffect::Refresh);
        } else if metrics.collected.is_some() {
            self.plan(now, effects);
        }
    }

    fn ask_early(&mut self, now: Moment, effects: &mut Vec<OptimizerEffect>) {
        if self.is_early_armed {
            return;
        }
        let since = self.planned.map_or(EARLY_CYCLE_GAP, |planned| now.since(planned));
        self.is_early_armed = true;
        effects.push(OptimizerEffect::Arm(
            EARLY_CYCLE_GAP.saturating_sub(since),
            OptimizerMessage::EarlyCycle,
        ));
    }
}

impl StateMachine for Optimizer {
    type Msg = OptimizerMessage;
    type Effect = OptimizerEffect;

    fn step(&mut self, now: Moment, event: Event<Self::Msg>, effects: &mut Vec<Self::Effect>) {
        match event {
            Event::Started | Event::Message(OptimizerMessage::ClaimChanged) => {
                if self.shared.metrics.load().collected.is_some() {
                    self.plan(now, effects);
                }
                self.arm(now, effects);
            }
            Event::Message(OptimizerMessage::Deadline(timer))
                if timer != self.timer && !self.shared.hooks.accepts_old_timers() => {}
            Event::Message(OptimizerMessage::SnapshotReady | OptimizerMessage::Deadline(_)) => {
                self.plan(now, effects);
                self.arm(now, effects);
            }
            Event::Message(OptimizerMessage::GenerationChanged) => self.arm(now, effects),
            Event::Message(OptimizerMessage::EarlyCycleWanted) => self.ask_early(now, effects),
            Event::Message(OptimizerMessage::EarlyCycle) => {
                self.is_early_armed = false;
                self.plan_early(now, effects);
            }
        }
    }

    fn perform(&mut self, cx: &Context<OptimizerMessage>, effect: OptimizerEffect) {
        match effect {
            OptimizerEffect::Publish(plan) => self.plans.put(plan),
            OptimizerEffect::Arm(after, message) => cx.arm(after, message),
            // An absent collector collects when it is back, and its tick comes anyway.
            OptimizerEffect::Refresh => self.collector.hint(collector::CollectorMessage::Refresh),
        }
    }
}
