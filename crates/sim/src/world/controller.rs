//! The controller inside the world, unmodified, and what the world reads of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocations::Owner;
use http::Request;
use http::request::Parts;
use http_body_util::BodyExt;
use kube::Client;
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;

use super::objects::SYSTEM;
use super::routers::PodNetwork;
use super::scenario::Scenario;
use crate::apiserver::ApiServer;
use crate::threads::locked;
use wva::app::{Controller, Env, Startup};
use wva::hooks::ControllerHooks;
use wva::policy::key::VariantKey;
use wva::policy::params::{DynamicSettings, SloTerm};
use wva::policy::units::Replicas;
use wva::roles::Role;
use wva::serve::answer::HttpResponse;
use wva::serve::connection::Routes;
use wva::serve::routes::{MetricsRoutes, ProbeRoutes};
use wva::settings::{Diagnostics, MainConfigMap, Sources, start};
use wva::signals::{PodPages, PromApi, RouterApi};
use wva::state::Readers;
use wva_supervise::{ActorRegistry, Clock, Kit, SeedTree};

pub(super) const POD: &str = "wva-controller-0";

#[derive(Debug)]
pub(crate) struct ControllerView {
    pub(crate) shared: Readers,
    pub(crate) actors: ActorRegistry<Role>,
    pub(crate) owner: Owner,
    routes: MetricsRoutes,
    probes: ProbeRoutes,
}

pub(crate) struct ProcessConfig {
    pub(crate) clock: Clock,
    pub(crate) seed: SeedTree,
    pub(crate) kube: Client,
    pub(crate) prometheus: Arc<dyn PromApi>,
    pub(crate) routers: Arc<dyn RouterApi>,
    pub(crate) pods: Arc<dyn PodPages>,
    pub(crate) identity: Arc<str>,
    pub(crate) fixed: Sources,
    /// The same with what is read of the cluster before the tree stands.
    pub(crate) sources: Sources,
    pub(crate) hooks: Arc<dyn ControllerHooks>,
}

impl ControllerView {
    pub(crate) async fn metrics(&self) -> Option<String> {
        let request = Request::builder().uri("/metrics").body(());
        let (head, ()) = request.ok()?.into_parts();
        let answer = self.routes.answer(&head);
        if !answer.status().is_success() {
            return None;
        }
        let Ok(body) = answer.into_body().collect().await;
        String::from_utf8(body.to_bytes().to_vec()).ok()
    }

    pub(super) fn page(&self, head: &Parts) -> HttpResponse {
        match head.uri.path() {
            "/healthz" | "/readyz" => self.probes.answer(head),
            _ => self.routes.answer(head),
        }
    }

    pub(crate) fn leads(&self) -> bool {
        self.shared.claim.may_write(self.shared.clock.now())
    }

    pub(crate) fn own_metrics(&self) -> Vec<MetricFamily> {
        let visibility = self.routes.visibility(self.shared.clock.now());
        self.shared.series.own(visibility)
    }

    /// The part of that which changes with decisions: what it shows of variants, and how often they broke an
    /// invariant. It takes a fraction of the time.
    pub(crate) fn decided_metrics(&self) -> Vec<MetricFamily> {
        let visibility = self.routes.visibility(self.shared.clock.now());
        let series = &self.shared.series;
        let mut families = series.engine.invariant_violations.collect();
        families.extend(series.pipeline(visibility));
        families
    }
}

/// Who answers at which pod. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodListeners(Arc<Mutex<BTreeMap<String, Option<Arc<ControllerView>>>>>);

impl PodListeners {
    /// This pod answers, or does not.
    pub(crate) fn set(&self, pod: &str, door: Option<Arc<ControllerView>>) {
        locked(&self.0).insert(pod.to_owned(), door);
    }

    pub(super) fn pods(&self) -> Vec<String> {
        locked(&self.0).keys().cloned().collect()
    }

    pub(super) async fn metrics(&self, pod: &str) -> Option<String> {
        self.door(pod)?.metrics().await
    }

    pub(super) fn door(&self, pod: &str) -> Option<Arc<ControllerView>> {
        locked(&self.0).get(pod).cloned().flatten()
    }

    pub(super) fn desired(&self, key: &VariantKey) -> Option<Replicas> {
        let doors = locked(&self.0);
        let mut open = doors.values().flatten();
        open.find_map(|door| door.shared.records.desired(key))
    }
}

#[derive(Debug)]
struct WorldHooks {
    serves_history: bool,
    without: Option<SloTerm>,
}

impl ControllerHooks for WorldHooks {
    fn serves_history(&self) -> bool {
        self.serves_history
    }

    fn learning_settings<'a>(&self, settings: &'a DynamicSettings) -> Cow<'a, DynamicSettings> {
        let mut seen = Cow::Borrowed(settings);
        if self.without.is_some() {
            for entry in seen.to_mut().saturation.entries.global.all_mut() {
                entry.without = self.without;
            }
        }
        seen
    }

    fn planning_settings<'a>(&self, settings: &'a DynamicSettings) -> Cow<'a, DynamicSettings> {
        self.learning_settings(settings)
    }
}

pub(super) fn controller(
    server: &ApiServer,
    prometheus: Arc<dyn PromApi>,
    pods: &PodNetwork,
    (clock, seed): (&Clock, &SeedTree),
    scenario: &Scenario,
    serves_history: bool,
) -> Result<(Controller, ControllerView), String> {
    let fixed = Sources { environment: environment(POD, scenario.interval), ..Sources::default() };
    // As a process reads it at its start.
    let main = scenario.config.iter().find(|map| map.name == MAIN);
    let sources = Sources {
        main: main.map_or(MainConfigMap::NotRead, |map| {
            let data = map.data.iter();
            MainConfigMap::Present(
                data.map(|(key, text)| ((*key).to_owned(), text.clone())).collect(),
            )
        }),
        ..fixed.clone()
    };
    cast(ProcessConfig {
        clock: clock.clone(),
        seed: SeedTree::new(seed.child("controller").next_u64()),
        kube: server.client(),
        prometheus,
        routers: Arc::new(pods.clone()),
        pods: Arc::new(pods.clone()),
        identity: Arc::from(format!("{POD}_simulated")),
        sources,
        fixed,
        hooks: Arc::new(WorldHooks { serves_history, without: scenario.without }),
    })
}

pub(crate) fn cast(casting: ProcessConfig) -> Result<(Controller, ControllerView), String> {
    let unusable = |error: String| format!("the controller cannot start: {error}");
    let started = start(&casting.sources).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        unusable(texts.join("; "))
    })?;
    let actors = ActorRegistry::new();
    let env = Env {
        kit: Kit { clock: casting.clock, seed: casting.seed, actors: actors.clone() },
        kube: casting.kube,
        prometheus: casting.prometheus,
        routers: casting.routers,
        pods: casting.pods,
        identity: casting.identity,
        levels: None,
        hooks: casting.hooks,
    };
    let startup = Startup {
        generation: started.generation,
        fixed: casting.fixed,
        diagnostics: Diagnostics::default(),
    };
    let controller = Controller::new(env, startup).map_err(|error| unusable(error.to_string()))?;
    let shared = controller.shared();
    let routes = MetricsRoutes::new(shared.clone(), actors.clone());
    let probes = ProbeRoutes::new(shared.clone(), actors.clone(), Vec::new());
    let door = ControllerView { shared, actors, owner: Owner::NONE, routes, probes };
    Ok((controller, door))
}

/// The ConfigMap that settings stand in.
pub(crate) const MAIN: &str = "wva-variantautoscaling-config";

pub(crate) fn environment(pod: &str, interval: Duration) -> BTreeMap<String, String> {
    let interval = format!("{}s", interval.as_secs());
    let pairs = [
        ("POD_NAMESPACE", SYSTEM),
        ("POD_NAME", pod),
        // Asked in this process, whatever the address says.
        ("PROMETHEUS_BASE_URL", "http://prometheus.monitoring:9090"),
        ("PROMETHEUS_ALLOW_HTTP", "true"),
        ("LEADER_ELECT", "true"),
        ("ANNOTATED_SCALERS_ENABLED", "true"),
        ("METRICS_BIND_ADDRESS", "0"),
        ("HEALTH_PROBE_BIND_ADDRESS", "0"),
        ("GLOBAL_OPT_INTERVAL", &interval),
    ];
    let owned = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    owned.into()
}
