//! From the pod templates of a scale target to one replica of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::accelerator::Placement;
use super::capacity::ServingRole;
use super::engine_args::{ContainerCommand, essence};
use super::gpu::{GpuCount, ReplicaClaim};
use super::key::ObjectLabels;
use super::units::{Gpus, Replicas};
use super::workload::ReplicaTemplate;

/// Label of a pod template that names the part of a request that its pods serve.
pub const ROLE_LABEL: &str = "llm-d.ai/role";

/// Label that the controller of a DisaggregatedSet gives to the pods of a role.
const SET_ROLE_LABEL: &str = "disaggregatedset.x-k8s.io/role";

const GPU_RESOURCES: [&str; 6] = [
    "nvidia.com/gpu",
    "amd.com/gpu",
    "intel.com/gpu",
    "habana.ai/gaudi",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
];

/// Whether a resource is whole GPUs.
pub fn is_gpu(resource: &str) -> bool {
    GPU_RESOURCES.contains(&resource)
}

/// What is read of a pod template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodTemplate {
    /// The value of [`ROLE_LABEL`].
    pub role: Option<Arc<str>>,
    /// Its labels.
    pub labels: Arc<ObjectLabels>,
    /// Its containers, without init containers.
    pub containers: Vec<TemplateContainer>,
    /// Its resource claims (`spec.resourceClaims`), each by name and the template that it is made from.
    pub claims: Vec<(Arc<str>, Option<Arc<str>>)>,
    /// Devices that its containers request by the resource of a device class
    /// (`deviceclass.resource.kubernetes.io/CLASS`). Kubernetes makes a claim of them.
    pub devices: BTreeMap<Arc<str>, u32>,
    /// Where its pods may run.
    pub placement: Placement,
}

/// What is read of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateContainer {
    /// Image, command, arguments, and the variables that the argument parser reads.
    pub command: ContainerCommand,
    /// GPUs by resource: what it requests, or else its limit, which Kubernetes makes its request.
    pub gpus: BTreeMap<Arc<str>, u32>,
}

/// The pods of one replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaPods {
    /// The first pod of a group, where it has a template of its own.
    pub leader: Option<PodTemplate>,
    /// The other pods; the only one where there is no group.
    pub worker: PodTemplate,
    /// Pods of a replica.
    pub size: Replicas,
}

impl ReplicaPods {
    /// A replica that is one pod.
    pub fn pod(template: PodTemplate) -> Self {
        Self { leader: None, worker: template, size: Replicas::ONE }
    }

    fn serving(&self) -> &PodTemplate {
        self.leader.as_ref().unwrap_or(&self.worker)
    }

    /// GPUs of all pods together. A leader without a template of its own is made from the workers'.
    fn gpus(&self) -> BTreeMap<Arc<str>, Gpus> {
        let size = self.size.max(Replicas::ONE);
        let mut gpus = sum(self.serving());
        for (resource, count) in sum(&self.worker) {
            let further = count.times(size.minus_one());
            let entry = gpus.entry(resource).or_default();
            *entry = entry.plus(further);
        }
        gpus.retain(|_, count| *count > Gpus::ZERO);
        gpus
    }

    fn claims(&self) -> Arc<[ReplicaClaim]> {
        let further = self.size.max(Replicas::ONE).minus_one();
        let mut sums: BTreeMap<_, u32> = BTreeMap::new();
        for (template, pods) in [(self.serving(), Replicas::ONE), (&self.worker, further)] {
            let claims = template.claims.iter();
            let claims = claims.map(|(name, template)| ((name, template.as_ref()), 1));
            let devices = template.devices.iter();
            let devices = devices.map(|(resource, count)| ((resource, Some(resource)), *count));
            for (claim, each) in claims.chain(devices) {
                let sum = sums.entry(claim).or_default();
                *sum = sum.saturating_add(pods.0.saturating_mul(each));
            }
        }
        let claims = sums.into_iter().filter(|(_, pods)| *pods > 0);
        let claims = claims.map(|((name, template), pods)| ReplicaClaim {
            name: Arc::clone(name),
            template: template.cloned(),
            pods: Replicas(pods),
        });
        claims.collect()
    }

    /// Where the pod that answers requests may run.
    pub fn placement(&self) -> &Placement {
        &self.serving().placement
    }

    /// Labels of the pod that answers requests.
    pub fn labels(&self) -> &Arc<ObjectLabels> {
        &self.serving().labels
    }

    /// One replica.
    pub fn replica(&self) -> ReplicaTemplate {
        let serving = self.serving();
        ReplicaTemplate {
            role: role(serving.role.as_deref()),
            gpus: self.gpus(),
            gpu_count: GpuCount::of(self.claims()),
            containers: essence(&engines(&serving.containers)).into(),
            service_class: None,
        }
    }
}

/// The part of a request that a pod serves, by its own labels.
pub fn role_of(labels: &ObjectLabels) -> ServingRole {
    let named = [ROLE_LABEL, SET_ROLE_LABEL].map(|name| labels.get(name));
    role(named.into_iter().flatten().next().map(|role| &**role))
}

fn role(label: Option<&str>) -> ServingRole {
    match label {
        Some("prefill") => ServingRole::Prefill,
        Some("decode") => ServingRole::Decode,
        Some(_) | None => ServingRole::Both,
    }
}

fn sum(template: &PodTemplate) -> BTreeMap<Arc<str>, Gpus> {
    let mut gpus: BTreeMap<Arc<str>, Gpus> = BTreeMap::new();
    for (resource, count) in template.containers.iter().flat_map(|one| &one.gpus) {
        let entry = gpus.entry(Arc::clone(resource)).or_default();
        *entry = entry.plus(Gpus(*count));
    }
    gpus
}

/// The containers that serve: those with GPUs, or all where none has any, as on processors.
fn engines(containers: &[TemplateContainer]) -> Vec<ContainerCommand> {
    let holds = |container: &TemplateContainer| container.gpus.values().any(|count| *count > 0);
    let some_do = containers.iter().any(holds);
    containers
        .iter()
        .filter(|container| !some_do || holds(container))
        .map(|container| container.command.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine_args::parse;

    fn container(args: &[&str], gpus: u32) -> TemplateContainer {
        TemplateContainer {
            command: ContainerCommand {
                args: args.iter().map(|word| Arc::from(*word)).collect(),
                ..ContainerCommand::default()
            },
            gpus: BTreeMap::from([(Arc::from("nvidia.com/gpu"), gpus)]),
        }
    }

    #[test]
    fn a_sidecar_says_nothing_about_the_engine_unless_no_container_has_gpus() {
        let sequences = |sidecar: u32, engine: u32| {
            let template = PodTemplate {
                containers: vec![
                    container(&["--max-num-seqs=8"], engine),
                    container(&["--max-num-seqs=9"], sidecar),
                ],
                ..PodTemplate::default()
            };
            let replica = ReplicaPods::pod(template).replica();
            parse(&replica.containers).args.max_num_seqs
        };
        assert_eq!(sequences(0, 0), 9);
        assert_eq!(sequences(0, 1), 8);
    }

    #[test]
    fn a_group_speaks_through_its_leader() {
        let named = |role: &str| PodTemplate { role: Some(role.into()), ..PodTemplate::default() };
        let shape = |leader| ReplicaPods { leader, worker: named("decode"), size: Replicas(2) };
        assert_eq!(shape(None).replica().role, ServingRole::Decode);
        assert_eq!(shape(Some(named("prefill"))).replica().role, ServingRole::Prefill);
        assert_eq!(shape(Some(named("x"))).replica().role, ServingRole::Both);
    }
}
