//! Tables TGT, ACT and RCL: scale targets, series, and what becomes of an object.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::variant_state::{deployment, object, objects};
use super::vectors::{Tally, run};
use super::world::{Variant, World, at, settings};
use crate::accelerator;
use crate::accelerator::{Accelerator, NodeExpression, Placement};
use crate::bounds::{Bounds, ZeroPolicy};
use crate::capacity::ServingRole;
use crate::condition::{Condition, Hints, conditions};
use crate::key::{ModelKey, VariantKey};
use crate::learned::Learned;
use crate::object::SpecReading;
use crate::plan;
use crate::pod_template::{PodTemplate, ReplicaPods, TemplateContainer};
use crate::series::VariantGauges;
use crate::units::Replicas;
use crate::variant::{TargetLookupRef, VariantState};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetGiven {
    group: Option<GroupGiven>,
    accelerator: Option<Stated>,
    replicas: Option<Counts>,
    gpus: Option<Group>,
    roles: Option<Vec<Option<Arc<str>>>>,
}

/// GPUs of the containers of one replica's pods.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    size: Option<u32>,
    leader: Option<Vec<BTreeMap<Arc<str>, u32>>>,
    worker: Vec<BTreeMap<Arc<str>, u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupGiven {
    namespace: String,
    model: String,
    variants: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    #[serde(default)]
    selector: BTreeMap<Arc<str>, Arc<str>>,
    #[serde(default)]
    required: Vec<(Arc<str>, Arc<str>, Arc<str>)>,
    #[serde(default)]
    preferred: Vec<(Arc<str>, Arc<str>, Arc<str>)>,
    label: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    spec: Option<u32>,
    status: u32,
    ready: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetExpected {
    groups: Option<Vec<String>>,
    gpus: Option<u32>,
    roles: Option<Vec<ServingRole>>,
    accelerator: Option<String>,
    current: Option<u32>,
    pending: Option<u32>,
}

fn expressions(given: Vec<(Arc<str>, Arc<str>, Arc<str>)>) -> Vec<NodeExpression> {
    given
        .into_iter()
        .map(|(key, operator, value)| NodeExpression { key, operator, values: vec![value] })
        .collect()
}

fn check_groups(id: &str, group: &GroupGiven, expected: &[String]) {
    let variants = group.variants.iter().map(|name| {
        let mut variant = Variant::new(name).replicas(1, 0.5, 1.0);
        variant.view.key = VariantKey::new(&*group.namespace, &**name);
        variant.view.model = ModelKey::new(&*group.namespace, &*group.model);
        variant
    });
    let plan = World::of(variants).plan(at(0));
    let groups: Vec<String> = plan.models.keys().map(ToString::to_string).collect();
    assert_eq!(groups, expected, "{id}");
}

fn check_accelerator(id: &str, stated: Stated, expected: Option<String>) {
    let placement = Placement {
        selector: stated.selector,
        required: expressions(stated.required),
        preferred: expressions(stated.preferred),
    };
    let expected = expected.map_or(Accelerator::Unresolved, |name| Accelerator::Named(name.into()));
    let resolved = accelerator::resolve(&placement, stated.label.as_ref());
    assert_eq!(resolved, expected, "{id}");
}

/// Current and pending replicas as the variant's actor sees them.
fn replica_counts(counts: &Counts) -> (u32, u32) {
    let mut target = deployment(counts.status, counts.ready);
    target.spec_replicas = counts.spec.map(Replicas);
    let object = object();
    let mut state = VariantState::new(object.key.clone(), None);
    let refreshed = state.refresh(&objects(&object, TargetLookupRef::Found(&target)), at(0));
    let scale = refreshed.view.target.resolved().unwrap();
    (scale.current.0, scale.pending().0)
}

fn gpus(group: Group) -> u32 {
    let template = |containers: Vec<BTreeMap<Arc<str>, u32>>| PodTemplate {
        containers: containers
            .into_iter()
            .map(|gpus| TemplateContainer { gpus, ..TemplateContainer::default() })
            .collect(),
        ..PodTemplate::default()
    };
    let shape = ReplicaPods {
        leader: group.leader.map(template),
        worker: template(group.worker),
        size: Replicas(group.size.unwrap_or(1)),
    };
    shape.replica().gpus_per_replica().0
}

fn role(label: Option<Arc<str>>) -> ServingRole {
    let template = PodTemplate { role: label, ..PodTemplate::default() };
    ReplicaPods::pod(template).replica().role
}

#[test]
fn tgt_groups_accelerators_and_counts() {
    let tally = run(
        include_str!("../../../../tests/vectors/tgt.yaml"),
        |id, given: TargetGiven, expect: TargetExpected| {
            if let Some(group) = given.group {
                check_groups(id, &group, &expect.groups.unwrap());
            } else if let Some(stated) = given.accelerator {
                check_accelerator(id, stated, expect.accelerator);
            } else if let Some(group) = given.gpus {
                assert_eq!(gpus(group), expect.gpus.unwrap(), "{id}");
            } else if let Some(labels) = given.roles {
                let roles: Vec<ServingRole> = labels.into_iter().map(role).collect();
                assert_eq!(roles, expect.roles.unwrap(), "{id}");
            } else {
                let counted = replica_counts(&given.replicas.unwrap());
                assert_eq!(counted, (expect.current.unwrap(), expect.pending.unwrap()), "{id}");
            }
        },
    );
    assert_eq!(tally, Tally::of(19, 1, 2));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Emission {
    current: u32,
    desired: u32,
    instance: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Emitted {
    ratio: Option<f64>,
    labels: Option<BTreeMap<String, String>>,
    metrics_available: Option<(String, String)>,
}

#[test]
fn act_series_of_a_decision() {
    let tally = run(
        include_str!("../../../../tests/vectors/act.yaml"),
        |id, given: Emission, expect: Emitted| {
            let mut variant = Variant::new("va1")
                .bounds(Some(0), None)
                .desired(Some(given.desired))
                .replicas(given.current, 0.65, 1.0);
            variant.view.key = VariantKey::new("ns1", "va1");
            let world = World::of([variant]);
            let plan = world.plan(at(0));
            let decision = &plan.decisions[&VariantKey::new("ns1", "va1")];
            let series = VariantGauges::of(decision).unwrap();
            assert_eq!(series.desired, Replicas(given.desired), "{id}");
            assert_eq!(series.current, Some(Replicas(given.current)), "{id}");
            if expect.ratio.is_some() {
                assert_eq!(series.ratio(), expect.ratio, "{id}");
            }
            if let Some(expected) = expect.labels {
                let labels = series.labels;
                let instance = given.instance.as_deref();
                let pairs = [
                    ("variant_name", Some(labels.variant_name)),
                    ("namespace", Some(labels.namespace)),
                    ("accelerator_type", Some(labels.accelerator_type)),
                    ("controller_instance", instance),
                ];
                let pairs = pairs.into_iter();
                let labels: BTreeMap<String, String> = pairs
                    .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
                    .collect();
                assert_eq!(labels, expected, "{id}");
            }
            if let Some(expected) = expect.metrics_available {
                let [_, metrics, ..] =
                    conditions(&world.variants[0].view, Some(decision), Hints::default());
                assert_eq!(said(&metrics), expected, "{id}");
            }
        },
    );
    assert_eq!(tally, Tally::of(5, 0, 4));
}

fn said(condition: &Condition) -> (String, String) {
    (condition.status.as_str().to_owned(), condition.reason.as_str().to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    target_appears: bool,
    decided: Option<u32>,
    min: Option<i32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Judged {
    target_resolved: Option<(String, String)>,
    message: Option<String>,
    metrics_available: Option<(String, String)>,
    published: Option<u32>,
    cost: Option<String>,
    min: Option<u32>,
}

#[test]
fn rcl_an_object_and_its_conditions() {
    let tally = run(
        include_str!("../../../../tests/vectors/rcl.yaml"),
        |id, given: Written, expect: Judged| {
            let mut object = object();
            if let SpecReading::Read(spec) = &mut object.spec {
                spec.min = given.min;
            }
            let replicas = given.decided.unwrap_or(1);
            let target = deployment(replicas, replicas);
            let mut state = VariantState::new(object.key.clone(), None);
            if given.target_appears {
                let view = state.refresh(&objects(&object, TargetLookupRef::Missing), at(0)).view;
                let [resolved, ..] = conditions(&view, None, Hints::default());
                assert_ne!(resolved.status.as_str(), "True", "{id}: before it appears");
            }
            let view =
                state.refresh(&objects(&object, TargetLookupRef::Found(&target)), at(1)).view;
            let mut variant = Variant::new("va").replicas(replicas, 0.5, 1.0);
            variant.view = (*view).clone();
            let snapshot = World::of([variant]).snapshot(at(1));
            let plan = plan(&snapshot, &Learned::default(), &settings(), 1, at(1));
            let decision = &plan.decisions[&object.key];
            let [resolved, metrics, ..] = conditions(&view, Some(decision), Hints::default());
            if let Some(expected) = expect.target_resolved {
                assert_eq!(said(&resolved), expected, "{id}");
            }
            if let Some(expected) = expect.message {
                assert_eq!(resolved.message, expected, "{id}");
            }
            if let Some(expected) = expect.metrics_available {
                assert_eq!(said(&metrics), expected, "{id}");
                assert_eq!(view.accelerator, Accelerator::Unresolved, "{id}");
            }
            if let Some(expected) = expect.published {
                assert_eq!(decision.target, Some(Replicas(expected)), "{id}");
            }
            if let Some(expected) = expect.cost {
                assert_eq!(view.cost.to_string(), expected, "{id}");
            }
            if let Some(expected) = expect.min {
                let bounds = Bounds::effective(&view.bounds, ZeroPolicy::Disabled);
                assert_eq!((bounds.min, bounds.max), (Replicas(expected), None), "{id}");
                let relaxed = Bounds::effective(&view.bounds, ZeroPolicy::Enabled);
                assert_eq!(relaxed.min, Replicas::ZERO, "{id}");
            }
        },
    );
    assert_eq!(tally, Tally::of(3, 2, 4));
}
