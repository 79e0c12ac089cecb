//! Calls over a socket.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{AdmissionRoutes, VALIDATING_PATH, good_spec, object, review, with};
use crate::scratch::Folder;
use crate::serve::tests::Running;
use crate::serve::tls::{CertificateFiles, ClientAuthorities, Http2, Tls};
use crate::settings::statics::CertificatePair;

/// The head of a call whose body has so many bytes.
fn head(length: usize) -> String {
    format!(
        "POST {VALIDATING_PATH}?timeout=5s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}

async fn in_the_clear() -> Running {
    Running::serving(AdmissionRoutes::default(), None).await
}

/// Sends a call, and reads the document that answers it.
async fn call<S>(mut stream: S, review: &Value) -> Value
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let body = review.to_string();
    let call = format!("{}{body}", head(body.len()));
    stream.write_all(call.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    serde_json::from_str(body).unwrap()
}

/// A certificate in files, as a Secret is mounted.
fn certificate() -> (Folder, CertificateDer<'static>) {
    let folder = Folder::new();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["webhooks.test.svc".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    folder.write("tls.crt", certificate.pem());
    folder.write("tls.key", key.serialize_pem());
    (folder, certificate.der().clone())
}

async fn handshake(
    server: &Running,
    trusted: &CertificateDer<'static>,
) -> impl AsyncRead + AsyncWrite + Unpin {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("webhooks.test.svc").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.unwrap()
}

#[tokio::test]
async fn calls_are_answered_over_tls_with_the_certificate_of_the_files() {
    let (folder, trusted) = certificate();
    let files = CertificateFiles {
        setting: "WEBHOOK_CERT_PATH",
        files: CertificatePair { certificate: folder.join("tls.crt"), key: folder.join("tls.key") },
    };
    let tls = Tls::new("webhooks", Some(files), ClientAuthorities::None, Http2::Withheld);
    let server = Running::serving(AdmissionRoutes::default(), Some(Arc::new(tls))).await;
    let bad = with(good_spec(), &json!({ "maxReplicas": 0 }));
    for (spec, allowed) in [(good_spec(), true), (bad, false)] {
        let stream = handshake(&server, &trusted).await;
        let answer = call(stream, &review("CREATE", &object(&spec))).await;
        assert_eq!(answer["response"]["allowed"], allowed, "{answer}");
    }
}

/// Larger than the buffer of a connection by far.
#[tokio::test]
async fn a_body_of_megabytes_is_read_and_a_larger_one_is_refused_unread() {
    let server = in_the_clear().await;
    let mut object = object(&good_spec());
    object["metadata"]["annotations"] = json!({ "filling": "a".repeat(2 * 1024 * 1024) });
    let stream = TcpStream::connect(server.address).await.unwrap();
    let answer = call(stream, &review("UPDATE", &object)).await;
    assert_eq!(answer["response"]["allowed"], true);

    let limit = 3 * 1024 * 1024;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let call = head(limit + 1);
    stream.write_all(call.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.ends_with("the body is larger than 3145728 bytes\n"), "{answer}");
    // A body of the limit is none of JSON, and is read.
    let call = format!("{}{}", head(limit), " ".repeat(limit));
    let answer = server.send(&call).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up_and_one_that_breaks_off_too() {
    let server = in_the_clear().await;
    let begun = format!("{}{{", head(10));
    let answer = server.send(&begun).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.ends_with("the body is not complete after 5 s\n"), "{answer}");

    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(begun.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    // The connection ends, with or without an answer.
    drop(stream.read_to_string(&mut answer).await);
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn bodies_of_other_requests_are_left_unread() {
    let server = in_the_clear().await;
    let endless = "transfer-encoding: chunked\r\n\r\n1\r\na\r\n";
    for (request, status) in [
        ("POST /", "404"),
        ("POST /metrics", "404"),
        ("PUT /validate-autoscaling-aibrix-ai-v1alpha1-podautoscaler", "405"),
    ] {
        let answer = server.send(&format!("{request} HTTP/1.1\r\nhost: x\r\n{endless}")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}
