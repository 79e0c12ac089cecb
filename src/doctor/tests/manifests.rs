//! Manifests, without a cluster.

use std::path::Path;

use serde_json::json;

use crate::doctor::look::files;
use crate::doctor::report::Verdict;
use crate::doctor::{FindingCode, examine};

fn samples(folder: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

#[test]
fn the_samples_have_no_finding() {
    let facts = files::read(&samples("config/samples"), None).unwrap();
    assert!(facts.variants().count() >= 5);
    let diagnosis = examine(&facts);
    assert_eq!(
        diagnosis.verdict(),
        Verdict::Fine,
        "{}",
        diagnosis.to_text()
    );
}

/// Two PodAutoscalers, of which the second names a target and a role.
fn pair(target: &str, role: Option<&str>, mode: &str) -> String {
    let object = |name: &str, target: &str, role: Option<&str>| {
        json!({
            "apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler",
            "metadata": {
                "name": name, "namespace": "ns",
                "annotations": { "autoscaling.aibrix.ai/storm-service-mode": mode },
            },
            "spec": {
                "scaleTargetRef": {
                    "apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": "StormService", "name": target,
                },
                "subTargetSelector": role.map(|role| json!({ "roleName": role })),
                "maxReplicas": 4, "scalingStrategy": "APA",
                "metricsSources": [{ "metricSourceType": "external", "targetMetric": "q", "targetValue": "1" }],
            },
        })
    };
    let objects = [object("a", "s", Some("x")), object("b", target, role)];
    objects.map(|object| object.to_string()).join("\n---\n")
}

#[test]
fn manifests_that_scale_one_target_are_found() {
    let folder = std::env::temp_dir().join(format!("wva-rivals-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let found = |text: &str| {
        std::fs::write(folder.join("a.yaml"), text).unwrap();
        let facts = files::read(&folder, None).unwrap();
        let diagnosis = examine(&facts);
        let found = diagnosis
            .findings()
            .map(|one| (one.code, one.object.to_string(), one.cause.clone()));
        found.collect::<Vec<_>>()
    };
    let conflict = |object: &str, cause: &str| {
        let object = format!("PodAutoscaler ns/{object}");
        vec![(FindingCode::AutoscalerConflict, object, cause.to_owned())]
    };
    let second = conflict("b", "PodAutoscaler ns/a names StormService ns/s, too");
    for (target, role, mode, expected) in [
        ("t", Some("x"), "pooled", vec![]),
        ("s", Some("y"), "pooled", vec![]),
        ("s", Some("x"), "pooled", second.clone()),
        ("s", None, "pooled", second.clone()),
        ("s", Some("y"), "replica", second.clone()),
    ] {
        assert_eq!(
            found(&pair(target, role, mode)),
            expected,
            "{target} {role:?} {mode}"
        );
    }
    let variant = json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": { "name": "v", "namespace": "ns" },
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": "StormService", "name": "s",
            },
            "modelID": "m",
        },
    });
    let both = format!("{}\n---\n{variant}", pair("t", None, "pooled"));
    let rivals = found(&both);
    let expected = conflict("a", "VariantAutoscaling ns/v names StormService ns/s, too");
    let rivals: Vec<_> = rivals
        .into_iter()
        .filter(|(code, ..)| *code == FindingCode::AutoscalerConflict)
        .collect();
    assert_eq!(rivals, expected);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_broken_manifest_is_found_without_its_surroundings() {
    let folder = std::env::temp_dir().join(format!("wva-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let hpa = std::fs::read_to_string(samples("config/samples/scalers/hpa.yaml")).unwrap();
    let keda =
        std::fs::read_to_string(samples("config/samples/scalers/scaledobject.yaml")).unwrap();
    let fine = |hpa: &str, keda: &str| {
        std::fs::write(folder.join("hpa.yaml"), hpa).unwrap();
        std::fs::write(folder.join("keda.yaml"), keda).unwrap();
        let facts = files::read(&folder, None).unwrap();
        super::codes(&facts)
    };
    assert_eq!(fine(&hpa, &keda), Vec::new());
    let broken = hpa.replace(
        "stabilizationWindowSeconds: 0",
        "stabilizationWindowSeconds: 240",
    );
    assert_eq!(fine(&broken, &keda), [FindingCode::SlowScaleUp]);
    let broken = keda.replace("max by", "sum by");
    assert_eq!(fine(&hpa, &broken), [FindingCode::QueryAddsUp]);
    assert_eq!(fine("a: [", &keda), [FindingCode::VariantMalformed]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(files::read(&folder, None).is_err());
}
