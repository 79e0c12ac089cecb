//! Breaks pods and nodes, and puts them back.

use std::time::Duration;

use serde_json::json;

use super::{Injector, template_key};
use crate::chaos::fault::WorkloadFaultKind;
use crate::workloads::object::{Object, pod_path};
use crate::workloads::{START_UP, START_UP_P95, StruckPods, WorkloadFault};
use crate::world::{Replica, ScenarioModel, ScenarioVariant};

const NEVER: Duration = Duration::from_hours(30);

/// How long pods take to start while one of the two faults that concern it lasts.
fn start_up(variant: &ScenarioVariant, how: WorkloadFaultKind) -> Duration {
    match how {
        WorkloadFaultKind::NeverReady => NEVER,
        _ => variant.start_up.median * 10,
    }
}

impl Injector {
    pub(crate) async fn burden(&self, number: usize, how: WorkloadFaultKind) -> bool {
        let Some((model, variant)) = self.variant(number) else {
            return false;
        };
        let running = self.pods().any(|pod| {
            pod.label("app") == Some(variant.name) && pod.holds("Ready") && !pod.is_deleted()
        });
        let struck = |pods| StruckPods {
            namespace: self.plot.scenario.namespace.to_owned(),
            deployment: variant.name.to_owned(),
            pods,
        };
        let crash = |pods| WorkloadFault::Crash(struck(pods));
        let evict = |pods| WorkloadFault::Evict(struck(pods));
        let (fault, effective) = match how {
            WorkloadFaultKind::Crash(pods) => (crash(pods), running),
            WorkloadFaultKind::Flapping => (crash(8), running),
            WorkloadFaultKind::Evict(pods) => (evict(pods), running),
            WorkloadFaultKind::NodeLost => {
                let node = self.node(variant, number);
                let is_in_use = self.pods().any(|pod| pod.text("/spec/nodeName") == node);
                (WorkloadFault::NodeLost { node }, is_in_use)
            }
            WorkloadFaultKind::NeverReady | WorkloadFaultKind::SlowStart => {
                // Counts when it ends, if a pod has begun by then.
                self.start_up(model, variant, start_up(variant, how)).await;
                return false;
            }
            WorkloadFaultKind::Shortage => {
                // Counts when it ends, if a pod waits by then, as the one that comes for the one that goes.
                self.cordon(variant, true).await;
                drop(self.workloads.strike(&evict(1)).await);
                return false;
            }
        };
        self.workloads.strike(&fault).await.is_ok() && effective
    }

    pub(crate) async fn relieve(&self, number: usize, how: WorkloadFaultKind) {
        let Some((_, variant)) = self.variant(number) else {
            return;
        };
        match how {
            WorkloadFaultKind::NodeLost => {
                let node = self.node(variant, number);
                let back = WorkloadFault::NodeBack { node };
                drop(self.workloads.strike(&back).await);
            }
            WorkloadFaultKind::NeverReady | WorkloadFaultKind::SlowStart => {
                self.restore(number).await;
            }
            WorkloadFaultKind::Shortage => self.cordon(variant, false).await,
            WorkloadFaultKind::Crash(_)
            | WorkloadFaultKind::Evict(_)
            | WorkloadFaultKind::Flapping => {}
        }
    }

    pub(crate) fn waits(&self, number: usize) -> bool {
        let product = self.variant(number).map(|(_, variant)| variant.product);
        let alike: Vec<&str> = self
            .variants()
            .filter(|(_, variant)| Some(variant.product) == product)
            .map(|(_, variant)| variant.name)
            .collect();
        self.pods().any(|pod| {
            let app = pod.label("app").unwrap_or_default();
            alike.contains(&app) && pod.text("/spec/nodeName").is_empty() && !pod.is_deleted()
        })
    }

    /// Whether a pod has begun with this fault, and has become ready where it starts slowly.
    pub(crate) fn has_begun(&self, number: usize, how: WorkloadFaultKind) -> bool {
        let Some((_, variant)) = self.variant(number) else {
            return false;
        };
        let time = start_up(variant, how).as_secs().to_string();
        self.pods().any(|pod| {
            pod.label("app") == Some(variant.name)
                && pod.annotation(START_UP) == Some(&time)
                && (how == WorkloadFaultKind::NeverReady || pod.holds("Ready"))
        })
    }

    fn pods(&self) -> impl Iterator<Item = Object> + use<> {
        self.server.list("pods.").into_iter().map(Object)
    }

    fn node(&self, variant: &ScenarioVariant, number: usize) -> String {
        let groups = self.plot.scenario.nodes.iter();
        let mut fitting = groups.filter(|group| group.product == variant.product);
        fitting.next().map_or_else(String::new, |group| {
            let count = usize::try_from(group.count).unwrap_or(1).max(1);
            format!("{}-{}", group.name, number % count)
        })
    }

    async fn cordon(&self, variant: &ScenarioVariant, cordoned: bool) {
        for node in self.server.list("nodes.").into_iter().map(Object) {
            if node.label("nvidia.com/gpu.product") == Some(variant.product) {
                let at = format!("/api/v1/nodes/{}", node.name());
                let change = json!({"spec": {"unschedulable": cordoned.then_some(true)}});
                drop(self.server.merge(&at, &change).await);
            }
        }
    }

    async fn start_up(&self, model: &ScenarioModel, variant: &ScenarioVariant, time: Duration) {
        let seconds = time.as_secs().to_string();
        let annotations = json!({START_UP: seconds, START_UP_P95: seconds});
        let template = json!({"metadata": {"annotations": annotations}});
        let template = match variant.replica {
            Replica::Group { .. } => {
                json!({"leaderTemplate": template, "workerTemplate": template})
            }
            Replica::Pod | Replica::Single => template,
        };
        let change = json!({"spec": {template_key(variant): template}});
        let at = self.target(model, variant);
        drop(self.server.merge(&at, &change).await);
    }

    /// Deletes the pods of a template that is put back: what is no deployment keeps them for good, or waits
    /// for them to be ready.
    pub(crate) async fn replace_odd_pods(&self, variant: &ScenarioVariant) {
        if variant.replica == Replica::Pod {
            return;
        }
        let usual = variant.start_up.median.as_secs_f64().to_string();
        for pod in self.pods() {
            let is_odd = pod.annotation(START_UP) != Some(&usual);
            if pod.label("app") == Some(variant.name) && is_odd {
                drop(self.server.delete(&pod_path(&pod), &json!({})).await);
            }
        }
    }
}
