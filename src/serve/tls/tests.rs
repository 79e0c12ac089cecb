use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use tokio::time::advance;

use super::{CertificateFiles, ClientAuthorities, Http2, Tls};
use crate::policy::readiness::ReadinessState;
use crate::scratch::Folder;
use crate::settings::statics::CertificatePair;

fn write_pair(folder: &Path) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["wva.test".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    fs::write(folder.join("tls.crt"), certificate).unwrap();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
}

fn tls(folder: &Path) -> Tls {
    let files =
        CertificatePair { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
    let setting = "METRICS_CERT_PATH";
    let files = CertificateFiles { setting, files };
    Tls::new("metrics", Some(files), ClientAuthorities::None, Http2::Withheld)
}

async fn a_moment_later() {
    advance(Duration::from_millis(1_001)).await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_certificate_is_used_and_a_broken_one_is_not() {
    let folder = Folder::new();
    let tls = tls(&folder);
    write_pair(&folder);
    let first = tls.config().await.unwrap();
    assert_eq!(tls.readiness().state, ReadinessState::Ok);
    assert!(Arc::ptr_eq(&first, &tls.config().await.unwrap()));

    // Half of a renewal: the certificate is new, the key is not yet.
    let new = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["wva.test".to_owned()]).unwrap();
    let renewed = params.self_signed(&new).unwrap().pem();
    fs::write(folder.join("tls.crt"), renewed).unwrap();
    a_moment_later().await;
    assert!(Arc::ptr_eq(&first, &tls.config().await.unwrap()));
    let reason = tls.readiness();
    assert_eq!(
        (reason.name.as_str(), reason.state),
        ("certificate/metrics", ReadinessState::Degraded)
    );
    assert!(reason.detail.contains("METRICS_CERT_PATH"), "{}", reason.detail);

    fs::write(folder.join("tls.key"), new.serialize_pem()).unwrap();
    a_moment_later().await;
    let second = tls.config().await.unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
    assert_eq!(tls.readiness().state, ReadinessState::Ok);

    // Gone, and back unchanged.
    let certificate = fs::read(folder.join("tls.crt")).unwrap();
    fs::remove_file(folder.join("tls.crt")).unwrap();
    a_moment_later().await;
    assert!(Arc::ptr_eq(&second, &tls.config().await.unwrap()));
    assert_eq!(tls.readiness().state, ReadinessState::Degraded);
    fs::write(folder.join("tls.crt"), certificate).unwrap();
    a_moment_later().await;
    assert!(tls.config().await.is_some());
    assert_eq!(tls.readiness().state, ReadinessState::Ok);
}

#[tokio::test(start_paused = true)]
async fn without_a_certificate_nothing_is_served_and_the_reason_is_named() {
    let folder = Folder::new();
    let tls = tls(&folder);
    assert_eq!(tls.readiness().state, ReadinessState::NotReady);
    assert!(tls.config().await.is_none());
    let reason = tls.readiness();
    assert_eq!(reason.state, ReadinessState::NotReady);
    assert!(reason.detail.contains("tls.crt"), "{}", reason.detail);
    for (file, content) in [("tls.crt", ""), ("tls.key", "")] {
        fs::write(folder.join(file), content).unwrap();
    }
    a_moment_later().await;
    assert!(tls.config().await.is_none());
    let detail = tls.readiness().detail;
    assert!(detail.contains("holds no certificate"), "{detail}");

    write_pair(&folder);
    a_moment_later().await;
    assert!(tls.config().await.is_some());
    assert_eq!(tls.readiness().state, ReadinessState::Ok);
}

#[tokio::test(start_paused = true)]
async fn without_files_one_certificate_is_made_up_for_the_life_of_the_process() {
    for (http2, protocols) in [
        (Http2::Withheld, vec![b"http/1.1".to_vec()]),
        (Http2::Offered, vec![b"h2".to_vec(), b"http/1.1".to_vec()]),
    ] {
        let tls = Tls::new("metrics", None, ClientAuthorities::None, http2);
        let first = tls.config().await.unwrap();
        a_moment_later().await;
        assert!(Arc::ptr_eq(&first, &tls.config().await.unwrap()));
        assert_eq!(first.alpn_protocols, protocols);
        assert_eq!(tls.readiness().state, ReadinessState::Ok);
    }
}
