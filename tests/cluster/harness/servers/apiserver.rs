//! kube-apiserver: RBAC on, no anonymous requests.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

use crate::harness::audit;
use crate::harness::fault::Result;
use crate::harness::ports;
use crate::harness::process::Server;
use crate::harness::site::Site;
use crate::harness::wait::{eventually, seen};

pub(crate) struct ApiServer {
    pub(crate) server: Arc<Server>,
    pub(crate) url: String,
    /// Path of the kubeconfig of a member of `system:masters`.
    pub(crate) admin: String,
}

impl ApiServer {
    pub(crate) fn place(site: &Site, etcd: &str) -> Result<Self> {
        let port = ports::free()?;
        let url = format!("https://127.0.0.1:{port}");
        let pki = &site.pki;
        let program = site
            .kubernetes("kube-apiserver")?
            .flag("etcd-servers", etcd)
            .flag("bind-address", "127.0.0.1")
            .flag("advertise-address", "127.0.0.1")
            .flag("secure-port", port)
            // Otherwise it insists on publishing an address that is not loopback.
            .flag("endpoint-reconciler-type", "none")
            .flag("anonymous-auth", false)
            .flag("authorization-mode", "Node,RBAC")
            .flag("client-ca-file", pki.path("ca.crt"))
            .flag("tls-cert-file", pki.path("apiserver.crt"))
            .flag("tls-private-key-file", pki.path("apiserver.key"))
            .flag("service-account-issuer", "https://kubernetes.default.svc")
            .flag("service-account-key-file", pki.path("sa.pub"))
            .flag("service-account-signing-key-file", pki.path("sa.key"))
            .flag("requestheader-client-ca-file", pki.path("front-proxy-ca.crt"))
            .flag("requestheader-allowed-names", "front-proxy-client")
            .flag("requestheader-username-headers", "X-Remote-User")
            .flag("requestheader-group-headers", "X-Remote-Group")
            .flag("requestheader-extra-headers-prefix", "X-Remote-Extra-")
            .flag("proxy-client-cert-file", pki.path("front-proxy.crt"))
            .flag("proxy-client-key-file", pki.path("front-proxy.key"))
            .flag("service-cluster-ip-range", "10.96.0.0/16")
            .flag("audit-policy-file", audit::write_policy(site)?.display())
            .flag("audit-log-path", audit::log(site).display())
            .flag("allow-privileged", true);
        let admin = site.write_kubeconfig("admin", &pki.kubeconfig_for(&url, "admin"))?;
        Ok(Self { server: site.server("kube-apiserver", program), url, admin })
    }

    /// A client with all rights.
    pub(crate) async fn client(&self) -> Result<kube::Client> {
        client(&self.admin).await
    }

    pub(crate) async fn ready(&self, client: &kube::Client) -> Result {
        eventually("the API server is ready", Duration::from_mins(1), async || {
            self.server.check()?;
            let answer = client.request_text(Request::get("/readyz").body(Vec::new())?).await?;
            seen(&answer.as_str(), &"ok")
        })
        .await
    }
}

pub(crate) async fn client(kubeconfig: &str) -> Result<kube::Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}
