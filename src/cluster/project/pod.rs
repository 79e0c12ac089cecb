//! `Pod`: to whom it belongs, and whether it serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::gpu::requests;
use super::pod_template::{StartedContainer, claims, device_sums};
use super::{
    Interner, Projected, annotation, controller, lifecycle, name, namespace_of, uid, wall_time,
};
use crate::api::pod::{SlimPod, SlimPodSpec};
use crate::api::{CHOSEN_BY_ANNOTATION, DELETION_COST_ANNOTATION};
use crate::policy::deletion::CHOSEN_COST;
use crate::policy::object::{DeletionCost, Drain, Lifecycle, PodObject};
use crate::policy::pod_template::{PodTemplate, ReplicaPods, TemplateContainer};
use crate::policy::snapshot::Readiness;
use crate::policy::workload::ReplicaTemplate;

/// Annotation that AIBrix puts on a pod before it deletes it.
const DRAINING_ANNOTATION: &str = "aibrix.ai/draining";

/// A cost is ours as long as it is the number that we write.
fn deletion_cost(metadata: &ObjectMeta, texts: &mut Interner) -> DeletionCost {
    let by = annotation(metadata, CHOSEN_BY_ANNOTATION);
    match (annotation(metadata, DELETION_COST_ANNOTATION), by) {
        (None, _) => DeletionCost::None,
        (Some(cost), Some(by)) if cost.parse() == Ok(CHOSEN_COST) => {
            DeletionCost::Chosen(texts.intern(by))
        }
        (Some(_), _) => DeletionCost::Foreign,
    }
}

/// A replica that is this pod; none for most pods, which hold no devices.
fn replica(spec: &SlimPodSpec, texts: &mut Interner) -> Option<Arc<ReplicaTemplate>> {
    let resources = || spec.containers.iter().map(|container| &container.resources);
    let gpus: Vec<_> = resources().map(|resources| requests(resources, texts)).collect();
    let template = PodTemplate {
        claims: claims(&spec.resource_claims, texts),
        devices: device_sums(resources(), texts),
        ..PodTemplate::default()
    };
    if template == PodTemplate::default() && gpus.iter().all(BTreeMap::is_empty) {
        return None;
    }
    let containers = spec.containers.iter().zip(gpus).map(|(container, gpus)| {
        let started = StartedContainer {
            image: container.image.as_deref(),
            command: &container.command,
            args: &container.args,
            env: &container.env,
        };
        // Most of its words are left out below, and pods that are no engines may each have others.
        let command = started.command_line(&mut Interner::default());
        TemplateContainer { command, gpus }
    });
    let template = PodTemplate { containers: containers.collect(), ..template };
    Some(Arc::new(ReplicaPods::pod(template).replica()))
}

impl Projected for SlimPod {
    type View = PodObject;

    fn project(self, texts: &mut Interner) -> PodObject {
        let ready = self
            .status
            .conditions
            .iter()
            .find(|condition| condition.kind == "Ready" && condition.status == "True");
        PodObject {
            namespace: namespace_of(&self.metadata, texts),
            name: name(&self.metadata),
            uid: uid(&self.metadata),
            controller: controller(&self.metadata, texts),
            readiness: match ready {
                Some(_) => Readiness::Ready,
                None if !self.spec.scheduling_gates.is_empty() => Readiness::Gated,
                None => Readiness::NotReady,
            },
            ready_since: ready
                .and_then(|condition| condition.last_transition_time.as_ref())
                .map(|time| wall_time(Some(time))),
            node: (self.spec.node_name.as_ref()).map(|node| texts.intern(node)),
            created: wall_time(self.metadata.creation_timestamp.as_ref()),
            labels: match &self.metadata.labels {
                Some(labels) => texts.labels(labels),
                None => Arc::default(),
            },
            address: self.status.pod_ip.and_then(|address| address.parse().ok()),
            lifecycle: match self.status.phase.as_deref() {
                Some("Failed" | "Succeeded") => Lifecycle::Ended,
                _ => lifecycle(&self.metadata),
            },
            drain: match annotation(&self.metadata, DRAINING_ANNOTATION) {
                Some("true") => Drain::Draining,
                _ => Drain::None,
            },
            deletion_cost: deletion_cost(&self.metadata, texts),
            replica: replica(&self.spec, texts),
        }
    }
}
