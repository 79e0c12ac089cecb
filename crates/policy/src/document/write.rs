//! From what a plan is made from to its document.

use std::sync::Arc;

use super::inventory::{GpuPodDocument, InventoryDocument, TypeDocument};
use super::reading::{DocumentReading, ReadingFailure, ReadingState};
use super::scalar::{CostText, Span};
use super::variant::{
    ContainerDocument, PodDocument, TargetDocument, TargetState, VariantDocument,
};
use super::{
    CollectionDocument, CollectionState, DOCUMENT_VERSION, DirectQueueDocument, ModelDocument,
    SnapshotDocument, TimeDocument,
};
use crate::accelerator::Accelerator;
use crate::gpu::{GpuCount, GpuPod, PodPhase};
use crate::key::{TargetKey, TargetKind};
use crate::learned::Learned;
use crate::quantity::Quantity;
use crate::router_queue::DirectQueue;
use crate::samples::Sample;
use crate::snapshot::{
    ClusterSnapshot, GenerationState, GpuInventory, MetricsSnapshot, Readiness, TargetView,
    VariantView,
};
use wva_base::moment::{Moment, Since};

impl SnapshotDocument {
    /// Writes down what a plan is made from. Reading it back gives the same plan.
    pub fn of(snapshot: &ClusterSnapshot, learned: &Learned, now: Moment) -> Self {
        let views = snapshot.variants.values();
        let mut models: Vec<_> = views.clone().map(|view| view.model.clone()).collect();
        models.sort();
        models.dedup();
        let routers = models.into_iter().filter_map(|key| {
            let router = snapshot.metrics.routers.get(&key);
            let router = router.map(|samples| {
                samples.map(&mut |_, sample, quantity| Some(reading(sample, quantity)))
            });
            let direct_queue = snapshot.direct.get(&key).map(|queue| direct(queue, now));
            (router.is_some() || direct_queue.is_some()).then_some(ModelDocument {
                namespace: key.namespace,
                model: key.model,
                router,
                direct_queue,
            })
        });
        Self {
            version: DOCUMENT_VERSION,
            cycle: (snapshot.cycle.0 > 0).then_some(snapshot.cycle.0),
            time: TimeDocument {
                now: jiff::Timestamp::from_millisecond(now.wall.0).ok(),
                uptime: Some(Span(now.monotonic)),
            },
            collection: collection(&snapshot.metrics, now),
            variants: views.map(|view| variant(view, &snapshot.metrics, now)).collect(),
            models: routers.collect(),
            inventory: snapshot.gpus.as_deref().map(inventory),
            learned: serde_json::to_value(learned).ok(),
            pod_autoscalers: Vec::new(),
            context: None,
        }
    }
}

fn collection(metrics: &MetricsSnapshot, now: Moment) -> CollectionDocument {
    let Some(collected) = metrics.collected else {
        return CollectionDocument {
            state: CollectionState::Never,
            ..CollectionDocument::default()
        };
    };
    CollectionDocument {
        state: CollectionState::Done,
        ago: Some(Span(now.since(collected))),
        failures: metrics.failures.clone(),
    }
}

fn variant(view: &VariantView, metrics: &MetricsSnapshot, now: Moment) -> VariantDocument {
    let samples = metrics.models.get(&view.model);
    let pods = view.pods.iter().map(|pod| PodDocument {
        name: Arc::clone(&pod.name),
        ready: pod.readiness == Readiness::Ready,
        gated: pod.readiness == Readiness::Gated,
        age: Some(Span(now.wall.since(pod.created))),
        ready_for: (pod.ready_since).map(|since| Span(now.wall.since(since))),
        node: pod.node.clone(),
        signals: samples
            .and_then(|by_pod| by_pod.get(&pod.name))
            .map(|samples| samples.map(&mut |_, sample, quantity| Some(reading(sample, quantity))))
            .unwrap_or_default(),
    });
    let lasting = |since: Option<Since>| since.map(|since| Span(since.elapsed(now)));
    let template = &view.template;
    let gpus = template.gpus.iter();
    let gpus = gpus.map(|(name, gpus)| (Arc::clone(name), gpus.0));
    VariantDocument {
        namespace: Arc::clone(&view.key.namespace),
        name: Arc::clone(&view.key.name),
        model: Arc::clone(&view.model.model),
        cost: Some(CostText(view.cost)),
        accelerator: match &view.accelerator {
            Accelerator::Named(name) => Some(Arc::clone(name)),
            Accelerator::Unresolved => None,
        },
        role: template.role,
        gpus: gpus.collect(),
        resource_claims: template.gpu_count.names().to_vec(),
        gpus_unknown: template.gpu_count == GpuCount::Unknown,
        service_class: template.service_class.clone(),
        bounds: view.bounds,
        policy: view.policy.clone(),
        desired: view.desired.map(|count| count.0),
        target: target(&view.target),
        pending_for: lasting(view.pending_since),
        unapplied_for: lasting(view.unapplied_since),
        containers: template
            .containers
            .iter()
            .map(|container| ContainerDocument {
                name: None,
                image: Arc::clone(&container.image),
                command: container.command.clone(),
                args: container.args.clone(),
                env: container.env.clone(),
            })
            .collect(),
        pods: pods.collect(),
        routed: view.router.is_possible(),
        generation: Some(view.generation),
        notes: view.notes.to_vec(),
    }
}

/// `apiVersion` and `kind` as they are read again. The version of a group does not matter.
fn kind(kind: &TargetKind) -> (Option<Arc<str>>, Option<Arc<str>>) {
    match kind {
        TargetKind::Deployment => (None, None),
        TargetKind::StatefulSet | TargetKind::LeaderWorkerSet => {
            (None, Some(kind.to_string().into()))
        }
        TargetKind::Other(other) if other.group.is_empty() => {
            (Some(Arc::from("v1")), Some(Arc::clone(&other.kind)))
        }
        TargetKind::Other(other) => {
            (Some(format!("{}/v1", other.group).into()), Some(Arc::clone(&other.kind)))
        }
    }
}

fn target(view: &TargetView) -> TargetDocument {
    let empty = |state| TargetDocument { state, ..TargetDocument::default() };
    let named =
        |state, name: &Arc<str>| TargetDocument { name: Some(Arc::clone(name)), ..empty(state) };
    let keyed = |state, key: &TargetKey| {
        let (api_version, kind) = kind(&key.kind);
        TargetDocument { api_version, kind, ..named(state, &key.name) }
    };
    match view {
        TargetView::Resolved(target) => TargetDocument {
            current: Some(target.current.0),
            surge: Some(target.surge.0).filter(|surge| *surge > 0),
            ready: Some(target.ready.0),
            lagging: target.generation == GenerationState::Lagging,
            ..keyed(TargetState::Resolved, &target.key)
        },
        TargetView::NotFound { target, .. } => keyed(TargetState::NotFound, target),
        TargetView::Unknown { target } => keyed(TargetState::Unknown, target),
        TargetView::Contested { target, claimants, owner } => TargetDocument {
            claimants: claimants.iter().map(ToString::to_string).collect(),
            owner: owner.clone(),
            ..keyed(TargetState::Contested, target)
        },
        TargetView::UnsupportedKind { kind, name, why } => TargetDocument {
            kind: Some(Arc::clone(kind)),
            why: Some(Arc::clone(why)),
            ..named(TargetState::UnsupportedKind, name)
        },
        TargetView::Malformed { why } => {
            TargetDocument { why: Some(Arc::clone(why)), ..empty(TargetState::Malformed) }
        }
    }
}

/// A sample that is no value of its kind is written as invalid.
fn reading(sample: Sample, quantity: Quantity) -> DocumentReading {
    match quantity.check(sample.value) {
        Ok(()) => DocumentReading {
            value: Some(sample.value),
            age: (!sample.age.is_zero()).then_some(Span(sample.age)),
            ..DocumentReading::default()
        },
        Err(_) => DocumentReading {
            state: Some(ReadingState::Failed),
            why: Some(ReadingFailure::Invalid),
            ..DocumentReading::default()
        },
    }
}

fn direct(queue: &DirectQueue, now: Moment) -> DirectQueueDocument {
    let sample =
        queue.counted.map(|counted| Sample { value: counted.requests, age: now.since(counted.at) });
    DirectQueueDocument {
        requests: sample.map(|sample| reading(sample, Quantity::Requests)),
        failure: queue.failure.clone(),
    }
}

fn inventory(inventory: &GpuInventory) -> InventoryDocument {
    let empty = InventoryDocument::default();
    match inventory {
        GpuInventory::Unknown { why } => {
            InventoryDocument { unknown: Some(Arc::clone(why)), ..empty }
        }
        GpuInventory::Types { limits, used } => {
            let sums = limits.iter().map(|(name, limit)| {
                let used = used.get(name).copied().unwrap_or_default();
                let sums = TypeDocument { total: limit.0, used: Some(used.0) };
                (Arc::clone(name), sums)
            });
            InventoryDocument { types: Some(sums.collect()), ..empty }
        }
        GpuInventory::Nodes { nodes, pods } => {
            let named = |pod: &GpuPod| {
                let (namespace, name) = pod.named.as_ref()?;
                Some(format!("{namespace}/{name}").into())
            };
            let pods = pods.iter().map(|pod| GpuPodDocument {
                name: named(pod),
                node: pod.node.clone(),
                finished: pod.phase == PodPhase::Finished,
                terminating: pod.phase == PodPhase::Leaving,
                containers: pod.containers.clone(),
                init_containers: pod.init_containers.clone(),
            });
            InventoryDocument { nodes: Some(nodes.clone()), pods: Some(pods.collect()), ..empty }
        }
    }
}
