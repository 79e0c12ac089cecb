//! Owns the listeners, so that they are restarted like everything else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future;
use kube::Client;

use crate::roles::Role;
use crate::serve::access::Authorizer;
use crate::serve::access::front_proxy::FrontProxies;
use crate::serve::admission::AdmissionRoutes;
use crate::serve::connection::{ConnectionConfig, Routes};
use crate::serve::external::ExternalMetricsRoutes;
use crate::serve::routes::{MetricsRoutes, ProbeRoutes, ProtectedServer};
use crate::serve::server;
use crate::serve::tls::{CertificateFiles, ClientAuthorities, Http2, Tls};
use crate::settings::address::BindAddress;
use crate::settings::statics::{CertificatePair, ServingSettings};
use crate::state::Readers;
use crate::state::permission_reporter::PermissionReporter;
use wva_supervise::{Actor, ActorRegistry, ActorResult, Context, Event};

/// The servers whose addresses are set, or off.
#[derive(Debug, Clone)]
pub(crate) struct HttpServers(Vec<HttpServer>);

#[derive(Debug, Clone)]
struct HttpServer {
    /// The setting of the address.
    key: &'static str,
    /// The first that can be had counts; none where the setting is `0`.
    addresses: Vec<SocketAddr>,
    config: ConnectionConfig,
}

impl HttpServer {
    fn new(
        key: &'static str,
        address: BindAddress,
        door: Option<ProtectedServer>,
        routes: impl Routes,
    ) -> Self {
        let (tls, authorizer) = door.map(|door| (door.tls, door.authorizer)).unzip();
        Self {
            key,
            addresses: address.candidates(),
            config: ConnectionConfig {
                tls,
                authorizer: authorizer.flatten(),
                routes: Arc::new(routes),
            },
        }
    }
}

impl HttpServers {
    /// What the settings open. What is known about readers and certificates outlives the role. The readiness probe
    /// includes a server of another role, `elsewhere`.
    pub(crate) fn new(
        settings: &ServingSettings,
        shared: &Readers,
        actors: &ActorRegistry<Role>,
        client: &Client,
        permissions: &PermissionReporter,
        elsewhere: Option<&ProtectedServer>,
    ) -> Self {
        let authorizer = |name, proxies| {
            let (clock, client) = (shared.clock.clone(), client.clone());
            let authorizer = Authorizer::new(name, clock, client, proxies, permissions.clone());
            Some(Arc::new(authorizer))
        };
        // Readers of metrics come by themselves, with a token.
        let files = (settings, settings.metrics_certificate.as_ref());
        let has_metrics = settings.metrics != BindAddress::Off && settings.metrics_secure;
        let metrics = has_metrics.then(|| ProtectedServer {
            tls: tls("metrics", "METRICS_CERT_PATH", files, None),
            authorizer: authorizer("metrics", None),
        });
        // Readers of external metrics come through the API server, which vouches for them.
        let files = (settings, settings.external_metrics_certificate.as_ref());
        let external = (settings.external_metrics != BindAddress::Off).then(|| {
            let name = "external-metrics";
            let proxies = Arc::new(FrontProxies::new(shared.mirrors.authentication.clone()));
            ProtectedServer {
                tls: tls(name, "EXTERNAL_METRICS_CERT_PATH", files, Some(&proxies)),
                authorizer: authorizer(name, Some(proxies)),
            }
        });
        // The API server calls webhooks without a proof of itself.
        let files = (settings, settings.webhook_certificate.as_ref());
        let webhooks = (settings.webhooks != BindAddress::Off).then(|| ProtectedServer {
            tls: tls("webhooks", "WEBHOOK_CERT_PATH", files, None),
            authorizer: None,
        });
        let doors = metrics.iter().chain(&external).chain(&webhooks);
        let doors = doors.chain(elsewhere);
        let doors = doors.cloned().collect();
        let probes = ProbeRoutes::new(shared.clone(), actors.clone(), doors);
        let key = "METRICS_BIND_ADDRESS";
        let routes = MetricsRoutes::new(shared.clone(), actors.clone());
        let metrics = HttpServer::new(key, settings.metrics, metrics, routes);
        let key = "EXTERNAL_METRICS_BIND_ADDRESS";
        let routes = ExternalMetricsRoutes::new(shared.clone());
        let external = HttpServer::new(key, settings.external_metrics, external, routes);
        let key = "WEBHOOK_BIND_ADDRESS";
        let routes = AdmissionRoutes::default();
        let webhooks = HttpServer::new(key, settings.webhooks, webhooks, routes);
        let key = "HEALTH_PROBE_BIND_ADDRESS";
        let probes = HttpServer::new(key, settings.probes, None, probes);
        Self(vec![metrics, external, webhooks, probes])
    }
}

/// One server with TLS. Clients come by themselves, or through the API server as one of its `proxies`.
fn tls(
    name: &'static str,
    setting: &'static str,
    (settings, files): (&ServingSettings, Option<&CertificatePair>),
    proxies: Option<&Arc<FrontProxies>>,
) -> Arc<Tls> {
    let files = files.cloned();
    let files = files.map(|files| CertificateFiles { setting, files });
    let clients = proxies.map_or(ClientAuthorities::None, |proxies| {
        ClientAuthorities::FrontProxies(Arc::clone(proxies))
    });
    let http2 = if settings.http2 { Http2::Offered } else { Http2::Withheld };
    Arc::new(Tls::new(name, files, clients, http2))
}

impl Actor for HttpServers {
    /// None: they serve until they are stopped.
    type Msg = Infallible;

    async fn handle(&mut self, _cx: &Context<Self::Msg>, _event: Event<Self::Msg>) -> ActorResult {
        let mut serving = Vec::new();
        for one in &self.0 {
            if let Some(listener) = server::listen(one.key, &one.addresses).await? {
                serving.push(server::serve(listener, one.config.clone()));
            }
        }
        future::join_all(serving).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::request::Parts;
    use http::{Method, Request, StatusCode};
    use http_body_util::BodyExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use tokio::time::sleep;

    use crate::actors::variants::tests::{run_until, shared};
    use crate::cluster::kinds::WatchedKind;
    use crate::policy::readiness::ReadinessState;
    use crate::roles::Role;
    use crate::serve::connection::Routes;
    use crate::serve::routes::ProbeRoutes;
    use crate::state::Readers;
    use crate::state::mirrors::tests::list;
    use wva_supervise::ActorRegistry;

    fn head(method: Method, path: &str) -> Parts {
        let request = Request::builder().method(method).uri(path).body(());
        request.unwrap().into_parts().0
    }

    async fn answer(probes: &ProbeRoutes, method: Method, path: &str) -> (StatusCode, String) {
        let (head, body) = probes.answer(&head(method, path)).into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status, String::from_utf8(body.to_vec()).unwrap().trim().to_owned())
    }

    #[test]
    fn a_door_is_ready_once_it_knows_which_front_proxies_to_believe() {
        let kind = WatchedKind::AuthenticationConfigMap;
        let shared = shared();
        let state = |shared: &Readers| {
            let mut reasons = shared.readiness().into_iter();
            let name = format!("mirror/{}", kind.as_str());
            reasons.find(|reason| reason.name == name).map(|one| one.state)
        };
        assert_eq!(state(&shared), None, "it is not requested");
        let mirrors = shared.mirrors.clone().with_external_metrics();
        let readers = Readers { mirrors, ..shared.readers.clone() };
        assert_eq!(state(&readers), Some(ReadinessState::NotReady));
        list::<ConfigMap>(&shared.writers.mirrors.authentication, []);
        assert_eq!(state(&readers), Some(ReadinessState::Ok));
    }

    #[tokio::test(start_paused = true)]
    async fn the_liveness_probe_names_roles_that_stand_still_and_nothing_else() {
        let (shared, actors) = (shared(), ActorRegistry::new());
        let probes = ProbeRoutes::new(shared.readers.clone(), actors.clone(), Vec::new());
        let healthz = async || answer(&probes, Method::GET, "/healthz").await;
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        let text = |status, text: &str| (status, text.to_owned());
        assert_eq!(healthz().await, text(unavailable, "the tree is not running"));

        let egress = wva_supervise::supervisor(Role::Egress, Vec::new());
        let end = std::future::pending();
        let running = run_until(end, &shared, actors.clone(), egress);
        sleep(Duration::from_mins(1)).await;
        assert_eq!(healthz().await, text(StatusCode::OK, "ok"));
        for (method, path, wanted) in [
            (Method::HEAD, "/healthz", StatusCode::OK),
            (Method::POST, "/healthz", StatusCode::METHOD_NOT_ALLOWED),
            (Method::GET, "/healthz/x", StatusCode::NOT_FOUND),
            (Method::GET, "/metrics", StatusCode::NOT_FOUND),
        ] {
            assert_eq!(answer(&probes, method, path).await.0, wanted, "{path}");
        }

        actors.pause(true);
        sleep(Duration::from_mins(1)).await;
        assert_eq!(healthz().await, text(unavailable, "stalled: egress, root"));
        actors.pause(false);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(healthz().await, text(StatusCode::OK, "ok"));
        running.abort();
    }
}
