//! Asks Prometheus over HTTP.

use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::{ACCEPT, AUTHORIZATION, HOST};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Response, Url, redirect, retry, tls};

use super::credentials::{TlsMaterial, token};
use super::decode::{Decoder, error_text};
use super::error::{QueryError, excerpt};
use super::result::QueryResult;
use super::settings::{InvalidPrometheusSettings, PrometheusClientSettings, bearer};
use crate::settings::secret::Secret;

/// Time to set up a connection, within the deadline of a query.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const IDLE_CONNECTIONS: usize = 4;
/// How much of an answer that reports an error is read.
const MAX_ERROR_BODY: usize = 16 * 1024;

/// The answer of Prometheus to a query.
pub type PromAnswer<'a> = BoxFuture<'a, Result<QueryResult, QueryError>>;

/// The part of Prometheus that the controller needs; a simulation brings its own.
pub trait PromApi: fmt::Debug + Send + Sync {
    /// Evaluates an expression now, by the clock of Prometheus. Answers within the deadline, with
    /// [`QueryError::Timeout`] at the latest.
    fn query<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a>;

    /// Evaluates an expression that has values at several moments before now: one sample for each
    /// series and moment. Answers within the deadline, too. A source without a history returns an error.
    fn history<'a>(&'a self, _promql: &'a str, _deadline: Duration) -> PromAnswer<'a> {
        let problem = "no history is kept".to_owned();
        Box::pin(std::future::ready(Err(QueryError::Malformed(problem))))
    }
}

/// Most bytes of the answer about a history.
const MAX_HISTORY: u64 = 32 * 1024 * 1024;

/// Prometheus, or whatever speaks its API, at the end of a network.
///
/// Proxies named in the environment are not used and redirects are not followed, so that a token
/// reaches no server but that of the URL. Nothing is connected or verified before the first
/// query.
#[derive(Debug)]
pub struct HttpPrometheus {
    pub(super) settings: PrometheusClientSettings,
    endpoint: Endpoint,
    prepared: Mutex<Option<Prepared>>,
}

#[derive(Debug, Clone)]
struct Endpoint {
    /// URL of the query API; its host is the name that TLS requests and verifies.
    url: Url,
    /// What the `Host` header says and what is resolved, where that is another name.
    authority: Option<Authority>,
}

#[derive(Debug, Clone)]
struct Authority {
    header: String,
    host: Arc<str>,
}

struct Prepared {
    material: TlsMaterial,
    client: Client,
}

wva_base::debug_of!(Prepared:);

impl HttpPrometheus {
    /// Prepares to ask. The process must have installed a rustls crypto provider.
    pub fn new(settings: PrometheusClientSettings) -> Result<Self, Vec<InvalidPrometheusSettings>> {
        let faults = settings.validate();
        if !faults.is_empty() {
            return Err(faults);
        }
        let endpoint = Endpoint::of(&settings).map_err(|fault| vec![fault])?;
        Ok(Self { settings, endpoint, prepared: Mutex::new(None) })
    }

    /// The client for the present content of the TLS files; connections of the previous one end
    /// with their requests.
    fn client(&self, material: TlsMaterial) -> Result<Client, QueryError> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = prepared.as_ref()
            && current.material == material
        {
            return Ok(current.client.clone());
        }
        let client = build(&self.settings, &self.endpoint, &material)?;
        *prepared = Some(Prepared { material, client: client.clone() });
        Ok(client)
    }

    async fn ask(
        &self,
        promql: &str,
        deadline: Duration,
        decoder: Decoder,
    ) -> Result<QueryResult, QueryError> {
        let client = self.client(TlsMaterial::read(&self.settings).await?)?;
        let token = token(&self.settings).await?;
        // The server gives up as well, instead of working on without a reader.
        let timeout = format!("{}ms", deadline.as_millis());
        let mut request = client
            .post(self.endpoint.url.clone())
            .header(ACCEPT, "application/json")
            .form(&[("query", promql), ("timeout", &timeout)]);
        if let Some(authority) = &self.endpoint.authority {
            request = request.header(HOST, &authority.header);
        }
        if let Some(bearer) = token.as_ref().and_then(bearer) {
            request = request.header(AUTHORIZATION, bearer);
        }
        let response = request.send().await.map_err(|error| failed(&error))?;
        if response.status() == reqwest::StatusCode::OK {
            read(response, decoder).await
        } else {
            Err(refused(response, token.as_ref()).await)
        }
    }

    async fn ask_within(
        &self,
        promql: &str,
        deadline: Duration,
        decoder: Decoder,
    ) -> Result<QueryResult, QueryError> {
        tokio::time::timeout(deadline, self.ask(promql, deadline, decoder))
            .await
            .unwrap_or(Err(QueryError::Timeout(deadline)))
    }
}

async fn read(mut response: Response, mut decoder: Decoder) -> Result<QueryResult, QueryError> {
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => decoder.feed(&chunk)?,
            Ok(None) => return decoder.finish(),
            Err(error) => {
                return Err(QueryError::Malformed(format!("it breaks off: {}", causes(&error))));
            }
        }
    }
}

impl PromApi for HttpPrometheus {
    fn query<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        let decoder = Decoder::new(self.settings.response_limit);
        Box::pin(self.ask_within(promql, deadline, decoder))
    }

    fn history<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        let decoder = Decoder::of_history(self.settings.response_limit.min(MAX_HISTORY));
        Box::pin(self.ask_within(promql, deadline, decoder))
    }
}

impl Endpoint {
    fn of(settings: &PrometheusClientSettings) -> Result<Self, InvalidPrometheusSettings> {
        let mut url = settings.url()?;
        let path = format!("{}/api/v1/query", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let Some(name) = &settings.tls.server_name else {
            return Ok(Self { url, authority: None });
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        let header = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        url.set_host(Some(name))
            .map_err(|_unspecific| InvalidPrometheusSettings::ServerName { name: name.clone() })?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Self { url, authority: Some(Authority { header, host: Arc::from(host) }) })
    }
}

/// Resolves one host whatever is asked for: how a server is reached under a name that is not in DNS.
#[derive(Debug)]
struct FixedHost(Arc<str>);

impl Resolve for FixedHost {
    fn resolve(&self, _name: Name) -> Resolving {
        let host = Arc::clone(&self.0);
        Box::pin(async move {
            // Port 0 is replaced by the port of the URL.
            let addresses = tokio::net::lookup_host((&*host, 0)).await?;
            let addresses: Addrs = Box::new(addresses.collect::<Vec<_>>().into_iter());
            Ok(addresses)
        })
    }
}

/// What all clients have in common: proxies named in the environment are not used, redirects are not followed and no
/// request is repeated, so that a token reaches only the server of the URL.
pub(super) fn client_builder(idle_connections: usize) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .no_proxy()
        .pool_max_idle_per_host(idle_connections)
        .tls_version_min(tls::Version::TLS_1_2)
}

fn build(
    settings: &PrometheusClientSettings,
    endpoint: &Endpoint,
    material: &TlsMaterial,
) -> Result<Client, QueryError> {
    let mut builder = client_builder(IDLE_CONNECTIONS).connect_timeout(CONNECT_TIMEOUT);
    if let Some(authority) = &endpoint.authority {
        builder = builder.dns_resolver(Arc::new(FixedHost(Arc::clone(&authority.host))));
    }
    if settings.tls.insecure_skip_verify {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    builder = with_files(builder, settings, material)?;
    builder.build().map_err(|error| QueryError::Tls(causes(&error)))
}

fn with_files(
    mut builder: ClientBuilder,
    settings: &PrometheusClientSettings,
    material: &TlsMaterial,
) -> Result<ClientBuilder, QueryError> {
    let unusable = |what: &str, path: Option<&std::path::PathBuf>, why: &str| {
        let path = path.map(|path| path.display().to_string());
        let path = path.unwrap_or_default();
        QueryError::Credentials(format!("failed to parse {what} from {path}: {why}"))
    };
    if let Some(pem) = &material.ca {
        let ca = |why: &str| unusable("CA certificate", settings.tls.ca_path.as_ref(), why);
        let certificates =
            Certificate::from_pem_bundle(pem).map_err(|error| ca(&causes(&error)))?;
        if certificates.is_empty() {
            return Err(ca("it holds no certificate in PEM form"));
        }
        builder = builder.tls_certs_only(certificates);
    }
    if let Some(pem) = &material.identity {
        let identity = Identity::from_pem(pem).map_err(|error| {
            unusable(
                "client certificate and key",
                settings.tls.client.as_ref().map(|client| &client.certificate),
                &causes(&error),
            )
        })?;
        builder = builder.identity(identity);
    }
    Ok(builder)
}

/// The error of a request without an answer.
fn failed(error: &reqwest::Error) -> QueryError {
    let cause = causes(error);
    let mut source = error.source();
    while let Some(inner) = source {
        match handshake(inner) {
            Some(rustls::Error::InvalidMessage(_)) => return QueryError::NotTls(cause),
            Some(_) => return QueryError::Tls(cause),
            None => {}
        }
        source = inner.source();
    }
    QueryError::Unreachable(cause)
}

fn handshake<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    // An I/O error does not list what it wraps among its sources.
    let wrapped = || {
        let outer = error.downcast_ref::<std::io::Error>()?;
        handshake(outer.get_ref()?)
    };
    error.downcast_ref::<rustls::Error>().or_else(wrapped)
}

/// An error and all its sources in one line; reqwest's own text stops at "error sending request".
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut source = error.source();
    while let Some(inner) = source {
        let text = inner.to_string();
        if texts.last().is_none_or(|last| !last.contains(&text)) {
            texts.push(text);
        }
        source = inner.source();
    }
    if texts.is_empty() {
        // A URL in the text would only repeat the setting.
        return "the request could not be made".to_owned();
    }
    excerpt(&texts.join(": "))
}

/// The error of an answer other than 200.
async fn refused(mut response: Response, token: Option<&Secret>) -> QueryError {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ERROR_BODY {
            body.truncate(MAX_ERROR_BODY);
            break;
        }
    }
    let mut body = String::from_utf8_lossy(&body).into_owned();
    if let Some(token) = token {
        // A debugging proxy may send the headers of the request back.
        body = body.replace(token.expose().trim(), "[secret]");
    }
    QueryError::of_status(status, &error_text(&body))
}
