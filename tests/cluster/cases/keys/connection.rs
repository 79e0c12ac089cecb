//! How Prometheus and the API server are reached.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::{Proof, SOON, asking, first, gave_up};
use crate::harness::bridge::Bridge;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::Result;
use crate::harness::oracle::{Asked, Oracle};
use crate::harness::pki::{Authority, Subject};
use crate::harness::suite::Cx;

pub(super) fn proofs() -> Vec<Proof> {
    vec![
        Proof::of(
            &["PROMETHEUS_BASE_URL", "PROMETHEUS_ALLOW_HTTP"],
            "the_address_is_asked_and_plain_http_if_allowed",
            address,
        ),
        Proof::of(
            &[
                "PROMETHEUS_CA_CERT_PATH",
                "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY",
                "PROMETHEUS_SERVER_NAME",
                "PROMETHEUS_CLIENT_CERT_PATH",
                "PROMETHEUS_CLIENT_KEY_PATH",
                "PROMETHEUS_BEARER_TOKEN",
                "PROMETHEUS_TOKEN_PATH",
            ],
            "either_side_is_trusted_as_it_is_said",
            trust,
        ),
        Proof::of(&["REST_CLIENT_TIMEOUT"], "requests_end_in_time", request_timeout),
    ]
}

async fn address(cx: &Cx) -> Result {
    let oracle = Oracle::plain().await?;
    let text = gave_up(asking(cx, &oracle, &[("PROMETHEUS_ALLOW_HTTP", "false")]).await?).await?;
    assert!(text.contains("PROMETHEUS_ALLOW_HTTP"), "{text}");
    assert_eq!(oracle.asked(), []);
    let url = format!("http://127.0.0.1:{}/prefix", oracle.port);
    let settings = [("PROMETHEUS_ALLOW_HTTP", "true"), ("PROMETHEUS_BASE_URL", &url)];
    let _controller = asking(cx, &oracle, &settings).await?;
    assert_eq!(first(&oracle).await?.path, "/prefix/api/v1/query");
    Ok(())
}

/// An authority and a server of Prometheus that it has signed.
struct Site {
    folder: PathBuf,
    authority: Authority,
    oracle: Oracle,
}

impl Site {
    async fn new(cx: &Cx, host: &str) -> Result<Self> {
        let folder = cx.folder("prometheus")?;
        let authority = Authority::make(&folder, "ca")?;
        let subject = Subject { hosts: &[host], ..Subject::user("prometheus") };
        authority.issue(&folder, "server", &subject)?;
        let oracle = Oracle::tls(server(&folder)?).await?;
        Ok(Self { folder, authority, oracle })
    }

    fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    async fn asking(&self, cx: &Cx, settings: &[(&'static str, &str)]) -> Result<Controller> {
        let url = format!("https://127.0.0.1:{}", self.oracle.port);
        let own = [("PROMETHEUS_BASE_URL", &*url), ("PROMETHEUS_ALLOW_HTTP", "")];
        asking(cx, &self.oracle, &[&own[..], settings].concat()).await
    }

    /// How it is asked by a controller with these settings.
    async fn asked(&self, cx: &Cx, settings: &[(&'static str, &str)]) -> Result<Asked> {
        let before = self.oracle.asked().len();
        let controller = self.asking(cx, settings).await?;
        controller.readiness_has("[+] prometheus", SOON).await?;
        let last = self.oracle.asked().pop().unwrap_or_default();
        assert!(self.oracle.asked().len() > before, "it was not asked");
        Ok(last)
    }

    /// What a controller with these settings says, which asks nothing.
    async fn refused(&self, cx: &Cx, settings: &[(&'static str, &str)]) -> Result<String> {
        let before = self.oracle.asked().len();
        let controller = self.asking(cx, settings).await?;
        let text = controller.readiness_has("no TLS connection to Prometheus", SOON).await?;
        assert_eq!(self.oracle.asked().len(), before);
        Ok(text)
    }
}

/// It lets in every client with a certificate of its authority.
fn server(folder: &Path) -> Result<ServerConfig> {
    let read = |file: &str| fs::read(folder.join(file));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read("ca.crt")?)?)?;
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build()?;
    let builder = ServerConfig::builder().with_client_cert_verifier(verifier);
    let certificate = CertificateDer::from_pem_slice(&read("server.crt")?)?;
    let key = PrivateKeyDer::from_pem_slice(&read("server.key")?)?;
    Ok(builder.with_single_cert(vec![certificate], key)?)
}

async fn trust(cx: &Cx) -> Result {
    let site = Site::new(cx, "metrics.example").await?;
    let client = Subject::user("wva");
    site.authority.issue(&site.folder, "client", &client)?;
    fs::write(site.folder.join("token"), "of-the-file\n")?;
    let [ca, certificate, key, token] =
        ["ca.crt", "client.crt", "client.key", "token"].map(|file| site.path(file));
    let authority = ("PROMETHEUS_CA_CERT_PATH", ca.as_str());
    let name = ("PROMETHEUS_SERVER_NAME", "metrics.example");
    let certificate = ("PROMETHEUS_CLIENT_CERT_PATH", certificate.as_str());
    let key = ("PROMETHEUS_CLIENT_KEY_PATH", key.as_str());
    site.refused(cx, &[authority, certificate, key]).await?;
    site.refused(cx, &[name, certificate, key]).await?;
    site.refused(cx, &[authority, name]).await?;
    let file = ("PROMETHEUS_TOKEN_PATH", token.as_str());
    let asked = site.asked(cx, &[authority, name, certificate, key, file]).await?;
    assert!(asked.certified);
    assert_eq!(asked.server_name.as_deref(), Some("metrics.example"));
    assert_eq!(asked.authorization.as_deref(), Some("Bearer of-the-file"));
    let skip = ("PROMETHEUS_TLS_INSECURE_SKIP_VERIFY", "true");
    let value = ("PROMETHEUS_BEARER_TOKEN", "of-the-value");
    let asked = site.asked(cx, &[skip, certificate, key, value]).await?;
    assert_eq!(asked.server_name, None, "an address is no server name");
    assert_eq!(asked.authorization.as_deref(), Some("Bearer of-the-value"));
    // A certificate alone is half a proof.
    let text = gave_up(site.asking(cx, &[authority, certificate]).await?).await?;
    assert!(text.contains("PROMETHEUS_CLIENT_KEY_PATH"), "{text}");
    Ok(())
}

/// An API server that takes a connection and says nothing.
async fn request_timeout(cx: &Cx) -> Result {
    let bridge = Bridge::to(1).await?;
    bridge.silence();
    for timeout in ["1s", "2s"] {
        let spec = ControllerSpec {
            environment: vec![("REST_CLIENT_TIMEOUT", timeout.to_owned())],
            api: Some(bridge.port),
            ..ControllerSpec::scoped(cx)
        };
        let text = gave_up(Controller::start(cx, &spec).await?).await?;
        assert!(text.contains("unable to bootstrap"), "{text}");
        assert!(text.contains(timeout), "{text}");
    }
    Ok(())
}
