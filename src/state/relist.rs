//! Requests to read every object of a kind anew, and their fulfilment. A new leader goes on from what
//! its predecessor stored last, and a watch may be behind that.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Both halves; the numbers that they exchange only grow, and outlive who asks and who reads. Each kind has channels of
/// its own: those who wait on the same one are woken in any order.
pub(crate) fn halves() -> (RelistRequester, RelistResponders) {
    let kind = || {
        let (asked, requests) = watch::channel(0);
        let (done, answers) = watch::channel(0);
        let responder = RelistResponder { asked: requests, done };
        ((asked, answers), Arc::new(responder))
    };
    let (first, variants) = kind();
    let (second, horizontal_pod_autoscalers) = kind();
    let (third, scaled_objects) = kind();
    let responders = RelistResponders { variants, horizontal_pod_autoscalers, scaled_objects };
    (RelistRequester([first, second, third]), responders)
}

/// The halves of the watchers of all kinds that may be variants.
#[derive(Debug)]
pub struct RelistResponders {
    pub variants: Arc<RelistResponder>,
    pub horizontal_pod_autoscalers: Arc<RelistResponder>,
    pub scaled_objects: Arc<RelistResponder>,
}

/// The half of leadership.
#[derive(Debug)]
pub struct RelistRequester([(watch::Sender<u64>, watch::Receiver<u64>); 3]);

impl RelistRequester {
    /// Requests readings of the kinds that are needed, which begin after this moment, unless one of this number was
    /// asked for already, and waits for the end of all for at most `patience`. Returns of which kinds there was one:
    /// VariantAutoscalings, HorizontalPodAutoscalers, ScaledObjects.
    pub async fn ask(&self, number: u64, patience: Duration, needed: [bool; 3]) -> [bool; 3] {
        let kinds = self.0.iter().zip(needed);
        let kinds: Vec<_> =
            (kinds.filter(|(_, is_needed)| *is_needed)).map(|(kind, _)| kind).collect();
        for (asked, _) in &kinds {
            raise(asked, number);
        }
        let all_done = async {
            for (_, done) in &kinds {
                if done.clone().wait_for(|done| *done >= number).await.is_err() {
                    pending::<()>().await;
                }
            }
        };
        // What has ended until then is counted below.
        drop(timeout(patience, all_done).await);
        (self.0.each_ref()).map(|(_, done)| *done.borrow() >= number)
    }

    /// The newest number that is asked for.
    pub fn asked(&self) -> u64 {
        *self.0[0].0.borrow()
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
