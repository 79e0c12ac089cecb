//! The world: a cluster, its model servers and users, a Prometheus, autoscalers, and the controller
//! among them, all in one process and moved by the clock of the runtime.
//!
//! On a paused current-thread runtime it runs as fast as it can, and the same seed gives the same run.
//! `crate::pace` holds that runtime back to a multiple of real time.

mod autoscaled;
mod backend;
mod catalogue;
pub(crate) mod controller;
mod driver;
mod flow;
mod frame;
mod hidden;
pub(crate) mod objects;
mod replica_group;
mod routers;
mod scenario;
mod score;
mod service;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use http::request::Parts;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use controller::PodListeners;
pub(crate) use routers::PodNetwork;

pub use autoscaled::AutoscaledModel;
pub(crate) use autoscaled::{AUTOSCALERS, PLURAL as AUTOSCALER_PLURAL};
pub(crate) use backend::{EndedRequest, RequestLog, RequestResult};
pub use catalogue::scenario;
pub(crate) use catalogue::{days, quiet, scenarios};
pub use frame::Frame;
pub(crate) use frame::{ModelFrame, Totals, VariantFrame};
pub use hidden::HiddenSignal;
pub(crate) use scenario::SATURATION;
pub use scenario::{
    ConfigMap, LoadSource, Pose, Replica, Scenario, ScenarioFault, ScenarioModel, ScenarioVariant,
    Slo,
};

use self::driver::{Driver, DriverState};
use self::scenario::api_fault;
use self::service::ModelService;
use crate::apiserver::{ApiServer, Insider};
use crate::hpa::{Autoscalers, ExternalMetricSpec, ExternalMetrics, SYNC};
use crate::milli::Milli;
use crate::prometheus::{InProcess, Prometheus, QueryValue};
use crate::threads::locked;
use crate::workloads::Workloads;
use wva::policy::plan::Plan;
use wva::roles::Role;
use wva::serve::answer::{HttpResponse, json, plain};
use wva::state::PlanProposal;
use wva_base::moment::WallTime;
use wva_supervise::{Clock, Reader, SeedTree, Writer};

/// How long the controller is given to end.
const FAREWELL: Duration = Duration::from_secs(10);

/// A world that runs until it is dropped or ended.
pub struct World {
    /// The API server.
    pub server: ApiServer,
    pub(crate) prometheus: Arc<Mutex<Prometheus>>,
    pub(crate) clock: Clock,
    /// A frame every second.
    pub frames: watch::Receiver<Arc<Frame>>,
    plans: Reader<Option<PlanProposal>>,
    stop: watch::Sender<bool>,
    controller: Option<tokio::task::JoinHandle<wva_supervise::ExitReason>>,
    pub(crate) workloads: Workloads,
    pub(crate) routers: PodNetwork,
    doors: PodListeners,
    tasks: JoinSet<std::convert::Infallible>,
}

wva_base::debug_of!(World: frames);

fn services(scenario: &Scenario, seed: &SeedTree) -> Result<Vec<ModelService>, String> {
    let autoscaled = scenario.autoscaled.iter().map(|one| &one.model);
    let models = scenario.models.iter().chain(autoscaled);
    models.map(|model| ModelService::new(scenario.namespace, model, seed)).collect()
}

/// External metrics for autoscalers, as an adapter before Prometheus serves them.
fn adapter(prometheus: Arc<Mutex<Prometheus>>, clock: Clock) -> Arc<ExternalMetrics> {
    Arc::new(move |namespace: &str, metric: &ExternalMetricSpec| {
        let selector = metric.selector.match_labels.iter().flatten();
        let matchers: Vec<String> =
            selector.map(|(name, value)| format!("{name}={value:?}")).collect();
        let query = format!("{}{{{}}}", metric.name, matchers.join(","));
        let now = clock.now().wall;
        let failed = |why: &str| {
            let name = &metric.name;
            format!("unable to get external metric {namespace}/{name}: {why}")
        };
        let prometheus = locked(&prometheus);
        if prometheus.is_down() {
            return Err(failed("Prometheus cannot be reached"));
        }
        let answer =
            prometheus.query(&query, now).map_err(|refusal| failed(&refusal.to_string()))?;
        let QueryValue::Vector(samples) = answer else {
            return Err(failed("the answer is no vector"));
        };
        if samples.is_empty() {
            return Err(failed("no metrics returned from external metrics API"));
        }
        let sum: f64 = samples.iter().map(|sample| sample.value).sum();
        Milli::of(sum).ok_or_else(|| failed("its value is negative or no number"))
    })
}

impl World {
    /// Builds a world that begins at this date, and sets it going; or says why there is none.
    pub async fn begin(scenario: &Scenario, seed: u64, date: WallTime) -> Result<Self, String> {
        Self::arranged(scenario, seed, date, None, SYNC, false).await
    }

    /// The same for an experiment, or a show with its history. It has no controller of its own where `staff` is given:
    /// others start and end those that answer at these doors.
    pub(crate) async fn arranged(
        scenario: &Scenario,
        seed: u64,
        date: WallTime,
        staff: Option<PodListeners>,
        hpa_sync: Duration,
        serves_history: bool,
    ) -> Result<Self, String> {
        let seed = SeedTree::new(seed);
        let clock = Clock::at(date);
        let server = ApiServer::new(clock.clone(), &seed);
        let creator = Insider::new(server.clone(), "wva-demo");
        let created = objects::create(&creator, scenario, date).await;
        created.map_err(|denied| format!("the objects of the scenario: {denied}"))?;
        let prometheus = Arc::new(Mutex::new(Prometheus::default()));
        let services = services(scenario, &seed)?;
        let (routers, questions) = routers::pod_network();
        let is_staffed = staff.is_some();
        let doors = staff.unwrap_or_default();
        // Without one of its own the world learns of no plan.
        let (mut plans, mut own) = (Writer::new(None).reader(), None);
        if !is_staffed {
            let asked = Arc::new(InProcess::new(Arc::clone(&prometheus), clock.clone()));
            // Its way to the API server suffers what the scenario says.
            let (troubles, time) = (scenario.troubles.clone(), clock.clone());
            let faults = move || api_fault(&troubles, time.now().monotonic);
            let reached = server.with_faults(Arc::new(faults));
            let (controller, door) = controller::controller(
                &reached,
                asked,
                &routers,
                (&clock, &seed),
                scenario,
                serves_history,
            )?;
            plans = door.shared.plan.clone();
            doors.set(controller::POD, Some(Arc::new(door)));
            own = Some(controller);
        }
        let workloads = Workloads::new(server.clone(), clock.clone(), seed.clone());
        let adapter = adapter(Arc::clone(&prometheus), clock.clone());
        let autoscalers = Autoscalers::new(server.clone(), clock.clone(), adapter, hpa_sync);
        let (frame_sender, frames) = watch::channel(Arc::new(Frame::default()));
        let ground = Driver {
            scenario: scenario.clone(),
            clock: clock.clone(),
            server: creator,
            outages: workloads.outages(),
            workloads: workloads.clone(),
            prometheus: Arc::clone(&prometheus),
            plans: plans.follow(),
            doors: doors.clone(),
            services,
            questions,
            frames: frame_sender,
            state: DriverState::default(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(workloads.clone().run());
        tasks.spawn(workloads.clone().sweep());
        tasks.spawn(ground.run());
        tasks.spawn(autoscalers.run());
        let (stop, mut stopped) = watch::channel(false);
        // An error means that the world is gone, which is as good a reason to stop.
        let stopped = async move { drop(stopped.wait_for(|stop| *stop).await) };
        let controller = own.map(|controller| tokio::spawn(controller.run(stopped)));
        Ok(Self {
            server,
            prometheus,
            clock,
            frames,
            plans,
            stop,
            controller,
            workloads,
            routers,
            doors,
            tasks,
        })
    }

    /// The controller's last plan.
    pub fn plan(&self) -> Option<Arc<Plan>> {
        let last = Option::clone(&self.plans.load());
        last.map(|last| last.plan)
    }

    /// Returns the controller's `/metrics` page; `None` where the world has no controller of its own.
    pub async fn metrics(&self) -> Option<String> {
        self.doors.metrics(controller::POD).await
    }

    /// Ends a role of the controller; false where it does not run, or the world has no controller of its own.
    pub fn kill(&self, role: &Role) -> bool {
        let door = self.doors.door(controller::POD);
        door.is_some_and(|door| door.actors.kill(role))
    }

    /// What it shows at one address: the pages of its controller, and the query API of its Prometheus.
    pub(crate) fn page(&self, head: &Parts, body: &[u8]) -> HttpResponse {
        if head.uri.path() != "/api/v1/query" {
            return match self.doors.door(controller::POD) {
                Some(door) => door.page(head),
                None => plain(StatusCode::NOT_FOUND, "no controller decides here"),
            };
        }
        let query = head.uri.query().unwrap_or_default().as_bytes();
        let mut pairs = form_urlencoded::parse(query).chain(form_urlencoded::parse(body));
        let promql = pairs.find(|(name, _)| name == "query");
        let promql = promql.map_or_else(String::new, |(_, promql)| promql.into_owned());
        let now = self.clock.now().wall;
        let (status, document) = locked(&self.prometheus).document(&promql, now);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, &document)
    }

    /// Runs a task in the world until its end.
    pub(crate) fn attend(
        &mut self,
        task: impl Future<Output = std::convert::Infallible> + Send + 'static,
    ) {
        self.tasks.spawn(task);
    }

    /// The last frame.
    pub fn frame(&self) -> Arc<Frame> {
        Arc::clone(&self.frames.borrow())
    }

    /// Lets the controller end in order, then the rest of the world.
    pub async fn end(mut self) {
        self.stop.send_replace(true);
        if let Some(controller) = &mut self.controller
            && tokio::time::timeout(FAREWELL, &mut *controller).await.is_err()
        {
            tracing::warn!("the controller did not end in time");
            controller.abort();
        }
        self.tasks.shutdown().await;
    }
}
