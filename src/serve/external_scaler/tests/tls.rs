use std::sync::Arc;

use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::Code;

use super::{Client, reference, shared, store_variants, variant};
use crate::cluster::fake::{FakeResponse, FakeServer};
use crate::scratch::Folder;
use crate::serve::access::Authorizer;
use crate::serve::external_scaler::ExternalScalerServer;
use crate::serve::tests::Running;
use crate::serve::tls::{AuthorityFile, CertificateFiles, ClientAuthorities, Http2, Tls};
use crate::settings::statics::CertificatePair;
use crate::state::SharedState;
use crate::state::events::Events;
use crate::state::permission_reporter::PermissionReporter;

impl Folder {
    fn tls(&self, clients: ClientAuthorities) -> Arc<Tls> {
        let files = CertificateFiles {
            setting: "EXTERNAL_SCALER_CERT_PATH",
            files: CertificatePair { certificate: self.join("tls.crt"), key: self.join("tls.key") },
        };
        let name = "external-scaler";
        Arc::new(Tls::new(name, Some(files), clients, Http2::Offered))
    }

    fn client_authority(&self) -> ClientAuthorities {
        ClientAuthorities::File(AuthorityFile {
            setting: "EXTERNAL_SCALER_CLIENT_CA_PATH",
            path: self.join("clients.crt"),
        })
    }
}

/// An authority that issues certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// Makes the server's certificate one of this authority.
    fn issue_to(&self, folder: &Folder) {
        let (certificate, key) = self.issue("external-scaler.test");
        folder.write("tls.crt", certificate.pem());
        folder.write("tls.key", key.serialize_pem());
    }
}

/// Connects with a client certificate, or with none.
async fn connect(
    server: &Running,
    trusted: &Authority,
    identity: Option<(rcgen::Certificate, KeyPair)>,
) -> std::io::Result<Client> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate.clone()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
            let chain = vec![certificate.der().clone()];
            builder.with_client_auth_cert(chain, key).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(server.address).await?;
    let name = ServerName::try_from("external-scaler.test").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    Ok(Client::over(stream).await)
}

fn decided() -> SharedState {
    let shared = shared();
    store_variants(&shared, [variant("a", "a", Some(3))]);
    shared
}

async fn serving(shared: &SharedState, tls: Arc<Tls>, authorizer: Option<Authorizer>) -> Running {
    let authorizer = authorizer.map(Arc::new);
    Running::with(ExternalScalerServer::new(shared.readers.clone(), Some(tls), authorizer)).await
}

async fn count(client: &Client) -> Result<i64, Code> {
    let named = reference("so", &[("variantName", "a")]);
    client.count(named).await.map_err(|status| status.code())
}

#[tokio::test]
async fn calls_are_answered_over_tls_with_the_certificate_of_the_files() {
    let (folder, authority) = (Folder::new(), Authority::new());
    authority.issue_to(&folder);
    let shared = decided();
    let server = serving(&shared, folder.tls(ClientAuthorities::None), None).await;
    assert!(connect(&server, &Authority::new(), None).await.is_err());
    let client = connect(&server, &authority, None).await.unwrap();
    assert_eq!(count(&client).await, Ok(3));
    // A client of the plain protocol is none.
    let stream = TcpStream::connect(server.address).await.unwrap();
    assert!(count(&Client::over(stream).await).await.is_err());
}

#[tokio::test]
async fn a_client_proves_itself_by_certificate_or_token() {
    let (folder, authority) = (Folder::new(), Authority::new());
    authority.issue_to(&folder);
    let clients = Authority::new();
    folder.write("clients.crt", &clients.pem);
    let user = json!({"username": "tool", "groups": ["system:authenticated"]});
    let reviewed = |status| FakeResponse::Json(201, json!({"status": status}));
    let api = FakeServer::new([
        reviewed(json!({"authenticated": true, "user": user})),
        reviewed(json!({"allowed": true})),
        reviewed(json!({"authenticated": false})),
    ]);
    let shared = decided();
    let permissions = PermissionReporter::for_test(shared.clock.clone(), Events::for_test());
    let clock = shared.clock.clone();
    let authorizer = Authorizer::new("external-scaler", clock, api.client(), None, permissions);
    let tls = folder.tls(folder.client_authority());
    let server = serving(&shared, tls, Some(authorizer)).await;

    let stranger = connect(&server, &authority, None).await.unwrap();
    assert_eq!(count(&stranger).await, Err(Code::Unauthenticated));
    assert!(api.asked().is_empty());
    let proven = connect(&server, &authority, Some(clients.issue("keda"))).await.unwrap();
    assert_eq!(count(&proven).await, Ok(3));
    assert!(api.asked().is_empty(), "a certificate suffices");

    let tool = stranger.clone().with_token("t");
    assert_eq!(count(&tool).await, Ok(3));
    let asked = api.asked();
    let path = &asked[1].body["spec"]["nonResourceAttributes"];
    let wanted = json!({"verb": "post", "path": "/externalscaler.ExternalScaler/GetMetrics"});
    assert_eq!(*path, wanted);
    let forger = stranger.with_token("forged");
    assert_eq!(count(&forger).await, Err(Code::Unauthenticated));
    // A certificate of another authority ends the handshake, at the first read of the client in TLS 1.3.
    let other = connect(&server, &authority, Some(Authority::new().issue("keda"))).await;
    if let Ok(other) = other {
        assert!(count(&other).await.is_err());
    }
}

#[tokio::test]
async fn without_the_authority_of_clients_nothing_is_served() {
    let (folder, authority) = (Folder::new(), Authority::new());
    authority.issue_to(&folder);
    let tls = folder.tls(folder.client_authority());
    assert!(tls.config().await.is_none());
    let reason = tls.readiness();
    assert!(!crate::policy::readiness::is_ready(std::slice::from_ref(&reason)), "{reason:?}");
    for part in ["clients.crt", "EXTERNAL_SCALER_CLIENT_CA_PATH"] {
        assert!(reason.detail.contains(part), "{reason:?}");
    }
}
