//! The pod template of a workload: what its pods ask for and how their containers are started.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, EnvVar, NodeAffinity, NodeSelectorTerm, PodResourceClaim, PodSpec, PodTemplateSpec,
    ResourceRequirements,
};

use super::Interner;
use super::gpu::{devices, requests};
use crate::policy::accelerator::{NodeExpression, Placement, names_accelerator};
use crate::policy::engine_args::{ContainerCommand, expand, shell_variables};
use crate::policy::pod_template::{PodTemplate, ROLE_LABEL, TemplateContainer};

/// The variable that the argument parser always reads. Of the others, which may hold secrets, only those
/// are copied that the text of a shell uses.
const ENGINE_GENERATION: &str = "VLLM_USE_V1";

pub(super) fn project(template: &PodTemplateSpec, texts: &mut Interner) -> PodTemplate {
    let labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    let role = labels.and_then(|labels| labels.get(ROLE_LABEL));
    let spec = template.spec.as_ref();
    PodTemplate {
        role: role.map(|role| texts.intern(role)),
        labels: labels.map(|labels| texts.labels(labels)).unwrap_or_default(),
        containers: spec
            .into_iter()
            .flat_map(|spec| &spec.containers)
            .map(|one| container(one, texts))
            .collect(),
        claims: claims(
            spec.into_iter().flat_map(|spec| spec.resource_claims.iter().flatten()),
            texts,
        ),
        devices: device_sums(
            spec.into_iter()
                .flat_map(|spec| &spec.containers)
                .filter_map(|container| container.resources.as_ref()),
            texts,
        ),
        placement: spec.map(|spec| placement(spec, texts)).unwrap_or_default(),
    }
}

/// Resource claims, each by name and the template that it is made from.
pub(super) fn claims<'a>(
    claims: impl IntoIterator<Item = &'a PodResourceClaim>,
    texts: &mut Interner,
) -> Vec<(Arc<str>, Option<Arc<str>>)> {
    let named = claims.into_iter().map(|claim| {
        let template = claim.resource_claim_template_name.as_ref();
        let template = template.map(|name| texts.intern(name));
        (texts.intern(&claim.name), template)
    });
    named.collect()
}

/// Devices of all containers, by the resource of their class.
pub(super) fn device_sums<'a>(
    resources: impl IntoIterator<Item = &'a ResourceRequirements>,
    texts: &mut Interner,
) -> BTreeMap<Arc<str>, u32> {
    let resources = resources.into_iter();
    let mut sums: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    for (resource, count) in resources.flat_map(|resources| devices(resources, texts)) {
        let sum = sums.entry(resource).or_default();
        *sum = sum.saturating_add(count);
    }
    sums
}

fn container(container: &Container, texts: &mut Interner) -> TemplateContainer {
    let started = StartedContainer {
        image: container.image.as_deref(),
        command: container.command.as_deref().unwrap_or_default(),
        args: container.args.as_deref().unwrap_or_default(),
        env: container.env.as_deref().unwrap_or_default(),
    };
    TemplateContainer {
        command: started.command_line(texts),
        gpus: container
            .resources
            .as_ref()
            .map(|resources| requests(resources, texts))
            .unwrap_or_default(),
    }
}

/// How a container is started.
pub(super) struct StartedContainer<'a> {
    pub(super) image: Option<&'a str>,
    pub(super) command: &'a [String],
    pub(super) args: &'a [String],
    pub(super) env: &'a [EnvVar],
}

impl StartedContainer<'_> {
    /// Its words, with the values of the variables that they name.
    pub(super) fn command_line(&self, texts: &mut Interner) -> ContainerCommand {
        let values = values(self.env);
        let mut words = |words: &[String]| -> Vec<Arc<str>> {
            let value = |name: &str| values.get(name)?.as_deref();
            words.iter().map(|word| texts.intern(&expand(word, value))).collect()
        };
        let (command, args) = (words(self.command), words(self.args));
        let line: Vec<&str> = command.iter().chain(&args).map(|word| &**word).collect();
        let wanted = shell_variables(&line);
        let env = (values.iter())
            .filter(|(name, _)| **name == ENGINE_GENERATION || wanted.contains(*name))
            .filter_map(|(name, value)| Some((Arc::from(*name), texts.intern(value.as_ref()?))))
            .collect();
        let image = texts.intern(self.image.unwrap_or_default());
        ContainerCommand { env, image, command, args }
    }
}

/// The variables of a container; `None` where the value is not written here. As for the kubelet, a value
/// may name variables that were defined before it.
fn values(variables: &[EnvVar]) -> BTreeMap<&str, Option<String>> {
    let mut values: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for variable in variables {
        let before = |name: &str| values.get(name)?.as_deref();
        let value = variable.value.as_ref();
        let value = value.map(|written| expand(written, before).into_owned());
        values.insert(&variable.name, value);
    }
    values
}

/// What of the pods' placement can name an accelerator; the rest is dropped.
fn placement(pod: &PodSpec, texts: &mut Interner) -> Placement {
    let selector: BTreeMap<Arc<str>, Arc<str>> = pod
        .node_selector
        .iter()
        .flatten()
        .filter(|(key, _)| names_accelerator(key))
        .map(|(key, value)| (texts.intern(key), texts.intern(value)))
        .collect();
    let affinity = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    Placement {
        selector,
        required: expressions(affinity.into_iter().flat_map(required), texts),
        preferred: expressions(affinity.into_iter().flat_map(preferred), texts),
    }
}

fn required(affinity: &NodeAffinity) -> impl Iterator<Item = &NodeSelectorTerm> {
    affinity
        .required_during_scheduling_ignored_during_execution
        .iter()
        .flat_map(|selector| &selector.node_selector_terms)
}

fn preferred(affinity: &NodeAffinity) -> impl Iterator<Item = &NodeSelectorTerm> {
    affinity
        .preferred_during_scheduling_ignored_during_execution
        .iter()
        .flatten()
        .map(|weighted| &weighted.preference)
}

fn expressions<'a>(
    terms: impl Iterator<Item = &'a NodeSelectorTerm>,
    texts: &mut Interner,
) -> Vec<NodeExpression> {
    terms
        .flat_map(|term| term.match_expressions.iter().flatten())
        .filter(|expression| names_accelerator(&expression.key))
        .map(|expression| NodeExpression {
            key: texts.intern(&expression.key),
            operator: texts.intern(&expression.operator),
            values: expression.values.iter().flatten().map(|value| texts.intern(value)).collect(),
        })
        .collect()
}
