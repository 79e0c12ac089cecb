//! The wish to have every object of a kind read anew, and its fulfilment. Whoever begins to lead goes
//! on from what its predecessor stored last, and a watch may be behind that.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Both halves; the numbers that they exchange only grow, and outlive who asks and who reads.
pub fn halves() -> (RelistRequester, RelistResponder) {
    let (asked, requests) = watch::channel(0);
    let (done, answers) = watch::channel(0);
    let requester = RelistRequester {
        asked,
        done: answers,
    };
    let responder = RelistResponder {
        asked: requests,
        done,
    };
    (requester, responder)
}

/// The half of leadership.
#[derive(Debug)]
pub struct RelistRequester {
    asked: watch::Sender<u64>,
    done: watch::Receiver<u64>,
}

impl RelistRequester {
    /// Asks for a reading that begins after this moment, unless one of this number was asked for
    /// already, and waits for its end for at most `patience`; whether it came to that.
    pub async fn ask(&self, number: u64, patience: Duration) -> bool {
        raise(&self.asked, number);
        let mut done = self.done.clone();
        let is_done = done.wait_for(|done| *done >= number);
        matches!(timeout(patience, is_done).await, Ok(Ok(_)))
    }

    /// The newest number that is asked for.
    pub fn asked(&self) -> u64 {
        *self.asked.borrow()
    }
}

/// The half of the watcher.
#[derive(Debug)]
pub struct RelistResponder {
    asked: watch::Receiver<u64>,
    done: watch::Sender<u64>,
}

impl RelistResponder {
    /// The newest number that is asked for.
    pub fn asked(&self) -> u64 {
        *self.asked.borrow()
    }

    /// Waits until a number beyond this one is asked for.
    pub async fn is_asked_beyond(&self, number: u64) {
        let mut asked = self.asked.clone();
        if asked.wait_for(|asked| *asked > number).await.is_err() {
            // The other half is gone.
            pending::<()>().await;
        }
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
