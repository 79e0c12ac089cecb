//! TLS towards readers: which certificate, which authorities of clients, which protocols, all as
//! they are now.

mod certificate;

use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig, crypto};
use tokio::sync::Mutex;
use tokio::time::Instant;

pub(crate) use self::certificate::AuthorityFile;
pub(super) use self::certificate::pem_fault;
pub use self::certificate::{CertificateFiles, certified};
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

/// Whose signatures prove a client. A client may come without a certificate; one that none of them has signed is
/// refused.
#[derive(Debug, Clone)]
pub enum ClientAuthorities {
    /// Clients are not asked.
    None,
    /// Those of the front proxies of the cluster.
    FrontProxies(Arc<FrontProxies>),
    /// Those in a file, which is read again when it changes.
    File(AuthorityFile),
}

/// One server's side of TLS.
pub struct Tls {
    name: &'static str,
    files: Option<CertificateFiles>,
    clients: ClientAuthorities,
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
    certificate_fault: Option<String>,
    /// The authorities of the file, once it could be read.
    file_authorities: Option<Vec<CertificateDer<'static>>>,
    authorities_fault: Option<String>,
    authorities: Vec<CertificateDer<'static>>,
    config: Option<Arc<ServerConfig>>,
}

wva_base::debug_of!(Tls: name, files);

impl Tls {
    /// TLS with the certificate in `files`, or else with one that is made up now. Clients may prove
    /// themselves to `clients`.
    pub fn new(
        name: &'static str,
        files: Option<CertificateFiles>,
        clients: ClientAuthorities,
        http2: Http2,
    ) -> Self {
        let unread = (ReadinessState::NotReady, "not read yet".to_owned());
        Self { name, files, clients, http2, current: Mutex::default(), state: Lock::new(unread) }
    }

    /// What the next connection is met with; `None` while there is no usable certificate.
    pub async fn config(&self) -> Option<Arc<ServerConfig>> {
        let mut current = self.current.lock().await;
        let before = current.key.clone();
        self.look(&mut current).await;
        let authorities = self.authorities(&current)?;
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

    /// Reads the files again if that was not done just now. What cannot be used is reported once and
    /// leaves the former files in force.
    async fn look(&self, current: &mut Current) {
        if current.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return;
        }
        current.looked = Some(Instant::now());
        self.look_at_certificate(current).await;
        self.look_at_authorities(current).await;
        let faults = [&current.certificate_fault, &current.authorities_fault];
        let Some(fault) = faults.into_iter().flatten().next() else {
            return self.report(ReadinessState::Ok, "in use".to_owned());
        };
        let state = if current.key.is_some() && self.authorities(current).is_some() {
            ReadinessState::Degraded
        } else {
            ReadinessState::NotReady
        };
        self.report(state, fault.clone());
    }

    async fn look_at_certificate(&self, current: &mut Current) {
        let made = match &self.files {
            None if current.key.is_some() => return,
            None => self_signed(),
            Some(files) => match Material::read(files).await {
                Ok(material) if current.material.as_ref() == Some(&material) => return,
                Ok(material) => {
                    let made = certified(files, &material.certificate, &material.key);
                    current.material = Some(material);
                    made
                }
                Err(error) => {
                    current.material = None;
                    Err(error)
                }
            },
        };
        current.certificate_fault = made.as_ref().err().map(ToString::to_string);
        if let Ok(key) = made {
            tracing::info!(server = self.name, files = ?self.files, "serving certificate in use");
            current.key = Some(Arc::new(key));
        }
    }

    async fn look_at_authorities(&self, current: &mut Current) {
        let ClientAuthorities::File(file) = &self.clients else {
            return;
        };
        let read = file.read().await;
        current.authorities_fault = read.as_ref().err().map(ToString::to_string);
        if let Ok(authorities) = read {
            current.file_authorities = Some(authorities);
        }
    }

    fn report(&self, state: ReadinessState, detail: String) {
        let mut known = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (state, detail);
        if *known != now && state != ReadinessState::Ok {
            tracing::error!(server = self.name, why = now.1, "serving certificate cannot be used");
        }
        *known = now;
    }

    /// The authorities of clients; `None` while they must be known and are not.
    fn authorities(&self, current: &Current) -> Option<Vec<CertificateDer<'static>>> {
        match &self.clients {
            ClientAuthorities::None => Some(Vec::new()),
            ClientAuthorities::FrontProxies(proxies) => {
                let rules = proxies.rules().ok();
                Some(rules.map_or_else(Vec::new, |rules| rules.authorities.clone()))
            }
            ClientAuthorities::File(_) => current.file_authorities.clone(),
        }
    }

    /// Whether there is a certificate, for `/readyz`.
    pub fn readiness(&self) -> ReadinessReason {
        let (state, detail) = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ReadinessReason { name: format!("certificate/{}", self.name), state, detail }
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
        tracing::warn!(refused, "authorities of clients cannot be read");
    }
    let provider = Arc::new(crypto::ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .ok()
}

#[cfg(test)]
mod tests;
