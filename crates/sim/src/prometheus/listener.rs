//! The server behind a socket on loopback, for people and for clients that want one.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use tokio::net::TcpListener;

use super::server::Prometheus;
use crate::socket;
use wva_base::moment::WallTime;

/// Largest form of a request.
const BODY_BYTES: usize = 256 * 1024;

/// Serves until dropped; dropping it ends every connection. `now` says what time it is in the world,
/// which may run faster than the sockets.
pub async fn serve(
    listener: TcpListener,
    server: Arc<Mutex<Prometheus>>,
    now: impl Fn() -> WallTime + Clone + Send + 'static,
) -> Infallible {
    let service =
        tower::service_fn(move |request| answer(Arc::clone(&server), now.clone(), request));
    socket::serve(listener, service).await
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
