//! Publishes decisions: gauges, status intents, events, one log line per change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::actors::mailboxes::Mailboxes;
use crate::metrics::VariantLabels;
use crate::policy::condition::Hints;
use crate::policy::key::VariantKey;
use crate::policy::plan::{Action, Decision};
use crate::policy::record::{PublishedRecord, Troubles};
use crate::policy::snapshot::{CycleId, VariantView};
use crate::policy::units::Replicas;
use crate::state::records::RecordTable;
use crate::state::{EmitterWriters, PlanProposal, Readers};
use crate::telemetry::in_cycle;
use wva_base::moment::Moment;
use wva_supervise::{Context, Epoch, Event, StateMachine};

mod news;
mod succession;
#[cfg(test)]
pub(in crate::actors) mod tests;

pub use news::WrongNamesake;
pub use succession::Succession;

/// How long a raise waits for its status to be stored. While the API server stores nothing, no scaler
/// can act either, and one that can must not wait for long.
const STORAGE_PATIENCE: Duration = Duration::from_secs(2);

/// Messages of the emitter.
#[derive(Debug)]
pub enum EmitterMessage {
    /// A plan is in the slot.
    PlanReady,
    /// Views changed, or variants are gone.
    ViewsChanged,
    /// This process gained or lost the right to write.
    ClaimChanged,
    /// Writes of statuses have ended, well or not.
    StatusSettled,
    /// To itself: a raise has waited for its write for long enough.
    Overdue,
}

/// The end of a write of a status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusWriteResult {
    /// The variant.
    pub key: VariantKey,
    /// The count that is stored now; `None` if the write failed.
    pub stored: Option<Replicas>,
}

/// What the emitter asks its shell to do.
#[derive(Debug)]
pub enum EmitterEffect {
    /// Keep, show and write one record.
    Publish {
        /// The new record.
        record: Arc<PublishedRecord>,
        /// The one it replaces.
        previous: Option<Arc<PublishedRecord>>,
    },
    /// Take everything of one variant down.
    Forget {
        /// The record that goes.
        previous: Arc<PublishedRecord>,
    },
    /// Count and announce a change of the desired count.
    Announce {
        /// The record with the new count.
        record: Arc<PublishedRecord>,
        /// The decision that changed it.
        decision: Box<Decision>,
        /// Direction from the count published before.
        action: Action,
    },
    /// Report trouble, and its end.
    ReportTroubles {
        /// The new record.
        record: Arc<PublishedRecord>,
        /// The record before it.
        previous: Option<Arc<PublishedRecord>>,
    },
    /// Report what is wrong with other objects of the name of a variant, all of it.
    ReportNamesakes(VariantKey, Vec<WrongNamesake>),
    /// Show raises that are stored, or were waited for in vain.
    Reveal(BTreeSet<VariantKey>),
    /// Note that nothing is left of an earlier term of the claim.
    Enter(u64),
    /// Note which plan counts from now on: before anything of it is shown, so that a successor goes on with it.
    Adopt(PlanProposal),
    /// Show what a plan states about metrics and limits.
    Keep(Succession),
}

impl EmitterEffect {
    fn cycle(&self) -> Option<CycleId> {
        match self {
            Self::Publish { record, .. }
            | Self::Announce { record, .. }
            | Self::ReportTroubles { record, .. } => record.decided.cycle,
            Self::Adopt(PlanProposal { plan, .. }) | Self::Keep(Succession { plan, .. }) => {
                Some(plan.cycle)
            }
            Self::Forget { .. } | Self::ReportNamesakes(..) | Self::Reveal(_) | Self::Enter(_) => {
                None
            }
        }
    }
}

/// The machine behind the role.
#[derive(Debug)]
pub struct Emitter {
    shared: Readers,
    writers: Arc<EmitterWriters>,
    epoch: Epoch,
    mailboxes: Arc<Mailboxes>,
    plan: Option<PlanProposal>,
    /// Raises that are not shown before they are stored, and until when at most: a successor begins
    /// with what is stored, and must not lower what was shown.
    unstored: BTreeMap<VariantKey, Moment>,
    /// What is wrong with other objects of the name of a variant, as it was said last.
    wrong: BTreeMap<VariantKey, Vec<WrongNamesake>>,
}

impl Emitter {
    /// A new life of the role.
    pub fn new(
        shared: Readers,
        writers: Arc<EmitterWriters>,
        epoch: &Epoch,
        mailboxes: Arc<Mailboxes>,
    ) -> Self {
        let plan = shared.plan.load().as_ref().clone();
        Self {
            shared,
            writers,
            epoch: epoch.clone(),
            mailboxes,
            plan,
            unstored: BTreeMap::new(),
            wrong: BTreeMap::new(),
        }
    }

    /// Everything: after a restart, and when the right to write comes or goes. Records of an earlier
    /// term go first, since another instance may have led since. A life that is killed on the way begins again.
    fn full_pass(&mut self, now: Moment, effects: &mut Vec<EmitterEffect>) {
        drop(self.mailboxes.changed.drain());
        let may_write = self.shared.claim.may_write(now);
        let term = self.shared.claim.term();
        let is_of_this_term = self.is_of_this_term();
        self.plan.take_if(|known| !may_write || known.term != term);
        let views = self.shared.board.snapshot();
        for (key, record) in self.shared.records.snapshot() {
            let stays = self.shared.hooks.shows_without_claim();
            if (!may_write && !stays) || !is_of_this_term || !views.contains_key(&key) {
                effects.push(EmitterEffect::Forget { previous: record });
            }
        }
        if !is_of_this_term {
            effects.push(EmitterEffect::Enter(term));
        }
        if !may_write {
            return;
        }
        for view in views.values() {
            let known = self.shared.records.get(&view.key);
            self.publish_after(view, known.filter(|_| is_of_this_term), now, effects);
        }
    }

    fn is_of_this_term(&self) -> bool {
        self.shared.records.term() == self.shared.claim.term()
    }

    fn take_plan(&mut self, now: Moment, effects: &mut Vec<EmitterEffect>) -> Option<Succession> {
        let new = self.mailboxes.plans.take()?;
        let counts = self.shared.claim.may_write(now) && new.term == self.shared.claim.term();
        let is_overtaken = |last: &PlanProposal| last.plan.cycle >= new.plan.cycle;
        if !counts || self.plan.as_ref().is_some_and(is_overtaken) {
            return None;
        }
        let plan = Arc::clone(&new.plan);
        let previous = self.shared.last_plan();
        effects.push(EmitterEffect::Adopt(new.clone()));
        self.plan = Some(self.shared.hooks.shown_plan(new));
        Some(Succession { plan, previous })
    }

    fn follow_plan(&mut self, now: Moment, effects: &mut Vec<EmitterEffect>) {
        let Some(taken) = self.take_plan(now, effects) else {
            return;
        };
        if self.is_of_this_term() {
            for key in taken.plan.decisions.keys() {
                if let Some(view) = self.shared.board.get(key) {
                    self.publish(&view, now, effects);
                }
            }
        } else {
            self.full_pass(now, effects);
        }
        effects.push(EmitterEffect::Keep(taken));
    }

    fn refresh(&mut self, now: Moment, effects: &mut Vec<EmitterEffect>) {
        if !self.is_of_this_term() {
            return self.full_pass(now, effects);
        }
        let may_write = self.shared.claim.may_write(now);
        for key in self.mailboxes.changed.drain() {
            match self.shared.board.get(&key) {
                Some(view) if may_write => self.publish(&view, now, effects),
                Some(_) => {}
                None => {
                    if let Some(previous) = self.shared.records.get(&key) {
                        effects.push(EmitterEffect::Forget { previous });
                    }
                }
            }
        }
    }

    /// The raises that may be shown now.
    fn settle(&mut self, effects: &mut Vec<EmitterEffect>) {
        let mut revealed = BTreeSet::new();
        for StatusWriteResult { key, stored } in self.mailboxes.settled.drain() {
            let wanted = self.shared.records.desired(&key);
            let is_stored = stored.is_none() || stored >= wanted;
            if is_stored && self.unstored.contains_key(&key) {
                revealed.insert(key);
            }
        }
        effects.push(EmitterEffect::Reveal(revealed));
    }

    fn overdue(&self, now: Moment) -> BTreeSet<VariantKey> {
        let due = self.unstored.iter().filter(|(_, until)| **until <= now);
        due.map(|(key, _)| key.clone()).collect()
    }

    fn reveal(&mut self, keys: &BTreeSet<VariantKey>) {
        for key in keys {
            self.unstored.remove(key);
            if let Some(record) = self.shared.records.get(key)
                && let Some(values) = record.values
            {
                self.shared.series.expose(&labels(&record), None, values);
            }
        }
    }

    /// Whether a record raises what is shown beyond what is stored.
    fn awaits_storage(&self, record: &PublishedRecord, previous: Option<&PublishedRecord>) -> bool {
        // What was shown of another object of this name says nothing of this one.
        let previous = previous.filter(|previous| previous.uid == record.uid);
        let Some((values, shown)) = record.values.zip(previous.and_then(|known| known.values))
        else {
            return false;
        };
        let waits = self.unstored.contains_key(&record.key);
        let raised = values.desired > shown.desired || (waits && values.desired == shown.desired);
        let relabelled = previous.is_some_and(|known| known.accelerator != record.accelerator);
        let object = self.shared.mirrors.managed(&record.key);
        let stored = object.and_then(|object| object.object.stored.desired);
        raised && !relabelled && stored < Some(values.desired)
    }

    fn publish(&self, view: &Arc<VariantView>, now: Moment, effects: &mut Vec<EmitterEffect>) {
        let previous = self.shared.records.get(&view.key);
        self.publish_after(view, previous, now, effects);
    }

    fn publish_after(
        &self,
        view: &Arc<VariantView>,
        previous: Option<Arc<PublishedRecord>>,
        now: Moment,
        effects: &mut Vec<EmitterEffect>,
    ) {
        let plan = self.plan.as_ref().map(|known| &*known.plan);
        let stored = self.shared.mirrors.stored(&view.key);
        // The board may be behind what is stored, and until its first decision a term goes by that; where
        // nothing is, by the replicas that exist.
        let is_known = stored.is_some() || view.target.resolved().is_some();
        let undecided = previous
            .as_deref()
            .filter(|previous| previous.uid == view.uid)
            .is_none_or(PublishedRecord::awaits_decision);
        let behind = undecided && is_known && stored != view.desired;
        let view = &if behind {
            let desired = stored;
            Arc::new(VariantView { desired, ..(**view).clone() })
        } else {
            Arc::clone(view)
        };
        let exposure = self.shared.ownership_conflicts.load().exposure(&view.key);
        let quarantine = self.shared.quarantine_of(&view.key);
        let troubles = Troubles {
            quarantine: quarantine.as_deref(),
            hints: Hints {
                gap: (self.plan.as_ref()).and_then(|known| known.gaps.get(&view.key)),
                exposure,
            },
            standing: self.shared.standing(&view.key),
        };
        let record = PublishedRecord::of(view, plan, previous.as_deref(), troubles, now);
        let record = Arc::new(record);
        if let Some(decision) = plan.and_then(|plan| plan.decisions.get(&view.key))
            && let Some(action) = record.change_from(previous.as_deref())
        {
            effects.push(EmitterEffect::Announce {
                record: Arc::clone(&record),
                decision: Box::new(decision.clone()),
                action,
            });
        }
        let wrong = self.wrong_namesakes(&view.key);
        if wrong != *self.wrong.get(&view.key).unwrap_or(&Vec::new()) {
            effects.push(EmitterEffect::ReportNamesakes(view.key.clone(), wrong));
        }
        if previous.as_ref() != Some(&record) {
            effects.push(EmitterEffect::ReportTroubles {
                record: Arc::clone(&record),
                previous: previous.clone(),
            });
            effects.push(EmitterEffect::Publish { record, previous });
        }
    }

    fn show(
        &mut self,
        cx: &Context<EmitterMessage>,
        record: &Arc<PublishedRecord>,
        previous: Option<&Arc<PublishedRecord>>,
    ) {
        let put = |records: &mut RecordTable| records.put(Arc::clone(record));
        if self.writers.records.update(&self.epoch, put).is_err() {
            return;
        }
        let before = previous.map(|previous| news::troubles(previous));
        self.shared.series.expose_troubles(
            &record.key,
            &news::troubles(record),
            &before.unwrap_or_default(),
        );
        self.mailboxes.statuses.add(record.key.clone());
        if self.awaits_storage(record, previous.map(|previous| &**previous)) {
            let mut until = cx.now();
            until.monotonic += STORAGE_PATIENCE;
            self.unstored.entry(record.key.clone()).or_insert(until);
            cx.arm(STORAGE_PATIENCE, EmitterMessage::Overdue);
            return;
        }
        self.unstored.remove(&record.key);
        let shown_before =
            previous.filter(|previous| previous.values.is_some()).map(|previous| labels(previous));
        match record.values {
            Some(values) => {
                self.shared.series.expose(&labels(record), shown_before.as_ref(), values);
            }
            None => {
                if let Some(shown_before) = shown_before {
                    self.shared.series.withdraw(&shown_before);
                }
            }
        }
    }
}

fn labels(record: &PublishedRecord) -> VariantLabels {
    VariantLabels { key: record.key.clone(), accelerator: record.accelerator.label().to_owned() }
}

impl StateMachine for Emitter {
    type Msg = EmitterMessage;
    type Effect = EmitterEffect;

    fn step(&mut self, now: Moment, event: Event<Self::Msg>, effects: &mut Vec<Self::Effect>) {
        match event {
            Event::Started => {
                // What an earlier life kept back is shown now; what it was is lost.
                let known = self.shared.records.snapshot().into_keys();
                effects.push(EmitterEffect::Reveal(known.collect()));
                let taken = self.take_plan(now, effects);
                self.full_pass(now, effects);
                // An earlier life may not have come to the end of its plan.
                let again = || {
                    let plan = Arc::clone(&self.plan.as_ref()?.plan);
                    let previous = Some(Arc::clone(&plan));
                    Some(Succession { plan, previous })
                };
                effects.extend(taken.or_else(again).map(EmitterEffect::Keep));
            }
            Event::Message(EmitterMessage::ClaimChanged) => self.full_pass(now, effects),
            Event::Message(EmitterMessage::PlanReady) => self.follow_plan(now, effects),
            Event::Message(EmitterMessage::ViewsChanged) => self.refresh(now, effects),
            Event::Message(EmitterMessage::StatusSettled) => self.settle(effects),
            Event::Message(EmitterMessage::Overdue) => {
                effects.push(EmitterEffect::Reveal(self.overdue(now)));
            }
        }
    }

    fn perform(&mut self, cx: &Context<EmitterMessage>, effect: EmitterEffect) {
        let _entered = in_cycle(effect.cycle()).entered();
        match effect {
            EmitterEffect::Publish { record, previous } => {
                self.show(cx, &record, previous.as_ref());
            }
            EmitterEffect::Reveal(keys) => self.reveal(&keys),
            EmitterEffect::Forget { previous } => {
                self.unstored.remove(&previous.key);
                self.wrong.remove(&previous.key);
                let remove = |table: &mut RecordTable| table.records.remove(&previous.key);
                if self.writers.records.update(&self.epoch, remove).is_ok()
                    && !self.shared.hooks.keeps_series()
                {
                    let series = &self.shared.series;
                    series.withdraw(&labels(&previous));
                    series.expose_troubles(&previous.key, &[], &news::troubles(&previous));
                }
            }
            EmitterEffect::Announce { record, decision, action } => {
                self.announce(cx.now(), &record, &decision, action);
            }
            EmitterEffect::ReportTroubles { record, previous } => {
                self.report_troubles(cx.now(), &record, previous.as_deref());
            }
            EmitterEffect::ReportNamesakes(key, wrong) => {
                self.report_namesakes(cx.now(), key, wrong);
            }
            EmitterEffect::Enter(term) => {
                self.unstored.clear();
                // Where a younger emitter has written already, it has seen to this.
                let records = &self.writers.records;
                drop(records.update(&self.epoch, |records| records.term = term));
            }
            EmitterEffect::Adopt(proposal) => {
                // Where a younger emitter has published already, its plan is the newer one.
                let proposal = Arc::new(Some(proposal));
                drop(self.writers.plan.publish(&self.epoch, proposal));
            }
            EmitterEffect::Keep(plan) => plan.show(&self.shared),
        }
    }
}
