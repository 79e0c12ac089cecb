//! KEDA: the operator, which turns a ScaledObject into an HPA and asks Prometheus, and the adapter,
//! which serves the answer to the HPA as an external metric.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use serde_json::{Value, json};

use crate::harness::fault::Result;
use crate::harness::manifest;
use crate::harness::ports;
use crate::harness::process::{Program, Server};
use crate::harness::servers::apiserver::ApiServer;
use crate::harness::site::Site;
use crate::harness::wait::eventually;
use crate::harness::web;

const NAMESPACE: &str = "keda";
const GROUP: &str = "/apis/external.metrics.k8s.io/v1beta1";

pub(crate) struct Keda {
    pub(crate) operator: Arc<Server>,
    pub(crate) adapter: Arc<Server>,
    probe: String,
    adapter_port: u16,
}

impl Keda {
    pub(crate) fn place(site: &Site, api: &ApiServer) -> Result<Self> {
        let grpc = ports::free()?;
        let probe = format!("127.0.0.1:{}", ports::free()?);
        let adapter_port = ports::free()?;
        let certificates = site.pki.path("keda");
        let operator = outside_cluster(site.program("keda-operator")?, api)
            .flag("metrics-bind-address", format!("127.0.0.1:{}", ports::free()?))
            .flag("health-probe-bind-address", &probe)
            .flag("metrics-service-bind-address", format!("127.0.0.1:{grpc}"))
            .flag("cert-dir", &certificates)
            .flag("enable-cert-rotation", false)
            .flag("enable-webhook-patching", false)
            .flag("enable-apiservice-patching", false)
            .flag("zap-log-level", "error");
        let adapter = outside_cluster(site.program("keda-adapter")?, api)
            .flag("secure-port", adapter_port)
            .flag("bind-address", "127.0.0.1")
            .flag("cert-dir", &certificates)
            .flag("tls-cert-file", format!("{certificates}/tls.crt"))
            .flag("tls-private-key-file", format!("{certificates}/tls.key"))
            .flag("metrics-service-address", format!("localhost:{grpc}"))
            .flag("port", ports::free()?)
            .flag("kubeconfig", &api.admin)
            .flag("lister-kubeconfig", &api.admin)
            .flag("authentication-kubeconfig", &api.admin)
            .flag("authorization-kubeconfig", &api.admin);
        Ok(Self {
            operator: site.server("keda-operator", operator),
            adapter: site.server("keda-adapter", adapter),
            probe,
            adapter_port,
        })
    }

    /// Starts both, once KEDA's definitions are in place, and waits until the API server serves
    /// external metrics.
    pub(crate) async fn start(&self, client: &kube::Client) -> Result {
        self.operator.start()?;
        for object in self.objects() {
            manifest::apply(client, object, None).await?;
        }
        self.operator_ready().await?;
        self.adapter.start()?;
        eventually("external metrics are served", Duration::from_mins(1), async || {
            self.adapter.check()?;
            client.request_text(Request::get(GROUP).body(Vec::new())?).await?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn operator_ready(&self) -> Result {
        let probe = format!("http://{}/readyz", self.probe);
        let http = web::client()?;
        eventually("KEDA's operator is ready", Duration::from_mins(1), async || {
            self.operator.check()?;
            http.get(&probe).send().await?.error_for_status()?;
            Ok(())
        })
        .await
    }

    /// The API server reaches an aggregated API on loopback only by a Service of type ExternalName
    /// and an APIService that names the port; the HPA controller reads it as its service account.
    fn objects(&self) -> Vec<Value> {
        let service = "keda-metrics-apiserver";
        let role = "external-metrics-reader";
        let rbac = "rbac.authorization.k8s.io";
        let namespaced = json!({ "name": service, "namespace": NAMESPACE });
        vec![
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }),
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": namespaced,
                "spec": {
                    "type": "ExternalName", "externalName": "localhost",
                    "ports": [{ "port": self.adapter_port }],
                },
            }),
            json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": { "name": "v1beta1.external.metrics.k8s.io" },
                "spec": {
                    "group": "external.metrics.k8s.io", "version": "v1beta1",
                    "groupPriorityMinimum": 100, "versionPriority": 100,
                    "insecureSkipTLSVerify": true,
                    "service": {
                        "name": service, "namespace": NAMESPACE, "port": self.adapter_port,
                    },
                },
            }),
            json!({
                "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole",
                "metadata": { "name": role },
                "rules": [{
                    "apiGroups": ["external.metrics.k8s.io"], "resources": ["*"],
                    "verbs": ["get", "list", "watch"],
                }],
            }),
            json!({
                "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
                "metadata": { "name": role },
                "roleRef": { "apiGroup": rbac, "kind": "ClusterRole", "name": role },
                "subjects": [{
                    "kind": "ServiceAccount", "name": "horizontal-pod-autoscaler",
                    "namespace": "kube-system",
                }],
            }),
        ]
    }
}

fn outside_cluster(program: Program, api: &ApiServer) -> Program {
    program
        .env("KUBECONFIG", &api.admin)
        .env("WATCH_NAMESPACE", "")
        .env("POD_NAMESPACE", NAMESPACE)
        .env("KEDA_CLUSTER_OBJECT_NAMESPACE", NAMESPACE)
}
