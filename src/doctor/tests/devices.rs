//! GPUs behind device classes: what is counted, and where.

use serde_json::json;

use super::causes::{class_of, edit, main_config, objects};
use super::codes;
use super::healthy::facts;
use crate::doctor::FindingCode as Code;
use crate::doctor::facts::LiveKind;
use crate::doctor::object::LiveObject;

/// Limits of a container, whether growth is limited to GPUs of nodes, and what is found.
#[test]
fn class_backed_resources_are_found_where_nothing_counts_them() {
    for (resource, is_limited, expected) in [
        ("nvidia.com/gpu", false, &[][..]),
        ("nvidia.com/gpu", true, &[Code::ClaimsNotCounted]),
        ("example.com/accelerator", true, &[Code::ClaimsNotCounted]),
    ] {
        let mut facts = facts();
        class_of(&mut facts, resource);
        if is_limited {
            main_config(&mut facts, "WVA_LIMITED_MODE", "true");
        }
        assert_eq!(codes(&facts), expected, "{resource} {is_limited}");
    }
}

#[test]
fn claims_are_found_that_no_template_makes() {
    for (claim, expected) in [
        (json!({ "name": "gpu", "resourceClaimTemplateName": "one" }), &[][..]),
        (json!({ "name": "gpu", "resourceClaimName": "shared" }), &[Code::ClaimsNotCounted]),
    ] {
        let mut facts = facts();
        let claims = "/spec/template/spec/resourceClaims";
        edit(&mut facts, LiveKind::Deployment, "a", claims, json!([claim]));
        main_config(&mut facts, "WVA_LIMITED_MODE", "true");
        assert_eq!(codes(&facts), expected, "{claim}");
    }
}

#[test]
fn a_template_is_found_whose_gpus_cannot_be_counted() {
    let exactly =
        |class: &str, mode: &str| json!({ "deviceClassName": class, "allocationMode": mode });
    for (request, expected) in [
        (exactly("gpu.nvidia.com", "ExactCount"), &[][..]),
        (exactly("gpu.nvidia.com", "All"), &[Code::ClaimsNotCounted]),
        (exactly("gpu.example.com", "ExactCount"), &[Code::ClaimsNotCounted]),
    ] {
        let mut facts = facts();
        let claims = "/spec/template/spec/resourceClaims";
        let claim = json!([{ "name": "gpu", "resourceClaimTemplateName": "one" }]);
        edit(&mut facts, LiveKind::Deployment, "a", claims, claim);
        objects(&mut facts, LiveKind::ResourceClaimTemplate).push(LiveObject::new(json!({
            "kind": "ResourceClaimTemplate", "metadata": { "namespace": "ns", "name": "one" },
            "spec": { "spec": { "devices": { "requests": [{ "name": "gpu", "exactly": request }] } } },
        })));
        assert_eq!(codes(&facts), Vec::new(), "{request}");
        main_config(&mut facts, "WVA_LIMITED_MODE", "true");
        assert_eq!(codes(&facts), expected, "{request}");
    }
}

#[test]
fn a_class_is_named_by_its_resource_of_kubernetes_too() {
    for (class, expected) in [
        ("gpu.nvidia.com", &[][..]),
        ("gpu.example.com", &[Code::ClaimsNotCounted]),
        ("dranet", &[]),
    ] {
        let mut facts = facts();
        let limits = "/spec/template/spec/containers/0/resources/limits";
        let resource = format!("deviceclass.resource.kubernetes.io/{class}");
        edit(&mut facts, LiveKind::Deployment, "a", limits, json!({ resource: "1" }));
        main_config(&mut facts, "WVA_LIMITED_MODE", "true");
        assert_eq!(codes(&facts), expected, "{class}");
    }
}
