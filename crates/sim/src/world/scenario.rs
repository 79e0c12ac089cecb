//! What a world is made of, as a value.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;

use super::autoscaled::AutoscaledModel;
use super::backend::RequestLog;
use super::hidden::HiddenSignal;
use crate::apiserver::RequestFault;
use crate::engine::{Dialect, Limits, Mix, Profile, StartUp};
use crate::load::{Arrival, Demand, RateProfile};
use crate::router::{Binding, FlowControl};
use crate::workloads::{NodeGroup, WorkloadFault, leader_worker_sets};
use wva::policy::capacity::ServingRole;
use wva::policy::params::SloTerm;

/// Everything about a world but its seed.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What it is called on the command line.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// The namespace of all that serves.
    pub namespace: &'static str,
    /// The nodes.
    pub nodes: Vec<NodeGroup>,
    /// The models.
    pub models: Vec<ScenarioModel>,
    /// Models that PodAutoscalers scale.
    pub autoscaled: Vec<AutoscaledModel>,
    /// ConfigMaps in the namespace of the controller.
    pub config: Vec<ConfigMap>,
    /// What goes wrong, and when.
    pub troubles: Vec<(Duration, ScenarioFault)>,
    /// How often the controller decides.
    pub interval: Duration,
    /// How often Prometheus scrapes.
    pub scrape_interval: Duration,
    /// What no page shows.
    pub missing: Vec<HiddenSignal>,
    /// A term that the SLO analyzer leaves out.
    pub without: Option<SloTerm>,
}

/// A ConfigMap in the namespace of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMap {
    /// Its name.
    pub name: &'static str,
    /// Keys with their texts.
    pub data: Vec<(&'static str, String)>,
}

/// The ConfigMap of analyzers and limiters.
pub(crate) const SATURATION: &str = "wva-saturation-scaling-config";

impl ConfigMap {
    pub(crate) fn of(name: &'static str, key: &'static str, text: String) -> Self {
        Self { name, data: vec![(key, text)] }
    }

    pub(crate) fn saturation(entry: impl Into<String>) -> Self {
        Self::of(SATURATION, "default", entry.into())
    }

    /// One class of the objectives of these models.
    pub(crate) fn service_class<'a>(models: impl Iterator<Item = (&'a str, Slo)>) -> Self {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let models = models.map(|(id, slo)| {
            let (ttft, tpot) = (milliseconds(slo.first_token), milliseconds(slo.per_token));
            format!("- model: {id}\n  slo-ttft: {ttft}\n  slo-tpot: {tpot}\n")
        });
        let class = "name: Promised\npriority: 1\ndata:\n".to_owned();
        let class = class + &models.collect::<String>();
        Self::of("service-classes-config", "promised", class)
    }

    /// An entry by which a model may go to zero once it was idle for so long, or may not.
    pub(crate) fn zero_entry(id: &str, may_sleep: bool, retention: Duration) -> String {
        let retention = retention.as_secs();
        format!(
            "model_id: {id}\nenable_scale_to_zero: {may_sleep}\nretention_period: {retention}s\n"
        )
    }
}

/// One model, the ways to serve it, and who asks it.
#[derive(Debug, Clone)]
pub struct ScenarioModel {
    /// A short name, for pools and labels.
    pub name: &'static str,
    /// The name that requests and series carry.
    pub id: &'static str,
    /// What users are promised.
    pub slo: Slo,
    /// Who asks.
    pub load: LoadSource,
    /// The engine of its servers.
    pub dialect: Dialect,
    /// When and how a request gets its server.
    pub binding: Binding,
    /// How requests are held before the servers.
    pub flow_control: Option<FlowControl>,
    /// How long the KV cache of one prompt token takes from prefill to decode servers, where there are any.
    pub handover: Duration,
    /// The ways to serve it.
    pub variants: Vec<ScenarioVariant>,
}

impl ScenarioModel {
    /// The roles of its variants, in the order in which a request meets them.
    pub(crate) fn roles(&self) -> Vec<ServingRole> {
        let order = [ServingRole::Prefill, ServingRole::Decode, ServingRole::Both];
        let has = |role: &ServingRole| self.variants.iter().any(|variant| variant.role == *role);
        order.into_iter().filter(has).collect()
    }
}

/// What counts as a good answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slo {
    /// Longest time to the first token.
    pub first_token: Duration,
    /// Longest mean time between tokens.
    pub per_token: Duration,
}

/// Where requests come from.
#[derive(Debug, Clone)]
pub enum LoadSource {
    /// Drawn by chance.
    Generated(Demand),
    /// Replayed from a trace file.
    Replayed(PathBuf),
    /// Requests that are known beforehand, in the order of arrival.
    Prepared {
        /// The requests.
        arrivals: Arc<[Arrival]>,
        /// Records how each of them ends.
        log: RequestLog,
    },
    /// A stream without single requests, for runs over days.
    Flow {
        /// The rate over time.
        shape: RateProfile,
        /// What requests are like from each moment on; the first holds from the start.
        mixes: Vec<(Duration, Mix)>,
    },
    /// None at all: servers show this from each moment on, however many there are.
    Posed(Vec<(Duration, Pose)>),
}

/// What a posed server shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose {
    /// Share of its KV cache in use, 0 to 1.
    pub kv_usage: f64,
    /// Requests in its queue.
    pub waiting: f64,
}

/// What a replica is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replica {
    /// One pod of a Deployment.
    Pod,
    /// One pod of a ReplicaSet that stands alone, a kind that is known by its scale subresource.
    Single,
    /// A group of a LeaderWorkerSet. Its leader has the GPUs that the variant names.
    Group {
        /// Pods besides the leader.
        workers: u32,
        /// GPUs of each of them.
        gpus: u32,
    },
}

/// One way to serve a model: a workload, its VariantAutoscaling, and its HPA.
#[derive(Debug, Clone)]
pub struct ScenarioVariant {
    /// The name of all three.
    pub name: &'static str,
    /// The part of a request that it serves.
    pub role: ServingRole,
    /// The accelerator, as the controller calls it.
    pub accelerator: &'static str,
    /// The label `nvidia.com/gpu.product` of nodes that it needs.
    pub product: &'static str,
    /// What a replica is made of.
    pub replica: Replica,
    /// GPUs of the pod that serves.
    pub gpus: u32,
    /// Cost of a replica per hour.
    pub cost: f64,
    /// The model on its hardware.
    pub profile: Profile,
    /// How the server is set up.
    pub limits: Limits,
    /// How long it takes to start.
    pub start_up: StartUp,
    /// Replicas at first.
    pub replicas: u32,
    /// Replicas that its HPA keeps within.
    pub bounds: (u32, u32),
}

impl ScenarioVariant {
    pub(crate) fn resource(&self) -> &'static str {
        match self.replica {
            Replica::Pod => "deployments.apps",
            Replica::Single => "replicasets.apps",
            Replica::Group { .. } => leader_worker_sets::RESOURCE,
        }
    }

    /// GPUs of all pods of a replica.
    pub(crate) fn replica_gpus(&self) -> u32 {
        match self.replica {
            Replica::Pod | Replica::Single => self.gpus,
            Replica::Group { workers, gpus } => {
                self.gpus.saturating_add(workers.saturating_mul(gpus))
            }
        }
    }
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScenarioFault {
    /// Something happens to workloads.
    Workload(WorkloadFault),
    /// Prometheus cannot be reached for so long.
    NoPrometheus(Duration),
    /// Prometheus scrapes nothing for so long.
    NoScrapes(Duration),
    /// The metrics pages of model servers cannot be reached for so long; Prometheus still scrapes them.
    NoPages(Duration),
    /// The answers of Prometheus know nothing of the last while, for so long.
    LatePrometheus {
        /// How late they are.
        lag: Duration,
        /// How long that lasts.
        lasts: Duration,
    },
    /// The API server fails the controller for so long.
    ApiServer {
        /// What becomes of every request.
        fault: ApiFault,
        /// How long that lasts.
        lasts: Duration,
    },
}

wva_base::display_of! { ScenarioFault:
    Self::Workload(fault) => "{fault}";
    Self::NoPrometheus(lasts) => "Prometheus cannot be reached for {}", format_duration(*lasts);
    Self::NoScrapes(lasts) => "Prometheus scrapes nothing for {}", format_duration(*lasts);
    Self::NoPages(lasts) => "pages of servers cannot be reached for {}", format_duration(*lasts);
    Self::LatePrometheus { lag, lasts } =>
        "answers of Prometheus are {} late for {}", format_duration(*lag), format_duration(*lasts);
    Self::ApiServer { fault, lasts } => "the API server {fault} for {}", format_duration(*lasts);
}

/// How the API server fails the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiFault {
    /// Every request is refused with this status code, and watches end.
    Refusing(u16),
    /// Every request takes this much longer.
    Slow(Duration),
    /// No request is answered, and watches end.
    Silent,
}

wva_base::display_of! { ApiFault:
    Self::Refusing(code) => "answers {code}";
    Self::Slow(delay) => "takes {} longer", format_duration(*delay);
    Self::Silent => "does not answer";
}

impl Scenario {
    /// The same with the load of its first model replayed from a file.
    #[must_use]
    pub(crate) fn replaying(mut self, trace: PathBuf) -> Self {
        if let Some(model) = self.models.first_mut() {
            model.load = LoadSource::Replayed(trace);
        }
        self
    }

    /// The same with what chart and kustomization ship: a cycle every 15 s, and models sized for their
    /// objectives, those that users are promised.
    #[must_use]
    pub(crate) fn with_shipped_settings(mut self) -> Self {
        let objectives = self.models.iter().map(|model| (model.id, model.slo));
        let class = ConfigMap::service_class(objectives);
        let saturation = ConfigMap::saturation("analyzerName: slo");
        self.config.extend([saturation, class]);
        self.interval = Duration::from_secs(15);
        self
    }

    /// The same with streams instead of single requests, of the same rates and lengths.
    #[must_use]
    pub(crate) fn coarse(mut self) -> Self {
        for model in &mut self.models {
            if let LoadSource::Generated(demand) = &model.load {
                model.load = LoadSource::Flow {
                    shape: demand.shape.clone(),
                    mixes: vec![(Duration::ZERO, demand.mix())],
                };
            }
        }
        self
    }

    pub(crate) fn variants(&self) -> impl Iterator<Item = &ScenarioVariant> + Clone {
        self.models.iter().flat_map(|model| &model.variants)
    }

    /// Whether replicas of some variant are groups of pods.
    pub(crate) fn has_groups(&self) -> bool {
        self.variants().any(|variant| matches!(variant.replica, Replica::Group { .. }))
    }

    pub(crate) fn gpus(&self) -> u32 {
        self.nodes.iter().map(|group| group.count.saturating_mul(group.gpus)).sum()
    }
}

/// What a request of the controller meets at this time, by what goes wrong in the scenario and when.
pub(super) fn api_fault(troubles: &[(Duration, ScenarioFault)], now: Duration) -> RequestFault {
    let mut met = RequestFault::default();
    for (begins, trouble) in troubles {
        let ScenarioFault::ApiServer { fault, lasts } = trouble else {
            continue;
        };
        if *begins <= now && now < begins.saturating_add(*lasts) {
            match fault {
                ApiFault::Refusing(status) => met.refuse = Some(*status),
                ApiFault::Slow(latency) => met.latency += *latency,
                ApiFault::Silent => met.hang = true,
            }
        } else if now < *begins && !matches!(fault, ApiFault::Slow(_)) {
            // A watch that is opened now ends when the server does.
            let left = begins.saturating_sub(now);
            met.cut_after = Some(met.cut_after.map_or(left, |other| other.min(left)));
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_time() {
        let second = Duration::from_secs(1);
        let trouble = |fault| ScenarioFault::ApiServer { fault, lasts: 10 * second };
        let troubles = [
            (10 * second, trouble(ApiFault::Slow(second))),
            (15 * second, trouble(ApiFault::Refusing(503))),
            (40 * second, trouble(ApiFault::Silent)),
        ];
        let cut = |after: u32| RequestFault {
            cut_after: Some(after * second),
            ..RequestFault::default()
        };
        let slow = |fault| RequestFault { latency: second, ..fault };
        let refused = |fault| RequestFault { refuse: Some(503), ..fault };
        let silent = RequestFault { hang: true, ..RequestFault::default() };
        for (at, wanted) in [
            (0, cut(15)),
            (10, slow(cut(5))),
            (15, slow(refused(cut(25)))),
            (20, refused(cut(20))),
            (25, cut(15)),
            (40, silent),
            (50, RequestFault::default()),
        ] {
            assert_eq!(api_fault(&troubles, at * second), wanted, "second {at}");
        }
    }
}
