//! The debug pages of a running controller, read from outside.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use reqwest::header::AUTHORIZATION;
use reqwest::{Certificate, Client, Response, Url, redirect, retry, tls};

use crate::cluster::client::causes;
use crate::policy::document::MAX_DOCUMENT;
use wva_base::text::printable;

const DEADLINE: Duration = Duration::from_secs(30);

/// Largest token file that is read, in bytes.
const MAX_TOKEN: usize = 64 * 1024;

/// Longest text of a refusal that is shown, in bytes.
const MAX_REFUSAL: usize = 300;

/// Flags that say how the controller is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct ControllerFlags {
    /// Where the controller serves /debug, like https://127.0.0.1:8443 after
    /// kubectl port-forward
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    pub(super) address: Option<String>,
    /// A file with a bearer token that may read /debug
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) token_file: Option<String>,
    /// A file with the certificate authorities of the controller
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) ca_file: Option<String>,
    /// Accept any certificate of the controller, like a self-signed one
    #[arg(long)]
    pub(super) insecure_skip_tls_verify: bool,
}

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
        let url = Url::parse(address).ok();
        if url.is_none_or(|url| !url.has_host() || !url.scheme().starts_with("http")) {
            return Err(format!(
                "--address is {address:?}; give a URL like https://127.0.0.1:8443"
            ));
        }
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
            let has_certificate = url.starts_with("https:");
            let flags =
                if has_certificate { ", and --ca-file or --insecure-skip-tls-verify" } else { "" };
            format!("{url}: {}; check --address{flags}", causes(&error))
        };
        let mut request = self.client.get(&url);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            let said = said(response).await;
            let remedy = match status.as_u16() {
                401 => "name a file with a valid token in --token-file",
                403 => {
                    "bind the token's user to a ClusterRole with get on nonResourceURLs /debug/*"
                }
                404 if said.is_empty() || said == "not found" => {
                    "check that --address is METRICS_BIND_ADDRESS of the controller"
                }
                // The page is there, and says what it lacks.
                _ if !said.is_empty() => {
                    return Err(format!("{url}: the controller answered {status}: {said}"));
                }
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

/// The text of a refusal; empty where it is none of a line.
async fn said(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_REFUSAL {
            return String::new();
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    if text.len() <= MAX_REFUSAL && !text.contains(['\n', '<']) {
        printable(text)
    } else {
        String::new()
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::{ControllerApi, ControllerFlags};

    /// The error of a command for a page that is answered with 404 and this text.
    async fn refused(text: &str) -> String {
        // As the program does; another test may have done it.
        drop(rustls::crypto::ring::default_provider().install_default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let answer = format!(
            "HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let flags =
            ControllerFlags { address: Some(address.clone()), ..ControllerFlags::default() };
        let api = ControllerApi::of(&flags).unwrap().unwrap();
        let error = api.page("/debug/recording").await.unwrap_err();
        served.await.unwrap();
        error.replace(&address, "")
    }

    #[tokio::test]
    async fn a_page_that_lacks_something_says_what() {
        let remedy = "check that --address is METRICS_BIND_ADDRESS of the controller";
        for text in ["not found", "<html>", ""] {
            let wanted =
                format!("/debug/recording: the controller answered 404 Not Found; {remedy}");
            assert_eq!(refused(text).await, wanted, "{text}");
        }
        let why = "no decision is recorded in memory: see DECISION_HISTORY_BYTES";
        let wanted = format!("/debug/recording: the controller answered 404 Not Found: {why}");
        assert_eq!(refused(why).await, wanted);
    }

    #[tokio::test]
    async fn flags_of_certificates_are_named_where_there_is_one() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = listener.local_addr().unwrap();
        drop(listener);
        for (scheme, is_named) in [("https", true), ("http", false)] {
            let flags = ControllerFlags {
                address: Some(format!("{scheme}://{closed}")),
                ..ControllerFlags::default()
            };
            let api = ControllerApi::of(&flags).unwrap().unwrap();
            let error = api.page("/debug/recording").await.unwrap_err();
            assert!(error.contains("; check --address"), "{error}");
            assert_eq!(error.contains("--ca-file"), is_named, "{error}");
        }
    }
}
