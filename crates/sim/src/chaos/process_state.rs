//! One process of the controller, as far as it can be stopped from outside.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::fault::ProcessFault;
use crate::threads::locked;

#[derive(Debug, Clone)]
pub(super) struct ProcessState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    moved: Notify,
    ended: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    dead: bool,
    frozen: bool,
    /// What becomes of the process at a write, and how many others come before that one.
    at_write: Option<(u64, ProcessFault)>,
}

impl ProcessState {
    pub(super) fn new(ended: Arc<Notify>) -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), moved: Notify::new(), ended }))
    }

    pub(super) fn end(&self) {
        locked(&self.0.state).dead = true;
        self.0.ended.notify_one();
    }

    pub(super) fn is_dead(&self) -> bool {
        locked(&self.0.state).dead
    }

    pub(super) fn freeze(&self, frozen: bool) {
        locked(&self.0.state).frozen = frozen;
        self.0.moved.notify_waiters();
    }

    pub(super) fn end_at_write(&self, after: u64, how: ProcessFault) {
        locked(&self.0.state).at_write = Some((after, how));
    }

    pub(super) fn forgive(&self) {
        locked(&self.0.state).at_write = None;
    }

    pub(super) fn take_at_write(&self) -> Option<ProcessFault> {
        let mut state = locked(&self.0.state);
        let (after, how) = state.at_write.take()?;
        if after == 0 {
            return Some(how);
        }
        state.at_write = Some((after - 1, how));
        None
    }

    /// Passes when it runs; never, once it is dead.
    pub(super) async fn gate(&self) {
        loop {
            let mut moved = std::pin::pin!(self.0.moved.notified());
            // Before the look, so that no move is lost between look and wait.
            moved.as_mut().enable();
            if self.is_dead() {
                std::future::pending::<()>().await;
            }
            if !locked(&self.0.state).frozen {
                return;
            }
            moved.await;
        }
    }
}
