use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::project;
use crate::api::resource_claim::ResourceClaim;
use crate::api::resource_slice::ResourceSlice;
use crate::cluster::project::device::{Device, DevicePlace, DeviceSort, SliceObject};

const NVIDIA: &str = "gpu.nvidia.com";

fn slice(driver: &str, node: Option<&str>, devices: &Value) -> SliceObject {
    project::<ResourceSlice>(&json!({
        "metadata": { "name": "s" },
        "spec": {
            "driver": driver, "nodeName": node, "devices": devices,
            "pool": { "name": "p", "generation": 3, "resourceSliceCount": 2 },
        },
    }))
}

fn device(driver: &str, fields: &Value) -> Device {
    let mut device = fields.clone();
    device["name"] = json!("d");
    slice(driver, Some("n"), &json!([device])).devices.remove(0)
}

#[test]
fn a_slice_is_a_part_of_a_pool_of_its_driver_and_its_devices_are_of_its_node() {
    let all = slice(NVIDIA, Some("n"), &json!([{ "name": "a" }, { "name": "b" }]));
    assert_eq!(
        (&*all.pool.resource, &*all.pool.pool, all.generation, all.slices),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", "p", 3, 2)
    );
    let node = |name: &str| Some(DevicePlace::Node(name.into()));
    assert_eq!(all.place, node("n"));
    let mixed = json!([{ "name": "a", "nodeName": "x" }, { "name": "b" }]);
    let mixed = slice(NVIDIA, None, &mixed);
    let places: Vec<_> = mixed.devices.into_iter().map(|one| one.place).collect();
    assert_eq!((mixed.place, places), (None, vec![node("x"), None]));
    for (driver, expected) in [
        (NVIDIA, true),
        ("gpu.amd.com", true),
        ("gpu.intel.com", true),
        ("gaudi.intel.com", true),
        ("dranet", false),
        ("compute-domain.nvidia.com", false),
    ] {
        let slice = slice(driver, Some("n"), &json!([]));
        assert_eq!(slice.has_gpus(), expected, "{driver}");
    }
}

#[test]
fn a_device_is_a_whole_gpu_or_not_or_of_a_sort_that_is_not_known() {
    let kind = |kind: &str| json!({ "attributes": { "type": { "string": kind } } });
    let tainted = |effect: &str| json!({ "taints": [{ "key": "k", "effect": effect }] });
    let (gpu, other) = (DeviceSort::Gpu, DeviceSort::Other);
    for (fields, expected) in [
        (json!({}), gpu),
        (kind("gpu"), gpu),
        (kind("amdgpu"), gpu),
        (kind("mig"), other),
        (kind("vf"), other),
        (kind("amdgpu-partition"), other),
        (kind("quantum"), DeviceSort::Unknown),
        (tainted("NoSchedule"), other),
        (tainted("NoExecute"), other),
        (tainted("None"), gpu),
        (json!({ "attributes": { "gpu.nvidia.com/type": { "string": "mig" } } }), other),
        (json!({ "attributes": { "type": { "int": 1 } } }), gpu),
    ] {
        let found = device(NVIDIA, &fields).sort;
        assert_eq!(found, expected, "{fields}");
    }
}

#[test]
fn a_selector_of_nodes_is_read_as_kubernetes_does() {
    let labels = BTreeMap::from([("zone".into(), "a".into())]);
    let reaches = |terms: Value| {
        let fields = json!({ "nodeSelector": { "nodeSelectorTerms": terms } });
        let place = device(NVIDIA, &fields).place.unwrap();
        place.reaches("n", &labels)
    };
    let required = |key: &str, operator: &str, values: &[&str]| json!({ "key": key, "operator": operator, "values": values });
    let labelled = |operator: &str, values: &[&str]| json!({ "matchExpressions": [required("zone", operator, values)] });
    let is_named =
        |name: &str| json!({ "matchFields": [required("metadata.name", "In", &[name])] });
    for (terms, expected) in [
        (json!([labelled("In", &["a", "b"])]), true),
        (json!([labelled("In", &["b"])]), false),
        (json!([labelled("NotIn", &["b"])]), true),
        (json!([labelled("Exists", &[])]), true),
        (json!([labelled("DoesNotExist", &[])]), false),
        (json!([is_named("n")]), true),
        (json!([is_named("m")]), false),
        (json!([labelled("In", &["b"]), is_named("n")]), true),
        (json!([{}]), false),
        (json!([]), false),
        // Compared as numbers: it may.
        (json!([labelled("Gt", &["5"])]), true),
    ] {
        let text = terms.to_string();
        assert_eq!(reaches(terms), expected, "{text}");
    }
}

#[test]
fn a_device_has_a_product_and_counters() {
    let found = device(
        NVIDIA,
        &json!({
            "attributes": {
                "model": { "string": "other" },
                "productName": { "string": "NVIDIA H100 80GB HBM3" },
            },
            "consumesCounters": [{ "counterSet": "gpu-0", "counters": { "memory": { "value": "80Gi" } } }],
        }),
    );
    assert_eq!(found.product.as_deref(), Some("NVIDIA H100 80GB HBM3"));
    assert_eq!(found.counters, ["gpu-0".into()]);
    let model = device(NVIDIA, &json!({ "attributes": { "model": { "string": "B60" } } }));
    assert_eq!(model.product.as_deref(), Some("B60"));
    assert_eq!(device(NVIDIA, &json!({})).product, None);
}

#[test]
fn a_device_of_the_first_version_is_read_the_same() {
    let fields = json!({
        "attributes": { "type": { "string": "mig" }, "model": { "string": "B60" } },
        "consumesCounters": [{ "counterSet": "gpu-0", "counters": {} }], "nodeName": "x",
    });
    let basic = device(NVIDIA, &json!({ "basic": fields }));
    assert_ne!(basic, device(NVIDIA, &json!({})));
    assert_eq!(basic, device(NVIDIA, &fields));
}

#[test]
fn a_claim_holds_the_gpus_that_were_allocated_to_it() {
    let claim = |status: &Value| {
        let claim = project::<ResourceClaim>(&json!({
            "metadata": { "namespace": "a", "name": "c" },
            "spec": { "devices": { "requests": [] } }, "status": status,
        }));
        let devices = claim.devices.iter();
        let devices = devices.map(|key| format!("{}/{}", key.pool.pool, key.device));
        let pods = claim.pods.iter().map(ToString::to_string);
        let (devices, pods) = (devices.collect::<Vec<_>>(), pods.collect::<Vec<_>>());
        assert_eq!(claim.holds_gpus(), !devices.is_empty());
        (devices.join(" "), pods.join(" "))
    };
    let result =
        |driver: &str, device: &str| json!({ "driver": driver, "pool": "n", "device": device });
    let allocated = |results: Value| json!({ "allocation": { "devices": { "results": results } } });
    let mut looking = result(NVIDIA, "gpu-1");
    looking["adminAccess"] = json!(true);
    for (status, devices) in wva_base::cases! {
        (json!({}), ""),
        (json!({ "allocation": {} }), ""),
        (allocated(json!([result(NVIDIA, "gpu-0"), result(NVIDIA, "gpu-3")])), "n/gpu-0 n/gpu-3"),
        (allocated(json!([result("dranet", "nic-0"), result("gpu.amd.com", "gpu-0")])), "n/gpu-0"),
        (allocated(json!([looking])), ""),
    } {
        assert_eq!(claim(&status).0, devices, "{status}");
    }
    let users = json!([
        { "resource": "pods", "name": "p", "uid": "1" },
        { "apiGroup": "example.com", "resource": "others", "name": "o", "uid": "2" },
        { "resource": "pods", "name": "q", "uid": "3" },
    ]);
    assert_eq!(claim(&json!({ "reservedFor": users })).1, "p q");
}
