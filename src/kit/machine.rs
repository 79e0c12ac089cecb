//! Actors that decide and never wait.

use std::fmt::Debug;

use super::behaviour::{Behaviour, Context, Occasion, Trouble};
use crate::policy::moment::Moment;

/// A machine with its connections. Between two occasions it can be killed, within one it cannot:
/// nothing in it awaits.
pub trait Duty: Send + 'static {
    /// What it can be told.
    type Msg: Debug + Send + 'static;
    /// What it can ask for.
    type Effect;

    /// Decides: reads cells and mirrors, steps pure policy, and appends what is to be done.
    fn step(&mut self, now: Moment, occasion: Occasion<Self::Msg>, effects: &mut Vec<Self::Effect>);

    /// Does one thing that [`Duty::step`] asked for: tells an address, rings a bell, writes a slot
    /// or cell, arms a timer. Nothing of that can fail in a way that matters.
    fn perform(&mut self, cx: &Context<Self::Msg>, effect: Self::Effect);
}

/// Makes an actor of a duty.
#[derive(Debug)]
pub struct Machine<D>(pub D);

impl<D: Duty> Behaviour for Machine<D> {
    type Msg = D::Msg;

    async fn handle(
        &mut self,
        cx: &Context<Self::Msg>,
        occasion: Occasion<Self::Msg>,
    ) -> Result<(), Trouble> {
        let mut effects = Vec::new();
        self.0.step(cx.now(), occasion, &mut effects);
        for effect in effects {
            #[cfg(feature = "sim")]
            cx.begin_effect();
            self.0.perform(cx, effect);
        }
        Ok(())
    }
}
