//! The wish to have every object of a kind read anew, and its fulfilment. Whoever begins to lead goes
//! on from what its predecessor stored last, and a watch may be behind that.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// What is asked for and what is done, as numbers that only grow. Clones share them, and they outlive
/// who asks and who reads.
#[derive(Debug, Clone)]
pub struct RelistRequest {
    asked: watch::Sender<u64>,
    done: watch::Sender<u64>,
}

impl Default for RelistRequest {
    fn default() -> Self {
        Self {
            asked: watch::Sender::new(0),
            done: watch::Sender::new(0),
        }
    }
}

impl RelistRequest {
    /// Asks for a reading that begins after this moment, unless one of this number was asked for
    /// already, and waits for its end for at most `patience`; whether it came to that.
    pub async fn ask(&self, number: u64, patience: Duration) -> bool {
        raise(&self.asked, number);
        let mut done = self.done.subscribe();
        let is_done = done.wait_for(|done| *done >= number);
        matches!(timeout(patience, is_done).await, Ok(Ok(_)))
    }

    /// The newest number that is asked for.
    pub fn asked(&self) -> u64 {
        *self.asked.borrow()
    }

    /// Waits until a number beyond this one is asked for.
    pub async fn is_asked_beyond(&self, number: u64) {
        let mut asked = self.asked.subscribe();
        // The sender lives in `self`, so there is always somebody who may ask.
        drop(asked.wait_for(|asked| *asked > number).await);
    }

    /// Notes that a reading that was begun for a number has ended.
    pub fn done(&self, number: u64) {
        raise(&self.done, number);
    }
}

fn raise(cell: &watch::Sender<u64>, number: u64) {
    cell.send_if_modified(|known| {
        let is_more = number > *known;
        *known = number.max(*known);
        is_more
    });
}
