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
    assert_eq!((&*view.namespace, &*view.name), ("a", "t"));
    let class = |resource: &str| {
        let class = resource.strip_prefix("deviceclass.resource.kubernetes.io/");
        class.unwrap().to_owned()
    };
    let gpus = view.gpus?.into_iter();
    Some(
        gpus.map(|(resource, gpus)| (class(&resource), gpus.0))
            .collect(),
    )
}

#[test]
fn a_claim_template_says_how_many_gpus_a_claim_holds() {
    let exactly = |fields: Value| json!({ "name": "r", "exactly": fields });
    let of = |class: &str, count: u32| exactly(json!({ "deviceClassName": class, "count": count }));
    let first = |any: Value| json!({ "name": "r", "firstAvailable": any });
    let some = |known: &[(&str, u32)]| {
        let known = known
            .iter()
            .map(|(class, count)| ((*class).to_owned(), *count));
        Some(known.collect::<BTreeMap<String, u32>>())
    };
    let domain = "compute-domain-default-channel.nvidia.com";
    for (requests, expected) in [
        (json!([of(NVIDIA, 4)]), some(&[(NVIDIA, 4)])),
        (
            json!([exactly(json!({ "deviceClassName": NVIDIA }))]),
            some(&[(NVIDIA, 1)]),
        ),
        (
            json!([exactly(json!({
                "deviceClassName": NVIDIA, "allocationMode": "ExactCount", "count": 2,
                "selectors": [{ "cel": { "expression": "true" } }],
            }))]),
            some(&[(NVIDIA, 2)]),
        ),
        (json!([of(NVIDIA, 1), of(NVIDIA, 2)]), some(&[(NVIDIA, 3)])),
        (
            json!([of(NVIDIA, 1), of("gpu.amd.com", 2)]),
            some(&[(NVIDIA, 1), ("gpu.amd.com", 2)]),
        ),
        (json!([]), some(&[])),
        (json!([of(domain, 1)]), some(&[])),
        (json!([of(domain, 1), of(NVIDIA, 8)]), some(&[(NVIDIA, 8)])),
        // Of alternatives the largest.
        (
            json!([first(json!([
                { "name": "big", "deviceClassName": NVIDIA, "count": 2 },
                { "name": "small", "deviceClassName": NVIDIA, "count": 4 },
                { "name": "one", "deviceClassName": "gpu.amd.com" },
            ]))]),
            some(&[(NVIDIA, 4)]),
        ),
        (
            json!([first(json!([
                { "name": "big", "deviceClassName": NVIDIA, "count": 2 },
                { "name": "all", "deviceClassName": NVIDIA, "allocationMode": "All" },
            ]))]),
            None,
        ),
        (
            json!([exactly(
                json!({ "deviceClassName": NVIDIA, "allocationMode": "All" })
            )]),
            None,
        ),
        (
            json!([exactly(
                json!({ "deviceClassName": NVIDIA, "allocationMode": "Newer" })
            )]),
            None,
        ),
        (
            json!([exactly(
                json!({ "deviceClassName": NVIDIA, "adminAccess": true })
            )]),
            None,
        ),
        (
            json!([exactly(json!({
                "deviceClassName": NVIDIA, "capacity": { "requests": { "memory": "10Gi" } },
            }))]),
            None,
        ),
        (json!([of("mig.nvidia.com", 1)]), None),
        (json!([of("own.example.com", 1)]), None),
        (json!([of(NVIDIA, 1), of("own.example.com", 1)]), None),
        (
            json!([exactly(json!({ "deviceClassName": NVIDIA, "count": -1 }))]),
            None,
        ),
        (json!([{ "name": "r" }]), None),
        (
            json!([{ "name": "r", "newer": { "deviceClassName": NVIDIA } }]),
            None,
        ),
    ] {
        assert_eq!(counted(&requests), expected, "{requests}");
    }
}
