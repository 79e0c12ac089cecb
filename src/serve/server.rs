//! A small HTTP server: listens, and seats connections.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;

use super::connection::{Manner, Routes};
use super::places::Places;

/// Pause after a failed accept (file descriptors exhausted), so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("{key} {address} cannot be listened on: {source}; free the port or choose another one")]
pub struct ListenError {
    /// The setting.
    pub key: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// What the system says.
    pub source: std::io::Error,
}

/// Listens on the first of `candidates` that can be had; `None` if there are none.
///
/// # Errors
/// When the system refuses all of them: what it said to the last.
pub async fn listen(
    key: &'static str,
    candidates: &[SocketAddr],
) -> Result<Option<TcpListener>, ListenError> {
    let mut refused = None;
    for address in candidates {
        match TcpListener::bind(address).await {
            Ok(listener) => {
                tracing::info!(key, %address, "listening");
                return Ok(Some(listener));
            }
            Err(source) => {
                refused = Some(ListenError {
                    key,
                    address: *address,
                    source,
                });
            }
        }
    }
    refused.map_or(Ok(None), Err)
}

/// Serves until dropped; dropping it ends every connection.
pub async fn serve<R: Routes>(listener: TcpListener, manner: Manner<R>) -> Infallible {
    if let Some(tls) = &manner.tls {
        // What is wrong with the certificate is known before the first client comes.
        drop(tls.config().await);
    }
    let mut places = Places::default();
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => {
                let manner = manner.clone();
                places
                    .seat(|progress| manner.converse(stream, progress))
                    .await;
            }
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
