//! A server on a loopback socket that plays Prometheus, well or badly.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use ::http::{Response, StatusCode, header};
use futures::stream::{self, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// An answer with one sample.
pub(super) const ONE_SAMPLE: &str = r#"{"status":"success","data":{"resultType":"vector","result":[
    {"metric":{"pod":"p"},"value":[1760000000,"1"]}]}}"#;

/// What the server does with a query.
#[derive(Debug, Clone)]
pub(super) enum Mode {
    /// Answers with this status and body.
    Answer(u16, String),
    /// Sends the client elsewhere.
    Redirect(String),
    /// Says nothing at all.
    Hang,
    /// Begins an answer and then says nothing more.
    Stall,
    /// Sends one sample after the other without end.
    Flood,
    /// Breaks the connection in the middle of the body.
    BreakOff,
    /// Answers 401 and repeats the request's own header.
    Echo,
}

/// What a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) host: Option<String>,
    pub(super) authorization: Option<String>,
    pub(super) body: String,
    /// The name asked for in the TLS handshake.
    pub(super) server_name: Option<String>,
}

#[derive(Debug)]
struct Shared {
    mode: Mutex<Mode>,
    seen: Mutex<Vec<Seen>>,
}

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct FakePrometheus {
    pub(super) port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for FakePrometheus {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakePrometheus {
    pub(super) async fn plain(mode: Mode) -> Self {
        Self::start(mode, None).await
    }

    pub(super) async fn tls(mode: Mode, config: rustls::ServerConfig) -> Self {
        Self::start(mode, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start(mode: Mode, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared { mode: Mutex::new(mode), seen: Mutex::new(Vec::new()) });
        let state = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            // Dropped, and with it every connection, when the task is.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(connection(socket, tls.clone(), Arc::clone(&state)));
            }
        });
        Self { port, shared, task }
    }

    pub(super) fn become_(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }
}

async fn connection(socket: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let Some(acceptor) = tls else {
        return serve(socket, None, shared).await;
    };
    if let Ok(stream) = acceptor.accept(socket).await {
        let name = stream.get_ref().1.server_name().map(ToOwned::to_owned);
        serve(stream, name, shared).await;
    }
}

async fn serve<S>(stream: S, server_name: Option<String>, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| answer(request, server_name.clone(), Arc::clone(&shared)));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Clients of these tests break connections off on purpose.
    connection.await.unwrap_or_default();
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

async fn answer(
    request: ::http::Request<Incoming>,
    server_name: Option<String>,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Infallible> {
    let header = |name| {
        let value = request.headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let (host, authorization) = (header(header::HOST), header(header::AUTHORIZATION));
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let seen = Seen {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        host,
        authorization,
        body: String::from_utf8(body.to_vec()).unwrap(),
        server_name,
    };
    shared.seen.lock().unwrap().push(seen.clone());
    let mode = shared.mode.lock().unwrap().clone();
    let whole = |status: u16, text: String| {
        let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
        (StatusCode::from_u16(status).unwrap(), body.boxed_unsync())
    };
    let location = match &mode {
        Mode::Redirect(location) => Some(location.clone()),
        _ => None,
    };
    let (status, body) = match mode {
        Mode::Answer(status, text) => whole(status, text),
        Mode::Redirect(_) => whole(302, String::new()),
        Mode::Hang => std::future::pending().await,
        Mode::Echo => whole(401, format!("who is {:?}?", seen.authorization)),
        Mode::Stall => (StatusCode::OK, begun(stream::pending().boxed())),
        Mode::BreakOff => {
            let broken = stream::once(async {
                // Being asked to wait makes the server send what it has.
                tokio::task::yield_now().await;
                Err(io::Error::other("broken off on purpose"))
            });
            (StatusCode::OK, begun(broken.boxed()))
        }
        Mode::Flood => {
            let sample = Bytes::from_static(br#"{"metric":{},"value":[1,"1"]},"#);
            let samples = stream::repeat_with(move || Ok(sample.clone()));
            (StatusCode::OK, begun(samples.boxed()))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some(location) = location {
        let value = location.parse().unwrap();
        response.headers_mut().insert(header::LOCATION, value);
    }
    Ok(response)
}

/// The start of an answer, and then whatever comes.
fn begun(rest: stream::BoxStream<'static, io::Result<Bytes>>) -> Body {
    let start = br#"{"status":"success","data":{"resultType":"vector","result":["#;
    let start = stream::once(async { Ok(Bytes::from_static(start)) });
    let frames = start.chain(rest).map(|bytes| bytes.map(Frame::data));
    StreamBody::new(frames).boxed_unsync()
}
