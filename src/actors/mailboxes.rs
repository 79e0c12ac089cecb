//! What roles wake each other with, and what they leave for each other to find then. It outlives all of them.

use super::autoscaler_writer::AutoscalerWriterMessage;
use super::collector::CollectorMessage;
use super::config::ConfigMessage;
use super::emitter::{EmitterMessage, StatusWriteResult};
use super::event_recorder::EventRecorderMessage;
use super::leadership::LeadershipMessage;
use super::optimizer::OptimizerMessage;
use super::pod_autoscalers::{AutoscalerInvalidation, PodAutoscalersMessage};
use super::retry_queue::RetryQueue;
use super::rounds::RoundMessage;
use super::scale_reader::ScaleReaderMessage;
use super::status_writer::StatusWriterMessage;
use super::variants::{Invalidation, VariantsMessage};
use crate::metrics::Metrics;
use crate::policy::key::{ObjectKey, TargetKey, VariantKey};
use crate::state::PlanProposal;
use crate::state::events::Events;
use wva_supervise::{Address, DirtySet, Slot};

/// Roles that are sent messages.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "each is the role of that name")]
pub struct Addresses {
    pub(crate) config: Address<ConfigMessage>,
    pub(crate) leadership: Address<LeadershipMessage>,
    pub emitter: Address<EmitterMessage>,
    pub(crate) status_writer: Address<StatusWriterMessage>,
    pub(crate) pod_marker: Address<RoundMessage>,
    pub(crate) target_scaler: Address<RoundMessage>,
    pub(crate) event_recorder: Address<EventRecorderMessage>,
    pub(crate) collector: Address<CollectorMessage>,
    pub optimizer: Address<OptimizerMessage>,
    pub(crate) variants: Address<VariantsMessage>,
    pub(crate) autoscaler_writer: Address<AutoscalerWriterMessage>,
    pub(crate) pod_autoscalers: Address<PodAutoscalersMessage>,
    pub(crate) scale_reader: Address<ScaleReaderMessage>,
}

/// Addresses, and sets that wake the role that empties them.
#[derive(Debug)]
pub struct Mailboxes {
    /// Roles that are sent messages.
    pub addresses: Addresses,
    /// The latest plan, for the emitter.
    pub plans: Slot<PlanProposal>,
    /// Variants whose view changed or that are gone, for the emitter.
    pub(crate) changed: DirtySet<VariantKey>,
    /// Writes of statuses that have ended, for the emitter.
    pub(crate) settled: DirtySet<StatusWriteResult>,
    /// What changed that variants depend on.
    pub(crate) dirty: DirtySet<Invalidation>,
    /// What changed that PodAutoscalers depend on.
    pub(crate) autoscalers: DirtySet<AutoscalerInvalidation>,
    /// PodAutoscalers whose decision may have to be written.
    pub(crate) autoscaler_writes: RetryQueue<ObjectKey>,
    /// Targets that objects have come to name, for the reader of scale subresources.
    pub(crate) named: DirtySet<TargetKey>,
    /// That a source of settings may have changed: ConfigMaps, namespaces, or which of them hold variants.
    pub(crate) config: DirtySet<()>,
    /// Variants whose status may have to be written.
    pub(crate) statuses: RetryQueue<VariantKey>,
    /// Kubernetes events.
    pub(crate) events: Events,
}

/// The waker of a dirty set: sends a hint to an address. A vacant one finds what there is to do when it
/// is filled.
fn waker<M: Send + 'static>(
    address: &Address<M>,
    message: fn() -> M,
) -> impl Fn() + Send + Sync + 'static {
    let address = address.clone();
    move || {
        address.hint(message());
    }
}

impl Mailboxes {
    /// All empty, with every address vacant; the series count events that are lost.
    pub fn new(series: &Metrics) -> Self {
        let addresses = Addresses::default();
        let rounds = [&addresses.pod_marker, &addresses.target_scaler];
        let rounds = rounds.map(|address| waker(address, || RoundMessage::Published));
        let status_writer = waker(&addresses.status_writer, || StatusWriterMessage::Work);
        let publish = waker(&addresses.event_recorder, || EventRecorderMessage::Publish);
        Self {
            plans: Slot::new(waker(&addresses.emitter, || EmitterMessage::PlanReady)),
            changed: DirtySet::new(waker(&addresses.emitter, || EmitterMessage::ViewsChanged)),
            settled: DirtySet::new(waker(&addresses.emitter, || EmitterMessage::StatusSettled)),
            dirty: DirtySet::new(waker(&addresses.variants, || VariantsMessage::KeysDirty)),
            autoscalers: DirtySet::new(waker(&addresses.pod_autoscalers, || {
                PodAutoscalersMessage::KeysDirty
            })),
            autoscaler_writes: RetryQueue::new(waker(&addresses.autoscaler_writer, || {
                AutoscalerWriterMessage::Work
            })),
            named: DirtySet::new(waker(&addresses.scale_reader, || {
                ScaleReaderMessage::TargetNamed
            })),
            config: DirtySet::new(waker(&addresses.config, || ConfigMessage::SourceChanged)),
            statuses: RetryQueue::new(move || {
                status_writer();
                for begin in &rounds {
                    begin();
                }
            }),
            events: Events::new(series.process.events_dropped.clone(), publish),
            addresses,
        }
    }

    /// Has the optimizer decide before the next tick. An absent one decides on everything when it is back.
    pub(crate) fn want_early_cycle(&self) {
        let optimizer = &self.addresses.optimizer;
        optimizer.hint(OptimizerMessage::EarlyCycleWanted);
    }
}
