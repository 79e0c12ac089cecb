//! What a document says of the routers in front of models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::read::Reader;
use super::{
    CollectionState, DirectQueueDocument, ModelDocument, RouterDocument, SnapshotDocument,
};
use crate::key::ModelKey;
use crate::quantity::Quantity;
use crate::router_queue::{CountedQueue, DirectQueue, DirectQueues};
use crate::samples::RouterSamples;
use crate::snapshot::VariantView;

impl Reader {
    pub(super) fn check_models(&mut self, document: &SnapshotDocument, variants: &[VariantView]) {
        let served: BTreeSet<&ModelKey> = variants.iter().map(|view| &view.model).collect();
        let mut seen = BTreeSet::new();
        for (index, entry) in document.models.iter().enumerate() {
            let (path, key) = (format!("models[{index}]"), key(entry));
            if !served.contains(&key) {
                let names: Vec<String> = served.iter().map(ToString::to_string).collect();
                let served = names.join(", ");
                self.fault(path, format!("no variant serves {key}; variants serve: {served}"));
            } else if !seen.insert(key.clone()) {
                self.fault(path, format!("{key} stands twice; write it once"));
            } else if entry.router.is_some() && document.collection.state == CollectionState::Never
            {
                self.fault(
                    format!("{path}.router"),
                    "Prometheus said nothing yet, by collection.state: never; write what the router \
                     itself said as directQueue"
                        .to_owned(),
                );
            }
        }
    }

    pub(super) fn routers(
        &mut self,
        document: &SnapshotDocument,
    ) -> BTreeMap<ModelKey, RouterSamples> {
        let mut routers = BTreeMap::new();
        for (index, entry) in document.models.iter().enumerate() {
            if let Some(router) = &entry.router {
                let path = format!("models[{index}].router");
                routers.insert(key(entry), self.router(&path, router));
            }
        }
        routers
    }

    fn router(&mut self, path: &str, router: &RouterDocument) -> RouterSamples {
        let lag = self.lag;
        router.map(&mut |field, reading, quantity| {
            self.sample(&format!("{path}.{field}"), reading, quantity, lag)
        })
    }

    pub(super) fn direct_queues(&mut self, document: &SnapshotDocument) -> DirectQueues {
        let mut queues = DirectQueues::new();
        for (index, entry) in document.models.iter().enumerate() {
            if let Some(queue) = &entry.direct_queue {
                let path = format!("models[{index}].directQueue");
                queues.insert(key(entry), self.direct_queue(&path, queue));
            }
        }
        queues
    }

    fn direct_queue(&mut self, path: &str, queue: &DirectQueueDocument) -> DirectQueue {
        // It was counted apart from any collection, so that its age counts from now.
        let path = format!("{path}.requests");
        let counted = (queue.requests)
            .and_then(|requests| self.sample(&path, requests, Quantity::Requests, Duration::ZERO));
        DirectQueue {
            counted: counted
                .map(|sample| CountedQueue { requests: sample.value, at: self.before(sample.age) }),
            failure: queue.failure.clone(),
        }
    }
}

fn key(entry: &ModelDocument) -> ModelKey {
    ModelKey::new(Arc::clone(&entry.namespace), Arc::clone(&entry.model))
}
