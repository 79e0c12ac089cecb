//! TLS towards Prometheus: who is believed, who we are, and under which name.

use std::time::Duration;

use super::http::{FakePrometheus, Mode, ONE_SAMPLE};
use super::pki::{Authority, install_provider};
use crate::scratch::Folder;
use crate::settings::PrometheusTls;
use crate::settings::statics::CertificatePair;
use crate::signals::{
    HttpPrometheus, PromApi as _, PrometheusClientSettings, QueryError, QueryResult,
};

fn answering() -> Mode {
    Mode::Answer(200, ONE_SAMPLE.to_owned())
}

fn client(url: String, tls: PrometheusTls) -> HttpPrometheus {
    install_provider();
    HttpPrometheus::new(PrometheusClientSettings { tls, ..PrometheusClientSettings::new(url) })
        .unwrap()
}

async fn ask(client: &HttpPrometheus) -> Result<QueryResult, QueryError> {
    client.query("up", Duration::from_secs(20)).await
}

fn refused(answer: Result<QueryResult, QueryError>) -> String {
    let error = answer.expect_err("the handshake must fail");
    assert_eq!(error.reason(), "tls", "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_private_authority_is_believed_when_it_is_named_and_replaced_at_once() {
    let (authority, other) = (Authority::new(), Authority::new());
    let folder = Folder::new();
    let ca = folder.write("ca.crt", other.pem());
    let server = FakePrometheus::tls(answering(), authority.server("127.0.0.1")).await;
    let url = format!("https://127.0.0.1:{}", server.port);
    let client = client(url, PrometheusTls { ca_path: Some(ca), ..PrometheusTls::default() });
    let error = refused(ask(&client).await);
    assert!(error.contains("PROMETHEUS_CA_CERT_PATH"), "{error}");

    folder.write("ca.crt", format!("{}{}", other.pem(), authority.pem()));
    assert_eq!(ask(&client).await.unwrap().len(), 1, "either of a bundle is believed");

    folder.write("ca.crt", "not a certificate");
    let error = ask(&client).await.unwrap_err();
    assert_eq!(error.reason(), "credentials");
    assert!(error.to_string().contains("failed to parse CA certificate from"), "{error}");

    folder.write("ca.crt", authority.pem());
    assert_eq!(ask(&client).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_stranger_is_believed_only_where_verification_is_skipped() {
    let authority = Authority::new();
    let server = FakePrometheus::tls(answering(), authority.server("elsewhere.example")).await;
    let url = || format!("https://127.0.0.1:{}", server.port);
    let folder = Folder::new();
    let ca = folder.write("ca.crt", authority.pem());
    let verifying =
        client(url(), PrometheusTls { ca_path: Some(ca.clone()), ..PrometheusTls::default() });
    let error = refused(ask(&verifying).await);
    assert!(error.contains("PROMETHEUS_SERVER_NAME"), "{error}");
    std::fs::remove_file(&ca).unwrap();
    let trusting = client(
        url(),
        PrometheusTls { insecure_skip_verify: true, ca_path: Some(ca), ..PrometheusTls::default() },
    );
    assert_eq!(ask(&trusting).await.unwrap().len(), 1, "the missing CA file is not read");
}

#[tokio::test]
async fn a_server_name_is_asked_for_and_verified_while_the_url_is_connected_to() {
    let authority = Authority::new();
    let folder = Folder::new();
    let server = FakePrometheus::tls(answering(), authority.server("metrics.example")).await;
    let named = |name: &str| {
        client(
            format!("https://127.0.0.1:{}/prefix", server.port),
            PrometheusTls {
                ca_path: Some(folder.write("ca.crt", authority.pem())),
                server_name: Some(name.to_owned()),
                ..PrometheusTls::default()
            },
        )
    };
    refused(ask(&named("other.example")).await);
    assert_eq!(server.seen(), []);
    assert_eq!(ask(&named("metrics.example")).await.unwrap().len(), 1);
    let seen = server.seen().remove(0);
    assert_eq!(seen.server_name.as_deref(), Some("metrics.example"));
    assert_eq!(seen.host, Some(format!("127.0.0.1:{}", server.port)));
    assert_eq!(seen.path, "/prefix/api/v1/query");
}

#[tokio::test]
async fn a_client_certificate_is_shown_and_renewed() {
    let (authority, clients, strangers) = (Authority::new(), Authority::new(), Authority::new());
    let folder = Folder::new();
    let config = authority.server_for_clients_of("127.0.0.1", &clients);
    let server = FakePrometheus::tls(answering(), config).await;
    let write = |authority: &Authority| {
        let signed = authority.sign("controller");
        let certificate = folder.write("tls.crt", &signed.certificate);
        (certificate, folder.write("tls.key", &signed.key))
    };
    let (certificate, key) = write(&strangers);
    let url = || format!("https://127.0.0.1:{}", server.port);
    let anonymous = PrometheusTls {
        ca_path: Some(folder.write("ca.crt", authority.pem())),
        ..PrometheusTls::default()
    };
    refused(ask(&client(url(), anonymous.clone())).await);
    let known = client(
        url(),
        PrometheusTls { client: Some(CertificatePair { certificate, key }), ..anonymous },
    );
    refused(ask(&known).await);
    write(&clients);
    assert_eq!(ask(&known).await.unwrap().len(), 1);

    folder.write("tls.key", "not a key");
    let error = ask(&known).await.unwrap_err();
    assert_eq!(error.reason(), "credentials");
    assert!(error.to_string().contains("failed to parse client certificate"), "{error}");
}

#[tokio::test]
async fn tls_1_2_is_old_enough() {
    let authority = Authority::new();
    let folder = Folder::new();
    let server = FakePrometheus::tls(answering(), authority.old_server("127.0.0.1")).await;
    let tls = PrometheusTls {
        ca_path: Some(folder.write("ca.crt", authority.pem())),
        ..PrometheusTls::default()
    };
    let client = client(format!("https://127.0.0.1:{}", server.port), tls);
    assert_eq!(ask(&client).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_distinguished() {
    let server = FakePrometheus::plain(answering()).await;
    let tls = PrometheusTls { insecure_skip_verify: true, ..PrometheusTls::default() };
    refused(ask(&client(format!("https://127.0.0.1:{}", server.port), tls)).await);
}

#[tokio::test]
async fn a_server_without_tls_is_named_as_one() {
    let server = FakePrometheus::plain(answering()).await;
    let url = format!("https://127.0.0.1:{}", server.port);
    let error = refused(ask(&client(url, PrometheusTls::default())).await);
    assert!(error.contains("PROMETHEUS_ALLOW_HTTP"), "{error}");
    assert!(!error.contains("PROMETHEUS_CA_CERT_PATH"), "{error}");
}
