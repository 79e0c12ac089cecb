//! What a cluster does with workloads: deployments become ReplicaSets, LeaderWorkerSets StatefulSets,
//! those become pods, pods get nodes and become ready after their start-up, and are lost to crashes,
//! evictions and dead nodes.
//!
//! One task does the work of several controllers in a fixed order, each time something has changed,
//! so that a world in virtual time runs the same way each time. What it knows stands in the objects.

#![expect(
    clippy::indexing_slicing,
    reason = "documents are read by name, which yields null for what is absent; written by name \
              only below what was found to be an object"
)]

mod deployments;
pub(crate) mod event;
mod fault;
mod kubelet;
pub(crate) mod leader_worker_sets;
mod nodes;
pub(crate) mod object;
mod replica_sets;
mod scheduler;
mod sleepers;
mod stateful_sets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::select;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

pub(crate) use fault::{StruckPods, WorkloadFault};
pub(crate) use kubelet::{IMAGE_PULL, START_UP, START_UP_P95};
pub use nodes::NodeGroup;
pub(crate) use sleepers::{MOST_ASLEEP, WAKE};

use self::object::{Object, Write, path};
use crate::apiserver::{ApiServer, Insider};
use crate::threads::locked;
use wva_base::moment::WallTime;
use wva_supervise::{Clock, SeedTree};

const MANAGER: &str = "simulated-cluster";
const RESOURCES: [&str; 6] = [
    "nodes.",
    "pods.",
    "replicasets.apps",
    "deployments.apps",
    "statefulsets.apps",
    leader_worker_sets::RESOURCE,
];
/// How long an event is kept: `--event-ttl`.
const EVENT_TTL: Duration = Duration::from_hours(1);
/// How often old events are looked for.
const SWEEP: Duration = Duration::from_mins(10);
/// How long a pass waits after one that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Nodes that do not answer, with since when. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outages(Arc<Silent>);

#[derive(Debug, Default)]
struct Silent {
    nodes: Mutex<BTreeMap<String, WallTime>>,
    changed: Notify,
}

impl Outages {
    pub(crate) fn holds(&self, node: &str) -> bool {
        self.nodes().contains_key(node)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes().is_empty()
    }

    fn nodes(&self) -> BTreeMap<String, WallTime> {
        locked(&self.0.nodes).clone()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, WallTime>)) {
        change(&mut locked(&self.0.nodes));
        self.0.changed.notify_one();
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Workloads {
    server: Insider,
    clock: Clock,
    seed: SeedTree,
    outages: Outages,
}

#[derive(Debug, Default)]
struct Passed {
    wrote: bool,
    failed: bool,
    due: Option<WallTime>,
}

impl Passed {
    fn wait_until(&mut self, due: Option<WallTime>) {
        self.due = self.due.into_iter().chain(due).min();
    }
}

impl Workloads {
    pub(crate) fn new(server: ApiServer, clock: Clock, seed: SeedTree) -> Self {
        Self { server: Insider::new(server, MANAGER), clock, seed, outages: Outages::default() }
    }

    pub(crate) fn outages(&self) -> Outages {
        self.outages.clone()
    }

    pub(crate) async fn run(self) -> Infallible {
        let mut news = self.server.follow(&RESOURCES);
        loop {
            let seen = self.server.version();
            let passed = self.pass().await;
            if passed.wrote && !passed.failed {
                continue;
            }
            let until = passed.due.map(|due| self.until(due));
            let wait = if passed.failed { RETRY } else { until.unwrap_or(SWEEP) };
            let changed = async {
                while !self.server.changed_since(seen, &RESOURCES) {
                    news.changed().await;
                }
            };
            let outage = self.outages.0.changed.notified();
            // Whatever ends the wait, the next pass looks at everything.
            drop(timeout(wait, select(pin!(changed), pin!(outage))).await);
        }
    }

    /// Removes old events until dropped, as the lifetime of their keys does.
    pub(crate) async fn sweep(self) -> Infallible {
        loop {
            sleep(SWEEP).await;
            let now = self.now();
            for event in self.server.list("events") {
                let event = Object(event);
                if event.created().later(EVENT_TTL) >= now {
                    continue;
                }
                let path = path("v1", event.namespace(), "events", event.name());
                // Gone already is as good.
                drop(self.server.delete(&path, &json!({})).await);
            }
        }
    }

    pub(crate) async fn strike(&self, fault: &WorkloadFault) -> Result<(), String> {
        let (nodes, pods) = (self.all("nodes."), self.all("pods."));
        for write in fault.strike(&self.outages, &nodes, &pods, self.now()) {
            self.perform(write).await?;
        }
        Ok(())
    }

    fn now(&self) -> WallTime {
        self.clock.now().wall
    }

    /// At least a millisecond, the smallest step of virtual time.
    fn until(&self, due: WallTime) -> Duration {
        let millis = due.0.saturating_sub(self.now().0).max(1);
        Duration::from_millis(u64::try_from(millis).unwrap_or(1))
    }

    fn all(&self, resource: &str) -> Vec<Object> {
        self.server.list(resource).into_iter().map(Object).collect()
    }

    /// Lets every controller act once, each on what the one before has left.
    async fn pass(&self) -> Passed {
        let now = self.now();
        let mut passed = Passed::default();
        let silent = self.outages.nodes();
        let (nodes, pods) = (self.all("nodes."), self.all("pods."));
        let (deployments, sets) = (self.all("deployments.apps"), self.all("replicasets.apps"));
        let stateful_sets = self.all("statefulsets.apps");
        let leader_worker_sets = self.all(leader_worker_sets::RESOURCE);
        for node in &nodes {
            if let Some(since) = silent.get(node.name()) {
                let next = nodes::silent(node, &pods, *since, now);
                self.carry_out(next, &mut passed).await;
            }
        }
        for deployment in &deployments {
            let writes = deployments::reconcile(deployment, &sets, now);
            self.write(writes, &mut passed).await;
        }
        for set in &leader_worker_sets {
            let writes = leader_worker_sets::reconcile(set, &stateful_sets, &pods);
            self.write(writes, &mut passed).await;
        }
        let (sets, pods) = (self.all("replicasets.apps"), self.all("pods."));
        let stateful_sets = self.all("statefulsets.apps");
        for set in &sets {
            let writes = replica_sets::reconcile(set, &pods, now);
            self.write(writes, &mut passed).await;
            if set.number("/spec/minReadySeconds") > 0
                && set.number("/status/availableReplicas") < set.number("/status/replicas")
            {
                passed.wait_until(Some(now.later(Duration::from_secs(1))));
            }
        }
        for set in &stateful_sets {
            let writes = stateful_sets::reconcile(set, &pods, now);
            self.write(writes, &mut passed).await;
        }
        let writes = scheduler::reconcile(&self.all("nodes."), &self.all("pods."), now);
        self.write(writes, &mut passed).await;
        for pod in self.all("pods.") {
            let node = pod.text("/spec/nodeName");
            if !node.is_empty() && !silent.contains_key(node) {
                let mut next = kubelet::reconcile(&pod, &self.seed, now);
                if pod.is_deleted() && !next.writes.is_empty() {
                    let asleep = sleepers::fall_asleep(&pod, &self.all("nodes."));
                    next.writes.extend(asleep);
                }
                self.carry_out(next, &mut passed).await;
            }
        }
        passed
    }

    async fn carry_out(&self, next: kubelet::Next, passed: &mut Passed) {
        passed.wait_until(next.due);
        self.write(next.writes, passed).await;
    }

    async fn write(&self, writes: Vec<Write>, passed: &mut Passed) {
        for write in writes {
            passed.wrote = true;
            if let Err(denied) = self.perform(write).await {
                // Another writer was faster; the next pass sees what they did.
                tracing::debug!(%denied, "write of a simulated controller");
                passed.failed = true;
            }
        }
    }

    async fn perform(&self, write: Write) -> Result<Arc<Value>, String> {
        match write {
            Write::Create(collection, object) => self.server.create(&collection, &object).await,
            Write::Merge(path, change) => self.server.merge(&path, &change).await,
            Write::Delete(path, options) => self.server.delete(&path, &options).await,
            Write::Spawn(set, pod) => {
                let collection = path("v1", set.namespace(), "pods", "");
                let made = self.server.create(&collection, &pod).await?;
                let name = made["metadata"]["name"].as_str().unwrap_or_default();
                let message = format!("Created pod: {name}");
                let what = ("SuccessfulCreate", &*message);
                let (events, event) = replica_sets::news(&set, what, self.now());
                self.server.create(&events, &event).await
            }
        }
    }
}
