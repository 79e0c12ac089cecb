//! What readers send: heads of requests, certificates, and the ConfigMap that says whom to believe.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method, Request};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use wva::cluster::kinds::WatchedKind;
use wva::cluster::project::config_map::ConfigMapObject;
use wva::cluster::{MirrorWriter, ObjectKey};
use wva::metrics::Metrics;
use wva::policy::filter::WatchScope;
use wva::policy::object::Lifecycle;
use wva::roles::Role;
use wva::serve::access::bearer_token;
use wva::serve::access::front_proxy::{CONFIG_MAP, FrontProxies, NAMESPACE};
use wva::serve::admission::{AdmissionRoutes, VALIDATING_PATH};
use wva::serve::connection::Routes;
use wva::serve::external::ExternalMetricsRoutes;
use wva::serve::tls::{CertificateFiles, certified};
use wva::settings::problem::Diagnostics;
use wva::settings::statics::CertificatePair;
use wva::settings::{Sources, start};
use wva::state::{Readers, SharedState};
use wva_supervise::{Clock, Epoch};

use crate::campaign::{Campaign, Memory, Outcome};
use crate::mutate::Grammar;
use crate::seeds::owned;

fn shared() -> Readers {
    let mut sources = Sources::default();
    let url = "https://prometheus.invalid".to_owned();
    sources.environment.insert("PROMETHEUS_BASE_URL".to_owned(), url);
    let scope =
        WatchScope { system_namespace: "system".into(), watch_namespace: None, instance: None };
    let state = SharedState::new(
        Clock::real(),
        scope,
        start(&sources).unwrap().generation,
        Arc::new(Metrics::new(None).unwrap()),
        "".into(),
        &Diagnostics::default(),
    );
    state.readers
}

/// A head as lines: method, target, and headers; `None` where HTTP itself refuses it.
fn head(input: &[u8]) -> Option<Parts> {
    let mut lines = input.split(|byte| *byte == b'\n');
    let method = Method::from_bytes(lines.next()?).ok()?;
    let mut request = Request::builder().method(method).uri(lines.next()?);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    Some(request.body(()).ok()?.into_parts().0)
}

/// Paths, queries and bearer tokens.
#[test]
fn request_head() {
    let base = "/apis/external.metrics.k8s.io/v1beta1";
    let seeds = [
        "GET\n/apis".to_owned(),
        "GET\n/apis/external.metrics.k8s.io".to_owned(),
        format!("GET\n{base}\nAuthorization: Bearer abc.def"),
        format!(
            "GET\n{base}/namespaces/a/wva_desired_replicas?labelSelector=exported_namespace%3Da%2Cvariant_name%3Dllama&timeout=5s"
        ),
        format!(
            "GET\n{base}/namespaces/a/wva_desired_ratio?labelSelector=a+in+%28b%29&watch=false\nauthorization: bearer  x "
        ),
        format!("POST\n{base}/namespaces/a/x?watch=1"),
    ];
    let routes = ExternalMetricsRoutes::new(shared());
    let check = |input: &[u8]| {
        let Some(head) = head(input) else {
            return Outcome::Refused;
        };
        let _token = bearer_token(&head.headers);
        let access = routes.access(&head).to_string();
        assert!(access.len() <= 1_000 + 8 * input.len(), "{access:.400}");
        let status = routes.answer(&head).status();
        assert!(status != 500, "{status}");
        Outcome::from(status.is_success())
    };
    Campaign::run(
        "serve::request_head",
        Grammar::new(
            seeds,
            owned(["labelSelector=", "%2C", "%3D", "Authorization: Bearer "]),
            1024,
        ),
        Memory::kib(64, 200),
        &check,
    );
}

/// Bodies of the validating webhook.
#[test]
fn admission_review() {
    let review = |operation: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"7","operation":"{operation}","name":"a","namespace":"b","object":{{"apiVersion":"autoscaling.aibrix.ai/v1alpha1","kind":"PodAutoscaler","metadata":{{"name":"a","namespace":"b","annotations":{{"autoscaling.aibrix.ai/panic-threshold":"3"}}}},"spec":{spec}}}}}}}"#
        )
    };
    let spec = r#"{"scaleTargetRef":{"kind":"Deployment","name":"c"},"minReplicas":1,"maxReplicas":5,"scalingStrategy":"KPA","metricsSources":[{"metricSourceType":"custom","targetMetric":"m","targetValue":"6"}]}"#;
    let scheduled = spec.replacen(
        '{',
        r#"{"schedules":[{"name":"d","startTime":"07:00","endTime":"08:00","minReplicas":2}],"#,
        1,
    );
    let seeds = [review("CREATE", spec), review("UPDATE", &scheduled), review("DELETE", "null")];
    let routes = AdmissionRoutes::default();
    let head = head(format!("POST\n{VALIDATING_PATH}").as_bytes()).unwrap();
    let check = |input: &[u8]| match routes.answer_to_body(&head, input).status().as_u16() {
        200 => Outcome::Accepted,
        400 => Outcome::Refused,
        other => panic!("{other}"),
    };
    Campaign::run(
        "serve::admission_review",
        Grammar::new(seeds, owned(["{}", "[]", "null", "-1", "\"\"", "\"spec\":"]), 2 * 1024),
        Memory::kib(256, 400),
        &check,
    );
}

/// An authority of front proxies, made for this test alone; inputs must be the same in every run.
const CERTIFICATE: &str = include_str!("authority.crt");
const KEY: &str = include_str!("authority.key");

/// Names of headers and of front proxies, the certificates of their authorities, their own
/// certificate, and the headers in which they name users. An input is the entries of the ConfigMap,
/// each a line with its key and its text, after a line of `%%` the headers, and after a line of `##`
/// the certificate's bytes.
#[test]
fn front_proxy() {
    let der = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    let names = |allowed: &str| {
        format!(
            "requestheader-client-ca-file={}\u{1}requestheader-allowed-names={allowed}\u{1}requestheader-username-headers=[\"X-Remote-User\"]\u{1}requestheader-group-headers=[\"X-Remote-Group\"]\u{1}requestheader-extra-headers-prefix=[\"X-Remote-Extra-\"]\n%%\nX-Remote-User: ann\nX-Remote-Group: ops\nX-Remote-Extra-Sc%2FopE+s: v\n##\n",
            CERTIFICATE.trim()
        )
    };
    let seeds = [names("[]"), names("[\"front-proxy-client\"]"), names("")];
    let check = |input: &[u8]| {
        let (texts, rest) = split(input, b"\n%%\n");
        let (headers, flips) = split(rest, b"\n##\n");
        let texts = String::from_utf8_lossy(texts);
        let data = texts.split('\u{1}').filter_map(|entry| entry.split_once('='));
        let data = data.map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
        let proxies = proxies(data);
        let rules = match proxies.rules() {
            Ok(rules) => rules,
            Err(why) => {
                assert!(why.len() <= 2_000, "{why:.400}");
                return Outcome::Refused;
            }
        };
        let mut map = HeaderMap::new();
        for line in headers.split(|byte| *byte == b'\n') {
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let name = http::HeaderName::from_bytes(&line[..colon]);
            let value = line.get(colon + 1..).unwrap_or_default().trim_ascii();
            if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(value)) {
                map.append(name, value);
            }
        }
        let certificate = changed(&der, flips);
        match rules.user(&certificate, &map) {
            Some(user) => {
                assert!(!user.name.is_empty());
                Outcome::Accepted
            }
            None => Outcome::Refused,
        }
    };
    Campaign::run(
        "serve::front_proxy",
        Grammar::new(seeds, owned(["[\"a\"]", "\u{1}", "X-Remote-User", "\n##\n"]), 2 * 1024),
        Memory::kib(64, 200),
        &check,
    );
}

fn split<'a>(text: &'a [u8], at: &[u8]) -> (&'a [u8], &'a [u8]) {
    let place = text.windows(at.len()).position(|window| window == at);
    place.map_or((text, &[]), |place| (&text[..place], &text[place + at.len()..]))
}

/// The certificate with bytes put in place of its own: each pair of `flips` is a place and a byte.
fn changed(certificate: &CertificateDer<'static>, flips: &[u8]) -> CertificateDer<'static> {
    let mut bytes = certificate.to_vec();
    for flip in flips.chunks_exact(2) {
        let place = usize::from(flip[0]) * 2 % bytes.len();
        bytes[place] = flip[1];
    }
    bytes.into()
}

fn proxies(data: BTreeMap<String, String>) -> FrontProxies {
    let mirror = MirrorWriter::default();
    let epoch = Epoch::for_test(Role::Watcher(WatchedKind::ConfigMap), 1);
    let object = ConfigMapObject {
        namespace: NAMESPACE.into(),
        name: CONFIG_MAP.into(),
        uid: "".into(),
        resource_version: "".into(),
        lifecycle: Lifecycle::Live,
        data,
    };
    mirror.apply(&epoch, ObjectKey::new(NAMESPACE, CONFIG_MAP), object).unwrap();
    FrontProxies::new(mirror.reader())
}

/// The files of a server's certificate: the chain, after a line of `%%` the key.
#[test]
fn certificate_files() {
    let files = CertificateFiles {
        setting: "METRICS_CERT_PATH",
        files: CertificatePair { certificate: "tls.crt".into(), key: "tls.key".into() },
    };
    let check = |input: &[u8]| {
        let (chain, key) = split(input, b"\n%%\n");
        let read = certified(&files, chain, key);
        if let Err(error) = &read {
            assert!(error.to_string().len() <= 2_000, "{error:.400}");
        }
        Outcome::from(&read)
    };
    Campaign::run(
        "serve::certificate_files",
        Grammar::new(
            [format!("{CERTIFICATE}\n%%\n{KEY}"), format!("{CERTIFICATE}{CERTIFICATE}\n%%\n{KEY}")],
            [],
            4 * 1024,
        ),
        Memory::kib(64, 40),
        &check,
    );
}
