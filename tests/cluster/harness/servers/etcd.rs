//! etcd: one member, in the clear, and without waiting for the disk.

use std::sync::Arc;

use crate::harness::fault::Result;
use crate::harness::ports;
use crate::harness::process::Server;
use crate::harness::site::Site;

pub(crate) struct Etcd {
    pub(crate) server: Arc<Server>,
    pub(crate) url: String,
}

impl Etcd {
    pub(crate) fn place(site: &Site) -> Result<Self> {
        let url = format!("http://127.0.0.1:{}", ports::free()?);
        let peers = format!("http://127.0.0.1:{}", ports::free()?);
        let program = site
            .program("etcd")?
            .flag("data-dir", site.data("etcd"))
            .flag("listen-client-urls", &url)
            .flag("advertise-client-urls", &url)
            .flag("listen-peer-urls", &peers)
            .flag("initial-advertise-peer-urls", &peers)
            .flag("initial-cluster", format!("default={peers}"))
            .flag("unsafe-no-fsync", true)
            .flag("log-level", "warn");
        Ok(Self { server: site.server("etcd", program), url })
    }
}
