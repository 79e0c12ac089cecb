//! A small HTTP server: bounded connections, header timeout, no keep-alive surprises.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections served at once; further ones wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// Longest wait for the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest life of one connection; scrapers and probes reconnect.
const CONNECTION_LIFETIME: Duration = Duration::from_mins(1);
/// Largest request head.
const HEAD_BYTES: usize = 8 * 1024;
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

/// Answers one request; must not wait for anything outside.
pub trait Handler: Send + Sync + 'static {
    /// The answer.
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>>;
}

/// Serves until dropped; dropping it ends every connection.
pub async fn serve<H: Handler>(listener: TcpListener, handler: Arc<H>) -> Infallible {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            continue;
        };
        let stream = match listener.accept().await {
            Ok((stream, _peer)) => stream,
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let handler = Arc::clone(&handler);
        connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = handler.answer(&request);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                // An idle connection would hold a place that a scraper waits for.
                .keep_alive(false)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            match tokio::time::timeout(CONNECTION_LIFETIME, connection).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "connection ended"),
                Err(_elapsed) => tracing::debug!("connection outlived its time"),
            }
            drop(place);
        });
    }
}
