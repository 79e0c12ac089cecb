//! Pages on real sockets that answer well and badly.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use super::http::{FakePrometheus, Mode};
use super::pki::{Authority, install_provider};
use crate::policy::pod_autoscaler::source::MetricsPage;
use crate::policy::signal::Failure;
use crate::settings::endpoint_hosts::EndpointHosts;
use crate::signals::{HttpPods, MetricFamilies, PageReadError, PageUrl, PodPages as _};

/// Long enough for anything on a loopback socket.
const PATIENCE: Duration = Duration::from_secs(20);
/// As vLLM answers while it moves its shards.
const SCALING: &str = r#"{"error":"The model is currently scaling. Please try again later."}"#;
const PAGE: &str = "# TYPE x gauge\nx{a=\"1\"} 3\nx{a=\"2\"} 4\ny 1\n";

fn page(protocol: &str, path: &str) -> MetricsPage {
    MetricsPage { protocol: protocol.into(), path: path.into() }
}

async fn read(
    pods: &HttpPods,
    protocol: &str,
    port: u16,
    deadline: Duration,
) -> Result<MetricFamilies, PageReadError> {
    let address = IpAddr::from(Ipv4Addr::LOCALHOST);
    let url = PageUrl::of_pod(address, &port.to_string(), &page(protocol, "/own/metrics"))?;
    pods.read(url, vec![Arc::from("x")], deadline).await
}

fn pods() -> HttpPods {
    install_provider();
    HttpPods::new(None, EndpointHosts::default()).unwrap()
}

#[test]
fn a_page_has_the_url_that_the_source_states() {
    let (four, six) = (IpAddr::from([10, 0, 0, 7]), IpAddr::from(Ipv6Addr::LOCALHOST));
    for (address, protocol, url) in [
        (four, "http", "http://10.0.0.7:8000/metrics"),
        (four, "", "http://10.0.0.7:8000/metrics"),
        (six, "https", "https://[::1]:8000/metrics"),
    ] {
        let found = PageUrl::of_pod(address, "8000", &page(protocol, "/metrics")).unwrap();
        assert_eq!(found.to_string(), url);
    }
    for port in ["", "0", "65536", "http", "80 "] {
        let error = PageUrl::of_pod(four, port, &page("http", "/")).unwrap_err();
        assert_eq!(error.failure(), Failure::QueryFailed);
        assert!(error.to_string().contains("1 to 65535"), "{error}");
    }
    let service = PageUrl::of_service("optimizer.ns:8080", &page("http", "/metrics/ns/d"));
    assert_eq!(service.unwrap().to_string(), "http://optimizer.ns:8080/metrics/ns/d");
    for endpoint in ["", "a/b", "user@host:1", "host:port", "host:99999", "host:0"] {
        let error = PageUrl::of_service(endpoint, &page("http", "/")).unwrap_err();
        assert!(error.to_string().contains("write host:port"), "{error}");
    }
}

#[tokio::test]
async fn the_wanted_series_are_read_and_nothing_is_followed() {
    let server = FakePrometheus::plain(Mode::Answer(200, PAGE.to_owned())).await;
    let pods = pods();
    let families = read(&pods, "http", server.port, PATIENCE).await.unwrap();
    assert_eq!((families.len(), families["x"].samples.len()), (1, 2));
    let seen = server.seen();
    assert_eq!((&*seen[0].method, &*seen[0].path), ("GET", "/own/metrics"));
    assert_eq!(seen[0].authorization, None);

    for (mode, error, kind) in wva_base::cases! {
        (Mode::Answer(503, SCALING.to_owned()), PageReadError::Unavailable, Failure::QueryFailed),
        (Mode::Answer(503, "upstream connect error".to_owned()), PageReadError::Status(503),
         Failure::QueryFailed),
        (Mode::Answer(503, String::new()), PageReadError::Status(503), Failure::QueryFailed),
        (Mode::Answer(503, format!("{}{SCALING}", " ".repeat(4096))), PageReadError::Status(503),
         Failure::QueryFailed),
        (Mode::Answer(500, SCALING.to_owned()), PageReadError::Status(500), Failure::QueryFailed),
        (Mode::Answer(404, String::new()), PageReadError::Status(404), Failure::QueryFailed),
        (Mode::Redirect("/metrics".to_owned()), PageReadError::Status(302), Failure::QueryFailed),
    } {
        let before = server.seen().len();
        server.become_(mode);
        let found = read(&pods, "http", server.port, PATIENCE).await.unwrap_err();
        assert_eq!((found.failure(), found), (kind, error));
        assert_eq!(server.seen().len(), before + 1);
    }
    server.become_(Mode::Answer(200, "<html>".to_owned()));
    let found = read(&pods, "http", server.port, PATIENCE).await.unwrap_err();
    assert_eq!(found.failure(), Failure::Invalid);
    assert!(found.to_string().contains("text format of Prometheus"), "{found}");
    for mode in [Mode::BreakOff, Mode::Flood] {
        server.become_(mode);
        read(&pods, "http", server.port, PATIENCE).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_page_that_hangs_ends_by_its_deadline() {
    let deadline = Duration::from_millis(50);
    for mode in [Mode::Hang, Mode::Stall] {
        let server = FakePrometheus::plain(mode).await;
        let error = read(&pods(), "http", server.port, deadline).await.unwrap_err();
        assert_eq!(error, PageReadError::Timeout(deadline));
        let expected = "the page did not come within 50ms; check port, network policies and the load of what serves it";
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn certificates_are_verified() {
    install_provider();
    let authority = Authority::new();
    let mode = Mode::Answer(200, PAGE.to_owned());
    let server = FakePrometheus::tls(mode.clone(), authority.server("127.0.0.1")).await;
    let strict = HttpPods::new(None, EndpointHosts::default()).unwrap();
    let error = read(&strict, "https", server.port, PATIENCE).await.unwrap_err();
    assert!(error.to_string().contains("its authority is trusted"), "{error}");
    assert_eq!(server.seen(), []);
    let trusting =
        HttpPods::new(Some(authority.pem().as_bytes()), EndpointHosts::default()).unwrap();
    let families = read(&trusting, "https", server.port, PATIENCE).await.unwrap();
    assert_eq!(families["x"].samples.len(), 2);
    // Addresses of pods change, so that certificates name something else.
    let named = FakePrometheus::tls(mode.clone(), authority.server("vllm")).await;
    let families = read(&trusting, "https", named.port, PATIENCE).await.unwrap();
    assert_eq!(families["x"].samples.len(), 2);
    let stranger = FakePrometheus::tls(mode, Authority::new().server("127.0.0.1")).await;
    read(&trusting, "https", stranger.port, PATIENCE).await.unwrap_err();
    assert_eq!(stranger.seen(), []);
}

#[tokio::test]
async fn an_endpoint_that_is_not_permitted_is_not_connected_to() {
    let server = FakePrometheus::plain(Mode::Answer(200, "no page: secret".to_owned())).await;
    install_provider();
    let any = EndpointHosts::parse("*").unwrap();
    let pods = HttpPods::new(None, any).unwrap();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let endpoint = format!("{host}:{}", server.port);
        let url = PageUrl::of_service(&endpoint, &page("http", "/")).unwrap();
        let error = pods.read(url, Vec::new(), PATIENCE).await.unwrap_err();
        assert!(error.to_string().contains("never read"), "{error}");
        assert_eq!(error.failure(), Failure::QueryFailed);
    }
    assert_eq!(server.seen(), []);
    // A page of a pod is, and what it holds is not repeated.
    let error = read(&pods, "http", server.port, PATIENCE).await.unwrap_err();
    assert_eq!(error.failure(), Failure::Invalid);
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(error.to_string().contains("of 15 bytes"), "{error}");
}
