use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::project;
use crate::api::resource_claim_template::ResourceClaimTemplate;

const NVIDIA: &str = "gpu.nvidia.com";

/// GPUs by class of one claim that is made from a template with these requests.
fn counted(requests: &Value) -> Option<BTreeMap<String, u32>> {
    let object = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "namespace": "a", "name": "t" },
        "spec": { "spec": { "devices": { "requests": requests, "constraints": [], "config": [] } } },
    });
    let view = project::<ResourceClaimTemplate>(&object);
    let class = |resource: &str| {
        let class = resource.strip_prefix("deviceclass.resource.kubernetes.io/");
        class.unwrap().to_owned()
    };
    let gpus = view.gpus?.into_iter();
    Some(gpus.map(|(resource, gpus)| (class(&resource), gpus.0)).collect())
}

fn exactly(fields: &Value) -> Value {
    json!({ "name": "r", "exactly": fields })
}

fn of(class: &str, count: i64) -> Value {
    exactly(&json!({ "deviceClassName": class, "count": count }))
}

fn first(alternatives: &Value) -> Value {
    json!({ "name": "r", "firstAvailable": alternatives })
}

#[test]
fn a_claim_template_says_how_many_gpus_a_claim_holds() {
    let domain = "compute-domain-default-channel.nvidia.com";
    let selected = exactly(&json!({
        "deviceClassName": NVIDIA, "allocationMode": "ExactCount", "count": 2,
        "selectors": [{ "cel": { "expression": "true" } }],
    }));
    let largest = first(&json!([
        { "name": "big", "deviceClassName": NVIDIA, "count": 2 },
        { "name": "small", "deviceClassName": NVIDIA, "count": 4 },
        { "name": "one", "deviceClassName": "gpu.amd.com" },
    ]));
    for (requests, expected) in wva_base::cases! {
        (json!([of(NVIDIA, 4)]), &[(NVIDIA, 4)][..]),
        (json!([exactly(&json!({ "deviceClassName": NVIDIA }))]), &[(NVIDIA, 1)]),
        (json!([selected]), &[(NVIDIA, 2)]),
        (json!([of(NVIDIA, 1), of(NVIDIA, 2)]), &[(NVIDIA, 3)]),
        (json!([of(NVIDIA, 1), of("gpu.amd.com", 2)]), &[(NVIDIA, 1), ("gpu.amd.com", 2)]),
        (json!([]), &[]),
        (json!([of(domain, 1)]), &[]),
        (json!([of(domain, 1), of(NVIDIA, 8)]), &[(NVIDIA, 8)]),
        (json!([largest]), &[(NVIDIA, 4)]),
        // As `v1beta1` has it.
        (json!([{ "name": "r", "deviceClassName": NVIDIA, "count": 3 }, of(NVIDIA, 1)]), &[(NVIDIA, 4)]),
    } {
        let expected = expected.iter();
        let expected = expected.map(|(class, count)| ((*class).to_owned(), *count));
        assert_eq!(counted(&requests), Some(expected.collect()), "{requests}");
    }
}

#[test]
fn what_no_template_says_is_not_counted() {
    let any = first(&json!([
        { "name": "big", "deviceClassName": NVIDIA, "count": 2 },
        { "name": "all", "deviceClassName": NVIDIA, "allocationMode": "All" },
    ]));
    let with = |field: &str, value: Value| {
        let mut fields = json!({ "deviceClassName": NVIDIA });
        fields[field] = value;
        exactly(&fields)
    };
    let looking = |class: &str| {
        exactly(&json!({ "deviceClassName": class, "adminAccess": true, "allocationMode": "All" }))
    };
    for class in [NVIDIA, "own.example.com"] {
        assert_eq!(counted(&json!([looking(class)])), Some(BTreeMap::new()));
        let both = json!([looking(class), of(NVIDIA, 1)]);
        assert_eq!(counted(&both), counted(&json!([of(NVIDIA, 1)])));
    }
    for requests in [
        json!([any]),
        json!([with("allocationMode", json!("All"))]),
        json!([with("allocationMode", json!("Newer"))]),
        json!([with("capacity", json!({ "requests": { "memory": "10Gi" } }))]),
        json!([of("mig.nvidia.com", 1)]),
        json!([of("own.example.com", 1)]),
        json!([of(NVIDIA, 1), of("own.example.com", 1)]),
        json!([of(NVIDIA, -1)]),
        json!([{ "name": "r" }]),
        json!([{ "name": "r", "newer": { "deviceClassName": NVIDIA } }]),
    ] {
        assert_eq!(counted(&requests), None, "{requests}");
    }
}
