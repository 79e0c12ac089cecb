//! kube-scheduler: places pods on the fake nodes, and leaves them pending when no GPU is free.

use std::sync::Arc;

use crate::harness::fault::Result;
use crate::harness::ports;
use crate::harness::process::Server;
use crate::harness::site::Site;

pub(crate) fn place(site: &Site, api: &str) -> Result<Arc<Server>> {
    let kubeconfig =
        site.write_kubeconfig("scheduler", &site.pki.kubeconfig_for(api, "scheduler"))?;
    let program = site
        .kubernetes("kube-scheduler")?
        .flag("kubeconfig", &kubeconfig)
        .flag("authentication-kubeconfig", &kubeconfig)
        .flag("authorization-kubeconfig", &kubeconfig)
        .flag("bind-address", "127.0.0.1")
        .flag("secure-port", ports::free()?)
        .flag("leader-elect", false);
    Ok(site.server("kube-scheduler", program))
}
