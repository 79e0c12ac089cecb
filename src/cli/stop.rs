//! Being asked to stop.

use futures::future::select;
use tokio::signal::unix::{SignalKind, signal};

use super::complain;

/// Returns at SIGTERM, as the kubelet sends it, or SIGINT, as a person does.
pub(super) async fn asked() {
    let (mut terminate, mut interrupt) = match (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => {
            complain(&format!("signals cannot be received: {error}\n"));
            return std::future::pending().await;
        }
    };
    let either = select(Box::pin(terminate.recv()), Box::pin(interrupt.recv()));
    either.await;
}
