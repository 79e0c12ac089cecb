//! Asks a router itself how many requests it holds.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::{ACCEPT, AUTHORIZATION};
use reqwest::{Client, StatusCode};

use super::client::{causes, client_builder};
use super::router_page::{HeldRequests, PageError, PageReader};
use super::settings::bearer;
use super::small_file;
use crate::settings::TokenSource;
use crate::settings::secret::Secret;

/// Where the installation mounts the token of an account that may read metrics.
pub const ROUTER_TOKEN_FILE: &str = "/var/run/secrets/epp-metrics/token";
const MAX_TOKEN: u64 = 64 * 1024;

/// What a router answers.
pub type RouterAnswer<'a> = BoxFuture<'a, Result<HeldRequests, RouterError>>;

/// The part of routers that the controller needs; a simulation brings its own.
pub trait RouterApi: fmt::Debug + Send + Sync {
    /// Reads what the router at this address holds. Answers within the deadline, with
    /// [`RouterError::Timeout`] at the latest.
    fn held(&self, router: SocketAddr, deadline: Duration) -> RouterAnswer<'_>;
}

/// Why a router said nothing. No variant ever holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouterError {
    /// No connection, or it broke; with what it said.
    #[error("its metrics cannot be reached ({0}); check its port and network policies")]
    Unreachable(String),
    /// No complete answer in this time.
    #[error("its metrics did not come within {0:?}; check its port, network policies and its load")]
    Timeout(Duration),
    /// HTTP 401 or 403.
    #[error(
        "it refuses its metrics (HTTP {status}, {sent}); set EPP_METRIC_READER_BEARER_TOKEN, or \
         mount at {ROUTER_TOKEN_FILE} the token of an account that may get /metrics"
    )]
    Refused {
        /// HTTP status.
        status: u16,
        /// What it was shown.
        sent: Sent,
    },
    /// Any other status.
    #[error(
        "its metrics page answers with HTTP {0}; check that its port serves /metrics, without a redirect"
    )]
    Status(u16),
    /// The page cannot be read.
    #[error(transparent)]
    Page(#[from] PageError),
}

impl RouterError {
    /// The reason in metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::Refused { .. } => "refused",
            Self::Status { .. } => "status",
            Self::Page(PageError::NoQueue) => "no_queue",
            Self::Page(_) => "malformed",
        }
    }
}

wva_base::named! {
    shown
    /// What a router was shown of who asks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Sent {
        /// A token.
        Token = "with a token",
        /// No token: there is none.
        Nothing = "without a token",
        /// No token: its file cannot be read, or holds none.
        Unusable = "without a token, as the mounted one cannot be used",
    }
}

/// Routers at the end of a network, over plain HTTP: they serve their metrics inside the cluster and
/// without TLS. A token is read again for each request.
#[derive(Debug)]
pub struct HttpRouters {
    client: Client,
    token: TokenSource,
}

impl HttpRouters {
    /// Prepares to ask. Proxies named in the environment are not used and redirects are not
    /// followed, so that a token reaches no server but the router. The process must have installed a
    /// rustls crypto provider.
    pub fn new(token: Option<Secret>) -> Result<Self, String> {
        let mounted = || TokenSource::File(PathBuf::from(ROUTER_TOKEN_FILE));
        Self::with_token(token.map_or_else(mounted, TokenSource::Value))
    }

    /// The same, with a token from anywhere.
    pub(super) fn with_token(token: TokenSource) -> Result<Self, String> {
        // A scrape now and then is no reason to keep a connection to every router.
        let client = client_builder(0).build().map_err(|error| causes(&error))?;
        Ok(Self { client, token })
    }

    async fn ask(&self, router: SocketAddr) -> Result<HeldRequests, RouterError> {
        let mut request = self
            .client
            .get(format!("http://{router}/metrics"))
            .header(ACCEPT, "text/plain;version=0.0.4");
        let (bearer, sent) = token(&self.token).await;
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        let unreachable = |error: reqwest::Error| RouterError::Unreachable(causes(&error));
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(RouterError::Refused { status, sent });
            }
            _ => return Err(RouterError::Status(status)),
        }
        let mut reader = PageReader::default();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            reader.feed(&chunk)?;
        }
        Ok(reader.finish()?)
    }
}

impl RouterApi for HttpRouters {
    fn held(&self, router: SocketAddr, deadline: Duration) -> RouterAnswer<'_> {
        Box::pin(async move {
            tokio::time::timeout(deadline, self.ask(router))
                .await
                .unwrap_or(Err(RouterError::Timeout(deadline)))
        })
    }
}

/// The token as a header, if there is one, and how it is described.
async fn token(source: &TokenSource) -> (Option<http::HeaderValue>, Sent) {
    let secret = match source {
        TokenSource::None => return (None, Sent::Nothing),
        TokenSource::Value(secret) => secret.clone(),
        TokenSource::File(path) => match read(path).await {
            Ok(Some(secret)) => secret,
            Ok(None) => return (None, Sent::Nothing),
            Err(error) => {
                tracing::debug!(path = %path.display(), %error, "token of routers not read");
                return (None, Sent::Unusable);
            }
        },
    };
    match bearer(&secret) {
        Some(bearer) => (Some(bearer), Sent::Token),
        None => (None, Sent::Unusable),
    }
}

/// The content of a token file; `None` where there is none.
async fn read(path: &Path) -> Result<Option<Secret>, std::io::Error> {
    match small_file::read(path, MAX_TOKEN).await {
        Ok(bytes) => Ok(Some(Secret::new(String::from_utf8_lossy(&bytes)))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
