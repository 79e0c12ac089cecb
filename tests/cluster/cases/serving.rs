//! `/metrics` and `/debug` over HTTPS: who is let in, with which certificate, and how many.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use reqwest::{Method, StatusCode};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::harness::account::Account;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::door::Door;
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::pki::{Authority, Subject};
use crate::harness::reader::Reader;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::variant;
use crate::harness::wait::{eventually, seen};

/// Longer than refusals are remembered.
const SOON: Duration = Duration::from_secs(30);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, serving::is_for_authorized_readers_alone),
        case!(shared, serving::refuses_expired_tokens),
        case!(shared, serving::takes_up_a_new_certificate),
    ]
}

async fn secure(cx: &Cx, arguments: &[String]) -> Result<Controller> {
    let mut all = vec!["--metrics-secure=true".to_owned()];
    all.extend_from_slice(arguments);
    let spec = ControllerSpec { arguments: all, ..ControllerSpec::scoped(cx) };
    Controller::start(cx, &spec).await
}

fn page(controller: &Controller, path: &str) -> String {
    format!("https://{}{path}", controller.metrics)
}

async fn is_for_authorized_readers_alone(cx: &Cx) -> Result {
    let controller = secure(cx, &[]).await?;
    controller.ready().await?;
    let (metrics, tree) = (page(&controller, "/metrics"), page(&controller, "/debug/tree"));
    let plain = metrics.replace("https", "http");
    let plainly = reqwest::get(&plain).await;
    assert!(plainly.is_err(), "answered without TLS: {plainly:?}");

    let account = Account::create(&cx.namespace, "prometheus").await?;
    let reader = Reader::anonymous().with_token(&account.token().await?);
    for stranger in [
        Reader::anonymous(),
        Reader::anonymous().with_token("wrong"),
        Reader::anonymous().with_header("authorization", "Basic YWRtaW46YWRtaW4="),
        Reader::anonymous().with_header("x-remote-user", "system:admin"),
    ] {
        for path in ["/metrics", "/debug/tree", "/debug/kill?role=optimizer", "/nothing"] {
            let (status, text) = stranger.get(&page(&controller, path)).await?;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}: {text}");
        }
    }
    let (status, text) = reader.get(&metrics).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "{text}");
    let name = format!("system:serviceaccount:{}:prometheus", cx.namespace.name);
    assert!(text.contains(&name) && text.contains("/metrics"), "{text}");

    account.bind_shipped("rbac/metrics_reader.yaml").await?;
    reader.gets(&metrics, StatusCode::OK, SOON).await?;
    assert!(reader.get(&metrics).await?.1.contains("wva_config_generation"));
    assert_eq!(reader.status(&tree).await?, StatusCode::FORBIDDEN);

    account.bind_shipped("rbac/debug_reader.yaml").await?;
    reader.gets(&tree, StatusCode::OK, SOON).await?;
    // Reading is not killing.
    let kill = page(&controller, "/debug/kill?role=optimizer");
    let (killed, _) = reader.ask(Method::POST, &kill).await?;
    assert_eq!(killed, StatusCode::FORBIDDEN);

    let probes = controller.readiness().await?;
    assert!(probes.contains("[+] access/metrics: readers are checked"), "{probes}");
    assert!(!probes.contains(&name), "{probes}");
    Ok(())
}

/// Tokens signed with the cluster's own key that differ in their time alone, on every page and door.
async fn refuses_expired_tokens(cx: &Cx) -> Result {
    let mut spec = ControllerSpec::scoped(cx);
    spec.arguments.push("--metrics-secure=true".to_owned());
    let door = Door::open(cx, spec).await?;
    let account = Account::create(&cx.namespace, "prometheus").await?;
    for role in
        ["rbac/metrics_reader.yaml", "rbac/debug_reader.yaml", "external-metrics/reader_role.yaml"]
    {
        account.bind_shipped(role).await?;
    }
    cx.namespace.deploy(&Workload::new("llama", 1)).await?;
    cx.namespace.apply(variant("llama", "llama", &json!({}))).await?;
    let pages = [
        page(&door.controller, "/metrics"),
        page(&door.controller, "/debug/tree"),
        door.desired(&cx.namespace.name, "llama"),
    ];
    let now = Timestamp::now().as_second();
    let uid = account.uid().await?;
    let good = Reader::anonymous().with_token(&signed(cx, &uid, now - 60, now + 3_600)?);
    let late = Reader::anonymous().with_token(&signed(cx, &uid, now - 7_200, now - 3_600)?);
    let early = Reader::anonymous().with_token(&signed(cx, &uid, now + 3_600, now + 7_200)?);
    for page in &pages {
        good.gets(page, StatusCode::OK, SOON).await?;
        for bad in [&late, &early] {
            assert_eq!(bad.status(page).await?, StatusCode::UNAUTHORIZED, "{page}");
        }
    }
    Ok(())
}

/// A token for the account `prometheus` that is good from one second to another.
fn signed(cx: &Cx, uid: &str, from: i64, to: i64) -> Result<String> {
    let issuer = "https://kubernetes.default.svc";
    let namespace = &cx.namespace.name;
    let header = json!({ "alg": "ES256", "typ": "JWT" });
    let claims = json!({
        "iss": issuer, "aud": [issuer], "iat": from, "nbf": from, "exp": to,
        "sub": format!("system:serviceaccount:{namespace}:prometheus"),
        "kubernetes.io": {
            "namespace": namespace,
            "serviceaccount": { "name": "prometheus", "uid": uid },
        },
    });
    let text = format!("{}.{}", encoded(&header)?, encoded(&claims)?);
    let key = fs::read(cx.world.site.pki.path("sa.key"))?;
    let key = PrivateKeyDer::from_pem_slice(&key)?;
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let key = EcdsaKeyPair::from_pkcs8(algorithm, key.secret_der(), &random)
        .map_err(|error| Fault::new(error.to_string()))?;
    let signature =
        key.sign(&random, text.as_bytes()).map_err(|error| Fault::new(error.to_string()))?;
    Ok(format!("{text}.{}", base64_url(signature.as_ref())?))
}

fn encoded(value: &Value) -> Result<String> {
    base64_url(value.to_string().as_bytes())
}

fn base64_url(bytes: &[u8]) -> Result<String> {
    let standard = serde_json::to_value(ByteString(bytes.to_vec()))?;
    let standard = standard.as_str().unwrap_or_default().to_owned();
    Ok(standard.replace('+', "-").replace('/', "_").replace('=', ""))
}

async fn takes_up_a_new_certificate(cx: &Cx) -> Result {
    let folder = cx.folder("certificates")?;
    let path = |file: &str| folder.join(file).display().to_string();
    let server = Subject { hosts: &["127.0.0.1"], ..Subject::user("wva") };
    let old = Authority::make(&folder, "old")?;
    let new = Authority::make(&folder, "new")?;

    // Nothing is served before there is a certificate, and the probe says why.
    let controller = secure(cx, &[format!("--metrics-cert-path={}", folder.display())]).await?;
    eventually("the lack is said", SOON, async || {
        let (status, text) = controller.readyz().await?;
        let named = text.contains("[-] certificate/metrics: ") && text.contains("tls.crt");
        seen(&(status, named), &(StatusCode::SERVICE_UNAVAILABLE, true))
    })
    .await?;
    old.issue(&folder, "tls", &server)?;
    // A Service sends no client before the pod is ready.
    controller.ready().await?;
    let metrics = page(&controller, "/metrics");
    let by_old = Reader::anonymous().trusting(&path("old.crt"));
    let by_new = Reader::anonymous().trusting(&path("new.crt"));
    by_old.gets(&metrics, StatusCode::UNAUTHORIZED, SOON).await?;
    assert!(by_new.get(&metrics).await.is_err());

    // A file that holds nothing changes nothing.
    fs::write(folder.join("tls.crt"), "")?;
    let broken = "[!] certificate/metrics: ";
    controller.readiness_has(broken, SOON).await?;
    let shown = by_old.status(&metrics).await?;
    assert_eq!(shown, StatusCode::UNAUTHORIZED);

    new.issue(&folder, "tls", &server)?;
    by_new.gets(&metrics, StatusCode::UNAUTHORIZED, SOON).await?;
    assert!(by_old.get(&metrics).await.is_err());
    let text = controller.readiness().await?;
    assert!(text.contains("[+] certificate/metrics: in use"), "{text}");
    Ok(())
}
