//! What a document states about the routers in front of models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::read::Reader;
use super::{CollectionState, ModelDocument, SnapshotDocument};
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
        let lag = self.lag;
        let models = document.models.iter().enumerate();
        let routers = models.filter_map(|(index, entry)| {
            let samples = entry.router.as_ref()?.map(&mut |field, reading, quantity| {
                let path = format!("models[{index}].router.{field}");
                self.sample(&path, reading, quantity, lag)
            });
            Some((key(entry), samples))
        });
        routers.collect()
    }

    pub(super) fn direct_queues(&mut self, document: &SnapshotDocument) -> DirectQueues {
        let models = document.models.iter().enumerate();
        let queues = models.filter_map(|(index, entry)| {
            let queue = entry.direct_queue.as_ref()?;
            // It was counted apart from any collection, so that its age counts from now.
            let path = format!("models[{index}].directQueue.requests");
            let counted = (queue.requests)
                .and_then(|stated| self.sample(&path, stated, Quantity::Requests, Duration::ZERO));
            let counted = counted
                .map(|sample| CountedQueue { requests: sample.value, at: self.before(sample.age) });
            Some((key(entry), DirectQueue { counted, failure: queue.failure.clone() }))
        });
        queues.collect()
    }
}

fn key(entry: &ModelDocument) -> ModelKey {
    ModelKey::new(Arc::clone(&entry.namespace), Arc::clone(&entry.model))
}
