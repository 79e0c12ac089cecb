//! What the protected servers are served with.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use reqwest::StatusCode;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Proof, SOON, started};
use crate::harness::account::Account;
use crate::harness::controller::{ACCOUNT, Controller};
use crate::harness::fault::Result;
use crate::harness::pki::{Authority, Subject};
use crate::harness::ports;
use crate::harness::reader::Reader;
use crate::harness::suite::Cx;
use crate::harness::wait::{eventually, seen};

pub(super) fn proofs() -> Vec<Proof> {
    vec![
        Proof::of(
            &["METRICS_CERT_NAME", "METRICS_CERT_KEY"],
            "the_certificate_of_metrics_has_its_name",
            of_metrics,
        ),
        Proof::of(
            &[
                "EXTERNAL_METRICS_CERT_PATH",
                "EXTERNAL_METRICS_CERT_NAME",
                "EXTERNAL_METRICS_CERT_KEY",
            ],
            "the_certificate_of_external_metrics_has_its_name",
            of_external_metrics,
        ),
        Proof::of(
            &["WEBHOOK_CERT_PATH", "WEBHOOK_CERT_NAME", "WEBHOOK_CERT_KEY"],
            "the_certificate_of_webhooks_has_its_name",
            of_webhooks,
        ),
        Proof::of(&["ENABLE_HTTP2"], "http2_is_offered_when_asked_for", http2),
    ]
}

/// A folder with an authority, and certificates by it under names of the case.
fn certificates(cx: &Cx, names: &[&str]) -> Result<PathBuf> {
    let folder = format!("certificates-of-{}", cx.namespace.name);
    let folder = cx.world.site.conf(&folder);
    fs::create_dir_all(&folder)?;
    let authority = Authority::make(&folder, "ca")?;
    let subject = Subject {
        hosts: &["127.0.0.1"],
        ..Subject::user("wva")
    };
    for name in names {
        authority.issue(&folder, name, &subject)?;
    }
    Ok(folder)
}

async fn secure(cx: &Cx, settings: &[(&'static str, &str)]) -> Result<Controller> {
    let mut environment = vec![("METRICS_SECURE", "true".to_owned())];
    environment.extend(
        settings
            .iter()
            .map(|(key, value)| (*key, (*value).to_owned())),
    );
    // The harness says otherwise by a flag, and the last of a kind counts.
    started(cx, environment, &["--metrics-secure=true".to_owned()]).await
}

/// Waits until the page is served with a certificate of this authority; nobody is let in.
async fn is_served(reader: &Reader, url: &str) -> Result {
    eventually("the certificate is shown", SOON, async || {
        let (status, _) = reader.get(url).await?;
        seen(&status, &StatusCode::UNAUTHORIZED)
    })
    .await
}

async fn names_are_needed(controller: &Controller, file: &str) -> Result {
    super::readiness_has(controller, file).await.map(drop)
}

async fn of_metrics(cx: &Cx) -> Result {
    let folder = certificates(cx, &["own"])?;
    let (folder, ca) = (folder.display().to_string(), folder.join("ca.crt"));
    let reader = Reader::anonymous().trusting(&ca.display().to_string());
    let place = ("METRICS_CERT_PATH", folder.as_str());
    let certificate = ("METRICS_CERT_NAME", "own.crt");
    let key = ("METRICS_CERT_KEY", "own.key");
    for (settings, missing) in [
        (vec![place, key], "tls.crt"),
        (vec![place, certificate], "tls.key"),
    ] {
        let controller = secure(cx, &settings).await?;
        names_are_needed(&controller, missing).await?;
        controller.crash();
    }
    let controller = secure(cx, &[place, certificate, key]).await?;
    is_served(&reader, &format!("https://{}/metrics", controller.metrics)).await
}

async fn of_external_metrics(cx: &Cx) -> Result {
    let system = cx.system().await?;
    let account = Account::create(system, ACCOUNT).await?;
    let role = "extension-apiserver-authentication-reader";
    account.bind_role_in("kube-system", role).await?;
    let folder = certificates(cx, &["own"])?;
    let (folder, ca) = (folder.display().to_string(), folder.join("ca.crt"));
    let address = format!("127.0.0.1:{}", ports::free()?);
    let page = format!("https://{address}/apis/external.metrics.k8s.io/v1beta1");
    let reader = Reader::anonymous().trusting(&ca.display().to_string());
    let at = ("EXTERNAL_METRICS_BIND_ADDRESS", address.as_str());
    let place = ("EXTERNAL_METRICS_CERT_PATH", folder.as_str());
    let certificate = ("EXTERNAL_METRICS_CERT_NAME", "own.crt");
    let key = ("EXTERNAL_METRICS_CERT_KEY", "own.key");
    for (settings, missing) in [
        (vec![at, place, key], "tls.crt"),
        (vec![at, place, certificate], "tls.key"),
    ] {
        let controller = secure(cx, &settings).await?;
        names_are_needed(&controller, missing).await?;
        controller.crash();
    }
    // Without files it is a certificate that nobody has signed.
    let controller = secure(cx, &[at]).await?;
    is_served(&Reader::anonymous(), &page).await?;
    assert!(reader.get(&page).await.is_err());
    controller.crash();
    let _controller = secure(cx, &[at, place, certificate, key]).await?;
    is_served(&reader, &page).await
}

async fn of_webhooks(cx: &Cx) -> Result {
    let folder = certificates(cx, &["own"])?;
    let (folder, ca) = (folder.display().to_string(), folder.join("ca.crt"));
    let address = format!("127.0.0.1:{}", ports::free()?);
    let page = format!("https://{address}/validate-autoscaling-aibrix-ai-v1alpha1-podautoscaler");
    let reader = Reader::anonymous().trusting(&ca.display().to_string());
    let at = ("WEBHOOK_BIND_ADDRESS", address.as_str());
    let place = ("WEBHOOK_CERT_PATH", folder.as_str());
    let certificate = ("WEBHOOK_CERT_NAME", "own.crt");
    let key = ("WEBHOOK_CERT_KEY", "own.key");
    for (settings, missing) in [
        (vec![at, place, key], "tls.crt"),
        (vec![at, place, certificate], "tls.key"),
    ] {
        let controller = secure(cx, &settings).await?;
        names_are_needed(&controller, missing).await?;
        controller.crash();
    }
    let is_open = async |reader: &Reader| {
        eventually("the certificate is shown", SOON, async || {
            let (status, _) = reader.get(&page).await?;
            seen(&status, &StatusCode::METHOD_NOT_ALLOWED)
        })
        .await
    };
    // Without files it is a certificate that no authority has signed.
    let controller = secure(cx, &[at]).await?;
    is_open(&Reader::anonymous()).await?;
    assert!(reader.get(&page).await.is_err());
    controller.crash();
    let _controller = secure(cx, &[at, place, certificate, key]).await?;
    is_open(&reader).await
}

/// The protocol that the metrics door chooses for a client that would take either.
async fn protocol(cx: &Cx, ca: &str, controller: &Controller) -> Result<Option<String>> {
    let mut roots = RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(ca)?)?;
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let address: SocketAddr = controller.metrics.parse()?;
    let name = ServerName::from(address.ip());
    let config = Arc::new(config);
    eventually(
        format!("a handshake with {}", cx.namespace.name),
        SOON,
        async || {
            let socket = TcpStream::connect(address).await?;
            let connector = TlsConnector::from(Arc::clone(&config));
            let stream = connector.connect(name.clone(), socket).await?;
            let chosen = stream.get_ref().1.alpn_protocol();
            Ok(chosen.map(|name| String::from_utf8_lossy(name).into_owned()))
        },
    )
    .await
}

async fn http2(cx: &Cx) -> Result {
    let folder = certificates(cx, &["tls"])?;
    let (folder, ca) = (folder.display().to_string(), folder.join("ca.crt"));
    let place = ("METRICS_CERT_PATH", folder.as_str());
    let ca = ca.display().to_string();
    for (settings, chosen) in [
        (vec![place], "http/1.1"),
        (vec![place, ("ENABLE_HTTP2", "true")], "h2"),
    ] {
        let controller = secure(cx, &settings).await?;
        let found = protocol(cx, &ca, &controller).await?;
        assert_eq!(found.as_deref(), Some(chosen));
        controller.crash();
    }
    Ok(())
}
