//! One model as it is served: its load, its router, and the servers behind it, which follow the pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::backend::{Backend, backend};
use super::objects::VARIANT;
use super::scenario::{Replica, ScenarioModel, ScenarioVariant};
use super::score::Score;
use crate::workloads::Outages;
use crate::workloads::leader_worker_sets::{is_whole, leads};
use crate::workloads::object::Object;
use wva_supervise::SeedTree;

pub(super) struct ModelService {
    pub(super) model: ScenarioModel,
    pub(super) backend: Box<dyn Backend>,
    /// Pods with a server, and whether it may take requests.
    servers: BTreeMap<String, bool>,
    pub(super) score: Score,
}

/// What the pods of a variant come to: replicas, each counted by the pod that leads it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReplicaTally {
    pub(super) ready: u32,
    pub(super) pending: u32,
    /// Replicas that hold a place on a node.
    pub(super) placed: u32,
    /// GPUs of all pods that hold a place on a node.
    pub(super) gpus: u32,
}

impl ModelService {
    pub(super) fn new(
        namespace: &str,
        model: &ScenarioModel,
        seed: &SeedTree,
    ) -> Result<Self, String> {
        Ok(Self {
            backend: backend(namespace, model, seed)?,
            servers: BTreeMap::new(),
            score: Score::new(model.slo),
            model: model.clone(),
        })
    }

    pub(super) fn advance(&mut self, now: Duration) {
        self.backend.advance(now, &mut self.score);
        self.score.advance(now);
    }

    pub(super) fn follow(&mut self, pods: &[Object], outages: &Outages, now: Duration) {
        let mut whole = BTreeSet::new();
        for pod in pods.iter().filter(|pod| leads(pod)) {
            let mut variants = self.model.variants.iter();
            let Some(variant) = variants.find(|one| pod.label(VARIANT) == Some(one.name)) else {
                continue;
            };
            if outages.holds(pod.text("/spec/nodeName")) || !is_whole(pod, pods) {
                continue;
            }
            whole.insert(pod.name());
            let serves = !pod.is_deleted();
            match self.servers.get(pod.name()) {
                None if serves => self.backend.add(pod.name(), variant, now),
                Some(true) if !serves => self.backend.drain(pod.name(), now),
                _ => continue,
            }
            self.servers.insert(pod.name().to_owned(), serves);
        }
        let names = self.servers.keys();
        let gone = names.filter(|name| !whole.contains(&***name)).cloned();
        for name in gone.collect::<Vec<_>>() {
            self.backend.remove(&name, now);
            self.servers.remove(&name);
        }
    }
}

pub(super) fn tally(variant: &ScenarioVariant, pods: &[Object]) -> ReplicaTally {
    let mut tally = ReplicaTally::default();
    for pod in pods.iter().filter(|pod| pod.label(VARIANT) == Some(variant.name)) {
        if matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
            continue;
        }
        let is_placed = !pod.text("/spec/nodeName").is_empty();
        let gpus = match variant.replica {
            Replica::Group { gpus, .. } if !leads(pod) => gpus,
            _ => variant.gpus,
        };
        tally.gpus += if is_placed { gpus } else { 0 };
        if !leads(pod) {
            continue;
        }
        tally.placed += u32::from(is_placed);
        if pod.is_deleted() {
            continue;
        }
        if is_whole(pod, pods) {
            tally.ready += 1;
        } else {
            tally.pending += 1;
        }
    }
    tally
}
