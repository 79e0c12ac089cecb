//! Reads the metrics pages of pods, and of services that report a total.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::ACCEPT;
use reqwest::{Certificate, Client, StatusCode, Url};

use super::client::{causes, client_builder};
use super::endpoint_guard::{GuardedNames, check_endpoint, in_full};
use super::metrics_page::{FamilyReader, MetricFamilies};
use super::page_lines::PageFault;
use crate::policy::pod_autoscaler::source::MetricsPage;
use crate::policy::signal::Failure;
use crate::settings::endpoint_hosts::EndpointHosts;

/// Where a page is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageUrl {
    url: Arc<str>,
    /// Whether a user names the host, which has to be permitted.
    is_endpoint: bool,
}

impl PageUrl {
    /// The page of a pod.
    ///
    /// # Errors
    /// The port is none.
    pub fn of_pod(address: IpAddr, port: &str, page: &MetricsPage) -> Result<Self, PageReadError> {
        let number: Option<u16> = port.parse().ok().filter(|port| *port > 0);
        let number = number.ok_or_else(|| {
            PageReadError::InvalidUrl(format!(
                "port {port:?} is no number from 1 to 65535; write one"
            ))
        })?;
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        Ok(Self::new(&format!("{host}:{number}"), page, false))
    }

    /// The page of a service, given its host and port.
    ///
    /// # Errors
    /// It is more, or less, than a host and a port.
    pub fn of_service(endpoint: &str, page: &MetricsPage) -> Result<Self, PageReadError> {
        let url = Self::new(endpoint, page, true);
        let is_host = !endpoint.is_empty() && !endpoint.contains(['/', '?', '#', '@', '\\']);
        if is_host && Url::parse(&url.url).is_ok_and(|url| url.port() != Some(0)) {
            return Ok(url);
        }
        Err(PageReadError::InvalidUrl(format!(
            "endpoint {endpoint:?} is no host with a port; write host:port"
        )))
    }

    /// Its whole URL.
    ///
    /// # Errors
    /// It is no URL, or names a host that is not read.
    pub(crate) fn permitted(&self, hosts: &EndpointHosts) -> Result<Url, PageReadError> {
        let url = Url::parse(&self.url).map_err(|error| {
            PageReadError::InvalidUrl(format!("{self} is no URL ({error}); correct path"))
        })?;
        if !self.is_endpoint {
            return Ok(url);
        }
        let url = in_full(url, hosts);
        check_endpoint(&url, hosts)?;
        Ok(url)
    }

    fn new(authority: &str, page: &MetricsPage, is_endpoint: bool) -> Self {
        let protocol = match &*page.protocol {
            "" => "http",
            protocol => protocol,
        };
        Self { url: format!("{protocol}://{authority}{}", page.path).into(), is_endpoint }
    }
}

wva_base::display_of! { PageUrl: Self { url, .. } => "{url}"; }

/// The answer of a metrics page.
pub type PageAnswer = BoxFuture<'static, Result<MetricFamilies, PageReadError>>;

/// The part of pods that the controller needs; a simulation brings its own.
pub trait PodPages: fmt::Debug + Send + Sync {
    /// Reads these series off a page. Answers within the deadline, with [`PageReadError::Timeout`] at the latest.
    fn read(&self, page: PageUrl, wanted: Vec<Arc<str>>, deadline: Duration) -> PageAnswer;
}

/// Why a page was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageReadError {
    /// It has no URL; with what is wrong.
    #[error("{0}")]
    InvalidUrl(String),
    /// Its host may not be read: why, and the remedy.
    #[error("{0}")]
    NotPermitted(String),
    /// No connection, or it broke; with the cause.
    #[error(
        "the page cannot be reached ({0}); check port, protocolType and network policies, and for https that the \
         certificate names the host of an endpoint and that its authority is trusted"
    )]
    Unreachable(String),
    /// No complete answer in this time.
    #[error(
        "the page did not come within {}; check port, network policies and the load of what serves it",
        humantime::format_duration(*.0)
    )]
    Timeout(Duration),
    /// HTTP 503 of an engine that moves its shards.
    #[error("the engine is scaling, and serves no page at present (HTTP 503)")]
    Unavailable,
    /// Any other status than 200. Redirects are not followed.
    #[error("the page answers with HTTP {0}; check path and port")]
    Status(u16),
    /// The page cannot be read.
    #[error(transparent)]
    Page(#[from] PageFault),
}

impl PageReadError {
    /// What it means for a decision.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Page(_) => Failure::Invalid,
            Self::InvalidUrl { .. }
            | Self::NotPermitted { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Unavailable
            | Self::Status { .. } => Failure::QueryFailed,
        }
    }

    /// The reason in metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } => "invalid_url",
            Self::NotPermitted { .. } => "not_permitted",
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::Unavailable => "unavailable",
            Self::Status { .. } => "status",
            Self::Page(_) => "malformed",
        }
    }
}

/// Pods and services at the end of a network.
///
/// With https the certificate is verified. That of an endpoint has to name its host, and to be signed by an authority that
/// the system trusts or that [`HttpPods::new`] was given. That of a pod has to be signed by one of the latter, whatever it
/// names: addresses of pods change. Without any it has to name the address. Endpoints have to be permitted, and never lead
/// to addresses that only this machine or its cloud answers on.
#[derive(Debug)]
pub struct HttpPods {
    pods: Client,
    endpoints: Client,
    endpoint_hosts: Arc<EndpointHosts>,
}

impl HttpPods {
    /// Prepares to read. `authorities` are certificates in PEM form.
    /// The process must have installed a rustls crypto provider.
    ///
    /// # Errors
    /// What is wrong with the certificates, or why there is no client.
    pub fn new(authorities: Option<&[u8]>, endpoint_hosts: EndpointHosts) -> Result<Self, String> {
        // Connections to thousands of pods cost more to keep than to make.
        let builder = || client_builder(0).dns_resolver(Arc::new(GuardedNames));
        let (pods, endpoints) = match authorities {
            None => (builder(), builder()),
            Some(pem) => {
                let certificates =
                    Certificate::from_pem_bundle(pem).map_err(|error| causes(&error))?;
                if certificates.is_empty() {
                    return Err("it holds no certificate in PEM form".to_owned());
                }
                let pods = builder()
                    .tls_certs_only(certificates.clone())
                    .tls_danger_accept_invalid_hostnames(true);
                (pods, builder().tls_certs_merge(certificates))
            }
        };
        let endpoint_hosts = Arc::new(endpoint_hosts);
        Ok(Self {
            pods: pods.build().map_err(|error| causes(&error))?,
            endpoints: endpoints.build().map_err(|error| causes(&error))?,
            endpoint_hosts,
        })
    }
}

/// What an engine answers with 503 while it moves its shards. Source: `ScalingMiddleware` of vLLM. A proxy in front of an
/// engine that is gone answers with 503, too.
const SCALING: &[u8] = b"currently scaling";

/// Bytes of an answer with 503 that are looked at.
const MOST_REFUSAL: usize = 4096;

/// Whether the start of an answer names scaling as its cause.
async fn says_scaling(response: &mut reqwest::Response) -> bool {
    let mut start: Vec<u8> = Vec::new();
    while start.len() < MOST_REFUSAL {
        let Ok(Some(chunk)) = response.chunk().await else {
            break;
        };
        let room = MOST_REFUSAL - start.len();
        start.extend(chunk.iter().take(room));
    }
    start.windows(SCALING.len()).any(|part| part == SCALING)
}

async fn fetch(
    client: Client,
    hosts: Arc<EndpointHosts>,
    page: PageUrl,
    wanted: Vec<Arc<str>>,
) -> Result<MetricFamilies, PageReadError> {
    let url = page.permitted(&hosts)?;
    let unreachable = |error: reqwest::Error| PageReadError::Unreachable(causes(&error));
    let request = client.get(url).header(ACCEPT, "text/plain;version=0.0.4");
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    if status == StatusCode::SERVICE_UNAVAILABLE && says_scaling(&mut response).await {
        return Err(PageReadError::Unavailable);
    }
    if status != StatusCode::OK {
        let status = status.as_u16();
        return Err(PageReadError::Status(status));
    }
    let mut reader = FamilyReader::new(wanted);
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        reader.feed(&chunk)?;
    }
    Ok(reader.finish()?)
}

impl PodPages for HttpPods {
    fn read(&self, page: PageUrl, wanted: Vec<Arc<str>>, deadline: Duration) -> PageAnswer {
        let client = if page.is_endpoint { self.endpoints.clone() } else { self.pods.clone() };
        let hosts = Arc::clone(&self.endpoint_hosts);
        Box::pin(async move {
            tokio::time::timeout(deadline, fetch(client, hosts, page, wanted))
                .await
                .unwrap_or(Err(PageReadError::Timeout(deadline)))
        })
    }
}
