//! How long after a count is published an HPA wants it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::controller::Controller;
use super::namespace::Namespace;
use super::variants::DESIRED;

const LOOK: Duration = Duration::from_millis(10);

/// When a count was seen first.
type Moments = Arc<Mutex<BTreeMap<u32, Instant>>>;

/// Watches the gauge of a variant and the HPA of the same name.
pub(crate) struct Lag {
    published: Moments,
    wanted: Moments,
    tasks: [JoinHandle<()>; 2],
}

impl Lag {
    pub(crate) fn follow(namespace: &Namespace, controller: &Arc<Controller>, name: &str) -> Self {
        let (published, wanted) = (Moments::default(), Moments::default());
        let gauge = {
            let (controller, published) = (Arc::clone(controller), Arc::clone(&published));
            let (namespace, name) = (namespace.name.clone(), name.to_owned());
            async move {
                let labels = [("variant_name", name.as_str()), ("namespace", &namespace)];
                loop {
                    if let Ok(Some(value)) = controller.value(DESIRED, &labels).await {
                        note(&published, format!("{value}").parse().ok());
                    }
                    sleep(LOOK).await;
                }
            }
        };
        let hpas: Api<HorizontalPodAutoscaler> = namespace.api();
        let selection = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let seen = Arc::clone(&wanted);
        let hpa = async move {
            let objects = watcher(hpas, selection).default_backoff().applied_objects();
            futures::pin_mut!(objects);
            while let Some(object) = objects.next().await {
                let status = object.ok().and_then(|hpa| hpa.status);
                let desired = status.map(|status| status.desired_replicas);
                note(&seen, desired.and_then(|desired| desired.try_into().ok()));
            }
        };
        Self {
            published,
            wanted,
            tasks: [tokio::spawn(gauge), tokio::spawn(hpa)],
        }
    }

    /// From the gauge to the HPA, for each count that both have had.
    pub(crate) fn measured(&self) -> BTreeMap<u32, Duration> {
        let wanted = self.wanted.lock().unwrap();
        let published = self.published.lock().unwrap();
        let both = published.iter().filter_map(|(count, published)| {
            let wanted = wanted.get(count)?;
            Some((*count, wanted.saturating_duration_since(*published)))
        });
        both.collect()
    }
}

impl Drop for Lag {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn note(moments: &Moments, count: Option<u32>) {
    if let Some(count) = count {
        moments
            .lock()
            .unwrap()
            .entry(count)
            .or_insert_with(Instant::now);
    }
}
