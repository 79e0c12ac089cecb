//! The whole controller, wired from top to bottom in the order of the tree.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select;
use kube::Client;

use crate::actors::config::Config;
use crate::actors::external_scaler::ExternalScalerPort;
use crate::actors::http::HttpServers;
use crate::actors::leadership::{Election, Leadership};
use crate::actors::mailboxes::{Addresses, Mailboxes};
use crate::actors::pod_autoscalers::PodAutoscalers;
use crate::actors::pump;
use crate::actors::scale_reader::ScaleReader;
use crate::actors::variants::Variants;
use crate::actors::watches::{self, WatcherWiring};
use crate::cluster::lease::{LeaseApi, lease_name};
use crate::cluster::scale::ScaleApi;
use crate::hooks::ControllerHooks;
use crate::metrics::Metrics;
use crate::policy::filter::WatchScope;
use crate::policy::lease::LeaseRules;
use crate::roles::Role;
use crate::settings::StaticSettings;
use crate::settings::generation::Generation;
use crate::settings::problem::Diagnostics;
use crate::settings::sources::Sources;
use crate::signals::{PodPages, PromApi, RouterApi};
use crate::state::permission_reporter::PermissionReporter;
use crate::state::{Readers, SharedState, Writers};
use crate::telemetry::LevelHandle;
use wva_supervise::{Address, ChildSpec, ExitReason, Kit};

mod egress;
mod engine;
mod identity;

const LEASE_TIMEOUT: Duration = Duration::from_secs(5);

const SCALE_TIMEOUT: Duration = Duration::from_secs(5);

/// The world around the controller. In a simulation all of it is virtual.
pub struct Env {
    /// Clock, randomness, census.
    pub kit: Kit<Role>,
    /// The API server.
    pub kube: Client,
    /// Prometheus.
    pub prometheus: Arc<dyn PromApi>,
    /// Routers.
    pub routers: Arc<dyn RouterApi>,
    /// Pages of pods.
    pub pods: Arc<dyn PodPages>,
    /// Unique name of this process, usually that of its pod.
    pub identity: Arc<str>,
    /// The level of the log, where it can be changed.
    pub levels: Option<LevelHandle>,
    /// What a simulation changes.
    pub hooks: Arc<dyn ControllerHooks>,
}

wva_base::debug_of!(Env: identity);

/// What the controller starts with.
#[derive(Debug, Clone)]
pub struct Startup {
    /// The first settings generation.
    pub generation: Generation,
    /// Flags, environment and file, which every later generation is built from as well.
    pub fixed: Sources,
    /// What was found on the way to it, and logged.
    pub diagnostics: Diagnostics,
}

/// Runs the controller until `shutdown` resolves or the tree gives up.
pub async fn run(
    env: Env,
    startup: Startup,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<ExitReason, prometheus::Error> {
    Ok(Controller::new(env, startup)?.run(shutdown).await)
}

/// A controller that has been put together and does not run yet.
pub struct Controller {
    env: Env,
    startup: Startup,
    wiring: Wiring,
}

wva_base::debug_of!(Controller: env);

impl Controller {
    /// Puts it together.
    pub fn new(env: Env, startup: Startup) -> Result<Self, prometheus::Error> {
        let instance = startup.generation.statics.scope.controller_instance.clone();
        let series = Metrics::new(instance.as_deref())?.with_hooks(&env.hooks);
        let wiring = Wiring::new(&env, &startup, Arc::new(series));
        Ok(Self { env, startup, wiring })
    }

    /// What it knows and shows; it stays readable while the controller runs.
    pub fn shared(&self) -> Readers {
        self.wiring.readers.clone()
    }

    /// Runs until `shutdown` resolves or the tree gives up.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> ExitReason {
        let tree = self.wiring.tree(&self.env, &self.startup);
        let lost = self.env.hooks.process_end(&self.wiring.readers.claim);
        let ends = async {
            select(pin!(shutdown), pin!(lost)).await;
        };
        wva_supervise::run(self.env.kit, tree, ends).await
    }
}

/// Mailboxes and facts: everything that outlives the actors.
struct Wiring {
    readers: Readers,
    writers: Writers,
    statics: Arc<StaticSettings>,
    mailboxes: Arc<Mailboxes>,
}

impl Wiring {
    fn new(env: &Env, startup: &Startup, series: Arc<Metrics>) -> Self {
        let statics = Arc::clone(&startup.generation.statics);
        let scope = WatchScope {
            system_namespace: Arc::from(&*statics.scope.system_namespace),
            watch_namespace: statics.scope.watch_namespace.as_deref().map(Arc::from),
            instance: statics.scope.controller_instance.as_deref().map(Arc::from),
        };
        let mailboxes = Mailboxes::new(&series);
        series.show_settings(&startup.generation);
        let SharedState { readers, writers } = SharedState::new(
            env.kit.clock.clone(),
            scope,
            startup.generation.clone(),
            series,
            Arc::from(identity::manager(&statics)),
            &startup.diagnostics,
        );
        Self { readers, writers, statics, mailboxes: Arc::new(mailboxes) }
    }

    fn tree(&self, env: &Env, startup: &Startup) -> Vec<ChildSpec<Role>> {
        let mut children = vec![
            self.config(env, startup),
            self.leadership(env),
            wva_supervise::supervisor(Role::Egress, self.egress(env)),
            wva_supervise::supervisor(Role::Engine, self.engine(env)),
            self.variants(),
            self.pod_autoscalers(),
            wva_supervise::supervisor(Role::Ingress, self.ingress(env)),
        ];
        children.extend(self.servers(env));
        children
    }

    fn addresses(&self) -> &Addresses {
        &self.mailboxes.addresses
    }

    fn config(&self, env: &Env, startup: &Startup) -> ChildSpec<Role> {
        let (shared, writers) = (self.readers.clone(), Arc::clone(&self.writers.config));
        let (mailboxes, levels) = (Arc::clone(&self.mailboxes), env.levels.clone());
        let fixed = startup.fixed.clone();
        wva_supervise::machine(Role::Config, &self.addresses().config, move |epoch| {
            Config::new(
                shared.clone(),
                Arc::clone(&writers),
                epoch,
                fixed.clone(),
                Arc::clone(&mailboxes),
                levels.clone(),
            )
        })
    }

    fn leadership(&self, env: &Env) -> ChildSpec<Role> {
        let leadership = Leadership::new(
            Arc::clone(&self.writers.leadership),
            self.readers.mirrors.clone(),
            self.permissions(env),
            self.election(env),
            Arc::clone(&self.mailboxes),
            env.kit.seed.child("leadership"),
            Arc::clone(&env.hooks),
        );
        pump(Role::Leadership, &self.addresses().leadership, leadership)
    }

    fn election(&self, env: &Env) -> Election {
        let settings = &self.statics.leader_election;
        if !settings.enabled {
            return Election::Off;
        }
        let timeout = LEASE_TIMEOUT.min(settings.retry_period / 2);
        let scope = &self.statics.scope;
        let namespace = &scope.system_namespace;
        let lease = lease_name(&settings.id, scope.controller_instance.as_deref());
        Election::On {
            rules: LeaseRules {
                identity: Arc::clone(&env.identity),
                duration: settings.lease_duration,
                renew_deadline: settings.renew_deadline,
                retry_period: settings.retry_period,
            },
            api: Box::new(LeaseApi::new(env.kube.clone(), namespace, &lease, timeout)),
        }
    }

    /// A write must end well within the time that the right to write is renewed in. The same holds
    /// without leader election, so that turning it on makes nothing slower to notice or to give up.
    fn write_timeout(&self) -> Duration {
        let election = &self.statics.leader_election;
        self.statics.rest_client_timeout.min(election.renew_deadline / 10)
    }

    fn permissions(&self, env: &Env) -> PermissionReporter {
        let own_pod = identity::own_pod(env, &self.statics.scope.system_namespace);
        PermissionReporter::new(env.kit.clock.clone(), self.mailboxes.events.clone(), own_pod)
    }

    fn variants(&self) -> ChildSpec<Role> {
        let (shared, writers) = (self.readers.clone(), Arc::clone(&self.writers.variants));
        let mailboxes = Arc::clone(&self.mailboxes);
        wva_supervise::dynamic_supervisor(
            Role::Variants,
            &self.addresses().variants,
            move |epoch| {
                let (shared, writers) = (shared.clone(), Arc::clone(&writers));
                Variants::new(shared, writers, epoch, Arc::clone(&mailboxes))
            },
        )
    }

    fn pod_autoscalers(&self) -> ChildSpec<Role> {
        let (shared, mailboxes) = (self.readers.clone(), Arc::clone(&self.mailboxes));
        let board = Arc::clone(&self.writers.pod_autoscalers);
        wva_supervise::dynamic_supervisor(
            Role::PodAutoscalers,
            &self.addresses().pod_autoscalers,
            move |_epoch| {
                PodAutoscalers::new(shared.clone(), Arc::clone(&board), Arc::clone(&mailboxes))
            },
        )
    }

    fn ingress(&self, env: &Env) -> Vec<ChildSpec<Role>> {
        let mut children = watches::watchers(&WatcherWiring {
            client: env.kube.clone(),
            shared: self.readers.clone(),
            mirrors: &self.writers.mirrors,
            relists: &self.writers.relists,
            mailboxes: Arc::clone(&self.mailboxes),
            permissions: self.permissions(env),
            statics: Arc::clone(&self.statics),
        });
        children.push(self.scale_reader(env));
        children
    }

    fn scale_reader(&self, env: &Env) -> ChildSpec<Role> {
        let api = ScaleApi {
            client: env.kube.clone(),
            timeout: SCALE_TIMEOUT.min(self.statics.rest_client_timeout),
        };
        let reader = ScaleReader::new(
            self.readers.clone(),
            Arc::clone(&self.writers.scale_reader),
            api,
            Arc::clone(&self.mailboxes),
            self.permissions(env),
        );
        pump(Role::ScaleReader, &self.addresses().scale_reader, reader)
    }

    fn servers(&self, env: &Env) -> Vec<ChildSpec<Role>> {
        let (serving, permissions) = (&self.statics.serving, self.permissions(env));
        let scaler = &serving.external_scaler;
        let port = ExternalScalerPort::new(scaler, &self.readers, &env.kube, &permissions);
        let protection = port.as_ref().and_then(ExternalScalerPort::protection);
        let doors = HttpServers::new(
            serving,
            &self.readers,
            &env.kit.actors,
            &env.kube,
            &permissions,
            protection.as_ref(),
        );
        let http = pump(Role::Http, &Address::vacant(), doors);
        let scaler = port.map(|port| pump(Role::ExternalScaler, &Address::vacant(), port));
        [http].into_iter().chain(scaler).collect()
    }
}
