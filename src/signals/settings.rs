//! Where Prometheus is and how it is spoken to, and what is wrong with that before anything is sent.

use std::net::IpAddr;
use std::path::Path;

use http::HeaderValue;
use reqwest::Url;

use crate::settings::secret::Secret;
use crate::settings::{PrometheusTls, StaticSettings, TokenSource};
use wva_base::names::is_dns_subdomain;

/// Largest answer that is accepted by default, in bytes: 10 000 variants of 20 pods each need
/// about a fifth.
pub const DEFAULT_RESPONSE_LIMIT: u64 = 256 * 1024 * 1024;

/// How to reach Prometheus. Read once; files are read again for every query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusClientSettings {
    /// `PROMETHEUS_BASE_URL`, with the path prefix the server is served under.
    pub base_url: String,
    /// `PROMETHEUS_ALLOW_HTTP`: an address without TLS is accepted, as long as there is no credential that it would
    /// give away.
    pub allow_http: bool,
    /// `PROMETHEUS_BEARER_TOKEN`, which wins over `PROMETHEUS_TOKEN_PATH`.
    pub token: TokenSource,
    /// TLS towards Prometheus; always version 1.2 or newer.
    pub tls: PrometheusTls,
    /// Largest answer that is accepted, in bytes.
    pub response_limit: u64,
}

impl PrometheusClientSettings {
    /// Verified TLS with the platform's roots and no credentials.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            allow_http: false,
            token: TokenSource::None,
            tls: PrometheusTls::default(),
            response_limit: DEFAULT_RESPONSE_LIMIT,
        }
    }
}

/// The value of an `Authorization` header; `None` if the text cannot be a token. Blanks around it are no part of it.
pub(super) fn bearer(token: &Secret) -> Option<HeaderValue> {
    let text = token.expose().trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let mut value = HeaderValue::try_from(format!("Bearer {text}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// One fault in [`PrometheusClientSettings`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrometheusSettings {
    #[error(
        "prometheus configuration is required but not found. set PROMETHEUS_BASE_URL in config file or environment variable"
    )]
    Missing,
    #[error(
        "PROMETHEUS_BASE_URL {url:?} is not a URL like https://prometheus.monitoring:9090 ({why})"
    )]
    Url {
        /// The URL, without user and password.
        url: String,
        why: String,
    },
    #[error(
        "TLS configuration validation failed - HTTPS is required: HTTPS is required - URL must use https:// scheme: {url}; for a server without TLS set PROMETHEUS_ALLOW_HTTP=true"
    )]
    HttpsRequired {
        /// The URL, without user and password.
        url: String,
    },
    #[error(
        "TLS configuration validation failed - HTTPS is required: {setting} would cross the network in the clear to {url}; use an https:// URL or remove {setting}"
    )]
    CredentialOverHttp {
        setting: &'static str,
        /// The URL, without user and password.
        url: String,
    },
    #[error(
        "TLS configuration validation failed - HTTPS is required: {what} not found: {path}; correct {setting}"
    )]
    FileNotFound { what: &'static str, path: String, setting: &'static str },
    #[error(
        "PROMETHEUS_SERVER_NAME {name:?} is not a DNS name; remove it to use the host of PROMETHEUS_BASE_URL"
    )]
    ServerName { name: String },
    #[error("failed to create prometheus client config: {problem}")]
    Token {
        /// What is wrong; never the token.
        problem: String,
    },
}

impl PrometheusClientSettings {
    /// Checks everything that can be checked without a connection; files are looked for, and the
    /// token file is read. Empty if all is well.
    pub fn validate(&self) -> Vec<InvalidPrometheusSettings> {
        let mut faults = Vec::new();
        match self.url() {
            Ok(url) => faults.extend(self.transport_faults(&url)),
            Err(fault) => faults.push(fault),
        }
        faults.extend(tls_faults(&self.tls));
        faults.extend(self.token_fault());
        faults
    }

    pub(super) fn url(&self) -> Result<Url, InvalidPrometheusSettings> {
        if self.base_url.is_empty() {
            return Err(InvalidPrometheusSettings::Missing);
        }
        let fault = |why: &str| InvalidPrometheusSettings::Url {
            url: without_user(&self.base_url).to_owned(),
            why: why.to_owned(),
        };
        let url = Url::parse(&self.base_url).map_err(|error| fault(&error.to_string()))?;
        let why = if !matches!(url.scheme(), "http" | "https") {
            "its scheme is neither https nor http"
        } else if !url.username().is_empty() || url.password().is_some() {
            "user and password do not belong into it; use PROMETHEUS_BEARER_TOKEN or PROMETHEUS_TOKEN_PATH"
        } else if url.query().is_some() || url.fragment().is_some() {
            "it has a query or a fragment"
        } else {
            return Ok(url);
        };
        Err(fault(why))
    }

    fn transport_faults(&self, url: &Url) -> Vec<InvalidPrometheusSettings> {
        if url.scheme() == "https" {
            return Vec::new();
        }
        let url = url.to_string();
        if !self.allow_http {
            return vec![InvalidPrometheusSettings::HttpsRequired { url }];
        }
        self.credentials()
            .map(|setting| InvalidPrometheusSettings::CredentialOverHttp {
                setting,
                url: url.clone(),
            })
            .collect()
    }

    fn credentials(&self) -> impl Iterator<Item = &'static str> {
        let token = match self.token {
            TokenSource::None => None,
            TokenSource::Value(_) => Some("PROMETHEUS_BEARER_TOKEN"),
            TokenSource::File(_) => Some("PROMETHEUS_TOKEN_PATH"),
        };
        let identity = ["PROMETHEUS_CLIENT_CERT_PATH", "PROMETHEUS_CLIENT_KEY_PATH"];
        let has_identity = self.tls.client.is_some();
        let identity = identity.into_iter().filter(move |_| has_identity);
        token.into_iter().chain(identity)
    }

    fn token_fault(&self) -> Option<InvalidPrometheusSettings> {
        let problem = match &self.token {
            TokenSource::None => return None,
            TokenSource::Value(secret) => token_problem("PROMETHEUS_BEARER_TOKEN", secret)?,
            TokenSource::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => token_problem(
                    &format!("{} (PROMETHEUS_TOKEN_PATH)", path.display()),
                    &Secret::new(text),
                )?,
                Err(error) => format!(
                    "failed to read the bearer token from {} (PROMETHEUS_TOKEN_PATH): {error}",
                    path.display()
                ),
            },
        };
        Some(InvalidPrometheusSettings::Token { problem })
    }
}

/// What makes a text unfit as a token, if anything does.
pub(super) fn token_problem(origin: &str, token: &Secret) -> Option<String> {
    if token.expose().trim().is_empty() {
        Some(format!("{origin} holds no token"))
    } else if bearer(token).is_none() {
        Some(format!(
            "{origin} holds something that is not a bearer token: it contains blanks, line breaks or characters beyond ASCII"
        ))
    } else {
        None
    }
}

fn tls_faults(tls: &PrometheusTls) -> Vec<InvalidPrometheusSettings> {
    let mut faults = Vec::new();
    // Without verification no file is looked for.
    if !tls.insecure_skip_verify {
        let ca = tls.ca_path.iter();
        let ca = ca.map(|path| (path, "CA certificate file", "PROMETHEUS_CA_CERT_PATH"));
        let identity = tls.client.iter().flat_map(|client| {
            let (certificate, key) = (&client.certificate, &client.key);
            [
                (certificate, "client certificate file", "PROMETHEUS_CLIENT_CERT_PATH"),
                (key, "client key file", "PROMETHEUS_CLIENT_KEY_PATH"),
            ]
        });
        let files = ca.chain(identity);
        faults.extend(files.filter_map(|(path, what, setting)| missing(path, what, setting)));
    }
    if let Some(name) = &tls.server_name
        && (!is_dns_subdomain(&name.to_ascii_lowercase()) || name.parse::<IpAddr>().is_ok())
    {
        faults.push(InvalidPrometheusSettings::ServerName { name: name.clone() });
    }
    faults
}

fn missing(
    path: &Path,
    what: &'static str,
    setting: &'static str,
) -> Option<InvalidPrometheusSettings> {
    (!path.is_file()).then(|| InvalidPrometheusSettings::FileNotFound {
        what,
        path: path.display().to_string(),
        setting,
    })
}

/// What follows the last `@`, where a user and a password may stand before it.
pub fn without_user(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, rest)| rest)
}

/// How the settings of a controller reach Prometheus.
pub(crate) fn prometheus_settings(statics: &StaticSettings) -> PrometheusClientSettings {
    let connection = statics.prometheus.clone();
    PrometheusClientSettings {
        base_url: connection.base_url.expose().to_owned(),
        allow_http: connection.allow_http,
        token: connection.token,
        tls: connection.tls,
        response_limit: DEFAULT_RESPONSE_LIMIT,
    }
}
