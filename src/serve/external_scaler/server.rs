//! Connections of the external scaler: HTTP/2 alone, and for as long as KEDA keeps them.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::super::access::Authorizer;
use super::super::connection::{HEAD_TIMEOUT, HEADER_LIST_BYTES};
use super::super::connection_limiter::ConnectionProgress;
use super::super::server::Connections;
use super::super::tls::Tls;
use super::{ExternalScaler, ScalerClient};
use crate::state::Readers;

/// How long a connection is kept. A new one is shown the present certificate, and may go to another replica.
const CONNECTION_AGE: Duration = Duration::from_mins(30);
/// How long calls on a connection of that age may take to end.
const CLOSING_GRACE: Duration = Duration::from_secs(10);
/// Pause between two pings, and the longest wait for their answer: a client that is gone holds no streams.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks whether calls or streams are open: less than a connection may be idle.
const KEEP_EVERY: Duration = Duration::from_secs(5);
/// Calls at once on one connection: KEDA sends those of all ScaledObjects on one.
const CALLS: u32 = 40_000;

/// The external scaler, with who may call it and how.
#[derive(Debug, Clone)]
pub struct ExternalScalerServer {
    tls: Option<Arc<Tls>>,
    service: ExternalScaler,
}

impl ExternalScalerServer {
    /// Serves what `shared` holds. `tls` is `None` for plain text; `authorizer` is `None` where clients need no proof.
    pub fn new(
        shared: Readers,
        tls: Option<Arc<Tls>>,
        authorizer: Option<Arc<Authorizer>>,
    ) -> Self {
        Self { tls, service: ExternalScaler::new(shared, authorizer) }
    }

    async fn http2<S>(self, stream: S, is_proven: bool, progress: ConnectionProgress)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (close, closing) = watch::channel(false);
        let client = ScalerClient { is_proven, closing };
        let asked = progress.clone();
        let service = service_fn(move |request| {
            asked.asked();
            let answer = self.service.clone().respond(request, client.clone());
            async { Ok::<_, Infallible>(answer.await) }
        });
        let mut connection = pin!(
            http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_TIMEOUT)
                .max_concurrent_streams(CALLS)
                .max_header_list_size(HEADER_LIST_BYTES)
                .serve_connection(TokioIo::new(stream), service)
        );
        let aged = pin!(timeout(CONNECTION_AGE, keep_place(&close, &progress)));
        let ended = match select(connection.as_mut(), aged).await {
            Either::Left((ended, _)) => ended,
            Either::Right((_elapsed, _)) => {
                connection.as_mut().graceful_shutdown();
                close.send_replace(true);
                timeout(CLOSING_GRACE, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }
}

/// Keeps the place of a connection while calls or streams are open: KEDA asks once and then reads for long.
async fn keep_place(close: &watch::Sender<bool>, progress: &ConnectionProgress) -> Infallible {
    loop {
        sleep(KEEP_EVERY).await;
        // One receiver is that of the connection; each call and each stream has its own.
        if close.receiver_count() > 1 {
            progress.asked();
        }
    }
}

impl Connections for ExternalScalerServer {
    fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    async fn converse(self, stream: TcpStream, progress: ConnectionProgress) {
        let Some(tls) = &self.tls else {
            return self.http2(stream, false, progress).await;
        };
        // Without a certificate there is nothing to show; /readyz says so.
        let Some(config) = tls.config().await else {
            return;
        };
        match timeout(HEAD_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await {
            Ok(Ok(stream)) => {
                let is_proven = stream.get_ref().1.peer_certificates().is_some();
                self.http2(stream, is_proven, progress).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "handshake failed"),
            Err(_elapsed) => tracing::debug!("no handshake came in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;
    use tokio::time::timeout;

    use super::{ConnectionProgress, KEEP_EVERY, keep_place};

    #[tokio::test(start_paused = true)]
    async fn a_place_is_kept_while_a_stream_is_open() {
        let (close, _connection) = watch::channel(false);
        let progress = ConnectionProgress::new();
        let look = async || {
            let kept = timeout(KEEP_EVERY * 3 / 2, keep_place(&close, &progress)).await;
            assert!(kept.is_err());
        };
        look().await;
        assert!(progress.is_unasked());
        let _stream = close.subscribe();
        look().await;
        assert!(!progress.is_unasked());
    }
}
