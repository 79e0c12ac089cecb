//! Which routers stand in front of a target, and where they serve their metrics.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Mirrors;
use crate::api::inference_pool::InferencePool;
use crate::api::pod::SlimPod;
use crate::cluster::mirror::ObjectKey;
use crate::policy::key::{TargetKey, TargetKind};
use crate::policy::snapshot::RouterPresence;
use crate::settings::pool_group::PoolGroup;
use crate::state::mirrors::tests::{TestMirrors, list, mirrors, other_pools};

fn named(name: &str, rest: Value) -> Value {
    let mut object = rest;
    object["metadata"]["namespace"] = json!("ns");
    object["metadata"]["name"] = json!(name);
    object
}

fn pool(name: &str, selector: &Value, picker: Option<&str>) -> Value {
    let mut spec = json!({ "selector": { "matchLabels": selector } });
    if let Some(picker) = picker {
        spec["endpointPickerRef"] = json!({ "name": picker });
    }
    named(name, json!({ "spec": spec }))
}

fn service(name: &str, selector: &Value, ports: &Value) -> Value {
    named(name, json!({ "spec": { "selector": selector, "ports": ports } }))
}

fn pod(name: &str, app: &str, address: &str, ready: &str) -> Value {
    named(
        name,
        json!({
            "metadata": { "labels": { "app": app } },
            "status": {
                "phase": "Running", "podIP": address,
                "conditions": [{ "type": "Ready", "status": ready }],
            },
        }),
    )
}

fn world() -> TestMirrors {
    let mirrors = mirrors(PoolGroup::default());
    let deployment = |name: &str, labels: &Value| {
        let template = json!({ "metadata": { "labels": labels } });
        named(name, json!({ "spec": { "selector": {}, "template": template } }))
    };
    list::<Deployment>(
        &mirrors.writers.deployments,
        [
            deployment("a", &json!({ "app": "a", "tier": "x" })),
            deployment("alone", &json!({ "app": "alone" })),
        ],
    );
    list::<InferencePool>(
        &mirrors.writers.pools_v1,
        [
            pool("of-a", &json!({ "app": "a" }), Some("epp")),
            pool("of-b", &json!({ "app": "b" }), None),
            pool("of-c", &json!({ "app": "c" }), Some("missing")),
            pool("of-d", &json!({ "app": "d" }), Some("idle")),
            pool("of-e", &json!({ "app": "e" }), Some("unselective")),
        ],
    );
    for mirror in other_pools(&mirrors.writers) {
        list::<InferencePool>(mirror, []);
    }
    let metrics = json!([
        { "name": "grpc", "port": 9002 },
        { "name": "http-metrics", "port": 8080, "targetPort": 9090 },
    ]);
    list::<Service>(
        &mirrors.writers.services,
        [
            service("epp", &json!({ "app": "epp" }), &metrics),
            service("idle", &json!({ "app": "idle" }), &metrics),
            service("unselective", &json!({}), &metrics),
        ],
    );
    list::<SlimPod>(
        &mirrors.writers.pods,
        [
            pod("epp-2", "epp", "10.0.0.2", "True"),
            pod("epp-1", "epp", "fd00::1", "True"),
            pod("epp-3", "epp", "10.0.0.3", "False"),
            pod("epp-4", "epp", "", "True"),
            pod("a-1", "a", "10.0.0.9", "True"),
        ],
    );
    mirrors
}

#[test]
fn a_target_stands_behind_the_pool_that_selects_its_pods() {
    let mirrors = world();
    let pools = |name: &str| -> Vec<String> {
        let target = TargetKey::new("ns", TargetKind::Deployment, name);
        let pools = mirrors.pools_of(&target);
        pools.iter().map(ToString::to_string).collect()
    };
    assert_eq!(pools("a"), ["ns/of-a"]);
    assert_eq!(pools("alone"), [""; 0]);
    assert_eq!(pools("none"), [""; 0]);
}

#[test]
fn no_router_holds_requests_for_a_target_that_no_pool_selects() {
    let presence = |mirrors: &Mirrors, name: &str| {
        mirrors.router_in_front(&TargetKey::new("ns", TargetKind::Deployment, name))
    };
    let (known, unknown) = (world(), mirrors(PoolGroup::default()));
    assert_eq!(presence(&known, "a"), RouterPresence::Possible);
    assert_eq!(presence(&known, "alone"), RouterPresence::Absent);
    assert_eq!(presence(&known, "absent"), RouterPresence::Possible);
    assert_eq!(presence(&unknown, "alone"), RouterPresence::Possible);
}

#[derive(Deserialize)]
struct Vectors {
    discovery: Vec<Discovery>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Discovery {
    id: String,
    #[serde(rename = "corrected")]
    _corrected: Option<String>,
    selector: Value,
    pods: Vec<[String; 4]>,
    expect: Option<Vec<String>>,
    error: Option<String>,
}

/// What is known of the routers of pool `p`, whose picker is the service `picker`.
fn routers(service: Option<Value>, pods: &[[String; 4]]) -> Result<Vec<String>, String> {
    let mirrors = mirrors(PoolGroup::default());
    let pool = pool("p", &json!({}), Some("picker"));
    list::<InferencePool>(&mirrors.writers.pools_v1, [pool]);
    list::<Service>(&mirrors.writers.services, service);
    let pods = pods.iter().map(|[name, app, address, ready]| pod(name, app, address, ready));
    list::<SlimPod>(&mirrors.writers.pods, pods);
    let pool = mirrors.pools.get(&ObjectKey::new("ns", "p")).unwrap();
    let routers = mirrors.routers(&pool)?;
    Ok(routers.iter().map(ToString::to_string).collect())
}

#[test]
fn routers_are_found_as_the_vectors_say() {
    let text = include_str!("../../../../tests/vectors/routers.yaml");
    let vectors: Vectors = serde_yaml::from_str(text).unwrap();
    assert!(vectors.discovery.len() > 4);
    for vector in vectors.discovery {
        let ports = json!([{ "name": "metrics", "port": 9090 }]);
        let service = service("picker", &vector.selector, &ports);
        let expected = vector.expect.ok_or_else(|| vector.error.unwrap());
        assert_eq!(routers(Some(service), &vector.pods), expected, "{}", vector.id);
    }
}

#[derive(Deserialize)]
struct PoolVectors {
    services: Vec<ServiceVector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceVector {
    id: String,
    #[serde(rename = "corrected")]
    _corrected: Option<String>,
    ports: Value,
    expect: Value,
}

#[test]
fn the_port_for_metrics_is_that_of_the_vectors() {
    let text = include_str!("../../../../tests/vectors/pool.yaml");
    let vectors: PoolVectors = serde_yaml::from_str(text).unwrap();
    assert!(vectors.services.len() > 3);
    let pods = [["a", "epp", "10.0.0.1", "True"].map(str::to_owned)];
    for vector in vectors.services {
        let service = (!vector.ports.is_null())
            .then(|| service("picker", &json!({ "app": "epp" }), &vector.ports));
        let found = match routers(service, &pods) {
            Ok(routers) => routers.join(" "),
            Err(why) => why,
        };
        let expected = match &vector.expect {
            Value::Number(port) => format!("10.0.0.1:{port}"),
            other => other.as_str().unwrap().to_owned(),
        };
        assert!(found.starts_with(&expected), "{}: {found}", vector.id);
    }
}

#[test]
fn ready_pods_behind_the_service_of_the_picker_are_its_routers() {
    let mirrors = world();
    let routers = |pool: &str| -> Result<Vec<String>, String> {
        let pool = mirrors.pools.get(&ObjectKey::new("ns", pool)).unwrap();
        let routers = mirrors.routers(&pool)?;
        Ok(routers.iter().map(ToString::to_string).collect())
    };
    let expected = ["[fd00::1]:9090", "10.0.0.2:9090"].map(str::to_owned);
    assert_eq!(routers("of-a"), Ok(expected.to_vec()));
    for (pool, why) in [
        ("of-b", "the pool names no endpoint picker"),
        ("of-c", "there is no Service missing that has a port with \"metric\" in its name"),
        ("of-d", "Service idle has no ready pod"),
        ("of-e", "Service unselective has no ready pod"),
    ] {
        assert_eq!(routers(pool), Err(why.to_owned()));
    }
}
