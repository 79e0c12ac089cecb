//! `Deployment`, a scale target.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{NodeAffinity, NodeSelectorTerm, PodSpec};

use super::{Interner, Projected, lifecycle, name, namespace_of, shared_key, uid};
use crate::cluster::mirror::ObjectKey;
use crate::policy::accelerator::names_accelerator;
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::object::{NodeExpression, Placement, TargetObject};
use crate::policy::units::Replicas;

impl Projected for Deployment {
    type View = TargetObject;

    fn project(self, texts: &mut Interner) -> TargetObject {
        let namespace = namespace_of(&self.metadata, texts);
        let status = self.status.unwrap_or_default();
        let spec = self.spec.as_ref();
        let count = |count: Option<i32>| count.map(Replicas::from_count).unwrap_or_default();
        TargetObject {
            key: TargetKey::new(namespace, TargetKind::Deployment, name(&self.metadata)),
            uid: uid(&self.metadata),
            lifecycle: lifecycle(&self.metadata),
            generation: self.metadata.generation.unwrap_or_default(),
            observed_generation: status.observed_generation.unwrap_or_default(),
            spec_replicas: spec
                .and_then(|spec| spec.replicas)
                .map(Replicas::from_count),
            status_replicas: count(status.replicas),
            ready_replicas: count(status.ready_replicas),
            placement: spec
                .and_then(|spec| spec.template.spec.as_ref())
                .map(|pod| placement(pod, texts))
                .unwrap_or_default(),
        }
    }

    fn key(view: &TargetObject) -> ObjectKey {
        shared_key(&view.key.namespace, &view.key.name)
    }
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
    let affinity = pod
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
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
            values: expression
                .values
                .iter()
                .flatten()
                .map(|value| texts.intern(value))
                .collect(),
        })
        .collect()
}
