//! One variant: joins the object, its target and its pods into the view that decisions are made on.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::mailboxes::Mailboxes;
use crate::policy::key::VariantKey;
use crate::policy::snapshot::VariantView;
use crate::policy::variant::VariantState;
use crate::state::{Readers, VariantsWriters};
use wva_base::moment::Moment;
use wva_supervise::{Context, Epoch, Event, StateMachine, TimerEpoch};

#[derive(Debug)]
pub(crate) enum VariantMessage {
    /// Something it depends on changed.
    Refresh,
    /// To itself: look again, although nothing changed.
    Deadline(TimerEpoch),
}

#[derive(Debug)]
pub(crate) enum VariantEffect {
    Show(Arc<VariantView>),
    Arm(Duration, VariantMessage),
}

#[derive(Debug)]
pub(crate) struct VariantActor {
    key: VariantKey,
    shared: Readers,
    writers: Arc<VariantsWriters>,
    epoch: Epoch,
    mailboxes: Arc<Mailboxes>,
    state: VariantState,
    timer: TimerEpoch,
}

impl VariantActor {
    /// A new life of the role; it takes up the clocks that its predecessor left on the board.
    pub(crate) fn new(
        key: VariantKey,
        shared: Readers,
        writers: Arc<VariantsWriters>,
        epoch: &Epoch,
        mailboxes: Arc<Mailboxes>,
    ) -> Self {
        let mut known = shared.board.get(&key);
        if shared.hooks.forgets_clocks() {
            known = None;
        }
        let state = VariantState::new(key.clone(), known);
        Self {
            key,
            shared,
            writers,
            epoch: epoch.clone(),
            mailboxes,
            state,
            timer: TimerEpoch::default(),
        }
    }

    fn refresh(&mut self, now: Moment, effects: &mut Vec<VariantEffect>) {
        let Some(refreshed) = self.shared.refresh(&self.key, &mut self.state, now) else {
            return;
        };
        effects.push(VariantEffect::Show(refreshed.view));
        if let Some(after) = refreshed.look_again {
            let message = VariantMessage::Deadline(self.timer.advance());
            effects.push(VariantEffect::Arm(after, message));
        }
    }

    fn show(&self, view: &Arc<VariantView>) {
        let Ok(replaced) = self.writers.board.put(&self.epoch, Arc::clone(view)) else {
            return;
        };
        // The emitter compares it with what is stored, too, which may be all that has changed.
        self.mailboxes.changed.insert(self.key.clone());
        let was_resolved = replaced.is_some_and(|replaced| replaced.target.resolved().is_some());
        if view.target.resolved().is_some() && !was_resolved {
            self.mailboxes.want_early_cycle();
        }
    }
}

impl StateMachine for VariantActor {
    type Msg = VariantMessage;
    type Effect = VariantEffect;

    fn step(&mut self, now: Moment, event: Event<Self::Msg>, effects: &mut Vec<Self::Effect>) {
        match event {
            Event::Message(VariantMessage::Deadline(timer)) if timer != self.timer => {}
            Event::Started | Event::Message(_) => self.refresh(now, effects),
        }
    }

    fn perform(&mut self, cx: &Context<VariantMessage>, effect: VariantEffect) {
        match effect {
            VariantEffect::Show(view) => self.show(&view),
            VariantEffect::Arm(after, message) => cx.arm(after, message),
        }
    }
}
