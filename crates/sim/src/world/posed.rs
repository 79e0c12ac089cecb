//! A model without requests, whose servers show what they are set to show.

use std::collections::BTreeMap;
use std::time::Duration;

use super::backend::Backend;
use super::scenario::{Pose, ScenarioModel, ScenarioVariant};
use super::score::Score;
use crate::engine::{CoarseEngine, Dialect, Mix};
use crate::exposition::Page;
use crate::router::PoolReading;

/// What the requests would be like that this server seems to hold.
const MIX: Mix = Mix { prompt_tokens: 500, output_tokens: 200, cached: 0.0 };

#[derive(Debug)]
pub(super) struct Posed {
    id: &'static str,
    dialect: Dialect,
    poses: Vec<(Duration, Pose)>,
    servers: BTreeMap<String, CoarseEngine>,
    now: Duration,
}

impl Posed {
    pub(super) fn new(model: &ScenarioModel, poses: Vec<(Duration, Pose)>) -> Self {
        Self {
            id: model.id,
            dialect: model.dialect,
            poses,
            servers: BTreeMap::new(),
            now: Duration::ZERO,
        }
    }

    fn pose(&self) -> Option<Pose> {
        let mut begun = self.poses.iter().filter(|(from, _)| *from <= self.now);
        begun.next_back().map(|(_, pose)| *pose)
    }
}

impl Backend for Posed {
    fn advance(&mut self, now: Duration, _score: &mut Score) {
        self.now = now;
    }

    fn add(&mut self, pod: &str, variant: &ScenarioVariant, now: Duration) {
        let engine = CoarseEngine::new(variant.profile, variant.limits, MIX, now);
        self.servers.insert(pod.to_owned(), engine);
    }

    fn remove(&mut self, pod: &str, _now: Duration) {
        self.servers.remove(pod);
    }

    fn reading(&self) -> PoolReading {
        let pose = self.pose();
        PoolReading {
            held: 0,
            dispatched: 0,
            ready: self.servers.len(),
            queue: pose.map_or(0.0, |pose| pose.waiting),
            shortest_queue: pose.map_or(0.0, |pose| pose.waiting),
            kv_usage: pose.map_or(0.0, |pose| pose.kv_usage),
            running: 0.0,
        }
    }

    fn server_page(&self, pod: &str) -> Option<Page> {
        let pose = self.pose()?;
        let server = self.servers.get(pod)?.clone();
        let posed = server.posed(pose.kv_usage, pose.waiting);
        Some(posed.page(self.dialect, self.id))
    }

    fn router_page(&self) -> Page {
        Page { families: Vec::new() }
    }

    fn router_queue_page(&self) -> Page {
        self.router_page()
    }
}
