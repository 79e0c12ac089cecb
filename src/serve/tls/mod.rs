//! TLS towards readers: which certificate, which authorities of clients, which protocols, all as
//! they are now.

mod certificate;

use std::fmt;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig, crypto};
use tokio::sync::Mutex;
use tokio::time::Instant;

pub(super) use self::certificate::pem_fault;
pub use self::certificate::{CertificateError, CertificateFiles, certified};
use self::certificate::{Material, self_signed};
use super::access::front_proxy::FrontProxies;
use crate::policy::readiness::{ReadinessReason, ReadinessState};

/// How long files are taken to be what they were.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Whether HTTP/2 is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2 {
    /// HTTP/1.1 only.
    Withheld,
    /// HTTP/2 for those who want it.
    Offered,
}

/// One server's side of TLS.
pub struct Tls {
    name: &'static str,
    files: Option<CertificateFiles>,
    front_proxies: Option<Arc<FrontProxies>>,
    http2: Http2,
    current: Mutex<Current>,
    /// Why the certificate is not the one that the files hold, and whether there is one at all.
    state: Lock<(ReadinessState, String)>,
}

#[derive(Default)]
struct Current {
    looked: Option<Instant>,
    material: Option<Material>,
    key: Option<Arc<CertifiedKey>>,
    authorities: Vec<CertificateDer<'static>>,
    config: Option<Arc<ServerConfig>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tls")
            .field("name", &self.name)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// TLS with the certificate in `files`, or else with one that is made up now. Clients may prove
    /// that they are one of `front_proxies`, where those are given.
    pub fn new(
        name: &'static str,
        files: Option<CertificateFiles>,
        front_proxies: Option<Arc<FrontProxies>>,
        http2: Http2,
    ) -> Self {
        let unread = (ReadinessState::NotReady, "not read yet".to_owned());
        Self {
            name,
            files,
            front_proxies,
            http2,
            current: Mutex::default(),
            state: Lock::new(unread),
        }
    }

    /// What the next connection is met with; `None` while there is no usable certificate.
    pub async fn config(&self) -> Option<Arc<ServerConfig>> {
        let mut current = self.current.lock().await;
        let before = current.key.clone();
        self.look(&mut current).await;
        let authorities = self.authorities();
        let same_key = match (&before, &current.key) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            _ => false,
        };
        if !same_key || authorities != current.authorities || current.config.is_none() {
            current.config = None;
            let key = current.key.clone()?;
            match build(key, &authorities, self.http2) {
                Ok(config) => {
                    current.config = Some(Arc::new(config));
                    current.authorities = authorities;
                }
                Err(error) => tracing::error!(server = self.name, %error, "TLS cannot be served"),
            }
        }
        current.config.clone()
    }

    /// Reads the files again if that was not done just now. What cannot be used is said once and
    /// leaves the former certificate in force.
    async fn look(&self, current: &mut Current) {
        if current
            .looked
            .is_some_and(|looked| looked.elapsed() < LOOK_EVERY)
        {
            return;
        }
        current.looked = Some(Instant::now());
        let made = match &self.files {
            None if current.key.is_some() => return,
            None => self_signed(),
            Some(files) => match Material::read(files).await {
                Ok(material) if current.material.as_ref() == Some(&material) => return,
                Ok(material) => {
                    let made = material.certified(files);
                    current.material = Some(material);
                    made
                }
                Err(error) => {
                    current.material = None;
                    Err(error)
                }
            },
        };
        match made {
            Ok(key) => {
                tracing::info!(server = self.name, files = ?self.files, "serving certificate in use");
                current.key = Some(Arc::new(key));
                self.report(ReadinessState::Ok, "in use".to_owned());
            }
            Err(error) => {
                let state = if current.key.is_some() {
                    ReadinessState::Degraded
                } else {
                    ReadinessState::NotReady
                };
                self.report(state, error.to_string());
            }
        }
    }

    fn report(&self, state: ReadinessState, detail: String) {
        let mut known = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (state, detail);
        if *known != now && state != ReadinessState::Ok {
            tracing::error!(
                server = self.name,
                why = now.1,
                "serving certificate cannot be used"
            );
        }
        *known = now;
    }

    fn authorities(&self) -> Vec<CertificateDer<'static>> {
        let rules = self
            .front_proxies
            .as_ref()
            .and_then(|proxies| proxies.rules().ok());
        rules.map_or_else(Vec::new, |rules| rules.authorities.clone())
    }

    /// Whether there is a certificate, for `/readyz`.
    pub fn readiness(&self) -> ReadinessReason {
        let (state, detail) = self
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        ReadinessReason {
            name: format!("certificate/{}", self.name),
            state,
            detail,
        }
    }
}

fn build(
    key: Arc<CertifiedKey>,
    authorities: &[CertificateDer<'static>],
    http2: Http2,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
    let verifier = clients(authorities);
    let proves = verifier.is_some();
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    if proves {
        // A session that is taken up again would not have its certificate looked at again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    config.alpn_protocols = match http2 {
        Http2::Withheld => vec![b"http/1.1".to_vec()],
        Http2::Offered => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(config)
}

/// Clients may come without a certificate; one that no authority has signed is refused.
fn clients(authorities: &[CertificateDer<'static>]) -> Option<Arc<dyn ClientCertVerifier>> {
    if authorities.is_empty() {
        return None;
    }
    let mut roots = RootCertStore::empty();
    let (_taken, refused) = roots.add_parsable_certificates(authorities.iter().cloned());
    if refused > 0 {
        tracing::warn!(refused, "authorities of front proxies cannot be read");
    }
    let provider = Arc::new(crypto::ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .ok()
}

#[cfg(test)]
mod tests;
