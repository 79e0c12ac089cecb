//! A small HTTP server: listens, and seats connections.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::net::{TcpListener, TcpStream};

use super::connection_limiter::{ConnectionLimiter, ConnectionProgress};
use super::tls::Tls;

/// Pause after a failed accept (file descriptors exhausted), so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Between two looks at the files of a certificate that no client comes for.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

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
                refused = Some(ListenError { key, address: *address, source });
            }
        }
    }
    refused.map_or(Ok(None), Err)
}

/// Serves accepted connections.
pub trait Connections: Clone + Send + 'static {
    /// TLS; `None` for plain text.
    fn tls(&self) -> Option<Arc<Tls>>;

    /// Serves one connection to its end.
    fn converse(
        self,
        stream: TcpStream,
        progress: ConnectionProgress,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// Serves until dropped; dropping it ends every connection.
pub async fn serve<C: Connections>(listener: TcpListener, connections: C) -> Infallible {
    let looking = look_again(connections.tls());
    match select(pin!(accept(listener, connections)), pin!(looking)).await {
        Either::Left((never, _)) | Either::Right((never, _)) => match never {},
    }
}

/// Clients have the certificate looked at when they come. Those of a Service do not come before there is
/// one: it sends no client to a pod that is not ready.
async fn look_again(tls: Option<Arc<Tls>>) -> Infallible {
    let Some(tls) = tls else {
        return pending().await;
    };
    loop {
        drop(tls.config().await);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn accept<C: Connections>(listener: TcpListener, connections: C) -> Infallible {
    let mut limiter = ConnectionLimiter::default();
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => {
                let connections = connections.clone();
                limiter.seat(|progress| connections.converse(stream, progress)).await;
            }
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
