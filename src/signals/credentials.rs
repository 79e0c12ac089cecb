//! The files that a connection is made with. They are read for every query, so that a renewed token
//! or certificate is used at once and no clock is involved.

use std::path::Path;

use super::error::QueryError;
use super::settings::{PrometheusClientSettings, token_problem};
use super::small_file;
use crate::settings::TokenSource;
use crate::settings::secret::Secret;
use crate::settings::statics::CertificatePair;

const MAX_FILE: u64 = 1024 * 1024;

/// The content of the TLS files. A client is made anew when it differs from the previous one's.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct TlsMaterial {
    /// PEM bundle of trusted certificates.
    pub(super) ca: Option<Vec<u8>>,
    /// Client certificate chain and key, PEM.
    pub(super) identity: Option<Vec<u8>>,
}

impl TlsMaterial {
    /// Reads the files that the settings name.
    pub(super) async fn read(settings: &PrometheusClientSettings) -> Result<Self, QueryError> {
        let tls = &settings.tls;
        let ca = match &tls.ca_path {
            Some(path) if !tls.insecure_skip_verify => {
                Some(read(path, "CA certificate", "PROMETHEUS_CA_CERT_PATH").await?)
            }
            _ => None,
        };
        let identity = match &tls.client {
            Some(CertificatePair { certificate, key }) => {
                let setting = "PROMETHEUS_CLIENT_CERT_PATH";
                let mut pem = read(certificate, "client certificate", setting).await?;
                pem.push(b'\n');
                pem.extend(read(key, "client key", "PROMETHEUS_CLIENT_KEY_PATH").await?);
                Some(pem)
            }
            None => None,
        };
        Ok(Self { ca, identity })
    }
}

pub(super) async fn token(
    settings: &PrometheusClientSettings,
) -> Result<Option<Secret>, QueryError> {
    let (secret, origin) = match &settings.token {
        TokenSource::None => return Ok(None),
        TokenSource::Value(secret) => (secret.clone(), "PROMETHEUS_BEARER_TOKEN".to_owned()),
        TokenSource::File(path) => {
            let bytes = read(path, "the bearer token", "PROMETHEUS_TOKEN_PATH").await?;
            (
                Secret::new(String::from_utf8_lossy(&bytes)),
                format!("{} (PROMETHEUS_TOKEN_PATH)", path.display()),
            )
        }
    };
    match token_problem(&origin, &secret) {
        None => Ok(Some(secret)),
        Some(problem) => Err(QueryError::Credentials(problem)),
    }
}

async fn read(path: &Path, what: &str, setting: &str) -> Result<Vec<u8>, QueryError> {
    let read = small_file::read(path, MAX_FILE).await;
    read.map_err(|error| {
        QueryError::Credentials(format!(
            "failed to read {what} from {} ({setting}): {error}",
            path.display()
        ))
    })
}
