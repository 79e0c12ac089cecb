//! Actors that decide and never wait.

use std::fmt::Debug;

use super::actor::{Actor, ActorResult, Context, Event};
use wva_base::moment::Moment;

/// A machine with its connections. Between two occasions it can be killed, within one it cannot:
/// nothing in it awaits.
pub trait StateMachine: Send + 'static {
    /// Its messages.
    type Msg: Debug + Send + 'static;
    /// Its effects.
    type Effect;

    /// Decides: reads cells and mirrors, steps pure policy, and appends what is to be done.
    fn step(&mut self, now: Moment, event: Event<Self::Msg>, effects: &mut Vec<Self::Effect>);

    /// Does one thing that [`StateMachine::step`] returned: sends a message, rings a bell, writes a slot
    /// or cell, arms a timer. Nothing of that can fail in a way that matters.
    fn perform(&mut self, cx: &Context<Self::Msg>, effect: Self::Effect);
}

/// Makes an actor of a duty.
#[derive(Debug)]
pub struct Machine<D>(pub D);

impl<D: StateMachine> Actor for Machine<D> {
    type Msg = D::Msg;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        let mut effects = Vec::new();
        self.0.step(cx.now(), event, &mut effects);
        for effect in effects {
            cx.begin_effect();
            self.0.perform(cx, effect);
        }
        Ok(())
    }
}
