//! The certificate that a server shows: from files, or made up.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::settings::statics::CertificatePair;

/// Largest file that is read.
const MAX_FILE: u64 = 1024 * 1024;

/// Where a certificate and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The setting that says so.
    pub setting: &'static str,
    /// The PEM files.
    pub files: CertificatePair,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{path:?} cannot be read: {why}; {setting} names its folder")]
    Unreadable {
        /// The setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// A file does not hold what it should.
    #[error("{path:?} holds no {what} in PEM form: {why}; {setting} names its folder")]
    NotPem {
        /// The setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Certificate and key do not serve together.
    #[error("{path:?} and its key do not serve: {why}; {setting} names their folder")]
    Unusable {
        /// The setting.
        setting: &'static str,
        /// The certificate.
        path: PathBuf,
        /// What is wrong.
        why: rustls::Error,
    },
    /// No certificate could be made up.
    #[error("no certificate could be made: {0}")]
    NotMade(String),
}

/// The content of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Material {
    /// Reads the files.
    pub(super) async fn read(files: &CertificateFiles) -> Result<Self, CertificateError> {
        Ok(Self {
            certificate: read(files, &files.files.certificate).await?,
            key: read(files, &files.files.key).await?,
        })
    }

    /// The certificate with its key, if they belong together.
    pub(super) fn certified(
        &self,
        files: &CertificateFiles,
    ) -> Result<CertifiedKey, CertificateError> {
        let setting = files.setting;
        let CertificatePair { certificate, key } = &files.files;
        let not_pem = |path: &Path, what, why: String| CertificateError::NotPem {
            setting,
            path: path.to_owned(),
            what,
            why,
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| not_pem(certificate, "certificate", error.to_string()))?;
        if chain.is_empty() {
            let why = "there is none".to_owned();
            return Err(not_pem(certificate, "certificate", why));
        }
        let private = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| not_pem(key, "private key", error.to_string()))?;
        let provider = crypto::ring::default_provider();
        CertifiedKey::from_der(chain, private, &provider).map_err(|why| {
            CertificateError::Unusable {
                setting,
                path: certificate.clone(),
                why,
            }
        })
    }
}

async fn read(files: &CertificateFiles, path: &Path) -> Result<Vec<u8>, CertificateError> {
    let unreadable = |why: String| CertificateError::Unreadable {
        setting: files.setting,
        path: path.to_owned(),
        why,
    };
    let about = tokio::fs::metadata(path)
        .await
        .map_err(|error| unreadable(error.to_string()))?;
    if !about.is_file() || about.len() > MAX_FILE {
        let why = format!("it is not a file of at most {MAX_FILE} bytes");
        return Err(unreadable(why));
    }
    tokio::fs::read(path)
        .await
        .map_err(|error| unreadable(error.to_string()))
}

/// A certificate that proves nothing but keeps what is sent from being read on the way. It is made
/// for this process and never stored.
pub(super) fn self_signed() -> Result<CertifiedKey, CertificateError> {
    let not_made = |error: rcgen::Error| CertificateError::NotMade(error.to_string());
    let key = KeyPair::generate().map_err(not_made)?;
    let params = CertificateParams::new(["localhost".to_owned()]).map_err(not_made)?;
    let certificate = params.self_signed(&key).map_err(not_made)?;
    let private = PrivatePkcs8KeyDer::from(key.serialize_der());
    let provider = crypto::ring::default_provider();
    CertifiedKey::from_der(vec![certificate.der().clone()], private.into(), &provider)
        .map_err(|error| CertificateError::NotMade(error.to_string()))
}
