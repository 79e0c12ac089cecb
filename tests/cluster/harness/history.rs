//! What a Deployment went through, seen by a watch, so that a test can check the way and not only
//! the end of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};

use super::background::Background;
use super::fault::Result;
use super::namespace::{Namespace, Replicas};
use super::wait::{eventually, seen};

/// Records every change of a Deployment's numbers from now on.
pub(crate) struct History {
    _task: Background,
    steps: Arc<Mutex<Vec<Replicas>>>,
}

impl History {
    pub(crate) fn follow(namespace: &Namespace, deployment: &str) -> Self {
        let api: Api<Deployment> = namespace.api();
        let selection = watcher::Config::default().fields(&format!("metadata.name={deployment}"));
        let steps = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&steps);
        let task = Background::start(async move {
            let objects = watcher(api, selection).default_backoff().applied_objects();
            futures::pin_mut!(objects);
            while let Some(object) = objects.next().await {
                let Ok(deployment) = object else { continue };
                let mut record = record.lock().unwrap();
                let now = Replicas::of(&deployment);
                if record.last() != Some(&now) {
                    record.push(now);
                }
            }
        });
        Self { _task: task, steps }
    }

    /// Every state so far, repetitions left out.
    pub(crate) fn steps(&self) -> Vec<Replicas> {
        self.steps.lock().unwrap().clone()
    }

    /// The numbers of replicas that were asked for so far, in order and without repetitions.
    pub(crate) fn wanted(&self) -> Vec<i32> {
        let mut way: Vec<i32> = self.steps().iter().map(|step| step.wanted).collect();
        way.dedup();
        way
    }

    /// Checks the numbers of replicas that were asked for, in order and without repetitions; waits
    /// a little, as the watch may be behind what a request has shown.
    pub(crate) async fn went(&self, wanted: &[i32]) -> Result {
        eventually("the way of the replicas", Duration::from_secs(5), async || {
            seen(&self.wanted().as_slice(), &wanted)
        })
        .await
    }
}
