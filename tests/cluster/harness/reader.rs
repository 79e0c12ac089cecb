//! A client of what the controller serves over TLS: with or without a token, a certificate of its
//! own, and trust in one authority.

use std::fs;
use std::time::Duration;

use reqwest::{Certificate, Identity, Method, StatusCode};

use super::fault::Result;
use super::wait::{eventually, seen};

/// Longer than a scrape may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// One way to ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    token: Option<String>,
    headers: Vec<(String, String)>,
    /// PEM files: the authority that the server must be signed by.
    authority: Option<String>,
    /// PEM files: certificate and key of the client.
    identity: Option<(String, String)>,
}

impl Reader {
    /// Takes any server and has no identity.
    pub(crate) fn anonymous() -> Self {
        Self::default()
    }

    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Shows the certificate `<stem>.crt` with the key `<stem>.key`.
    pub(crate) fn with_identity(mut self, stem: &str) -> Self {
        self.identity = Some((format!("{stem}.crt"), format!("{stem}.key")));
        self
    }

    /// Takes only servers that the authority in this PEM file has signed.
    pub(crate) fn trusting(mut self, authority: &str) -> Self {
        self.authority = Some(authority.to_owned());
        self
    }

    /// Asks on a connection of its own.
    pub(crate) async fn get(&self, url: &str) -> Result<(StatusCode, String)> {
        self.ask(Method::GET, url).await
    }

    pub(crate) async fn status(&self, url: &str) -> Result<StatusCode> {
        Ok(self.get(url).await?.0)
    }

    /// Waits until a page is answered with this status.
    pub(crate) async fn gets(&self, url: &str, wanted: StatusCode, within: Duration) -> Result {
        eventually(format!("{wanted} of {url}"), within, async || {
            seen(&self.status(url).await?, &wanted)
        })
        .await
    }

    /// Status and text of an answer.
    pub(crate) async fn ask(&self, method: Method, url: &str) -> Result<(StatusCode, String)> {
        let mut builder = reqwest::Client::builder().no_proxy().timeout(PATIENCE);
        builder = match &self.authority {
            Some(file) => {
                let authority = Certificate::from_pem(&fs::read(file)?)?;
                builder.tls_certs_only([authority])
            }
            None => builder.tls_danger_accept_invalid_certs(true),
        };
        if let Some((certificate, key)) = &self.identity {
            let pem = [fs::read(certificate)?, fs::read(key)?].concat();
            builder = builder.identity(Identity::from_pem(&pem)?);
        }
        let mut request = builder.build()?.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = request.send().await?;
        Ok((response.status(), response.text().await?))
    }
}
