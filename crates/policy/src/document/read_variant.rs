//! Reading the variants of a document.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::SnapshotDocument;
use super::read::Reader;
use super::scalar::Span;
use super::variant::{ContainerDocument, TargetDocument, TargetState, VariantDocument};
use crate::accelerator::Accelerator;
use crate::engine_args::ContainerCommand;
use crate::gpu::{GpuCount, ReplicaClaim};
use crate::key::{ModelKey, TargetKey, TargetKind, VariantKey};
use crate::object::TargetReference;
use crate::scaler::Scalers;
use crate::snapshot::{
    GenerationState, PodView, Readiness, ReplicaTemplate, ResolvedTarget, RouterPresence,
    TargetPast, TargetView, VariantPolicy, VariantView,
};
use crate::units::{Cost, Gpus, Replicas};
use wva_base::moment::Since;
use wva_base::names::{check_namespace, check_object_name};

impl Reader {
    /// Reads every variant. One that is not sound is read as far as it goes; its faults are noted.
    pub(super) fn variants(&mut self, document: &SnapshotDocument) -> Vec<VariantView> {
        let mut keys = BTreeSet::new();
        let mut views = Vec::with_capacity(document.variants.len());
        for (index, variant) in document.variants.iter().enumerate() {
            let path = format!("variants[{index}]");
            let view = self.variant(&path, variant);
            if !keys.insert(view.key.clone()) {
                self.fault(
                    path,
                    format!("{} stands twice; give each variant its own name", view.key),
                );
            }
            views.push(view);
        }
        self.check_owners(&views);
        views
    }

    fn variant(&mut self, path: &str, variant: &VariantDocument) -> VariantView {
        self.check_names(path, variant);
        self.check_counts(path, variant);
        self.check_policy(path, &variant.policy);
        self.check_target(path, &variant.target);
        self.check_pods(path, &variant.pods);
        let mut pods: Vec<PodView> = variant
            .pods
            .iter()
            .map(|pod| PodView {
                name: Arc::clone(&pod.name),
                readiness: match (pod.gated, pod.ready) {
                    (true, _) => Readiness::Gated,
                    (false, true) => Readiness::Ready,
                    (false, false) => Readiness::NotReady,
                },
                created: self.now.wall.earlier(pod.age.unwrap_or_default().0),
                ready_since: (pod.ready_for).map(|span| self.now.wall.earlier(span.0)),
                node: pod.node.clone(),
            })
            .collect();
        pods.sort();
        let since =
            |span: Option<Span>| span.map(|span| Since { first_seen: self.now, before: span.0 });
        let (pending_since, unapplied_since) =
            (since(variant.pending_for), since(variant.unapplied_for));
        VariantView {
            key: VariantKey::new(Arc::clone(&variant.namespace), Arc::clone(&variant.name)),
            uid: Arc::default(),
            generation: variant.generation.unwrap_or_default(),
            model: ModelKey::new(Arc::clone(&variant.namespace), Arc::clone(&variant.model)),
            cost: variant.cost.map_or(Cost::DEFAULT, |cost| cost.0),
            accelerator: variant
                .accelerator
                .clone()
                .map_or(Accelerator::Unresolved, Accelerator::Named),
            bounds: variant.bounds,
            policy: variant.policy.clone(),
            desired: variant.desired.map(Replicas),
            target: self.target(&format!("{path}.target"), variant),
            pods: pods.into(),
            pending_since,
            unapplied_since,
            notes: variant.notes.clone().into(),
            scalers: Scalers::Unknown,
            router: if variant.routed { RouterPresence::Possible } else { RouterPresence::Absent },
            template: ReplicaTemplate {
                role: variant.role,
                gpus: variant
                    .gpus
                    .iter()
                    .map(|(resource, count)| (Arc::clone(resource), Gpus(*count)))
                    .collect(),
                gpu_count: if variant.gpus_unknown {
                    GpuCount::Unknown
                } else {
                    GpuCount::of(variant.resource_claims.iter().map(claim).collect())
                },
                containers: variant.containers.iter().map(command).collect(),
                service_class: variant.service_class.clone(),
            },
        }
    }

    fn check_names(&mut self, path: &str, variant: &VariantDocument) {
        let target = variant.target.name.as_ref();
        let checked = [
            ("namespace", Some(check_namespace(&variant.namespace))),
            ("name", Some(check_object_name(&variant.name))),
            ("target.name", target.map(|name| check_object_name(name))),
        ];
        for (field, outcome) in checked {
            if let Some(Err(error)) = outcome {
                self.fault(format!("{path}.{field}"), format!("{error}; write a valid name"));
            }
        }
        if variant.model.is_empty() {
            self.fault(format!("{path}.model"), "it is empty; write a name");
        }
        for resource in variant.gpus.keys().filter(|resource| !resource.contains('/')) {
            self.fault(
                format!("{path}.gpus.{resource}"),
                "it is no resource; write one like nvidia.com/gpu",
            );
        }
    }

    fn check_counts(&mut self, path: &str, variant: &VariantDocument) {
        let VariantDocument { bounds, target, .. } = variant;
        let object = format!("{}/{}", variant.namespace, variant.name);
        for (field, count) in [
            ("bounds.min", bounds.min.map(|min| min.0)),
            ("bounds.max", bounds.max.map(|max| max.0)),
            ("desired", variant.desired),
            ("target.current", target.current),
            ("target.surge", target.surge),
            ("target.ready", target.ready),
        ] {
            self.check_count(format!("{path}.{field}"), count, &object);
        }
    }

    /// As a scaler may state it: with a start of no time nothing is ordered ahead.
    fn check_policy(&mut self, path: &str, policy: &VariantPolicy) {
        let (tokens, seconds) = (policy.default_output_tokens, policy.replica_start_seconds);
        for (field, stated, most) in [
            ("defaultOutputTokens", tokens, VariantPolicy::MOST_OUTPUT_TOKENS),
            ("replicaStartSeconds", seconds, VariantPolicy::MOST_START_SECONDS),
        ] {
            if let Some(number) = stated.filter(|number| !(1..=most).contains(number)) {
                self.fault(
                    format!("{path}.policy.{field}"),
                    format!("{number} is out of range; write a whole number from 1 to {most}, or leave it out"),
                );
            }
        }
    }

    /// What only some states of a target have.
    fn check_target(&mut self, path: &str, target: &TargetDocument) {
        if target.state != TargetState::Contested {
            if !target.claimants.is_empty() {
                self.fault(
                    format!("{path}.target.claimants"),
                    "only a contested target has claimants; drop them, or write state: contested",
                );
            }
            if target.owner.is_some() {
                self.fault(
                    format!("{path}.target.owner"),
                    "only a contested target has an owner; drop it, or write state: contested",
                );
            }
        }
        let is_faulty =
            matches!(target.state, TargetState::Malformed | TargetState::UnsupportedKind);
        if target.why.is_some() && !is_faulty {
            self.fault(
                format!("{path}.target.why"),
                "only an object that is malformed, or of a kind that cannot be scaled, has a reason; \
                 drop it, or write state: malformed or unsupportedKind",
            );
        }
    }

    /// One pod, and one target, belongs to one variant that scales it.
    fn check_owners(&mut self, views: &[VariantView]) {
        let mut pods = BTreeMap::new();
        let mut targets = BTreeMap::new();
        for (index, view) in views.iter().enumerate() {
            let Some(target) = view.target.resolved() else {
                continue;
            };
            if let Some(first) = targets.insert(&target.key, index) {
                self.fault(
                    format!("variants[{index}].target"),
                    format!(
                        "variants[{first}] scales it, too; give each its own, or write state: \
                         contested in both"
                    ),
                );
            }
            for pod in &*view.pods {
                let owner = (&view.key.namespace, &pod.name);
                if let Some(first) = pods.insert(owner, index).filter(|first| *first != index) {
                    self.fault(
                        format!("variants[{index}].pods"),
                        format!(
                            "{} is a pod of variants[{first}], too; leave it in one of them",
                            pod.name
                        ),
                    );
                }
            }
        }
    }

    fn resolved(&mut self, path: &str, key: TargetKey, variant: &VariantDocument) -> TargetView {
        let document = &variant.target;
        let unready = variant.pods.iter().filter(|pod| !pod.ready).count();
        let unready = u32::try_from(unready).unwrap_or(u32::MAX);
        let Some(current) = document.current else {
            self.fault(path, "current is missing; write the replicas that exist");
            return TargetView::Unknown { target: key };
        };
        let surge = document.surge.unwrap_or(0);
        if surge > current {
            self.fault(
                path,
                format!(
                    "surge is {surge} of {current} replicas that exist; write at most {current}"
                ),
            );
        }
        TargetView::Resolved(ResolvedTarget {
            key,
            current: Replicas(current),
            surge: Replicas(surge),
            ready: Replicas(document.ready.unwrap_or_else(|| current.saturating_sub(unready))),
            generation: if document.lagging {
                GenerationState::Lagging
            } else {
                GenerationState::Observed
            },
        })
    }

    fn target(&mut self, path: &str, variant: &VariantDocument) -> TargetView {
        let document = &variant.target;
        let state = document.state;
        let name = document.name.as_ref().unwrap_or(&variant.name);
        let kind = document.kind.clone().unwrap_or_else(|| Arc::from("Deployment"));
        let why = || document.why.clone().unwrap_or_else(|| Arc::from("not stated"));
        if state == TargetState::UnsupportedKind {
            return TargetView::UnsupportedKind { kind, name: Arc::clone(name), why: why() };
        }
        let reference = TargetReference {
            api_version: document.api_version.clone(),
            kind: Arc::clone(&kind),
            name: Arc::clone(name),
        };
        let target = reference.resolve(&variant.namespace).unwrap_or_else(|| {
            let (field, why) = unresolved(&reference);
            self.fault(format!("{path}.{field}"), why);
            TargetKey::new(Arc::clone(&variant.namespace), TargetKind::Deployment, Arc::clone(name))
        });
        let counts = [document.current, document.surge, document.ready];
        if state != TargetState::Resolved && counts.iter().any(Option::is_some) {
            self.fault(path, "only a resolved target has replicas; drop current, surge and ready");
        }
        match state {
            TargetState::Resolved => self.resolved(path, target, variant),
            TargetState::NotFound => TargetView::NotFound { target, past: TargetPast::Existed },
            TargetState::Unknown | TargetState::UnsupportedKind => TargetView::Unknown { target },
            TargetState::Contested => TargetView::Contested {
                target,
                claimants: self.claimants(path, &document.claimants),
                owner: document.owner.clone(),
            },
            TargetState::Malformed => TargetView::Malformed { why: why() },
        }
    }

    fn claimants(&mut self, path: &str, names: &[String]) -> Arc<[VariantKey]> {
        let mut claimants = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            match VariantKey::try_from(name.clone()) {
                Ok(key) => claimants.push(key),
                Err(error) => self.fault(format!("{path}.claimants[{index}]"), error.to_string()),
            }
        }
        claimants.sort();
        claimants.into()
    }
}

fn claim(name: &Arc<str>) -> ReplicaClaim {
    ReplicaClaim { name: Arc::clone(name), template: None, pods: Replicas::ONE }
}

fn command(container: &ContainerDocument) -> ContainerCommand {
    ContainerCommand {
        image: Arc::clone(&container.image),
        command: container.command.clone(),
        args: container.args.clone(),
        env: container.env.clone(),
    }
}

/// The field that keeps a reference from naming a target, and what to write instead.
fn unresolved(reference: &TargetReference) -> (&'static str, String) {
    let TargetReference { api_version, kind, .. } = reference;
    match api_version.as_deref().filter(|text| !text.is_empty()) {
        None => (
            "kind",
            format!(
                "{kind:?} is not known by itself; write Deployment, StatefulSet or LeaderWorkerSet, \
                 or apiVersion as well, or state: unsupportedKind"
            ),
        ),
        Some(_) if reference.group_version().is_some() => {
            ("kind", format!("{kind:?} is no kind; write letters and digits, like Rollout"))
        }
        Some(text) => (
            "apiVersion",
            format!(
                "{text:?} is no API group and version; write them with one slash, like \
                 argoproj.io/v1alpha1, or the version alone for the core, like v1"
            ),
        ),
    }
}
