//! One connection: handshake, head of the request, body where the route reads it, answer.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use futures::future::{Either, select};
use http::request::Parts;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::access::{AccessDenied, Authorizer};
use super::answer::{HttpResponse, challenge, plain, status_of};
use super::body::BodyReader;
use super::connection_limiter::ConnectionProgress;
use super::server::Connections;
use super::tls::Tls;
use crate::cluster::review::Access;

/// Longest wait for the handshake and the head of a request.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest life of one connection; scrapers and probes reconnect.
const LIFETIME: Duration = Duration::from_mins(1);
const HEAD_BYTES: usize = 8 * 1024;
/// The same for HTTP/2, which counts otherwise.
pub(super) const HEADER_LIST_BYTES: u32 = 8 * 1024;
/// Requests at once on one connection of HTTP/2.
const STREAMS: u32 = 16;

/// Answers requests from memory.
pub trait Routes: Send + Sync + 'static {
    /// What a reader must be allowed to do.
    fn access(&self, head: &Parts) -> Access {
        path_access(head)
    }

    /// What reads the body of a request; `None` leaves it unread.
    fn body_reader(&self, _head: &Parts) -> Option<&BodyReader> {
        None
    }

    /// Whether the answer takes long to make.
    fn is_lengthy(&self, _head: &Parts) -> bool {
        false
    }

    /// The answer to a request whose body is left unread.
    fn answer(&self, head: &Parts) -> HttpResponse;

    /// The answer to a request whose body was read.
    fn answer_to_body(&self, head: &Parts, _body: &[u8]) -> HttpResponse {
        self.answer(head)
    }

    /// The answer to a client that is not let in.
    fn refuse(&self, refusal: &AccessDenied) -> HttpResponse {
        challenge(plain(status_of(refusal), &refusal.to_string()))
    }
}

/// The right to send a request for what is no resource.
pub(super) fn path_access(head: &Parts) -> Access {
    Access::Path {
        verb: head.method.as_str().to_ascii_lowercase(),
        path: head.uri.path().to_owned(),
    }
}

/// How a server talks, and with whom.
#[derive(Clone)]
pub struct ConnectionConfig {
    /// TLS; `None` talks plainly.
    pub tls: Option<Arc<Tls>>,
    /// Who is let in; `None` lets everybody in.
    pub authorizer: Option<Arc<Authorizer>>,
    /// What there is to read.
    pub routes: Arc<dyn Routes>,
}

wva_base::debug_of!(ConnectionConfig: tls, authorizer);

impl Connections for ConnectionConfig {
    fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    async fn converse(self, stream: TcpStream, progress: ConnectionProgress) {
        let waiting = progress.clone();
        let head_timeout = async move {
            tokio::time::sleep(HEAD_TIMEOUT).await;
            if !waiting.is_unasked() {
                pending::<()>().await;
            }
        };
        let connection = tokio::time::timeout(LIFETIME, self.talk(stream, progress));
        match select(Box::pin(connection), Box::pin(head_timeout)).await {
            Either::Left((Ok(()), _)) => {}
            Either::Left((Err(_elapsed), _)) => tracing::debug!("connection outlived its time"),
            Either::Right(((), _)) => tracing::debug!("no request came in time"),
        }
    }
}

impl ConnectionConfig {
    async fn talk(self, stream: TcpStream, progress: ConnectionProgress) {
        let Some(tls) = &self.tls else {
            return self.http1(stream, None, progress).await;
        };
        // Without a certificate there is nothing to say; /readyz says so.
        let Some(config) = tls.config().await else {
            return;
        };
        match TlsAcceptor::from(config).accept(stream).await {
            Ok(stream) => {
                let session = stream.get_ref().1;
                let certificates = session.peer_certificates().and_then(<[_]>::first);
                let certificate = certificates.map(|certificate| certificate.clone().into_owned());
                if session.alpn_protocol() == Some(b"h2") {
                    self.http2(stream, certificate, progress).await;
                } else {
                    self.http1(stream, certificate, progress).await;
                }
            }
            Err(error) => tracing::debug!(%error, "handshake failed"),
        }
    }

    async fn http1<S>(self, stream: S, certificate: Certificate, progress: ConnectionProgress)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let ended = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            // An idle connection would hold a place that a scraper waits for.
            .keep_alive(false)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(
                TokioIo::new(stream),
                service_fn(|request| self.clone().respond(request, &certificate, &progress)),
            )
            .await;
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }

    async fn http2<S>(self, stream: S, certificate: Certificate, progress: ConnectionProgress)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let ended = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(HEADER_LIST_BYTES)
            .serve_connection(
                TokioIo::new(stream),
                service_fn(|request| self.clone().respond(request, &certificate, &progress)),
            )
            .await;
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }

    fn respond(
        self,
        request: Request<Incoming>,
        certificate: &Certificate,
        progress: &ConnectionProgress,
    ) -> impl Future<Output = Result<HttpResponse, Infallible>> + Send + 'static {
        let certificate = certificate.clone();
        let progress = progress.clone();
        let (head, body) = request.into_parts();
        match self.routes.body_reader(&head) {
            Some(_) => progress.reading(),
            None => progress.asked(),
        }
        async move {
            if let Some(authorizer) = &self.authorizer {
                let access = self.routes.access(&head);
                let admitted = authorizer.admit(&head.headers, certificate.as_ref(), access).await;
                if let Err(refusal) = admitted {
                    tracing::debug!(%refusal, path = head.uri.path(), "request refused");
                    return Ok(self.routes.refuse(&refusal));
                }
            }
            let Some(reader) = self.routes.body_reader(&head) else {
                return Ok(if self.routes.is_lengthy(&head) {
                    on_a_thread(self.routes, head).await
                } else {
                    self.routes.answer(&head)
                });
            };
            let body = reader.read(body).await;
            progress.asked();
            Ok(match body {
                Ok(body) => self.routes.answer_to_body(&head, body.bytes()),
                Err(error) => {
                    tracing::debug!(%error, path = head.uri.path(), "body not read");
                    plain(error.status(), &error.to_string())
                }
            })
        }
    }
}

/// Makes an answer on a thread of its own: the runtime has a lease to renew meanwhile.
async fn on_a_thread(routes: Arc<dyn Routes>, head: Parts) -> HttpResponse {
    let (sender, made) = oneshot::channel();
    let thread = Builder::new().name("lengthy-answer".to_owned()).spawn(move || {
        // Fails where the client is gone.
        drop(sender.send(routes.answer(&head)));
    });
    if let Err(error) = thread {
        tracing::error!(%error, "thread of an answer cannot start; raise the limit of threads");
    }
    made.await.unwrap_or_else(|_unmade| {
        plain(StatusCode::INTERNAL_SERVER_ERROR, "cannot be made; see the log")
    })
}

/// That of the client, proved to be signed by an authority that we trust.
type Certificate = Option<CertificateDer<'static>>;
