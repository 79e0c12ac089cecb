//! A server of the embedded world behind a socket on loopback, for people and for clients that want
//! one.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Bytes, Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Longest wait for the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept, so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections served at once; beyond that, new ones are closed.
const CONNECTIONS: usize = 256;

/// Serves until dropped; dropping it ends every connection. An error of the service ends its connection
/// without an answer.
pub async fn serve<S, B>(listener: TcpListener, server: S) -> Infallible
where
    S: tower::Service<Request<Incoming>, Response = Response<B>>,
    S: Clone + Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
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
            tracing::warn!(limit = CONNECTIONS, "too many connections; a new one is closed");
            continue;
        }
        let service = TowerToHyperService::new(server.clone());
        connections.spawn(async move {
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
