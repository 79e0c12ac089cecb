//! Which field of a StormService holds the count, and which pods are measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::super::amounts::PodsPerReplica;
use super::super::check::{AutoscalerPolicy, ScaledObject};
use super::super::decide::AutoscalerView;
use super::super::demand::SourceReading;
use super::super::hpa::GeneratedHpa;
use super::super::storm_service::{ReplicaField, StormServiceObject, StormServiceRole, reporting};
use super::super::tuning::StormServiceMode::{self, Pooled, Replica};
use super::{Loop, codes, partly_read, policy, signal, view};
use crate::key::GroupKind;
use crate::params::LabelSelector;
use crate::units::Replicas;

fn target(role: Option<&str>) -> ScaledObject {
    ScaledObject {
        api_version: "orchestration.aibrix.ai/v1alpha1".into(),
        kind: "StormService".into(),
        name: "ss-1".into(),
        role: role.map(Arc::from),
    }
}

fn role(name: &str, replicas: Option<u32>, pod_group_size: Option<u32>) -> StormServiceRole {
    StormServiceRole { name: name.into(), replicas: replicas.map(Replicas), pod_group_size }
}

fn service(replicas: Option<u32>, mode: Option<StormServiceMode>) -> StormServiceObject {
    StormServiceObject {
        replicas: replicas.map(Replicas),
        mode,
        roles: vec![
            role("prefill", Some(3), Some(2)),
            role("decode", Some(5), None),
            role("router", None, Some(1)),
        ],
    }
}

fn of_role(index: usize, name: &str) -> ReplicaField {
    ReplicaField::Role { index, name: name.into() }
}

#[test]
fn the_mode_of_the_service_counts_before_the_annotation() {
    let whole = || (ReplicaField::Service, Replicas(7));
    let decode = || (of_role(1, "decode"), Replicas(5));
    for (mode, annotated, role, expected) in [
        (None, Pooled, None, whole()),
        (None, Replica, None, whole()),
        (Some(Pooled), Pooled, None, whole()),
        (None, Pooled, Some("decode"), decode()),
        (None, Replica, Some("decode"), whole()),
        (Some(Pooled), Replica, Some("decode"), decode()),
        (Some(Replica), Pooled, Some("decode"), whole()),
        (Some(Replica), Pooled, Some(""), whole()),
        (None, Replica, Some("unknown"), whole()),
    ] {
        let service = service(Some(7), mode);
        let found = service.resolve(&target(role), annotated);
        assert_eq!(found, Ok(expected), "{mode:?} {annotated:?} {role:?}");
    }
}

#[test]
fn an_annotation_of_another_mode_than_that_of_the_service_is_named() {
    let spec = "scaleTargetRef: {apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: ss-1}";
    let named = |mode, annotated: Option<&str>| {
        let annotations = annotated.map(|mode| ("storm-service-mode", mode));
        let policy = policy(spec, &Vec::from_iter(annotations));
        let fault = service(Some(7), mode).overridden(&policy);
        fault.map(|fault| fault.to_string())
    };
    for (mode, annotated) in [
        (None, Some("replica")),
        (Some(Replica), Some("replica")),
        (Some(Replica), None),
        (Some(Pooled), Some("pool")),
    ] {
        assert_eq!(named(mode, annotated), None, "{mode:?} {annotated:?}");
    }
    for (mode, annotated) in [(Pooled, "replica"), (Replica, "pooled")] {
        let expected = format!(
            "annotation autoscaling.aibrix.ai/storm-service-mode: {annotated:?} has no effect: spec.mode of the \
             StormService is another; remove it"
        );
        assert_eq!(named(Some(mode), Some(annotated)), Some(expected));
    }
}

#[test]
fn a_wrong_mode_that_the_service_overrides_is_one_fault() {
    let spec = "scaleTargetRef: {apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: ss-1}";
    let both = [("storm-service-mode", "both"), ("panic-threshold", "0")];
    let mut policy = partly_read(spec, &both);
    let named = |policy: &AutoscalerPolicy| {
        let faults = policy.faults.iter().map(ToString::to_string);
        faults.collect::<Vec<_>>()
    };
    let before = named(&policy);
    let wrong = "annotation autoscaling.aibrix.ai/storm-service-mode: \"both\"";
    assert_eq!(before.len(), 2, "{before:?}");
    assert_eq!(before[1], format!("{wrong} is neither replica nor pooled; pooled is kept"));
    let overridden = service(Some(7), Some(Replica)).overridden(&policy);
    overridden.unwrap().add_to(&mut policy.faults);
    let unread =
        format!("{wrong} has no effect: spec.mode of the StormService is another; remove it");
    assert_eq!(named(&policy), [before[0].clone(), unread]);
}

/// A HorizontalPodAutoscaler writes the scale subresource, which is `spec.replicas` of the service.
#[test]
fn a_generated_object_scales_the_service_whose_count_is_read() {
    for selector in ["", "subTargetSelector: {}"] {
        let spec = format!(
            "
            scalingStrategy: HPA
            scaleTargetRef: {{apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: ss-1}}
            metricsSources: [{{metricSourceType: resource, targetMetric: cpu, targetValue: '50'}}]
            {selector}
            "
        );
        let policy = policy(&spec, &[("storm-service-mode", "replica")]);
        let mode = policy.tuning.storm_service;
        let read = service(Some(7), None).resolve(&policy.target, mode);
        assert_eq!(read, Ok((ReplicaField::Service, Replicas(7))), "{selector}");
        assert_eq!(read.unwrap().0.pointer().unwrap(), "/spec/replicas");
        let reference =
            &GeneratedHpa::of(&policy, policy.base).manifest()["spec"]["scaleTargetRef"];
        let expected = json!({
            "apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": "StormService", "name": "ss-1",
        });
        assert_eq!(*reference, expected, "{selector}");
    }
}

#[test]
fn a_count_that_is_missing_is_named_with_field_and_remedy() {
    for (replicas, role, expected) in [
        (None, None, "StormService ss-1: spec.replicas is not set; write a count there"),
        (
            Some(1),
            Some("router"),
            "StormService ss-1: spec.template.spec.roles[2].replicas (router) is not set; write a count there",
        ),
        (
            Some(1),
            Some("encode"),
            "StormService ss-1: spec.template.spec.roles has no role \"encode\"; add it, or correct spec.subTargetSelector.roleName",
        ),
        (
            Some(1),
            Some(""),
            "StormService ss-1 is pooled and spec.subTargetSelector.roleName is empty; name a role, or remove subTargetSelector",
        ),
    ] {
        let found = service(replicas, None).resolve(&target(role), Pooled);
        assert_eq!(found.unwrap_err().as_ref(), expected);
    }
}

#[test]
fn a_replica_has_the_pods_of_its_selected_roles() {
    // prefill has 3 groups of 2 pods, decode 5 pods, router no count.
    let of = |replicas, role, annotated, without: &[usize]| {
        let mut service = service(replicas, None);
        for index in without {
            service.roles.remove(*index);
        }
        service.pods_per_replica(&target(role), annotated).known()
    };
    for (replicas, role, mode, without, expected) in [
        // The whole service.
        (Some(2), None, Pooled, &[2, 0][..], Some(5)),
        (Some(2), None, Replica, &[2, 1], Some(3)),
        // Of groups the first pod is selected alone.
        (Some(2), None, Replica, &[2], Some(3)),
        (Some(2), Some(""), Replica, &[2], Some(3)),
        (Some(2), None, Replica, &[0], None),
        (Some(2), None, Replica, &[2, 1, 0], None),
        // One role of it.
        (Some(2), Some("prefill"), Replica, &[], Some(3)),
        (Some(2), Some("decode"), Replica, &[], Some(5)),
        (Some(2), Some("router"), Replica, &[], None),
        (Some(2), Some("unknown"), Replica, &[], None),
        // A replica of a role is in each RoleSet.
        (Some(2), Some("decode"), Pooled, &[], Some(2)),
        (Some(2), Some("prefill"), Pooled, &[], Some(2)),
        (None, Some("decode"), Pooled, &[], Some(1)),
        (Some(0), Some("decode"), Pooled, &[], None),
    ] {
        let found = of(replicas, role, mode, without);
        assert_eq!(found, expected, "{replicas:?} {role:?} {mode:?} {without:?}");
    }
}

/// Pods of five a replica, each with this share of a load.
fn grouped(current: u32, load: f64, per_replica: PodsPerReplica) -> AutoscalerView {
    let pods = 5 * current;
    let each = vec![load / f64::from(pods); usize::try_from(pods).unwrap()];
    AutoscalerView { pods_per_replica: per_replica, ..view(current, &[each]) }
}

#[test]
fn a_service_whose_pods_are_at_target_stays() {
    for strategy in ["APA", "KPA"] {
        let spec = format!("scalingStrategy: {strategy}\nmaxReplicas: 100");
        let run = |load: f64, start: u32, per_replica| {
            let mut run = Loop::new(policy(&spec, &[]), start);
            for _ in 0..100 {
                run.decide(&grouped(run.current, load, per_replica));
            }
            run.current
        };
        let five = PodsPerReplica(5);
        // A pod for a replica, and it grows.
        assert_eq!(run(50.0, 1, PodsPerReplica::ONE), 5, "{strategy}");
        assert_eq!(run(50.0, 1, five), 1, "{strategy}");
        assert_eq!(run(200.0, 1, five), 4, "{strategy}");
        assert_eq!(run(50.0, 4, five), 1, "{strategy}");
        // What is not known moves nothing.
        assert_eq!(run(200.0, 1, PodsPerReplica(0)), 1, "{strategy}");
        assert_eq!(run(50.0, 4, PodsPerReplica(0)), 4, "{strategy}");
    }
}

#[test]
fn a_service_without_its_pods_per_replica_grows_by_a_total_and_releases_nothing() {
    let two = "
        scalingStrategy: APA
        metricsSources:
        - {metricSourceType: custom, targetMetric: a, targetValue: '10'}
        - {metricSourceType: external, targetMetric: b, targetValue: '10'}
    ";
    let run = |total: f64| {
        let mut run = Loop::new(policy(two, &[("scale-down-cooldown-window", "0s")]), 4);
        let mut last = Vec::new();
        for _ in 0..40 {
            let mut view = grouped(4, 50.0, PodsPerReplica(0));
            view.readings.push(SourceReading::Total(signal(total)));
            let decision = run.decide(&view);
            last = codes(&decision);
        }
        (run.current, last)
    };
    assert_eq!(run(60.0).0, 6);
    let (held, codes) = run(10.0);
    assert_eq!(held, 4);
    assert!(codes.contains(&"ReleaseNeedsSource".to_owned()), "{codes:?}");
}

/// The fields are those of the object itself, of the scale subresource there is none.
#[test]
fn a_field_has_a_pointer_into_its_object() {
    for (field, pointer, text) in wva_base::cases! {
        (ReplicaField::Scale, None, "spec.replicas"),
        (ReplicaField::Service, Some("/spec/replicas"), "spec.replicas"),
        (of_role(1, "decode"), Some("/spec/template/spec/roles/1/replicas"),
         "spec.template.spec.roles[1].replicas (decode)"),
    } {
        assert_eq!(field.pointer().as_deref(), pointer);
        assert_eq!(field.to_string(), text);
    }
}

const INDEX: &str = "stormservice.orchestration.aibrix.ai/pod-group-index";

#[test]
fn pods_are_selected_by_service_role_and_place() {
    for (role, expected) in wva_base::cases! {
        (Some("decode"), "storm-service-name in (ss-1),role-name in (decode)".to_owned()),
        (Some("router"), "storm-service-name in (ss-1),role-name in (router)".to_owned()),
        (Some("prefill"), format!("storm-service-name in (ss-1),role-name in (prefill),{INDEX} in (0)")),
        (None, format!("storm-service-name in (ss-1),{INDEX} in (0)")),
        (Some(""), format!("storm-service-name in (ss-1),{INDEX} in (0)")),
    } {
        let selector = service(None, None).selector(&target(role));
        assert_eq!(selector.to_string(), expected);
    }
    let mut single = service(None, None);
    single.roles.remove(0);
    let selector = single.selector(&target(None));
    assert_eq!(selector.to_string(), "storm-service-name in (ss-1)");
    let empty = StormServiceObject::default();
    let selector = empty.selector(&target(Some("prefill")));
    let expected = "storm-service-name in (ss-1),role-name in (prefill)";
    assert_eq!(selector.to_string(), expected);
}

/// Cases PA-019 and PA-020.
#[test]
fn of_a_group_the_first_pod_is_measured() {
    let pods = [
        ("p-0", "ss-1", Some("test-role"), "0"),
        ("p-1", "ss-1", Some("test-role"), "1"),
        ("p-2", "ss-1", None, "0"),
        ("p-other-app", "ss-2", None, "0"),
    ];
    for (size, expected) in [(Some(2), vec!["p-0"]), (None, vec!["p-0", "p-1"])] {
        let service = StormServiceObject {
            roles: vec![role("test-role", Some(1), size)],
            ..StormServiceObject::default()
        };
        let selector = service.selector(&target(Some("test-role")));
        let selected = pods.iter().filter(|(_, service, role, index)| {
            let labels = BTreeMap::from([
                ("storm-service-name", Some(*service)),
                ("role-name", *role),
                (INDEX, Some(*index)),
            ]);
            selector.matches(|label| labels.get(label).copied().flatten())
        });
        let selected: Vec<&str> = selected.map(|(name, ..)| *name).collect();
        assert_eq!(selected, expected, "{size:?}");
    }
}

/// Case PA-021.
#[test]
fn of_a_ray_cluster_the_head_is_measured() {
    let selector = || LabelSelector::parse("app=foo").unwrap();
    for (group, kind, expected) in wva_base::cases! {
        ("orchestration.aibrix.ai", "RayClusterFleet", "app in (foo),ray.io/node-type in (head)"),
        ("orchestration.aibrix.ai", "RayClusterReplicaSet", "app in (foo)"),
        ("ray.io", "RayClusterFleet", "app in (foo)"),
    } {
        let kind = GroupKind { group: group.into(), kind: kind.into() };
        assert_eq!(reporting(&kind, selector()).to_string(), expected);
    }
}

proptest! {
    /// Whatever the roles are: the pointer leads to the role of that name and to the count that was read.
    #[test]
    fn the_field_that_is_read_is_the_field_that_is_written(
        roles in prop::collection::vec(("[a-c]", prop::option::of(0_u32..9)), 0..6),
        wanted in "[a-c]",
    ) {
        let object = serde_json::json!({"spec": {"template": {"spec": {"roles": roles
            .iter()
            .map(|(name, replicas)| serde_json::json!({"name": name, "replicas": replicas}))
            .collect::<Vec<_>>()}}}});
        let service = StormServiceObject {
            roles: roles.iter().map(|(name, replicas)| role(name, *replicas, None)).collect(),
            ..StormServiceObject::default()
        };
        let is_there = roles.iter().find(|(name, _)| *name == wanted);
        match service.resolve(&target(Some(&wanted)), Pooled) {
            Ok((field, count)) => {
                let written = object.pointer(&field.pointer().unwrap()).unwrap();
                prop_assert_eq!(written, &serde_json::json!(count.0));
                prop_assert_eq!(is_there.unwrap().1, Some(count.0));
            }
            Err(_) => prop_assert!(is_there.is_none_or(|(_, replicas)| replicas.is_none())),
        }
    }
}
