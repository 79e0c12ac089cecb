//! Waiting for something to become true on servers that keep their own time.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::fault::{Fault, Result};

const POLL: Duration = Duration::from_millis(100);

/// Limits are for two idle cores and end what hangs; on a machine with other work the same steps take several
/// times as long.
pub(crate) const SLACK: u32 = 5;

/// Asks `probe` again and again until it succeeds; its last failure is what the test reports when
/// it does not succeed `within` the given time, or at once when waiting cannot mend it.
#[track_caller]
pub(crate) fn eventually<T>(
    what: impl Display,
    within: Duration,
    mut probe: impl AsyncFnMut() -> Result<T>,
) -> impl Future<Output = Result<T>> {
    let at = Location::caller();
    async move {
        let within = within * SLACK;
        let deadline = Instant::now() + within;
        let mut last = String::from("nothing, the first look never ended");
        loop {
            match timeout_at(deadline, probe()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(fault)) if fault.is_fatal() => {
                    return Err(Fault::at(format!("{what}: {}", fault.text()), at));
                }
                Ok(Err(fault)) => fault.text().clone_into(&mut last),
                Err(_) => {}
            }
            if Instant::now() + POLL >= deadline {
                let text = format!("{what}: not within {within:?}; last seen: {last}");
                return Err(Fault::at(text, at));
            }
            sleep(POLL).await;
        }
    }
}

/// Succeeds if the value is the wanted one, and says otherwise what it is; the end of most probes.
#[track_caller]
pub(crate) fn seen<T: PartialEq + Debug>(actual: &T, wanted: &T) -> Result {
    if actual == wanted {
        return Ok(());
    }
    Err(Fault::new(format!("{actual:?} where {wanted:?} is wanted")))
}
