//! The certificate that a server shows: from files, or made up.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::settings::statics::CertificatePair;
use crate::signals::small_file;

const MAX_FILE: u64 = 1024 * 1024;

/// Where a certificate and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The setting that says so.
    pub setting: &'static str,
    /// The PEM files.
    pub files: CertificatePair,
}

/// Where the authorities of clients are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityFile {
    pub setting: &'static str,
    pub path: PathBuf,
}

impl AuthorityFile {
    pub(super) async fn read(&self) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
        let text = read(self.setting, &self.path).await?;
        chain(self.setting, &self.path, &text)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("{path:?} cannot be read: {why}; {setting} says where it is")]
    Unreadable { setting: &'static str, path: PathBuf, why: String },
    #[error("{path:?} holds no {what} in PEM form: {why}; {setting} says where it is")]
    NotPem { setting: &'static str, path: PathBuf, what: &'static str, why: String },
    #[error("{path:?} and its key do not serve: {why}; {setting} names their folder")]
    Unusable { setting: &'static str, path: PathBuf, why: rustls::Error },
    #[error("no certificate could be made: {0}")]
    NotMade(String),
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl Material {
    pub(super) async fn read(files: &CertificateFiles) -> Result<Self, CertificateError> {
        Ok(Self {
            certificate: read(files.setting, &files.files.certificate).await?,
            key: read(files.setting, &files.files.key).await?,
        })
    }
}

/// What is wrong with a PEM text, without a word of it: it may be a secret, of any length.
pub(in crate::serve) fn pem_fault(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no END line",
        pem::Error::IllegalSectionStart { .. } => "a BEGIN line is not complete",
        pem::Error::Base64Decode(_) => "a section is not base64",
        pem::Error::SectionTooLarge => "a section is too large",
        pem::Error::NoItemsFound => "there is none",
        _ => "it cannot be read",
    }
}

/// The certificate with its key from the PEM texts that `files` hold.
pub fn certified(
    files: &CertificateFiles,
    chain: &[u8],
    key: &[u8],
) -> Result<CertifiedKey, CertificateError> {
    let setting = files.setting;
    let path = &files.files.certificate;
    let chain = self::chain(setting, path, chain)?;
    let private = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| not_pem(setting, &files.files.key, "private key", pem_fault(&error)))?;
    let provider = crypto::ring::default_provider();
    CertifiedKey::from_der(chain, private, &provider).map_err(|why| CertificateError::Unusable {
        setting,
        path: path.clone(),
        why,
    })
}

/// The certificates of a PEM text, one at least.
fn chain(
    setting: &'static str,
    path: &Path,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| not_pem(setting, path, "certificate", pem_fault(&error)))?;
    if certificates.is_empty() {
        return Err(not_pem(setting, path, "certificate", "there is none"));
    }
    Ok(certificates)
}

fn not_pem(setting: &'static str, path: &Path, what: &'static str, why: &str) -> CertificateError {
    CertificateError::NotPem { setting, path: path.to_owned(), what, why: why.to_owned() }
}

async fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, CertificateError> {
    let read = small_file::read(path, MAX_FILE).await;
    read.map_err(|error| CertificateError::Unreadable {
        setting,
        path: path.to_owned(),
        why: error.to_string(),
    })
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

#[cfg(test)]
mod tests {
    use super::{CertificateFiles, certified};
    use crate::settings::statics::CertificatePair;

    /// It may stand in a log.
    #[test]
    fn a_fault_of_a_key_is_named_without_a_word_of_it() {
        let files = CertificateFiles {
            setting: "METRICS_CERT_PATH",
            files: CertificatePair { certificate: "tls.crt".into(), key: "tls.key".into() },
        };
        let chain = include_str!("../../../tests/fuzz/authority.crt");
        for (key, fault) in [
            ("-----BEGIN PRIVATE KEY-----\nc2VjcmV0", "no END line"),
            ("-----BEGIN c2VjcmV0\n", "BEGIN line"),
            ("-----BEGIN PRIVATE KEY-----\nc2VjcmV0!\n-----END PRIVATE KEY-----\n", "not base64"),
            ("c2VjcmV0", "there is none"),
        ] {
            let error = certified(&files, chain.as_bytes(), key.as_bytes()).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("tls.key") && text.contains(fault), "{text}");
            let quoted = format!("{:?}", b"c2VjcmV0");
            let quoted = quoted.trim_matches(['[', ']']);
            assert!(!text.contains("c2VjcmV0") && !text.contains(quoted), "{text}");
        }
    }
}
