//! What is refused, and what is only named.

use super::{object, partly_read, policy};
use crate::bounds::ZeroPolicy;
use crate::pod_autoscaler::PodAutoscalerObject;
use crate::pod_autoscaler::check::SpecProblem;
use crate::pod_autoscaler::hpa::GeneratedHpa;
use crate::pod_autoscaler::tuning::Tuning;
use serde_json::json;
use std::time::Duration;

fn refused(spec: &str) -> Vec<String> {
    let violations = object("pa", spec, &[]).check().unwrap_err();
    violations.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn a_name_without_a_time_zone_is_none() {
    let spec = |zone: &str| {
        format!(
            "
            scaleTargetRef: {{kind: Deployment, apiVersion: apps/v1, name: llm}}
            maxReplicas: 4
            scalingStrategy: KPA
            schedules:
            - {{name: day, timezone: {zone}, startTime: '09:00', endTime: '17:00', minReplicas: 2}}
            metricsSources:
            - {{metricSourceType: external, endpoint: 'gpu:8080', path: /metrics, protocolType: http, targetMetric: m, targetValue: '5'}}
            "
        )
    };
    assert!(object("pa", &spec("Etc/UTC"), &[]).check().is_ok());
    for zone in ["Etc/Unknown", "Etc/Nowhere"] {
        let expected = format!(
            "PodAutoscaler default/pa: spec.schedules[0].timezone: {zone:?} is no IANA timezone; write one like Europe/Berlin"
        );
        assert_eq!(refused(&spec(zone)), [expected]);
    }
}

#[test]
fn all_that_is_wrong_is_named_at_once_with_object_field_value_and_remedy() {
    let lines = refused(
        "
        scaleTargetRef: {kind: '', name: llm, namespace: other}
        subTargetSelector: {roleName: decode}
        minReplicas: 12
        scalingStrategy: VPA
        observeWindowSeconds: 0
        panicWindowSeconds: 4000
        schedules:
        - {name: night, timezone: Europe/Berlin, startTime: '22:00', endTime: '06:00', minReplicas: 1}
        - {name: night, timezone: UTC, startTime: '7:00', endTime: '08:00', maxReplicas: 0, daysOfWeek: [Monday]}
        metricsSources:
        - {metricSourceType: pod, targetMetric: '', targetValue: 100m}
        - {metricSourceType: resource, targetMetric: CPU, targetValue: '1', port: '80'}
        - {metricSourceType: external, endpoint: 'gpu:8080', protocolType: grpc, targetMetric: m, targetValue: inf}
        - {metricSourceType: disk, targetMetric: m, targetValue: '-1'}
        ",
    );
    let expected = [
        "spec.scaleTargetRef.kind: must be set",
        "spec.scaleTargetRef.namespace: \"other\" is another namespace; only targets in \"default\" are scaled",
        "spec.minReplicas: 12 is greater than maxReplicas 10; lower it",
        "spec.maxReplicas: 10 is less than minReplicas 12; raise it",
        "spec.scalingStrategy: \"VPA\" is no strategy; write HPA, KPA or APA",
        "spec.observeWindowSeconds: observeWindowSeconds 0 must be greater than 0; write 1 to 3600",
        "spec.panicWindowSeconds: panicWindowSeconds 4000 must be less than or equal to 3600; write 1 to 3600",
        "spec.schedules[1].timezone: mixed timezone: \"UTC\" after \"Europe/Berlin\"; write one for all",
        "spec.schedules[0]: startTime must be earlier than endTime, 22:00 is not before 06:00; split a window over midnight in two entries, one that ends at 23:59 and one that starts at 00:00; in the minute between, spec.minReplicas and spec.maxReplicas hold",
        "spec.schedules[1].name: duplicate of \"night\"; give each entry its own",
        "spec.schedules[1].daysOfWeek: unsupported weekday \"Monday\"; write Mon to Sun",
        "spec.schedules[1].startTime: \"7:00\" is no time; write HH:MM from 00:00 to 23:59",
        "spec.schedules[1].maxReplicas: 0 must be positive; write at least 1",
        "spec.metricsSources[0].targetMetric: metricsSource[0] targetMetric must be set",
        "spec.metricsSources[0].targetValue: \"100m\" must be a valid number; write for example 50",
        "spec.metricsSources[0].port: must be set for type pod",
        "spec.metricsSources[0].path: must be set for type pod",
        "spec.metricsSources[0].protocolType: must be set for type pod",
        "spec.metricsSources[1].port: \"80\" is not allowed for type resource; remove it",
        "spec.metricsSources[1].targetMetric: targetMetric \"CPU\" is no resource; write cpu or memory",
        "spec.metricsSources[2].targetValue: \"inf\" must be a valid number; write for example 50",
        "spec.metricsSources[2].path: must be set for type external with an endpoint",
        "spec.metricsSources[2].protocolType: \"grpc\" is no protocol; write http or https",
        "spec.metricsSources[3].targetValue: \"-1\" must be greater than 0 and at most 1e100; write for example 50",
        "spec.metricsSources[3].metricSourceType: \"disk\" is no source; write pod, resource, custom, external or domain",
    ]
    .map(|line| format!("PodAutoscaler default/pa: {line}"));
    assert_eq!(lines, expected);
}

#[test]
fn a_name_leaves_room_for_that_of_the_generated_object() {
    let checked = |length: usize, strategy: &str| {
        let name = "n".repeat(length);
        let checked = object(&name, &format!("scalingStrategy: {strategy}"), &[]).check();
        checked.map_err(|violations| {
            let found = violations.iter().map(ToString::to_string);
            (violations.problem(), found.collect::<Vec<String>>())
        })
    };
    let policy = checked(249, "HPA").unwrap();
    assert_eq!(GeneratedHpa::of(&policy, policy.base).name.len(), 253);
    assert!(checked(253, "KPA").is_ok());
    let why = "metadata.name: 250 letters leave no room for -hpa, which the generated object adds; \
               write at most 249, or strategy KPA or APA";
    let expected = (Some(SpecProblem::InvalidScalingStrategy), vec![why.to_owned()]);
    assert_eq!(checked(250, "HPA").unwrap_err(), expected);
}

#[test]
fn a_target_is_in_the_namespace_of_its_object() {
    for (namespace, is_accepted) in
        [("other", false), ("' '", false), ("default", true), ("''", true), ("null", true)]
    {
        let target =
            format!("{{apiVersion: apps/v1, kind: Deployment, name: d, namespace: {namespace}}}");
        let checked = object("pa", &format!("scaleTargetRef: {target}"), &[]).check();
        assert_eq!(checked.is_ok(), is_accepted, "{namespace}");
    }
}

#[test]
fn a_role_needs_a_storm_service_of_its_group_and_version() {
    let of = |api_version: &str, kind: &str| {
        let target = format!("{{apiVersion: '{api_version}', kind: {kind}, name: s}}");
        let spec = format!("scaleTargetRef: {target}\nsubTargetSelector: {{roleName: decode}}");
        object("pa", &spec, &[]).check().map_err(|violations| violations.to_string())
    };
    assert!(of("orchestration.aibrix.ai/v1alpha1", "StormService").is_ok());
    for version in ["", "apps/v1", "orchestration.aibrix.ai/v1"] {
        let expected = format!(
            "PodAutoscaler default/pa: spec.scaleTargetRef.apiVersion: {version:?} has no StormService; write apiVersion orchestration.aibrix.ai/v1alpha1"
        );
        assert_eq!(of(version, "StormService").unwrap_err(), expected);
    }
    assert_eq!(
        of("apps/v1", "Deployment").unwrap_err(),
        "PodAutoscaler default/pa: spec.subTargetSelector.roleName: a Deployment has no roles; remove it"
    );
}

#[test]
fn what_is_left_out_or_null_is_named_with_all_else() {
    let mut object = object(
        "pa",
        "{scaleTargetRef: null, maxReplicas: null, metricsSources: null, minReplicas: -1}",
        &[("autoscaling.aibrix.ai/panic-threshold", "1")],
    );
    let lines = |object: &PodAutoscalerObject| -> Vec<String> {
        let violations = object.check().unwrap_err();
        violations.to_string().lines().map(str::to_owned).collect()
    };
    let expected = [
        "spec.scaleTargetRef.name: must be set",
        "spec.scaleTargetRef.kind: must be set",
        "spec.minReplicas: -1 must not be negative; write at least 0",
        "spec.maxReplicas: must be set; write at least 1",
        "spec.metricsSources: at least one metricsSource must be set",
        "annotation autoscaling.aibrix.ai/panic-threshold: \"1\" must be above 1; write for example 2; 2 is kept",
    ]
    .map(|line| format!("PodAutoscaler default/pa: {line}"));
    assert_eq!(lines(&object), expected);
    object.spec = serde_yaml::from_str("{scalingStrategy: KPA, minReplicas: -1}").unwrap();
    assert_eq!(lines(&object), expected);
}

#[test]
fn a_maximum_below_one_is_named_once() {
    assert_eq!(
        refused("{minReplicas: 1, maxReplicas: -1}"),
        ["PodAutoscaler default/pa: spec.maxReplicas: -1 must be positive; write at least 1"]
    );
    let schedule = "schedules: [{name: a, startTime: '07:00', endTime: '08:00', maxReplicas: -1}]";
    assert_eq!(
        refused(schedule),
        [
            "PodAutoscaler default/pa: spec.schedules[0].maxReplicas: -1 must be positive; write at least 1"
        ]
    );
}

#[test]
fn an_object_of_any_size_is_judged_in_bounded_memory() {
    let entry =
        "{name: a, startTime: '07:00', endTime: '08:00', maxReplicas: 2, daysOfWeek: [Mon, Mon]}";
    let schedules = |count: usize| format!("schedules: [{}]", [entry].repeat(count).join(", "));
    let lines = refused(&schedules(3));
    // Two duplicates, and three overlaps.
    assert_eq!(lines.len(), 5, "{lines:?}");
    let lines = refused(&schedules(1_000));
    assert!(lines[0].ends_with("spec.schedules: has 1000 entries; write at most 100"));
    assert_eq!(lines.len(), 200);
    let sources = format!("metricsSources: [{}]", ["{}"].repeat(1_000).join(", "));
    let lines = refused(&sources);
    assert!(
        lines[0].contains("1000 sources are more than are read; write at most 32"),
        "{}",
        lines[0]
    );
    // One for each of three fields of 32 sources.
    assert_eq!(lines.len(), 97);
    let strategy = format!("scalingStrategy: {}", "X".repeat(10_000));
    let lines = refused(&strategy);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].len() < 600 && lines[0].ends_with('…'), "{lines:?}");
}

#[test]
fn integers_of_a_generated_object_fit_their_fields() {
    let policy = partly_read(
        "
        scalingStrategy: HPA
        metricsSources: [{metricSourceType: resource, targetMetric: cpu, targetValue: '1e12'}]
        ",
        &[("max-scale-up-rate", "1e12")],
    );
    let spec = GeneratedHpa::of(&policy, policy.base).spec;
    let most = i32::MAX.unsigned_abs();
    assert_eq!(spec["metrics"].as_array().unwrap().len(), 1);
    assert_eq!(spec["metrics"][0]["resource"]["target"]["averageUtilization"], most);
    assert_eq!(spec["behavior"]["scaleUp"]["policies"][0]["value"], most);
}

/// As the API server writes them. What is stored otherwise would be written again at each tick.
#[test]
fn large_quantities_of_a_generated_object_are_canonical() {
    for (kind, metric, target, expected) in [
        ("external", "q", "5e15", "5P"),
        ("external", "q", "3e18", "3E"),
        ("external", "q", "1e90", "9E"),
        ("resource", "memory", "17179869184", "16Pi"),
        ("resource", "memory", "1099511627776", "1Ei"),
        ("resource", "memory", "1e90", "9E"),
    ] {
        let source =
            format!("metricSourceType: {kind}, targetMetric: {metric}, targetValue: '{target}'");
        let policy =
            partly_read(&format!("scalingStrategy: HPA\nmetricsSources: [{{{source}}}]"), &[]);
        let spec = GeneratedHpa::of(&policy, policy.base).spec;
        assert_eq!(spec["metrics"][0][kind]["target"]["averageValue"], expected, "{target}");
    }
}

#[test]
fn a_generated_object_states_a_version_of_its_target_where_there_is_one() {
    let reference = |version: &str| {
        let policy = policy(
            &format!(
                "
                scalingStrategy: HPA
                scaleTargetRef: {{{version} kind: Deployment, name: llm}}
                metricsSources: [{{metricSourceType: resource, targetMetric: cpu, targetValue: '50'}}]
                "
            ),
            &[],
        );
        GeneratedHpa::of(&policy, policy.base).manifest()["spec"]["scaleTargetRef"].to_string()
    };
    assert_eq!(
        reference("apiVersion: apps/v1,"),
        r#"{"apiVersion":"apps/v1","kind":"Deployment","name":"llm"}"#
    );
    assert_eq!(reference(""), r#"{"kind":"Deployment","name":"llm"}"#);
}

#[test]
fn a_short_long_window_is_refused_for_the_default_of_the_short_one() {
    let lines = refused("observeWindowSeconds: 30");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("panicWindowSeconds 60 must be"), "{lines:?}");
    assert_eq!(policy("observeWindowSeconds: 60", &[]).windows.panic.as_secs(), 60);
}

#[test]
fn a_window_that_is_refused_is_compared_with_none() {
    let lines = refused("{observeWindowSeconds: 240, panicWindowSeconds: 300}");
    let expected = "panicWindowSeconds 300 must be less than or equal to observeWindowSeconds 240";
    assert!(lines.len() == 1 && lines[0].contains(expected), "{lines:?}");
    let lines = refused("{observeWindowSeconds: 4000, panicWindowSeconds: 300}");
    let expected = "observeWindowSeconds 4000 must be less than or equal to 3600";
    assert!(lines.len() == 1 && lines[0].contains(expected), "{lines:?}");
}

/// A key, a value, and what is said of it.
const UNREAD: [(&str, &str, &str); 16] = wva_base::cases! {
    ("max-scale-up-rate", "0.5", "must be at least 1; write for example 2; 2 is kept"),
    ("max-scale-up-rate", "NaN", "must be a valid number; write for example 2; 2 is kept"),
    ("max-scale-down-rate", "", "must be a valid number"),
    ("scale-up-tolerance", "1", "must be at least 0 and below 1; write for example 0.1; 0.1 is kept"),
    ("scale-down-tolerance", "-0.1", "must be at least 0 and below 1"),
    ("panic-threshold", "1", "must be above 1"),
    ("scale-up-cooldown-window", "30", "is no window: \"30\" has no unit; write 0s to 1h, like 90s; 0s is kept"),
    ("scale-up-cooldown-window", "5 m",
     "is no window: a unit is h, m, s, ms, us or ns, right behind its number; write 0s to 1h, like 90s; 0s is kept"),
    ("scale-up-cooldown-window", "5min", "is no window: a unit is h, m, s, ms, us or ns, right behind its number"),
    ("scale-up-cooldown-window", "1y", "is no window: a unit is h, m, s, ms, us or ns, right behind its number"),
    ("scale-down-cooldown-window", "2h",
     "is no window: it is longer than an hour; write 0s to 1h, like 90s; 5m0s is kept"),
    ("scale-to-zero", "yes", "is neither true nor false; write one of them; false is kept"),
    ("storm-service-mode", "Replica", "is neither replica nor pooled; pooled is kept"),
    ("up-fluctuation-tolerance", "0.2", "has no effect; remove it, or write autoscaling.aibrix.ai/scale-up-tolerance"),
    ("stable-window", "60s", "has no effect; remove it, or write spec.observeWindowSeconds"),
    ("unknown", "1", "has no effect; remove it, or write one of the documented keys"),
};

#[test]
fn an_endpoint_under_hpa_is_named_as_without_effect() {
    for (strategy, named) in [("KPA", vec![]), ("APA", vec![]), ("HPA", vec![1])] {
        let spec = format!(
            "
            scalingStrategy: {strategy}
            metricsSources:
            - {{metricSourceType: external, targetMetric: queue, targetValue: '10'}}
            - {{metricSourceType: external, protocolType: http, endpoint: 'o.ns.svc:80', path: /m, targetMetric: q,
               targetValue: '10'}}
            "
        );
        let policy = object("pa", &spec, &[]).check().unwrap();
        let found = policy.faults.iter().map(ToString::to_string);
        let expected = named.into_iter().map(|index: usize| {
            format!(
                "field spec.metricsSources[{index}].endpoint has no effect: an HPA reads metrics APIs alone"
            )
        });
        assert!(found.eq(expected), "{strategy}");
    }
}

#[test]
fn a_metric_name_that_a_metrics_api_cannot_have_is_refused_where_one_is_read() {
    let pod = "metricSourceType: pod, protocolType: http, path: /m, port: '80'";
    let service =
        "metricSourceType: external, protocolType: http, endpoint: 'o.ns.svc:80', path: /m";
    let refused_names = |source: &str, strategy: &str| {
        let names = "a/b %x . .. / ... a.b vllm:num_requests_running";
        let refused = names.split(' ').filter(|name| {
            let source = format!("{source}, targetMetric: '{name}', targetValue: '10'");
            let spec = format!("scalingStrategy: {strategy}\nmetricsSources: [{{{source}}}]");
            let Err(violations) = object("pa", &spec, &[]).check() else {
                return false;
            };
            let expected = format!(
                "spec.metricsSources[0].targetMetric: {name:?} is no name that a metrics API takes; write one \
                 without / and %, and neither . nor .."
            );
            let found: Vec<String> = violations.iter().map(ToString::to_string).collect();
            assert_eq!(found, [expected], "{strategy}");
            assert_eq!(violations.problem(), Some(SpecProblem::MetricsConfigError));
            true
        });
        refused.collect::<Vec<&str>>()
    };
    let all: &[&str] = &["a/b", "%x", ".", "..", "/"];
    for strategy in ["HPA", "KPA", "APA"] {
        for source in ["metricSourceType: custom", "metricSourceType: external"] {
            assert_eq!(refused_names(source, strategy), all, "{strategy} {source}");
        }
        let of_page: &[&str] = if strategy == "HPA" { all } else { &[] };
        for source in [pod, service] {
            assert_eq!(refused_names(source, strategy), of_page, "{strategy} {source}");
        }
    }
}

#[test]
fn fields_that_a_type_does_not_read_are_named_as_without_effect() {
    let all = "protocolType: http, endpoint: 'o.ns.svc:80', path: /m, port: '80'";
    let page = "protocolType: http, path: /m, port: '80'";
    for (kind, fields, named) in wva_base::cases! {
        ("pod", page, vec![]),
        ("pod", all, vec!["endpoint"]),
        ("custom", "", vec![]),
        ("custom", all, vec!["protocolType", "endpoint", "path", "port"]),
        ("external", "", vec![]),
        ("external", page, vec!["protocolType", "path", "port"]),
        ("domain", page, vec!["protocolType", "path", "port"]),
        ("external", all, vec!["port"]),
    } {
        let source =
            format!("metricSourceType: {kind}, targetMetric: q, targetValue: '10', {fields}");
        let spec = format!("metricsSources: [{{{source}}}]");
        let faults = object("pa", &spec, &[]).check().unwrap().faults;
        let found: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), named.len(), "{kind} {fields}: {found:?}");
        for (found, field) in found.iter().zip(named) {
            let start = format!("field spec.metricsSources[0].{field} has no effect: the ");
            assert!(found.starts_with(&start), "{found}");
        }
    }
}

#[test]
fn each_annotation_is_judged_alone() {
    let service = "scaleTargetRef: {apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: s}";
    for (key, value, said) in UNREAD {
        let full = format!("autoscaling.aibrix.ai/{key}");
        let other = if key == "max-scale-down-rate" {
            ("autoscaling.aibrix.ai/max-scale-up-rate", "3")
        } else {
            ("autoscaling.aibrix.ai/max-scale-down-rate", "3")
        };
        let policy = object("pa", service, &[(full.as_str(), value), other]).check().unwrap();
        assert_eq!(policy.faults.len(), 1, "{key}");
        let shown = policy.faults[0].to_string();
        let start = format!("annotation {full}: {value:?} {said}");
        assert!(shown.starts_with(&start), "{shown}");
        let (alone, _) = Tuning::read(&[(other.0.into(), other.1.into())].into());
        assert_eq!(policy.tuning, alone, "{key}");
    }
}

#[test]
fn annotations_tune() {
    let tuning = policy(
        "minReplicas: 0",
        &[
            ("max-scale-up-rate", "1e1"),
            ("scale-down-tolerance", "0"),
            ("scale-down-cooldown-window", "1m30s"),
            ("scale-to-zero", "T"),
        ],
    )
    .tuning;
    assert!((tuning.scale_up_rate.get() - 10.0).abs() < 1e-9);
    assert_eq!(tuning.scale_down_window, Duration::from_secs(90));
    assert_eq!(tuning.zero, ZeroPolicy::Enabled);
}

#[test]
fn a_generated_object_follows_type_rates_and_precision() {
    let policy = partly_read(
        "
        scalingStrategy: HPA
        metricsSources:
        - {metricSourceType: custom, targetMetric: cpu, targetValue: '0.0001'}
        - {metricSourceType: resource, targetMetric: memory, targetValue: '0.5'}
        - {metricSourceType: external, targetMetric: queue, targetValue: '2.25'}
        - {metricSourceType: resource, targetMetric: cpu, targetValue: '70.2'}
        ",
        &[("max-scale-up-rate", "1"), ("max-scale-down-rate", "3")],
    );
    let spec = GeneratedHpa::of(&policy, policy.base).spec;
    let average = |value: &str| json!({"type": "AverageValue", "averageValue": value});
    let utilization = json!({"type": "Utilization", "averageUtilization": 71});
    let expected = json!([
        {"type": "Pods", "pods": {"metric": {"name": "cpu"}, "target": average("1m")}},
        {"type": "Resource", "resource": {"name": "memory", "target": average("524288")}},
        {"type": "External", "external": {"metric": {"name": "queue"}, "target": average("2250m")}},
        {"type": "Resource", "resource": {"name": "cpu", "target": utilization}},
    ]);
    assert_eq!(spec["metrics"], expected);
    let (up, down) = (&spec["behavior"]["scaleUp"], &spec["behavior"]["scaleDown"]);
    assert_eq!((&up["policies"], &down["policies"][0]["value"]), (&json!(null), &json!(66)));
    assert_eq!(up["selectPolicy"], "Disabled");
}
