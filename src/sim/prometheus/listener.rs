//! The server behind a socket on loopback, for people and for clients that want one.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::server::Prometheus;
use crate::policy::moment::WallTime;

/// Largest form of a request.
const BODY_BYTES: usize = 256 * 1024;
/// Longest wait for the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept, so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections served at once; beyond that, new ones are closed.
const CONNECTIONS: usize = 64;

/// Serves until dropped; dropping it ends every connection. `now` says what time it is in the world,
/// which may run faster than the sockets.
pub async fn serve(
    listener: TcpListener,
    server: Arc<Mutex<Prometheus>>,
    now: impl Fn() -> WallTime + Clone + Send + 'static,
) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _peer)) => stream,
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if connections.len() >= CONNECTIONS {
            continue;
        }
        let (server, now) = (Arc::clone(&server), now.clone());
        connections.spawn(async move {
            let service =
                service_fn(move |request| answer(Arc::clone(&server), now.clone(), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        });
    }
}

/// An error ends the connection without an answer.
async fn answer(
    server: Arc<Mutex<Prometheus>>,
    now: impl Fn() -> WallTime,
    request: Request<Incoming>,
) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES).collect().await;
    let body = body.map_err(io::Error::other)?.to_bytes();
    let server = server.lock().unwrap_or_else(PoisonError::into_inner);
    server
        .answer(&head.method, &head.uri, &body, now())
        .ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
}
