//! What the protected servers are served with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use reqwest::StatusCode;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Proof, SOON, owned, started};
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
            &[
                "METRICS_CERT_NAME",
                "METRICS_CERT_KEY",
                "EXTERNAL_METRICS_CERT_PATH",
                "EXTERNAL_METRICS_CERT_NAME",
                "EXTERNAL_METRICS_CERT_KEY",
                "WEBHOOK_CERT_PATH",
                "WEBHOOK_CERT_NAME",
                "WEBHOOK_CERT_KEY",
            ],
            "certificates_have_their_names",
            certificates,
        ),
        Proof::of(&["ENABLE_HTTP2"], "http2_is_offered_when_asked_for", http2),
    ]
}

/// A folder with an authority, and a certificate by it under this name.
fn issued(cx: &Cx, name: &str) -> Result<PathBuf> {
    let folder = cx.folder("certificates")?;
    let authority = Authority::make(&folder, "ca")?;
    let subject = Subject { hosts: &["127.0.0.1"], ..Subject::user("wva") };
    authority.issue(&folder, name, &subject)?;
    Ok(folder)
}

async fn secure(cx: &Cx, settings: &[(&'static str, &str)]) -> Result<Controller> {
    let mut environment = vec![("METRICS_SECURE", "true".to_owned())];
    environment.extend(owned(settings));
    // The harness says otherwise by a flag, and the last of a kind counts.
    started(cx, environment, &["--metrics-secure=true".to_owned()]).await
}

/// Waits until each server says that it lacks this file.
async fn lack(controller: &Controller, missing: &str) -> Result {
    let marks = ["metrics", "external-metrics", "webhooks"]
        .map(|server| format!("[-] certificate/{server}: "));
    eventually(format!("all lack {missing}"), SOON, async || {
        let text = controller.readiness().await?;
        let lines = text.lines().filter(|line| line.contains(missing));
        let named = lines.filter(|line| marks.iter().any(|mark| line.starts_with(mark)));
        seen(&named.count(), &marks.len())
    })
    .await
}

/// Of all three servers that have one. A name that is not given is that of a mounted Secret.
async fn certificates(cx: &Cx) -> Result {
    let account = Account::create(cx.system().await?, ACCOUNT).await?;
    let role = "extension-apiserver-authentication-reader";
    account.bind_role_in("kube-system", role).await?;
    let folder = issued(cx, "own")?;
    let (folder, ca) = (folder.display().to_string(), folder.join("ca.crt"));
    let reader = Reader::anonymous().trusting(&ca.display().to_string());
    let [external, webhooks] =
        [ports::free()?, ports::free()?].map(|port| format!("127.0.0.1:{port}"));
    let at = [
        ("EXTERNAL_METRICS_BIND_ADDRESS", external.as_str()),
        ("WEBHOOK_BIND_ADDRESS", webhooks.as_str()),
    ];
    let places = ["METRICS_CERT_PATH", "EXTERNAL_METRICS_CERT_PATH", "WEBHOOK_CERT_PATH"]
        .map(|key| (key, folder.as_str()));
    let names = ["METRICS_CERT_NAME", "EXTERNAL_METRICS_CERT_NAME", "WEBHOOK_CERT_NAME"]
        .map(|key| (key, "own.crt"));
    let keys = ["METRICS_CERT_KEY", "EXTERNAL_METRICS_CERT_KEY", "WEBHOOK_CERT_KEY"]
        .map(|key| (key, "own.key"));
    let pages = |controller: &Controller| {
        let webhook = "validate-autoscaling-aibrix-ai-v1alpha1-podautoscaler";
        wva_base::cases! {
            (format!("https://{}/metrics", controller.metrics), StatusCode::UNAUTHORIZED),
            (format!("https://{external}/apis/external.metrics.k8s.io/v1beta1"), StatusCode::UNAUTHORIZED),
            (format!("https://{webhooks}/{webhook}"), StatusCode::METHOD_NOT_ALLOWED),
        }
    };
    for (given, missing) in [(keys, "tls.crt"), (names, "tls.key")] {
        let settings = [&at[..], &places, &given].concat();
        let controller = secure(cx, &settings).await?;
        lack(&controller, missing).await?;
        controller.crash();
    }
    // Without files it is a certificate that no authority has signed.
    let controller = secure(cx, &at).await?;
    for (page, wanted) in pages(&controller) {
        Reader::anonymous().gets(&page, wanted, SOON).await?;
        assert!(reader.get(&page).await.is_err(), "{page}");
    }
    controller.crash();
    let controller = secure(cx, &[&at[..], &places, &names, &keys].concat()).await?;
    for (page, wanted) in pages(&controller) {
        reader.gets(&page, wanted, SOON).await?;
    }
    Ok(())
}

/// The protocol that the metrics door chooses for a client that would take either.
async fn protocol(cx: &Cx, ca: &str, controller: &Controller) -> Result<Option<String>> {
    let mut roots = RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(ca)?)?;
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let address: SocketAddr = controller.metrics.parse()?;
    let name = ServerName::from(address.ip());
    let config = Arc::new(config);
    eventually(format!("a handshake with {}", cx.namespace.name), SOON, async || {
        let socket = TcpStream::connect(address).await?;
        let connector = TlsConnector::from(Arc::clone(&config));
        let stream = connector.connect(name.clone(), socket).await?;
        let chosen = stream.get_ref().1.alpn_protocol();
        Ok(chosen.map(|name| String::from_utf8_lossy(name).into_owned()))
    })
    .await
}

async fn http2(cx: &Cx) -> Result {
    let folder = issued(cx, "tls")?;
    let (folder, ca) = (folder.display().to_string(), folder.join("ca.crt"));
    let place = ("METRICS_CERT_PATH", folder.as_str());
    let ca = ca.display().to_string();
    for (settings, chosen) in
        [(vec![place], "http/1.1"), (vec![place, ("ENABLE_HTTP2", "true")], "h2")]
    {
        let controller = secure(cx, &settings).await?;
        let found = protocol(cx, &ca, &controller).await?;
        assert_eq!(found.as_deref(), Some(chosen));
        controller.crash();
    }
    Ok(())
}
