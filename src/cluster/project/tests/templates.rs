use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use serde_json::{Value, json};

use super::project;
use crate::api::leader_worker_set::LeaderWorkerSet;
use crate::api::pod::SlimPod;
use crate::policy::capacity::ServingRole;
use crate::policy::engine_args::parse;
use crate::policy::key::TargetKind;
use crate::policy::units::{Gpus, Replicas};
use crate::policy::workload::ReplicaTemplate;

fn template(role: &str, resources: &Value) -> Value {
    json!({
        "metadata": { "labels": { "llm-d.ai/role": role } },
        "spec": {
            "nodeSelector": { "nvidia.com/gpu.product": role },
            "containers": [
                {
                    "name": "vllm", "image": "vllm", "resources": resources,
                    "args": ["--max-num-seqs=7", "--api-key=hf_secret"],
                    "env": [
                        { "name": "VLLM_USE_V1", "value": "0" },
                        { "name": "HF_TOKEN", "value": "hf_secret" },
                        { "name": "OTHER", "valueFrom": { "fieldRef": { "fieldPath": "x" } } },
                    ],
                },
                { "name": "proxy", "args": ["--max-num-seqs=9"] },
            ],
        },
    })
}

fn requests(count: &str) -> Value {
    json!({ "requests": { "nvidia.com/gpu": count, "cpu": "8" } })
}

#[test]
fn a_template_says_what_one_replica_is_and_no_secret() {
    for resources in [
        requests("2"),
        json!({ "limits": { "nvidia.com/gpu": "2" } }),
        json!({ "limits": { "nvidia.com/gpu": "4" }, "requests": { "nvidia.com/gpu": "2" } }),
    ] {
        let object = json!({
            "metadata": { "namespace": "a", "name": "d", "generation": 3 },
            "spec": {
                "replicas": 2, "selector": {}, "serviceName": "",
                "template": template("decode", &resources),
            },
            "status": {
                "replicas": 2, "readyReplicas": 1, "updatedReplicas": 1, "observedGeneration": 3,
            },
        });
        let deployment = project::<Deployment>(&object);
        let set = project::<StatefulSet>(&object);
        assert_eq!(set.key.kind, TargetKind::StatefulSet);
        assert_eq!(deployment.outdated_replicas, Replicas(1));
        // Its updates have no replica too many, so that none of them is on its way out.
        assert_eq!(set.outdated_replicas, Replicas::ZERO);
        for target in [deployment, set] {
            let replica = &target.template;
            assert_eq!(replica.gpus, [("nvidia.com/gpu".into(), Gpus(2))].into());
            assert_eq!(replica.role, ServingRole::Decode);
            assert_eq!(parse(&replica.containers).args.max_num_seqs, 7);
            assert_eq!(replica.containers[0].env.len(), 1);
            assert!(!format!("{target:?}").contains("hf_secret"), "{target:?}");
            assert_eq!(target.ready_replicas, Replicas(1));
            assert_eq!(target.observed_generation, 3);
            // A pod of it says the same but for its part, which its labels say.
            let pod = json!({
                "metadata": { "namespace": "a", "name": "d-0" },
                "spec": template("decode", &resources)["spec"],
            });
            let pod = project::<SlimPod>(&pod);
            let of_pod = ReplicaTemplate { role: ServingRole::Both, ..replica.clone() };
            assert_eq!(pod.replica.as_deref(), Some(&of_pod));
            assert!(!format!("{pod:?}").contains("hf_secret"), "{pod:?}");
        }
    }
}

#[test]
fn a_group_is_one_replica_described_by_its_leader() {
    let object = |leader: Option<Value>, status: Value| {
        json!({
            "metadata": { "namespace": "a", "name": "l", "generation": 5 },
            "spec": { "replicas": 2, "leaderWorkerTemplate": {
                "size": 4, "leaderTemplate": leader,
                "workerTemplate": template("decode", &requests("2")),
            }},
            "status": status,
        })
    };
    let status = json!({ "replicas": 2, "readyReplicas": 1 });
    let leader = template("prefill", &requests("1"));
    let led = project::<LeaderWorkerSet>(&object(Some(leader), status.clone()));
    assert_eq!(led.template.gpus_per_replica(), Gpus(7));
    assert_eq!(led.template.role, ServingRole::Prefill);
    assert_eq!(&*led.placement.selector["nvidia.com/gpu.product"], "prefill");
    assert_eq!((led.status_replicas, led.ready_replicas), (Replicas(2), Replicas(1)));
    assert_eq!(led.outdated_replicas, Replicas(2), "none is updated yet");
    // Older controllers do not say which generation they have seen.
    assert_eq!(led.observed_generation, 5);
    let behind = json!({ "replicas": 2, "updatedReplicas": 2, "observedGeneration": 4 });
    let alike = project::<LeaderWorkerSet>(&object(None, behind));
    assert_eq!(alike.outdated_replicas, Replicas::ZERO);
    assert_eq!(alike.template.gpus_per_replica(), Gpus(8));
    assert_eq!(alike.template.role, ServingRole::Decode);
    assert_eq!(alike.observed_generation, 4);
}

/// The claims whose GPUs are not counted, of each kind that has pod templates.
#[test]
fn what_resource_claims_hold_is_not_counted() {
    let pods = |claims: &[&str]| {
        let names: Vec<Value> = (claims.iter().map(|name| json!({ "name": name }))).collect();
        let mut template = template("decode", &requests("2"));
        if !names.is_empty() {
            template["spec"]["resourceClaims"] = json!(names);
        }
        template
    };
    let alone = |claims: &[&str]| {
        let object = json!({
            "metadata": { "namespace": "a", "name": "d" },
            "spec": { "selector": {}, "serviceName": "", "template": pods(claims) },
        });
        let [deployment, set] =
            [project::<Deployment>(&object).template, project::<StatefulSet>(&object).template];
        assert_eq!(deployment, set);
        deployment
    };
    let group = |size: u32, leader: Option<&[&str]>, worker: &[&str]| {
        let object = json!({
            "metadata": { "namespace": "a", "name": "l" },
            "spec": { "leaderWorkerTemplate": {
                "size": size, "leaderTemplate": leader.map(pods), "workerTemplate": pods(worker),
            }},
        });
        project::<LeaderWorkerSet>(&object).template
    };
    for (found, claims, requested) in [
        (alone(&[]), vec![], 2),
        (alone(&["nic", "gpu"]), vec!["gpu", "nic"], 2),
        (group(2, None, &[]), vec![], 4),
        (group(2, None, &["gpu"]), vec!["gpu"], 4),
        (group(2, Some(&["gpu"]), &[]), vec!["gpu"], 4),
        (group(2, Some(&["a"]), &["b", "a"]), vec!["a", "b"], 4),
        // The only pod is the leader.
        (group(1, Some(&[]), &["gpu"]), vec![], 2),
    ] {
        let names = found.gpu_count.names();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        assert_eq!(names, claims);
        assert_eq!(found.gpus_taken(), Gpus(requested), "{claims:?}");
    }
}

/// Devices of a class that containers request as a resource are claims, as many of each pod.
#[test]
fn devices_that_containers_request_by_their_class_are_claims() {
    let class = |name: &str| format!("deviceclass.resource.kubernetes.io/{name}");
    let devices = |gpus: &str, nics: &str| {
        let mut template = template("decode", &requests("0"));
        let limits = json!({ class("gpu.nvidia.com"): gpus, class("dranet"): nics, "cpu": "9" });
        template["spec"]["containers"][0]["resources"] =
            json!({ "limits": limits, "requests": limits });
        let sidecar = json!({ "name": "s", "resources": { "limits": { class("dranet"): nics } } });
        let containers = template["spec"]["containers"].as_array_mut().unwrap();
        containers.push(sidecar);
        template
    };
    let object = json!({
        "metadata": { "namespace": "a", "name": "l" },
        "spec": { "leaderWorkerTemplate": {
            "size": 3, "leaderTemplate": devices("2", "0"), "workerTemplate": devices("4", "1"),
        }},
    });
    let replica = project::<LeaderWorkerSet>(&object).template;
    let claims = replica.gpu_count.claims().iter();
    let claims: Vec<_> = claims
        .map(|claim| {
            (claim.name.to_string(), claim.template.as_deref() == Some(&*claim.name), claim.pods.0)
        })
        .collect();
    assert_eq!(claims, [(class("dranet"), true, 4), (class("gpu.nvidia.com"), true, 10)]);
    assert_eq!(replica.gpus, BTreeMap::new());
}

#[test]
fn the_text_of_a_shell_finds_the_variables_that_it_asks_for_and_no_secret_is_kept() {
    let sequences = |script: &str| {
        let object = json!({
            "metadata": { "namespace": "a", "name": "d", "generation": 3 },
            "spec": {
                "replicas": 1, "selector": {},
                "template": { "spec": { "containers": [{
                    "name": "vllm", "image": "vllm", "command": ["sh", "-c", script],
                    "env": [
                        { "name": "N", "value": "32" },
                        { "name": "N", "value": "64" },
                        { "name": "M", "valueFrom": { "fieldRef": { "fieldPath": "x" } } },
                        { "name": "HF_TOKEN", "value": "hf_secret" },
                    ],
                }] } },
            },
        });
        let target = project::<Deployment>(&object);
        assert!(!format!("{target:?}").contains("hf_secret"), "{target:?}");
        let parsed = parse(&target.template.containers);
        (parsed.args.max_num_seqs, parsed.faults.len())
    };
    assert_eq!(sequences("vllm serve m"), (256, 0));
    assert_eq!(sequences("vllm serve m --max-num-seqs $N"), (64, 0));
    assert_eq!(sequences("vllm serve m --max-num-seqs $M"), (256, 1));
    assert_eq!(sequences("vllm serve m --api-key $HF_TOKEN --max-num-seqs ${N}"), (64, 0));
}
