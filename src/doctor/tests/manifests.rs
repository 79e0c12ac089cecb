//! Manifests, without a cluster.

use std::path::Path;

use serde_json::json;

use crate::doctor::facts::Facts;
use crate::doctor::look::files;
use crate::doctor::report::Verdict;
use crate::doctor::{Diagnosis, FindingCode, examine};
use crate::scratch::Folder;

pub(super) fn samples(folder: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

#[test]
fn the_samples_have_no_finding() {
    let facts = files::read(&samples("config/samples"), None).unwrap();
    assert!(facts.variants().count() >= 5);
    let diagnosis = examine(&facts);
    assert_eq!(diagnosis.verdict(), Verdict::Fine, "{}", diagnosis.to_text());
}

/// What is read of a folder with these files.
pub(super) fn written(texts: &[(&str, &str)]) -> Facts {
    let folder = Folder::new();
    for (file, text) in texts {
        folder.write(file, text);
    }
    files::read(&folder, None).unwrap()
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
    let found = |text: &str| {
        let diagnosis = examine(&written(&[("a.yaml", text)]));
        let found =
            diagnosis.findings().map(|one| (one.code, one.object.to_string(), one.cause.clone()));
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
        ("s", Some("x"), "replica", second.clone()),
        ("s", None, "replica", second.clone()),
        ("s", Some("y"), "replica", vec![]),
    ] {
        assert_eq!(found(&pair(target, role, mode)), expected, "{target} {role:?} {mode}");
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
    let rivals: Vec<_> =
        rivals.into_iter().filter(|(code, ..)| *code == FindingCode::AutoscalerConflict).collect();
    assert_eq!(rivals, expected);
}

#[test]
fn the_mode_of_a_storm_service_of_the_manifests_wins_over_annotations() {
    let service = |spec: &str| {
        format!(
            "\n---\napiVersion: orchestration.aibrix.ai/v1alpha1\nkind: StormService\n\
             metadata: {{name: s, namespace: ns}}\nspec: {{{spec}}}\n"
        )
    };
    let whole = "template: {spec: {roles: [{name: x}, {name: y}]}}";
    let stated = |mode: &str| service(&format!("mode: {mode}, {whole}"));
    let own = service(whole);
    let patch = service("paused: true");
    let one: &[&str] = &["WVA162 PodAutoscaler ns/a names StormService ns/s, too"];
    let both = format!("{}{}", stated("Replica"), stated("Pooled"));
    for (annotated, services, expected) in [
        ("pooled", "", &[][..]),
        ("pooled", &*stated("Pooled"), &[]),
        ("pooled", &*stated("Replica"), one),
        ("pooled", &*own, &[]),
        ("replica", "", &[]),
        ("replica", &*stated("Pooled"), &[]),
        ("replica", &*stated("Replica"), one),
        ("replica", &*own, one),
        // Which of its manifests is applied is not known.
        ("replica", &*patch, &[]),
        ("pooled", &*both, &[]),
    ] {
        let text = format!("{}{services}", pair("s", Some("y"), annotated));
        let found = lines(&text);
        let found: Vec<_> = found.iter().filter(|one| one.starts_with("WVA162")).collect();
        assert_eq!(found, expected, "{annotated} {services}");
    }
}

/// A Deployment, and a PodAutoscaler of it with one source of its pods.
pub(super) fn deployed(labels: &str, source: &str) -> String {
    format!(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: llm, namespace: ns}}
spec:
  selector: {{matchLabels: {{app: llm}}}}
  template:
    metadata: {{labels: {{app: llm{labels}}}}}
    spec:
      initContainers: [{{name: side, image: s, ports: [{{containerPort: 9000}}]}}]
      containers: [{{name: engine, image: e, ports: [{{containerPort: 8000}}]}}]
---
apiVersion: autoscaling.aibrix.ai/v1alpha1
kind: PodAutoscaler
metadata: {{name: pa, namespace: ns}}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: llm}}
  maxReplicas: 4
  scalingStrategy: APA
  metricsSources:
  - {{metricSourceType: pod, protocolType: http, path: /metrics, targetValue: '1', {source}}}
"
    )
}

#[test]
fn a_scaler_of_the_manifests_keeps_a_podautoscaler_from_its_target() {
    let source = "port: '8000', targetMetric: load";
    let scaler = |kind: &str, target: &str, owner: &str| {
        let version = if kind == "ScaledObject" { "keda.sh/v1alpha1" } else { "autoscaling/v2" };
        let text = format!(
            "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: s, namespace: ns{owner}}}\n\
             spec: {{maxReplicas: 3, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}}}\n"
        );
        let text = text.replace(
            "maxReplicas",
            if kind == "ScaledObject" { "maxReplicaCount" } else { "maxReplicas" },
        );
        let found = lines(&format!("{}{text}", deployed("", source)));
        let found = found.into_iter().filter(|line| line.starts_with("WVA162"));
        found.collect::<Vec<_>>()
    };
    for kind in ["HorizontalPodAutoscaler", "ScaledObject"] {
        assert_eq!(scaler(kind, "other", ""), Vec::<String>::new());
        let expected = format!("WVA162 {kind} ns/s names Deployment ns/llm, too");
        assert_eq!(scaler(kind, "llm", ""), [expected]);
    }
    for owner in [
        "autoscaling.aibrix.ai/v1alpha1, kind: PodAutoscaler",
        "keda.sh/v1alpha1, kind: ScaledObject",
    ] {
        let owner = format!(
            ", ownerReferences: [{{apiVersion: {owner}, name: pa, uid: u, controller: true}}]"
        );
        assert_eq!(scaler("HorizontalPodAutoscaler", "llm", &owner), Vec::<String>::new());
    }
}

#[test]
fn an_endpoint_that_is_not_read_is_found() {
    let endpoint = |endpoint: &str| {
        let source = format!("targetMetric: load, endpoint: '{endpoint}'");
        let external = deployed("", &source).replace("Type: pod", "Type: external");
        lines(&external)
    };
    assert_eq!(endpoint("queue.ns.svc:80"), Vec::<String>::new());
    for (refused, why) in [
        ("queue.ns.svc:0", "is no host with a port; write host:port"),
        ("169.254.169.254:80", "which is never read"),
        ("metrics.example.com:80", "is not permitted"),
    ] {
        let found = endpoint(refused);
        let field = "WVA164 spec.metricsSources[0].endpoint: ";
        assert!(
            found.len() == 1 && found[0].starts_with(field) && found[0].contains(why),
            "{refused}: {found:?}"
        );
    }
}

#[test]
fn a_source_that_no_pod_can_answer_is_found() {
    let metric = "spec.metricsSources[0].targetMetric: ";
    let no_port = |port: &str| {
        let why = "is no number from 1 to 65535; write one";
        format!("WVA164 spec.metricsSources[0].port: port {port:?} {why}")
    };
    for (source, expected) in wva_base::cases! {
        ("port: '8000', targetMetric: load", None),
        ("port: '9000', targetMetric: num_requests_running", None),
        ("port: '08000', targetMetric: load", None),
        ("port: abc, targetMetric: load", Some(no_port("abc"))),
        ("port: '99999', targetMetric: load", Some(no_port("99999"))),
        ("port: '8080', targetMetric: load",
         Some("WVA165 port 8080 is read, and the pods state 8000, 9000; check that a container listens".to_owned())),
        ("port: '8000', targetMetric: 'a b{c}'",
         Some(format!("WVA164 {metric}\"a b{{c}}\" is no name of a series (engine vllm); write letters"))),
        ("port: '8000', targetMetric: p95_ttft_5m",
         Some(format!("WVA164 {metric}p95_ttft_5m is the result of a Prometheus query"))),
        ("port: '8000', targetMetric: max_lora", Some(format!("WVA164 {metric}max_lora lists LoRA adapters"))),
        ("port: '8000', targetMetric: 'num_requests_running:p95'",
         Some(format!("WVA164 {metric}num_requests_running has no distribution"))),
    } {
        let found = lines(&deployed("", source));
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
        for (line, expected) in found.iter().zip(&expected) {
            assert!(line.starts_with(expected.as_str()), "{line}");
        }
        // A generated object reads no pages.
        let generated = deployed("", source).replace("APA", "HPA");
        assert_eq!(lines(&generated), Vec::<String>::new());
    }
    // The label of the pods names another engine, or is in no manifest.
    let engine = ", model.aibrix.ai/engine: unknown";
    let running = deployed(engine, "port: '8000', targetMetric: num_requests_running");
    let found = lines(&running);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("engine \"unknown\" is unknown"), "{found:?}");
    let alone = running.split_once("---\n").unwrap().1;
    assert_eq!(lines(alone), Vec::<String>::new());
}

#[test]
fn a_broken_manifest_is_found_without_its_surroundings() {
    let hpa = std::fs::read_to_string(samples("config/samples/scalers/hpa.yaml")).unwrap();
    let keda =
        std::fs::read_to_string(samples("config/samples/scalers/scaledobject.yaml")).unwrap();
    let fine = |hpa: &str, keda: &str| {
        let texts = [("hpa.yaml", hpa), ("keda.yaml", keda)];
        super::codes(&written(&texts))
    };
    assert_eq!(fine(&hpa, &keda), Vec::new());
    let broken = hpa.replace("stabilizationWindowSeconds: 0", "stabilizationWindowSeconds: 240");
    assert_eq!(fine(&broken, &keda), [FindingCode::SlowScaleUp]);
    let broken = keda.replace("max by", "sum by");
    assert_eq!(fine(&hpa, &broken), [FindingCode::QueryAddsUp]);
    assert_eq!(fine("apiVersion: [", &keda), [FindingCode::VariantMalformed]);
    assert!(files::read(&samples("none"), None).is_err());
}

/// The diagnosis of one file.
fn of_file(text: &str) -> Diagnosis {
    examine(&written(&[("it.yaml", text)]))
}

/// Code, cause and remedy of each finding, with the name of the file alone.
pub(super) fn lines(text: &str) -> Vec<String> {
    let diagnosis = of_file(text);
    let line = diagnosis.findings().map(|one| {
        let file = one.object.file.as_deref().unwrap_or_default();
        let remedy = one.remedy();
        assert!(file.ends_with("/it.yaml") && remedy == format!("edit {file}"), "{remedy}");
        format!("{} {}", one.code.id(), one.cause)
    });
    line.collect()
}

pub(super) const VARIANT: &str = "\
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata: {name: a, namespace: ns}
spec:
  scaleTargetRef: {name: a}
  modelID: m
  variantCost: \"3.0\"
  minReplicas: 2
  maxReplicas: 4
";

#[test]
fn a_variant_that_an_api_server_refuses_is_found_in_its_file() {
    assert_eq!(lines(VARIANT), Vec::<String>::new());
    for (name, from, to, cause) in wva_base::cases! {
        ("model", "modelID: m", "modelID: \"\"", "spec.modelID is \"\", which is too short"),
        ("none", "modelID: m\n", "accelerator: m\n", "spec.modelID is required"),
        ("bounds", "minReplicas: 2", "minReplicas: 5",
         "spec: minReplicas must be less than or equal to maxReplicas; 5 is above 4"),
        ("zero", "maxReplicas: 4", "maxReplicas: 0", "spec.maxReplicas is 0, and has to be at least 1"),
        ("many", "maxReplicas: 4", "maxReplicas: 2147483648",
         "spec.maxReplicas is 2147483648, and has to be at most 2147483647"),
        ("cost", "3.0", "-3", "spec.variantCost is \"-3\", and has to be a decimal number like \"10.0\""),
        ("type", "\"3.0\"", "3.0", "spec.variantCost is 3.0, and has to be of type string"),
        ("field", "minReplicas", "minReplica", "spec.minReplica is no field of this kind"),
        ("version", "v1alpha1", "v1beta9", "apiVersion \"llmd.ai/v1beta9\" is not known; write llmd.ai/v1alpha1"),
    } {
        let found = lines(&VARIANT.replace(from, to));
        assert!(found.contains(&format!("WVA080 {cause}")), "{name}: {found:?}");
        assert!(found.iter().all(|line| line.starts_with("WVA080")), "{name}: {found:?}");
    }
}

#[test]
fn thresholds_are_judged_without_their_controller() {
    let map = |entry: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: thresholds}}\ndata:\n  default: |\n    {entry}\n"
        )
    };
    let alone = "scaleUpThreshold: 0.6";
    let fine = map(&format!("analyzerName: slo\n    {alone}"));
    assert_eq!(lines(&fine), Vec::<String>::new());
    let found = lines(&map(&format!("analyzerName: saturation\n    {alone}")));
    assert_eq!(found.len(), 1, "{found:?}");
    let cause = "scaleUpThreshold (0.60) must be > scaleDownBoundary (0.70)";
    assert!(found[0].starts_with("WVA025") && found[0].contains(cause), "{found:?}");
}

#[test]
fn a_threshold_that_nothing_reads_is_a_note_and_no_finding() {
    let diagnosis = |analyzer: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: thresholds, namespace: ns}}\ndata:\n  \
             default: |\n    analyzerName: {analyzer}\n    kvSpareTrigger: 0.2\n"
        );
        of_file(&text)
    };
    let read = diagnosis("slo");
    assert!(read.notes.is_empty(), "{:?}", read.notes);
    assert!(!read.to_text().contains("notes on settings"));
    let unread = diagnosis("saturation");
    assert_eq!(unread.verdict(), Verdict::Fine, "{}", unread.to_text());
    let text = "global saturation ConfigMap, entry \"default\": kvSpareTrigger: only percentages read it, and \
                analyzers decide the models of this entry; remove it; every other setting is taken at its default";
    let [note] = unread.notes.as_slice() else {
        panic!("{:?}", unread.notes);
    };
    assert_eq!(
        (note.object.to_string().as_str(), note.text.as_str()),
        ("ConfigMap ns/thresholds", text)
    );
    let file = note.object.file.as_deref().unwrap();
    let line = format!(
        "notes on settings\n-----------------\nConfigMap ns/thresholds in {file}: {text}\n"
    );
    assert!(unread.to_text().contains(&line), "{}", unread.to_text());
    assert_eq!(unread.to_json()["notes"][0]["text"], text);
}

#[test]
fn what_no_manifest_holds_is_not_fine() {
    let target = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: ns}\n\
                  spec: {template: {spec: {containers: [{name: c, image: i}]}}}\n";
    let thresholds = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: thresholds, namespace: ns}\n\
                      data: {default: 'analyzerName: slo'}\n";
    let alone = of_file(&format!("{VARIANT}{target}"));
    let judged = of_file(&format!("{VARIANT}{target}{thresholds}"));
    for (diagnosis, is_judged) in [(alone, false), (judged, true)] {
        let text = diagnosis.to_text();
        assert_eq!(diagnosis.verdict(), Verdict::Fine, "{text}");
        assert_eq!(text.contains("√ settings are accepted"), is_judged, "{text}");
        for title in ["a scaler follows every variant", "every ConfigMap of settings is read"] {
            assert!(!text.contains(title), "{text}");
        }
    }
}

#[test]
fn a_patch_is_no_controller() {
    let deployment = |image: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: wva-controller-manager}}\n\
             spec: {{template: {{spec: {{containers: [{{name: manager{image}}}]}}}}}}\n"
        )
    };
    let found = lines(&deployment(", image: wva"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("WVA024"), "{found:?}");
    assert_eq!(lines(&deployment("")), Vec::<String>::new());
}
