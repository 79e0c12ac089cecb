//! Being asked to stop.

use futures::future::select;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::complain;

/// SIGTERM, as the kubelet sends it, and SIGINT, as a person does. None is lost from when this is made.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Receives signals from now on, with the runtime in whose context this is called.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Returns at the next one.
    pub async fn next(&mut self) {
        let (terminate, interrupt) = (self.terminate.recv(), self.interrupt.recv());
        select(Box::pin(terminate), Box::pin(interrupt)).await;
    }
}

/// Returns at the next signal; never, where none can be received.
pub async fn asked() {
    match StopSignals::new() {
        Ok(mut signals) => signals.next().await,
        Err(error) => {
            complain(&format!("signals cannot be received: {error}\n"));
            std::future::pending::<()>().await;
        }
    }
}
