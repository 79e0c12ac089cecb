//! Annotations and fields that nothing reads.

use jiff::Timestamp;

use super::statuses::{first, judged};
use super::{Loop, object, partly_read};
use crate::pod_autoscaler::hpa::GeneratedHpa;
use crate::pod_autoscaler::record::AutoscalerVerdict;
use crate::pod_autoscaler::status::ScaleOutcome;
use crate::units::Replicas;

/// What is named of an object.
fn named(spec: &str, annotations: &[(&str, &str)]) -> Vec<String> {
    let faults = object("pa", spec, annotations).check().unwrap().faults;
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn annotations_that_a_strategy_or_a_target_does_not_read_are_named() {
    let service = "the target is no StormService";
    let minimum = "neither minReplicas nor that of a schedule is 0";
    let tolerance = "the HPA controller has a tolerance of its own";
    for (key, value, unread) in wva_base::cases! {
        ("max-scale-up-rate", "3", [None; 3]),
        ("scale-down-cooldown-window", "1m", [None; 3]),
        ("scale-up-tolerance", "0.3", [None, None, Some(tolerance)]),
        ("panic-threshold", "3", [None, Some("only KPA panics"), Some("only KPA panics")]),
        ("scale-to-zero", "true", [Some(minimum), Some(minimum), Some("only KPA and APA go to zero by load")]),
        ("scale-to-zero", "false", [None; 3]),
        ("scale-to-zero", "F", [None; 3]),
        ("storm-service-mode", "replica", [Some(service); 3]),
    } {
        for (strategy, why) in ["KPA", "APA", "HPA"].into_iter().zip(unread) {
            let full = format!("autoscaling.aibrix.ai/{key}");
            let spec = format!("scalingStrategy: {strategy}");
            let found = named(&spec, &[(full.as_str(), value)]);
            let expected = why
                .map(|why| format!("annotation {full}: {value:?} has no effect: {why}; remove it"));
            assert_eq!(found, Vec::from_iter(expected), "{key} {strategy}");
        }
    }
    // A value that is wrong is wrong where it is read alone.
    let share = "must be at least 0 and below 1; write for example 0.1; 0.1 is kept";
    let word = "is neither true nor false; write one of them; false is kept";
    let zero = "only KPA and APA go to zero by load";
    for (key, value, read, unread) in
        [("scale-up-tolerance", "2", share, tolerance), ("scale-to-zero", "maybe", word, zero)]
    {
        let full = format!("autoscaling.aibrix.ai/{key}");
        let unread = format!("has no effect: {unread}; remove it");
        for (strategy, end) in [("KPA", read), ("HPA", &*unread)] {
            let found = named(&format!("scalingStrategy: {strategy}"), &[(full.as_str(), value)]);
            assert_eq!(found, [format!("annotation {full}: {value:?} {end}")]);
        }
    }
}

#[test]
fn a_key_of_an_older_group_names_the_one_of_now() {
    let found = |key: &str| named("", &[(key, "3")]);
    assert_eq!(found("autoscaling.aibrix.ai/panic-threshold"), Vec::<String>::new());
    for (name, successor) in [
        ("panic-threshold", "autoscaling.aibrix.ai/panic-threshold"),
        ("panic-window", "spec.panicWindowSeconds"),
        ("other", "one of the documented keys"),
    ] {
        let key = format!("kpa.autoscaling.aibrix.ai/{name}");
        let expected =
            format!("annotation {key}: \"3\" has no effect; remove it, or write {successor}");
        assert_eq!(found(&key), [expected]);
    }
}

#[test]
fn an_endpoint_and_a_port_that_nothing_reads_have_one_reason() {
    let source = "
        metricsSources:
        - {metricSourceType: external, protocolType: http, endpoint: 'o.ns.svc:80', path: /m, port: '80',
           targetMetric: q, targetValue: '10'}
    ";
    let line = |field: &str, why: &str| {
        format!("field spec.metricsSources[0].{field} has no effect: {why}")
    };
    for strategy in ["KPA", "APA"] {
        let found = named(&format!("{source}    scalingStrategy: {strategy}"), &[]);
        let why = "the endpoint is read, which states its own";
        assert_eq!(found, [line("port", why)], "{strategy}");
    }
    let found = named(&format!("{source}    scalingStrategy: HPA"), &[]);
    let why = "an HPA reads metrics APIs alone";
    assert_eq!(found, [line("endpoint", why), line("port", why)]);
}

#[test]
fn a_target_that_an_hpa_rounds_is_named_with_both_values() {
    let (thousandths, bytes) = ("whole thousandths up to 9e18", "whole bytes up to 9e18");
    let percents = "whole percents";
    for (kind, metric, target, kept) in wva_base::cases! {
        ("external", "q", "0.001", None),
        ("external", "q", "0.0014", Some(("0.001", thousandths))),
        ("external", "q", "0.0996", None),
        ("external", "q", "0.0004", Some(("0.001", thousandths))),
        ("custom", "q", "1e-9", Some(("0.001", thousandths))),
        ("pod, port: '1', path: /m, protocolType: http", "q", "1e-9", Some(("0.001", thousandths))),
        ("domain", "q", "9e18", None),
        ("domain", "q", "1e30", Some(("9000000000000000000", thousandths))),
        ("resource", "cpu", "50", None),
        ("resource", "cpu", "50.5", None),
        ("resource", "cpu", "0.4", Some(("1", percents))),
        ("resource", "cpu", "1.5", Some(("2", percents))),
        ("resource", "cpu", "1e10", Some(("2147483647", percents))),
        ("resource", "memory", "0.4", None),
        ("resource", "memory", "512", None),
        ("resource", "memory", "1e-7", Some(("0.00000095367431640625", bytes))),
    } {
        for strategy in ["KPA", "HPA"] {
            let source = format!(
                "{{metricSourceType: {kind}, targetMetric: {metric}, targetValue: '{target}'}}"
            );
            let spec = format!("scalingStrategy: {strategy}\nmetricsSources: [{source}]");
            let kept = kept.filter(|_| strategy == "HPA");
            let expected = kept.map(|(value, grain)| {
                format!(
                    "field spec.metricsSources[0].targetValue: {target:?} is rounded: the HPA works with {value}, as \
                     it compares {grain}"
                )
            });
            let found = named(&spec, &[]);
            assert_eq!(found, Vec::from_iter(expected), "{strategy} {kind} {target}");
        }
    }
}

#[test]
fn what_is_named_of_sources_has_their_order() {
    let source = "{metricSourceType: external, port: '80', targetMetric: q, targetValue: '1e-9'}";
    let sources = [source; 12].join(", ");
    let found = named(&format!("scalingStrategy: HPA\nmetricsSources: [{sources}]"), &[]);
    let expected = (0..12).flat_map(|index| {
        ["port", "targetValue"].map(|field| format!("field spec.metricsSources[{index}].{field}"))
    });
    let expected: Vec<String> = expected.collect();
    let paths = found.iter().map(|fault| {
        let words: Vec<&str> = fault.split([' ', ':']).take(2).collect();
        words.join(" ")
    });
    assert_eq!(paths.collect::<Vec<String>>(), expected);
}

#[test]
fn an_endpoint_of_a_resource_is_named_once() {
    for strategy in ["KPA", "HPA"] {
        let source =
            "{metricSourceType: resource, endpoint: 'o:80', targetMetric: cpu, targetValue: '10'}";
        let spec = format!("scalingStrategy: {strategy}\nmetricsSources: [{source}]");
        let refused = object("pa", &spec, &[]).check().unwrap_err();
        let expected = "PodAutoscaler default/pa: spec.metricsSources[0].endpoint: \"o:80\" is not allowed for type \
                        resource; remove it";
        assert_eq!(refused.to_string(), expected, "{strategy}");
    }
}

#[test]
fn scale_to_zero_is_read_where_some_minimum_is_zero() {
    let enabled = [("autoscaling.aibrix.ai/scale-to-zero", "true")];
    let schedule = |min: u32| {
        format!(
            "schedules: [{{name: night, startTime: '00:00', endTime: '06:00', minReplicas: {min}}}]"
        )
    };
    for (spec, count) in [
        (String::new(), 1),
        ("minReplicas: 2".to_owned(), 1),
        (schedule(1), 1),
        ("minReplicas: 0".to_owned(), 0),
        (schedule(0), 0),
    ] {
        assert_eq!(named(&spec, &enabled).len(), count, "{spec}");
    }
}

#[test]
fn fields_that_a_strategy_or_a_target_does_not_read_are_named() {
    let target = |field: &str| {
        format!("scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: llm{field}}}")
    };
    let service = "subTargetSelector: {}\nscaleTargetRef: {apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: s}";
    let night = "schedules: [{name: night, startTime: '00:00', endTime: '06:00', minReplicas: 0}]";
    let windows = "only KPA and APA have windows";
    let minimum = "an HPA needs at least 1";
    let identity = "apiVersion, kind and name identify the target";
    let selector = "the target is no StormService";
    for (spec, path, why, is_for_all) in [
        ("predictive: {mode: Auto}", "predictive", "only KPA and APA forecast", false),
        ("observeWindowSeconds: 240", "observeWindowSeconds", windows, false),
        ("panicWindowSeconds: 30", "panicWindowSeconds", windows, false),
        ("minReplicas: 0", "minReplicas", minimum, false),
        (night, "schedules[0].minReplicas", minimum, false),
        (&target(", fieldPath: spec"), "scaleTargetRef.fieldPath", identity, true),
        (&target(", uid: u"), "scaleTargetRef.uid", identity, true),
        (&target(", resourceVersion: '1'"), "scaleTargetRef.resourceVersion", identity, true),
        ("subTargetSelector: {}", "subTargetSelector", selector, true),
    ] {
        let line = format!("field spec.{path} has no effect: {why}");
        for (strategy, is_named) in [("KPA", is_for_all), ("APA", is_for_all), ("HPA", true)] {
            let found = named(&format!("scalingStrategy: {strategy}\n{spec}"), &[]);
            let expected = is_named.then(|| line.clone());
            assert_eq!(found, Vec::from_iter(expected), "{strategy} {spec}");
        }
    }
    assert_eq!(named(&target(", fieldPath: ''"), &[]), Vec::<String>::new());
    assert_eq!(named(service, &[]), Vec::<String>::new());
}

#[test]
fn the_minimum_of_a_generated_object_is_one() {
    let spec = "
        minReplicas: 0
        schedules: [{name: night, startTime: '00:00', endTime: '06:00', minReplicas: 0}]
    ";
    for (strategy, min) in [("KPA", 0), ("APA", 0), ("HPA", 1)] {
        let policy = partly_read(&format!("{spec}    scalingStrategy: {strategy}"), &[]);
        let night: Timestamp = "2026-01-05T03:00:00Z".parse().unwrap();
        let day = "2026-01-05T12:00:00Z".parse().unwrap();
        for now in [night, day] {
            assert_eq!(policy.bounds(now).bounds.min, Replicas(min), "{strategy}");
        }
        let decision = Loop::new(policy.clone(), 2).share(20.0);
        let generated = decision.hpa.as_ref().map(GeneratedHpa::manifest);
        assert_eq!(generated.is_some(), strategy == "HPA");
        assert!(generated.is_none_or(|object| object["spec"]["minReplicas"] == min));
        let verdict = AutoscalerVerdict::Decided(Box::new(decision));
        let status = first(&judged(Some(policy), verdict, 100_000), &ScaleOutcome::NotWritten);
        let bounds = status.scheduled_bounds.unwrap();
        assert_eq!(bounds.effective_min_replicas, Replicas(min), "{strategy}");
    }
}
