//! A Prometheus of a few lines, played by the test process: it notes how it is asked, and what it
//! knows of pods is passed to it.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use http::header::AUTHORIZATION;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::background::Background;
use super::fault::Result;

/// The names under which it has the two signals of V1.
const KV_CACHE: &str = "vllm:kv_cache_usage_perc";
const WAITING: &str = "vllm:num_requests_waiting";

/// How one query came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    /// The expression.
    pub(crate) query: String,
    pub(crate) authorization: Option<String>,
    /// The name asked for in the TLS handshake.
    pub(crate) server_name: Option<String>,
    /// Whether the client proved who it is with a certificate.
    pub(crate) certified: bool,
}

/// A pod that reports.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) namespace: String,
    pub(crate) model: String,
    pub(crate) pod: String,
    pub(crate) kv_cache: f64,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    reports: Vec<Report>,
}

/// A server on a loopback port, until it is dropped.
pub(crate) struct Oracle {
    _task: Background,
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl Oracle {
    pub(crate) async fn plain() -> Result<Self> {
        Self::start(None).await
    }

    pub(crate) async fn tls(config: ServerConfig) -> Result<Self> {
        Self::start(Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start(tls: Option<TlsAcceptor>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let task = Background::start(async move {
            // Dropped, and with it every connection, when the task is.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(connection(socket, tls.clone(), Arc::clone(&shared)));
            }
        });
        Ok(Self { _task: task, port, state })
    }

    /// The queries so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    /// From now on, these pods report.
    pub(crate) fn report(&self, reports: Vec<Report>) {
        self.state.lock().unwrap().reports = reports;
    }
}

async fn connection(socket: TcpStream, tls: Option<TlsAcceptor>, state: Arc<Mutex<State>>) {
    let Some(acceptor) = tls else {
        return serve(socket, Asked::default(), state).await;
    };
    if let Ok(stream) = acceptor.accept(socket).await {
        let handshake = stream.get_ref().1;
        let how = Asked {
            server_name: handshake.server_name().map(ToOwned::to_owned),
            certified: handshake.peer_certificates().is_some(),
            ..Asked::default()
        };
        serve(stream, how, state).await;
    }
}

async fn serve<S>(stream: S, how: Asked, state: Arc<Mutex<State>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| answer(request, how.clone(), Arc::clone(&state)));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A controller that is killed breaks its connections off.
    connection.await.unwrap_or_default();
}

async fn answer(
    request: Request<Incoming>,
    how: Asked,
    state: Arc<Mutex<State>>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let authorization = request.headers().get(AUTHORIZATION);
    let mut asked = Asked {
        path: request.uri().path().to_owned(),
        authorization: authorization.map(|value| String::from_utf8_lossy(value.as_bytes()).into()),
        ..how
    };
    let body = request.into_body().collect().await;
    let body = body.map(http_body_util::Collected::to_bytes);
    let query = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
    let mut fields = form_urlencoded::parse(query.as_bytes());
    asked.query = fields
        .find_map(|(name, value)| (name == "query").then(|| value.into_owned()))
        .unwrap_or_default();
    let mut state = state.lock().unwrap();
    // Whether anybody else publishes is asked besides.
    if !query.contains("wva_desired_replicas") {
        state.asked.push(asked);
    }
    let samples: Vec<Value> = state.reports.iter().map(|report| sample(report, &query)).collect();
    let answer = json!({
        "status": "success", "data": { "resultType": "vector", "result": samples },
    });
    Ok(Response::new(Full::new(Bytes::from(answer.to_string()))))
}

/// What one pod says to a query: its value, or when it was scraped, which is always now.
fn sample(report: &Report, query: &str) -> Value {
    let now = Timestamp::now().as_second();
    let (source, value) = if query.contains("kv_cache_usage_perc") {
        (KV_CACHE, report.kv_cache)
    } else {
        (WAITING, 0.0)
    };
    let value = if query.contains("timestamp") { now.to_string() } else { value.to_string() };
    json!({
        "metric": {
            "namespace": report.namespace, "model_name": report.model, "pod": report.pod,
            "source": source,
        },
        "value": [now, value],
    })
}
