//! The published table IDX, through the mirrors that answer it: which variant a target or a pod
//! belongs to.

use std::ops::Deref;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{MirrorWriters, Mirrors};
use crate::api::pod::SlimPod;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::cluster::kinds::WatchedKind;
use crate::cluster::mirror::MirrorWriter;
use crate::cluster::project::pool::PoolObject;
use crate::cluster::project::{Interner, Projected};
use crate::cluster::scale::Scales;
use crate::cluster::status::manager_name;
use crate::cluster::watch::key_of;
use crate::policy::filter::WatchScope;
use crate::policy::key::{TargetKey, TargetKind, VariantKey};
use crate::settings::FeatureSwitch;
use crate::settings::pool_group::PoolGroup;
use crate::vectors::{Tally, run};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use wva_base::moment::{Moment, WallTime};
use wva_supervise::{Epoch, Writer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    variants: Vec<(String, String, String, String, String)>,
    target: Option<(String, String)>,
    pod: Option<(String, String, String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    variant: Option<String>,
    contested: Option<Vec<String>>,
}

/// So many seconds after the start, whatever the time of day.
pub(crate) fn at(seconds: u64) -> Moment {
    Moment { monotonic: Duration::from_secs(seconds), wall: WallTime(0) }
}

/// Mirrors with the halves that fill them.
pub(crate) struct TestMirrors {
    pub(crate) readers: Mirrors,
    pub(crate) writers: MirrorWriters,
    pub(crate) scales: Writer<Scales>,
}

impl Deref for TestMirrors {
    type Target = Mirrors;

    fn deref(&self) -> &Mirrors {
        &self.readers
    }
}

pub(crate) fn mirrors(pool_group: PoolGroup) -> TestMirrors {
    with(scope(), pool_group)
}

pub(crate) fn scope() -> WatchScope {
    WatchScope { system_namespace: "system".into(), watch_namespace: None, instance: None }
}

fn with(scope: WatchScope, group: PoolGroup) -> TestMirrors {
    let (writers, scales) = (MirrorWriters::default(), Writer::new(Scales::new()));
    let external_metrics = FeatureSwitch::Disabled;
    let readers = Mirrors::new(
        &writers,
        scales.reader(),
        scope,
        group,
        external_metrics,
        FeatureSwitch::Enabled,
        FeatureSwitch::Enabled,
    );
    TestMirrors { readers, writers, scales }
}

/// Fills a mirror the way its watcher does: with a complete list.
pub(crate) fn list<K: Projected>(
    mirror: &MirrorWriter<K::View>,
    objects: impl IntoIterator<Item = Value>,
) {
    let mut texts = Interner::default();
    let mut relist = mirror.relist();
    for object in objects {
        let object = serde_json::from_value::<K>(object).unwrap();
        let key = key_of(object.meta());
        relist.add(key, object.project(&mut texts)).unwrap();
    }
    let epoch = Epoch::for_test("watcher", 1);
    mirror.replace(&epoch, relist).unwrap();
}

/// The mirrors of InferencePools of all groups but the stable one.
pub(crate) fn other_pools(writers: &MirrorWriters) -> [&MirrorWriter<PoolObject>; 3] {
    [&writers.pools_gateway, &writers.pools_llm_d, &writers.pools_v1alpha2]
}

/// `managedFields` of a scaler whose count a controller has written.
pub(crate) fn count_writer() -> Value {
    let fields = json!({"f:metadata": {"f:annotations": {"f:llm-d.ai/desired-replicas": {}}}});
    json!([{"manager": "wva-me", "operation": "Apply", "fieldsV1": fields}])
}

fn controlled(namespace: &str, name: &str, owner: (&str, &str)) -> Value {
    let (kind, owner) = owner;
    json!({"metadata": {
        "namespace": namespace, "name": name, "uid": format!("uid-of-ReplicaSet-{name}"),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": kind, "name": owner,
            "uid": format!("uid-of-{kind}-{owner}"), "controller": true,
        }],
    }})
}

/// The cluster of one case: its variants, and every Deployment that is spoken of.
fn world(given: &Given) -> TestMirrors {
    let mirrors = mirrors(PoolGroup::default());
    list::<PartialObjectMeta<Namespace>>(&mirrors.writers.namespaces, []);
    let variants = given.variants.iter().map(|(namespace, name, version, kind, target)| {
        json!({
            "metadata": {"namespace": namespace, "name": name, "uid": name},
            "spec": {
                "modelID": "m",
                "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": target},
            },
        })
    });
    list::<VariantAutoscaling>(&mirrors.writers.variants, variants);
    let pod = given.pod.iter();
    let deployments = pod.clone().map(|(namespace, _, _, deployment)| {
        let uid = format!("uid-of-Deployment-{deployment}");
        json!({"metadata": {"namespace": namespace, "name": deployment, "uid": uid}})
    });
    list::<Deployment>(&mirrors.writers.deployments, deployments);
    let sets = pod.clone().map(|(namespace, _, _, deployment)| {
        controlled(namespace, "set", ("Deployment", deployment))
    });
    list::<PartialObjectMeta<ReplicaSet>>(&mirrors.writers.replica_sets, sets);
    let pods = pod
        .map(|(namespace, name, controller, _)| controlled(namespace, name, (controller, "set")));
    list::<SlimPod>(&mirrors.writers.pods, pods);
    mirrors
}

/// All variants whose actor would count this pod.
fn owners(mirrors: &Mirrors, pod: &str) -> Vec<VariantKey> {
    let targets = mirrors.deployments.all();
    let owning = targets.iter().filter(|(_, target)| {
        let pods = mirrors.pods(target).unwrap();
        pods.iter().any(|known| &*known.name == pod)
    });
    owning.flat_map(|(_, target)| mirrors.claimants(&target.key)).collect()
}

#[test]
fn idx_targets_and_pods_to_variants() {
    let tally = run(
        include_str!("../../../tests/vectors/idx.yaml"),
        |id, given: Given, expect: Expected| {
            let mirrors = world(&given);
            let claimants = match (&given.target, &given.pod) {
                (Some((namespace, name)), None) => mirrors.claimants(&TargetKey::new(
                    &**namespace,
                    TargetKind::Deployment,
                    &**name,
                )),
                (None, Some((_, name, _, _))) => owners(&mirrors, name),
                _ => panic!("{id}: either a target or a pod"),
            };
            let names: Vec<String> = claimants.iter().map(|key| key.name.to_string()).collect();
            let expected = match (expect.variant, expect.contested) {
                (Some(variant), None) => vec![variant],
                (None, Some(contested)) => contested,
                (None, None) => Vec::new(),
                (Some(_), Some(_)) => panic!("{id}: either one variant or several"),
            };
            assert_eq!(names, expected, "{id}");
        },
    );
    assert_eq!(tally, Tally { passed: 10, corrected: 0, not_applicable: 1 });
}

#[test]
fn a_pool_flavour_that_is_left_out_is_not_waited_for() {
    let kinds = |group| -> Vec<WatchedKind> {
        let mirrors = mirrors(group);
        mirrors
            .contacts()
            .map(|contact| contact.kind)
            .filter(|kind| kind.as_str().starts_with("InferencePool"))
            .collect()
    };
    let all = [
        WatchedKind::InferencePoolV1,
        WatchedKind::InferencePoolV1Alpha2,
        WatchedKind::InferencePoolGateway,
        WatchedKind::InferencePoolLlmD,
    ];
    assert_eq!(kinds(PoolGroup::Discovered), all);
    for kind in all {
        assert_eq!(kinds(PoolGroup::Only(kind.spec().group)), [kind]);
    }
}

/// An object of another instance counts from the moment at which that instance has written its status.
#[test]
fn an_object_of_another_instance_claims_what_it_names_once_it_is_handled() {
    let claimants = |instance: &str, entries: Value| -> Vec<String> {
        let scope = WatchScope {
            system_namespace: "system".into(),
            watch_namespace: Some("ns".into()),
            instance: Some("blue".into()),
        };
        let mirrors = with(scope, PoolGroup::default());
        let object = |name: &str, instance: &str, entries: Value| {
            json!({
                "metadata": {
                    "namespace": "ns", "name": name, "uid": name, "managedFields": entries,
                    "labels": { "wva.llmd.ai/controller-instance": instance },
                },
                "spec": { "scaleTargetRef": { "name": "d" }, "modelID": "m" },
            })
        };
        let objects = [object("ours", "blue", json!([])), object("other", instance, entries)];
        list::<VariantAutoscaling>(&mirrors.writers.variants, objects);
        let target = TargetKey::new("ns", TargetKind::Deployment, "d");
        let claimants = mirrors.claimants(&target).into_iter();
        claimants.map(|key| key.name.to_string()).collect()
    };
    let written = |manager: &str| {
        json!([{
            "manager": manager, "operation": "Apply", "subresource": "status",
            "apiVersion": "llmd.ai/v1alpha1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:status": { "f:actuation": {} } },
        }])
    };
    let green = manager_name("system", "lease", Some("green"));
    assert_eq!(claimants("blue", json!([])), ["other", "ours"]);
    assert_eq!(claimants("green", json!([])), ["ours"]);
    assert_eq!(claimants("green", written("kubectl")), ["ours"]);
    assert_eq!(claimants("green", written(&green)), ["other", "ours"]);
}

#[test]
fn an_object_that_makes_no_sense_claims_nothing() {
    let claimants = |max: i32| -> Vec<String> {
        let mirrors = mirrors(PoolGroup::default());
        let namespace = json!({"metadata": { "name": "ns" }});
        list::<PartialObjectMeta<Namespace>>(&mirrors.writers.namespaces, [namespace]);
        let object = |name: &str, max: i32| {
            json!({
                "metadata": { "namespace": "ns", "name": name, "uid": name },
                "spec": { "scaleTargetRef": { "name": "d" }, "modelID": "m", "maxReplicas": max },
            })
        };
        list::<VariantAutoscaling>(
            &mirrors.writers.variants,
            [object("sound", 3), object("other", max)],
        );
        let target = TargetKey::new("ns", TargetKind::Deployment, "d");
        let claimants = mirrors.claimants(&target).into_iter();
        claimants.map(|key| key.name.to_string()).collect()
    };
    assert_eq!(claimants(3), ["other", "sound"]);
    assert_eq!(claimants(-3), ["sound"]);
}
