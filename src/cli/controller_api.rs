//! The debug pages of a running controller, read from outside.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use reqwest::header::AUTHORIZATION;
use reqwest::{Certificate, Client, redirect, retry, tls};

use crate::cluster::client::causes;
use crate::policy::document::MAX_DOCUMENT;

/// Longest wait for one page.
const DEADLINE: Duration = Duration::from_secs(30);

/// Largest token file that is read, in bytes.
const MAX_TOKEN: usize = 64 * 1024;

/// Flags that say how the controller is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct ControllerFlags {
    /// Where the controller serves /debug, such as https://127.0.0.1:8443 after
    /// kubectl port-forward
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub(super) address: Option<String>,
    /// A file with a bearer token that may read /debug
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) token_file: Option<String>,
    /// A file with the certificate authorities of the controller
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) ca_file: Option<String>,
    /// Accept any certificate of the controller, such as a self-signed one
    #[arg(long)]
    pub(super) insecure_skip_tls_verify: bool,
}

/// A way to the debug pages.
#[derive(Debug, Clone)]
pub(super) struct ControllerApi {
    client: Client,
    address: String,
    token: Option<String>,
}

impl ControllerApi {
    /// Makes a client; `None` where no address is given.
    ///
    /// # Errors
    /// The file that cannot be used, with the remedy.
    pub(super) fn of(flags: &ControllerFlags) -> Result<Option<Self>, String> {
        let Some(address) = &flags.address else {
            return Ok(None);
        };
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .timeout(DEADLINE)
            .tls_version_min(tls::Version::TLS_1_2)
            .tls_danger_accept_invalid_certs(flags.insecure_skip_tls_verify);
        if let Some(path) = &flags.ca_file {
            let pem = read_file("--ca-file", path)?;
            let certificates = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(|error| format!("--ca-file {path}: {error}; name a file in PEM form"))?;
            builder = builder.tls_certs_only(certificates);
        }
        let token = flags.token_file.as_deref().map(|path| {
            let text = read_file("--token-file", path)?;
            Ok::<String, String>(text.trim().to_owned())
        });
        Ok(Some(Self {
            client: builder.build().map_err(|error| causes(&error))?,
            address: address.trim_end_matches('/').to_owned(),
            token: token.transpose()?,
        }))
    }

    /// Reads one page.
    ///
    /// # Errors
    /// The page, the cause and the remedy.
    pub(super) async fn page(&self, path: &str) -> Result<Vec<u8>, String> {
        let url = format!("{}{path}", self.address);
        let failed = |error: reqwest::Error| {
            format!(
                "{url}: {}; check --address, and --ca-file or --insecure-skip-tls-verify",
                causes(&error)
            )
        };
        let mut request = self.client.get(&url);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            let remedy = match status.as_u16() {
                401 => "name a file with a valid token in --token-file",
                403 => {
                    "bind the token's user to a ClusterRole with get on nonResourceURLs /debug/*"
                }
                404 => "check that --address is METRICS_BIND_ADDRESS of the controller",
                _ => "see the log of the controller",
            };
            return Err(format!("{url}: the controller answered {status}; {remedy}"));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_DOCUMENT {
                return Err(format!(
                    "{url}: the page has more than {MAX_DOCUMENT} bytes; check --address"
                ));
            }
        }
        Ok(body)
    }

    /// Reads one page of JSON.
    ///
    /// # Errors
    /// The page, the cause and the remedy.
    pub(super) async fn json(&self, path: &str) -> Result<serde_json::Value, String> {
        let body = self.page(path).await?;
        serde_json::from_slice(&body)
            .map_err(|error| format!("{}{path}: {error}; check --address", self.address))
    }
}

fn read_file(flag: &str, path: &str) -> Result<String, String> {
    let remedy = |why: String| format!("{flag} {path}: {why}; name a file that can be read");
    let about = std::fs::metadata(Path::new(path)).map_err(|error| remedy(error.to_string()))?;
    if usize::try_from(about.len()).unwrap_or(usize::MAX) > MAX_TOKEN {
        return Err(remedy(format!("it has more than {MAX_TOKEN} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| remedy(error.to_string()))
}
