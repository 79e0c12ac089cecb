//! One variant: joins the object, its target and its pods into the view that decisions are made on.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::facts::Facts;
use crate::actors::optimizer;
use crate::env::Flaw;
use crate::kit::{Address, Context, Doorbell, Duty, Occasion, Tenure};
use crate::policy::key::VariantKey;
use crate::policy::moment::Moment;
use crate::policy::snapshot::VariantView;
use crate::policy::variant::VariantState;

/// Messages of a variant.
#[derive(Debug)]
pub enum Message {
    /// Something it depends on changed.
    Refresh,
    /// To itself: look again, although nothing changed.
    Deadline {
        /// Only the newest timer counts.
        epoch: u64,
    },
}

/// What a variant asks its shell to do.
#[derive(Debug)]
pub enum Effect {
    /// Put a view on the board.
    Show(Arc<VariantView>),
    /// Come back.
    Arm(Duration, Message),
}

/// The machine behind the role.
#[derive(Debug)]
pub struct Variant {
    key: VariantKey,
    facts: Facts,
    tenure: Tenure,
    changed: Doorbell<VariantKey>,
    optimizer: Address<optimizer::Message>,
    state: VariantState,
    epoch: u64,
}

impl Variant {
    /// A new life of the role; it takes up the clocks that its predecessor left on the board.
    pub fn new(
        key: VariantKey,
        facts: Facts,
        tenure: &Tenure,
        changed: Doorbell<VariantKey>,
        optimizer: Address<optimizer::Message>,
    ) -> Self {
        let mut known = facts.board.get(&key);
        if facts.flaws.has(Flaw::ClocksForgotten) {
            known = None;
        }
        let state = VariantState::new(key.clone(), known);
        Self {
            key,
            facts,
            tenure: tenure.clone(),
            changed,
            optimizer,
            state,
            epoch: 0,
        }
    }

    fn refresh(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        let Some(refreshed) = self.facts.refresh(&self.key, &mut self.state, now) else {
            return;
        };
        effects.push(Effect::Show(refreshed.view));
        if let Some(after) = refreshed.look_again {
            self.epoch += 1;
            effects.push(Effect::Arm(after, Message::Deadline { epoch: self.epoch }));
        }
    }

    fn show(&self, view: &Arc<VariantView>) {
        let Ok(replaced) = self.facts.board.put(&self.tenure, Arc::clone(view)) else {
            return;
        };
        // Whoever shows it compares it with what is stored, too, which may be all that has changed.
        self.changed.ring(self.key.clone());
        let was_resolved = replaced.is_some_and(|replaced| replaced.target.resolved().is_some());
        if view.target.resolved().is_some() && !was_resolved {
            // An absent optimizer plans everything when it comes back.
            self.optimizer.hint(optimizer::Message::VariantResolved);
        }
    }
}

impl Duty for Variant {
    type Msg = Message;
    type Effect = Effect;

    fn step(&mut self, now: Moment, occasion: Occasion<Message>, effects: &mut Vec<Effect>) {
        match occasion {
            Occasion::Wake | Occasion::Message(Message::Refresh) => self.refresh(now, effects),
            Occasion::Message(Message::Deadline { epoch }) => {
                if epoch == self.epoch {
                    self.refresh(now, effects);
                }
            }
        }
    }

    fn perform(&mut self, cx: &Context<Message>, effect: Effect) {
        match effect {
            Effect::Show(view) => self.show(&view),
            Effect::Arm(after, message) => cx.arm(after, message),
        }
    }
}
