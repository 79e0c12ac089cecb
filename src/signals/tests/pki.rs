//! Certificates for tests: an authority, and what it signs.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// A certificate authority of one test.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, both PEM.
pub(super) struct Signed {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate, PEM.
    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a DNS name or an address.
    pub(super) fn sign(&self, name: &str) -> Signed {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        Signed {
            certificate: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// A server that proves to be `name`.
    pub(super) fn server(&self, name: &str) -> ServerConfig {
        self.configure(name, None, rustls::DEFAULT_VERSIONS)
    }

    /// As [`server`](Self::server), which wants clients signed by `clients`.
    pub(super) fn server_for_clients_of(&self, name: &str, clients: &Self) -> ServerConfig {
        self.configure(name, Some(clients), rustls::DEFAULT_VERSIONS)
    }

    /// As [`server`](Self::server), with TLS 1.2 only.
    pub(super) fn old_server(&self, name: &str) -> ServerConfig {
        self.configure(name, None, &[&rustls::version::TLS12])
    }

    fn configure(
        &self,
        name: &str,
        clients: Option<&Self>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ServerConfig {
        install_provider();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let builder = ServerConfig::builder_with_protocol_versions(versions);
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from(authority.0.der().to_vec())).unwrap();
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
    }
}

/// What `main` does first.
pub(super) fn install_provider() {
    // Another test was first.
    rustls::crypto::ring::default_provider().install_default().unwrap_or_default();
}
