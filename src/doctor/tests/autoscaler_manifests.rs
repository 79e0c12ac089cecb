//! Manifests of PodAutoscalers.

use super::manifests::{deployed, lines};

/// What is found where a part of a good manifest is replaced.
fn found(from: &str, to: &str) -> Vec<String> {
    let good = deployed("", "port: '8000', targetMetric: load");
    assert_eq!(lines(&good), Vec::<String>::new());
    assert!(good.contains(from), "{from}");
    lines(&good.replace(from, to))
}

#[test]
fn each_fault_of_a_manifest_is_one_finding() {
    for (name, from, to, expected) in wva_base::cases! {
        ("strategy", "APA", "VPA", "WVA160 spec.scalingStrategy: \"VPA\" is no strategy; write HPA, KPA or APA"),
        ("behavior", "maxReplicas: 4", "maxReplicas: 4\n  behavior: {}",
         "WVA166 field spec.behavior has no effect: PodAutoscalers have none"),
        ("maximum", "maxReplicas: 4", "minReplicas: 0", "WVA160 spec.maxReplicas: must be set; write at least 1"),
        ("annotation", "metadata: {name: pa, namespace: ns}",
         "metadata: {name: pa, namespace: ns, annotations: {autoscaling.aibrix.ai/panic-threshold: 3}}",
         "WVA160 metadata.annotations.autoscaling.aibrix.ai/panic-threshold: invalid type: integer `3`, expected a \
         string; write it in quotes"),
    } {
        assert_eq!(found(from, to), [expected], "{name}");
    }
    let both = found(
        "maxReplicas: 4\n  scalingStrategy: APA",
        "maxReplicas: many\n  scalingStrategy: VPA",
    );
    assert_eq!(
        both,
        [
            "WVA160 spec.maxReplicas: invalid type: string \"many\"; write a whole number from 1 to 2147483647",
            "WVA160 spec.scalingStrategy: \"VPA\" is no strategy; write HPA, KPA or APA",
        ]
    );
}

#[test]
fn a_key_that_stands_twice_is_one_finding_whatever_its_values_are() {
    let target = "kind: Deployment, name: llm";
    for (name, from, separator, last) in [
        ("type", "maxReplicas: 4", "\n  ", "maxReplicas: many"),
        ("text", "scalingStrategy: APA", "\n  ", "scalingStrategy: VPA"),
        ("target", target, ", ", "kind: Deployment, name: ''"),
    ] {
        let once = found(from, last);
        assert_eq!(once.len(), 1, "{name}: {once:?}");
        assert!(once[0].starts_with("WVA160"), "{name}: {once:?}");
        let both = format!("{from}{separator}{last}");
        let twice = found(from, &both);
        assert_eq!(twice.len(), 1, "{name}: {twice:?}");
        assert!(
            twice[0].starts_with("WVA080 spec") && twice[0].contains("stands twice; write it once"),
            "{name}: {twice:?}"
        );
    }
}

#[test]
fn an_object_of_another_version_is_found() {
    let own = "autoscaling.aibrix.ai/v1alpha1";
    let expected = "WVA080 apiVersion \"autoscaling.aibrix.ai/v1\" is not known; write autoscaling.aibrix.ai/v1alpha1";
    assert_eq!(found(own, "autoscaling.aibrix.ai/v1"), [expected]);
    let foreign = found(own, "autoscaling.internal.knative.dev/v1alpha1");
    assert_eq!(foreign, Vec::<String>::new());
}

#[test]
fn a_target_of_no_kind_is_found() {
    let of = |reference: &str| {
        let good = "{apiVersion: apps/v1, kind: Deployment, name: llm}";
        found(good, reference)
    };
    for served in [
        "{apiVersion: apps/v1, kind: StatefulSet, name: llm}",
        "{apiVersion: v1, kind: ReplicationController, name: llm}",
        "{apiVersion: example.com/v2, kind: Fleet, name: llm}",
    ] {
        assert_eq!(of(served), Vec::<String>::new(), "{served}");
    }
    for (reference, code, expected) in wva_base::cases! {
        ("{kind: Deployment, name: llm}", "WVA167", "apiVersion: must be set; write apps/v1"),
        ("{kind: Fleet, name: llm}", "WVA167",
         "apiVersion: must be set; write apiVersion and kind of an object that has a scale subresource"),
        ("{apiVersion: apps/v2, kind: Deployment, name: llm}", "WVA167",
         "apiVersion: \"apps/v2\" has no Deployment that can be scaled; write apps/v1"),
        ("{apiVersion: v1, kind: Deployment, name: llm}", "WVA167",
         "apiVersion: \"v1\" has no Deployment that can be scaled; write apps/v1"),
        ("{apiVersion: extensions/v1beta1, kind: Deployment, name: llm}", "WVA167",
         "apiVersion: \"extensions/v1beta1\" has no Deployment that can be scaled; write apps/v1"),
        ("{apiVersion: batch/v1, kind: Job, name: llm}", "WVA167",
         "apiVersion: \"batch/v1\" has no Job that can be scaled; write apiVersion and kind of an object that has a \
         scale subresource"),
        ("{apiVersion: Apps/v1, kind: Deployment, name: llm}", "WVA167",
         "apiVersion: \"Apps/v1\" is no group and version; write apps/v1"),
        ("{apiVersion: apps/v1, kind: deployment, name: llm}", "WVA167",
         "apiVersion: \"apps/v1\" has no deployment that can be scaled; write apiVersion and kind of an object that \
         has a scale subresource"),
        ("{apiVersion: autoscaling.aibrix.ai/v1alpha1, kind: PodAutoscaler, name: llm}", "WVA167",
         "apiVersion: \"autoscaling.aibrix.ai/v1alpha1\" has no PodAutoscaler that can be scaled; write apiVersion and \
         kind of an object that has a scale subresource"),
        ("{apiVersion: apps/v1, kind: Deployment, name: T/x}", "WVA167", "name: \"T/x\" is not an object name: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at \
         both ends of each part"),
        ("{apiVersion: apps/v1, name: llm}", "WVA160", "kind: must be set"),
        ("{apiVersion: 1, kind: Deployment, name: llm}", "WVA160",
         "apiVersion: invalid type: integer `1`, expected a string; write it in quotes"),
    } {
        let expected = format!("{code} spec.scaleTargetRef.{expected}");
        assert_eq!(of(reference), [expected], "{reference}");
    }
}

/// What is found of a StormService with two roles, and of an object that scales it.
fn of_service(service: &str, object: &str) -> Vec<String> {
    lines(&scaled_service(service, object))
}

/// A StormService, and an object that scales it.
fn scaled_service(service: &str, object: &str) -> String {
    let roles = "template: {spec: {roles: [{name: decode}, {name: prefill, replicas: 2, template: {spec: \
                 {containers: [{name: engine, image: e, ports: [{containerPort: 8000}]}]}}}]}}";
    let service = service.replace("ROLES", roles);
    format!(
        "\
apiVersion: orchestration.aibrix.ai/v1alpha1
kind: StormService
metadata: {{name: s, namespace: ns}}
spec: {{{service}}}
---
apiVersion: autoscaling.aibrix.ai/v1alpha1
kind: PodAutoscaler
metadata: {{name: pa, namespace: ns, annotations: {{autoscaling.aibrix.ai/storm-service-mode: pooled}}}}
spec:
  scaleTargetRef: {{apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: s}}
  maxReplicas: 4
  scalingStrategy: APA
  metricsSources: [{{metricSourceType: pod, protocolType: http, path: /m, port: '8000', targetMetric: load, targetValue: '1'}}]
  {object}
"
    )
}

#[test]
fn a_storm_service_is_judged_as_the_controller_judges_it() {
    let role = |name: &str| format!("subTargetSelector: {{roleName: {name}}}");
    let whole = "replicas: 1, ROLES";
    for (service, object, expected) in [
        (whole, String::new(), None),
        (whole, role("prefill"), None),
        (
            "ROLES",
            String::new(),
            Some("WVA167 StormService s: spec.replicas is not set; write a count there"),
        ),
        (
            whole,
            role("zz"),
            Some(
                "WVA167 StormService s: spec.template.spec.roles has no role \"zz\"; add it, or correct \
                 spec.subTargetSelector.roleName",
            ),
        ),
        (
            whole,
            role("decode"),
            Some(
                "WVA167 StormService s: spec.template.spec.roles[0].replicas (decode) is not set; write a count there",
            ),
        ),
        (
            whole,
            role("''"),
            Some(
                "WVA167 StormService s is pooled and spec.subTargetSelector.roleName is empty; name a role, or remove \
                 subTargetSelector",
            ),
        ),
        (
            "replicas: 1, mode: Replica, ROLES",
            role("prefill"),
            Some(
                "WVA166 annotation autoscaling.aibrix.ai/storm-service-mode: \"pooled\" has no effect: spec.mode of \
                 the StormService is another; remove it",
            ),
        ),
        // A patch of one that is elsewhere.
        ("paused: true", role("zz"), None),
    ] {
        let found = of_service(service, &object);
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(found, expected, "{service} {object}");
    }
}

#[test]
fn a_wrong_mode_that_the_service_overrides_is_one_finding() {
    let found = |mode: &str| {
        let service = format!("replicas: 1, {mode}ROLES");
        let text = scaled_service(&service, "subTargetSelector: {roleName: prefill}");
        lines(&text.replace("storm-service-mode: pooled", "storm-service-mode: both"))
    };
    let fault = "WVA166 annotation autoscaling.aibrix.ai/storm-service-mode: \"both\"";
    assert_eq!(found(""), [format!("{fault} is neither replica nor pooled; pooled is kept")]);
    let overridden = "has no effect: spec.mode of the StormService is another; remove it";
    assert_eq!(found("mode: Replica, "), [format!("{fault} {overridden}")]);
}

#[test]
fn pods_of_a_storm_service_that_are_not_measured_are_not_judged() {
    let found = |sizes: [u32; 2]| {
        let role = |name: &str, size: u32, port: u16| {
            format!(
                "{{name: {name}, replicas: 1, podGroupSize: {size}, \
                 template: {{spec: {{containers: [{{name: engine, image: e, ports: [{{containerPort: {port}}}]}}]}}}}}}"
            )
        };
        let [first, second] = sizes;
        let roles = [role("decode", first, 9000), role("proxy", second, 8000)].join(", ");
        let spec = format!("replicas: 1, template: {{spec: {{roles: [{roles}]}}}}");
        of_service(&spec, "")
    };
    for sizes in [[1, 1], [2, 2], [1, 2]] {
        assert_eq!(found(sizes), Vec::<String>::new(), "{sizes:?}");
    }
    let expected =
        "WVA165 port 8000 is read, and the pods state 9000; check that a container listens there";
    assert_eq!(found([2, 1]), [expected]);
}

#[test]
fn a_series_that_one_role_of_a_storm_service_has_is_no_finding() {
    let found = |engines: [&str; 2]| {
        let roles = engines.map(|engine| {
            format!(
                "{{name: of-{engine}, replicas: 1, \
                 template: {{metadata: {{labels: {{model.aibrix.ai/engine: {engine}}}}}}}}}"
            )
        });
        let roles = roles.join(", ");
        let spec = format!("replicas: 1, template: {{spec: {{roles: [{roles}]}}}}");
        let text = scaled_service(&spec, "");
        lines(&text.replace("targetMetric: load", "targetMetric: num_requests_running"))
    };
    for engines in [["vllm", "sglang"], ["vllm", "trtllm"], ["trtllm", "vllm"]] {
        assert_eq!(found(engines), Vec::<String>::new(), "{engines:?}");
    }
    let none = found(["trtllm", "xllm"]);
    let start = "WVA164 spec.metricsSources[0].targetMetric: engine trtllm has no series for num_requests_running";
    assert!(none.len() == 1 && none[0].starts_with(start), "{none:?}");
}

#[test]
fn a_foreign_object_with_the_name_of_the_generated_one_is_found() {
    let found_of = |strategy: &str, name: &str, owner: &str| {
        let scaler = format!(
            "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n\
             metadata: {{name: {name}, namespace: ns{owner}}}\n\
             spec: {{maxReplicas: 3, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: other}}}}\n"
        );
        let good = deployed("", "port: '8000', targetMetric: load");
        let found = lines(&format!("{}{scaler}", good.replace("APA", strategy)));
        let found = found.into_iter().filter(|line| line.starts_with("WVA167"));
        found.collect::<Vec<_>>()
    };
    let own = ", ownerReferences: [{apiVersion: autoscaling.aibrix.ai/v1alpha1, kind: PodAutoscaler, name: pa, uid: u}]";
    for (strategy, name, owner) in
        [("HPA", "other-hpa", ""), ("APA", "pa-hpa", ""), ("HPA", "pa-hpa", own)]
    {
        assert_eq!(found_of(strategy, name, owner), Vec::<String>::new(), "{strategy} {name}");
    }
    let expected = "WVA167 HorizontalPodAutoscaler ns/pa-hpa is not this object's; delete or rename it, or rename the \
                    PodAutoscaler";
    assert_eq!(found_of("HPA", "pa-hpa", ""), [expected]);
}
