//! A world: one start of all real servers, and what belongs to every test that runs in it.

use std::sync::Arc;

use futures::future::try_join4;

use super::fault::Result;
use super::manifest;
use super::process::Server;
use super::run::Run;
use super::servers::apiserver::ApiServer;
use super::servers::etcd::Etcd;
use super::servers::keda::Keda;
use super::servers::prometheus::Prometheus;
use super::servers::{controller_manager, kwok, scheduler};
use super::site::Site;
use super::tools::{Kubernetes, repository};

/// What a world is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Setup {
    Whole,
    /// Without the kinds that a cluster may lack: InferencePool, LeaderWorkerSet, ServiceMonitor.
    WithoutOptionalKinds,
    /// With servers of the oldest Kubernetes that the controller supports.
    OldestKubernetes,
}

impl Setup {
    fn kubernetes(self) -> Kubernetes {
        match self {
            Self::Whole | Self::WithoutOptionalKinds => Kubernetes::Newest,
            Self::OldestKubernetes => Kubernetes::Oldest,
        }
    }
}

pub(crate) struct World {
    pub(crate) site: Arc<Site>,
    pub(crate) etcd: Etcd,
    pub(crate) api: ApiServer,
    pub(crate) prometheus: Prometheus,
    pub(crate) keda: Keda,
    /// A client with all rights.
    pub(crate) client: kube::Client,
    servers: Vec<Arc<Server>>,
}

impl World {
    /// Starts everything in a folder `name` of the run, in the order of who needs whom.
    pub(crate) async fn start(run: &Arc<Run>, name: &str, setup: Setup) -> Result<Self> {
        let site = Arc::new(Site::make(run, name, setup.kubernetes())?);
        let started = Self::start_at(&site, setup).await;
        if started.is_err() {
            site.clear().await;
        }
        started
    }

    async fn start_at(site: &Arc<Site>, setup: Setup) -> Result<Self> {
        let etcd = Etcd::place(site)?;
        let api = ApiServer::place(site, &etcd.url)?;
        let prometheus = Prometheus::place(site, "prometheus")?;
        etcd.server.start()?;
        api.server.start()?;
        prometheus.server.start()?;
        let client = api.client().await?;
        api.ready(&client).await?;

        let manager = controller_manager::place(site, &api.url)?;
        let scheduler = scheduler::place(site, &api.url)?;
        let kwok = kwok::place(site, &api.admin)?;
        for server in [&manager, &scheduler, &kwok] {
            server.start()?;
        }
        let keda = Keda::place(site, &api)?;
        let nodes = async {
            kwok::create_nodes(&client).await?;
            kwok::nodes_ready(&client, &kwok).await
        };
        let metrics = async {
            let definitions = site.tools.module("keda")?.join("config/crd/bases");
            manifest::apply_folder(&client, &definitions).await?;
            keda.start(&client).await
        };
        let kinds = async {
            define_own_kind(&client).await?;
            match setup {
                Setup::Whole | Setup::OldestKubernetes => {
                    define_optional_kinds(&client, site).await
                }
                Setup::WithoutOptionalKinds => Ok(()),
            }
        };
        try_join4(nodes, metrics, kinds, prometheus.ready()).await?;
        let servers = vec![
            Arc::clone(&etcd.server),
            Arc::clone(&api.server),
            Arc::clone(&prometheus.server),
            manager,
            scheduler,
            kwok,
            Arc::clone(&keda.operator),
            Arc::clone(&keda.adapter),
        ];
        Ok(Self { site: Arc::clone(site), etcd, api, prometheus, keda, client, servers })
    }

    /// Fails if a server does not run, with the end of its log.
    pub(crate) fn check(&self) -> Result {
        self.servers.iter().try_for_each(|server| server.check())
    }

    /// The process ids of all servers, those that run.
    pub(crate) fn running(&self) -> Vec<(&str, Option<u32>)> {
        self.servers.iter().map(|server| (server.name(), server.pid())).collect()
    }

    /// Defines the kinds that a cluster may lack.
    pub(crate) async fn define_optional_kinds(&self) -> Result {
        define_optional_kinds(&self.client, &self.site).await
    }

    /// Ends every process of this world.
    pub(crate) async fn stop(&self) {
        self.site.clear().await;
    }
}

async fn define_own_kind(client: &kube::Client) -> Result {
    let folder = repository().join("config/crd/bases");
    if folder.is_dir() { manifest::apply_folder(client, &folder).await } else { Ok(()) }
}

/// InferencePool in both groups as its module brings it, and the kinds of which the tests hold
/// minimal definitions.
async fn define_optional_kinds(client: &kube::Client, site: &Site) -> Result {
    let pools = site.tools.module("inference-extension")?.join("config/crd/bases");
    let minimal = repository().join("tests/cluster/crds");
    manifest::apply_folder(client, &pools).await?;
    manifest::apply_folder(client, &minimal).await
}
