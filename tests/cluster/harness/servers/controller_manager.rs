//! kube-controller-manager: Deployments, ReplicaSets, namespaces, and the real HPA once a second.

use std::sync::Arc;

use crate::harness::fault::Result;
use crate::harness::ports;
use crate::harness::process::Server;
use crate::harness::site::Site;

pub(crate) fn place(site: &Site, api: &str) -> Result<Arc<Server>> {
    let kubeconfig = site.write_kubeconfig("kcm", &site.pki.kubeconfig_for(api, "kcm"))?;
    let program = site
        .kubernetes("kube-controller-manager")?
        .flag("kubeconfig", &kubeconfig)
        .flag("authentication-kubeconfig", &kubeconfig)
        .flag("authorization-kubeconfig", &kubeconfig)
        .flag("bind-address", "127.0.0.1")
        .flag("secure-port", ports::free()?)
        .flag("leader-elect", false)
        .flag("use-service-account-credentials", true)
        .flag("service-account-private-key-file", site.pki.path("sa.key"))
        .flag("root-ca-file", site.pki.path("ca.crt"))
        .flag("horizontal-pod-autoscaler-sync-period", "1s")
        // Several tests share these servers; the default of 20 a second would queue their requests.
        .flag("kube-api-qps", 200)
        .flag("kube-api-burst", 400)
        .flag("controllers", "*,-node-ipam-controller");
    Ok(site.server("kube-controller-manager", program))
}
