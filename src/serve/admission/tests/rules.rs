//! Every published rule, with its paths and what its messages contain.

use serde_json::{Value, json};

use super::{good_source, good_spec, judged, object, review, with};

/// Fields of a specification in place of good ones, and the violations: path and part of the message.
type Rule = (Value, &'static [(&'static str, &'static str)]);

fn rules_of_the_target() -> Vec<Rule> {
    let target =
        |kind: &str, name: &str| json!({ "scaleTargetRef": { "kind": kind, "name": name } });
    let storm = json!({
        "apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": "StormService", "name": "pd",
    });
    vec![
        (
            target("Deployment", ""),
            &[("spec.scaleTargetRef.name", "must be set")],
        ),
        (
            target("", "llm"),
            &[("spec.scaleTargetRef.kind", "must be set")],
        ),
        (
            json!({
                "scalingStrategy": "HPA", "scaleTargetRef": storm,
                "subTargetSelector": { "roleName": "decode" },
            }),
            &[("spec.subTargetSelector.roleName", "subTargetSelector")],
        ),
        (
            json!({ "scalingStrategy": "VPA" }),
            &[("spec.scalingStrategy", "VPA")],
        ),
    ]
}

fn rules_of_bounds_and_windows() -> Vec<Rule> {
    let schedule = |start: &str| json!({ "name": "office", "startTime": start, "endTime": "19:00", "minReplicas": 2 });
    vec![
        (
            json!({ "minReplicas": -1 }),
            &[("spec.minReplicas", "must not be negative")],
        ),
        (
            json!({ "maxReplicas": 0 }),
            &[("spec.maxReplicas", "must be positive")],
        ),
        (
            json!({ "maxReplicas": -3 }),
            &[("spec.maxReplicas", "must be positive")],
        ),
        (
            json!({ "minReplicas": 5, "maxReplicas": 3 }),
            &[
                ("spec.minReplicas", "greater than"),
                ("spec.maxReplicas", "less than"),
            ],
        ),
        (
            json!({ "observeWindowSeconds": 0 }),
            &[("spec.observeWindowSeconds", "observeWindowSeconds")],
        ),
        (
            json!({ "observeWindowSeconds": -1 }),
            &[("spec.observeWindowSeconds", "observeWindowSeconds")],
        ),
        (
            json!({ "observeWindowSeconds": 3601 }),
            &[("spec.observeWindowSeconds", "less than or equal to 3600")],
        ),
        (
            json!({ "observeWindowSeconds": 30 }),
            &[("spec.panicWindowSeconds", "panicWindowSeconds")],
        ),
        (
            json!({ "panicWindowSeconds": 0 }),
            &[("spec.panicWindowSeconds", "panicWindowSeconds")],
        ),
        (
            json!({ "panicWindowSeconds": 3601 }),
            &[("spec.panicWindowSeconds", "panicWindowSeconds")],
        ),
        (
            json!({ "panicWindowSeconds": 181 }),
            &[("spec.panicWindowSeconds", "panicWindowSeconds")],
        ),
        (
            json!({ "schedules": [schedule("20:00")] }),
            &[(
                "spec.schedules[0]",
                "startTime must be earlier than endTime",
            )],
        ),
        (
            json!({ "schedules": [schedule("07:30"), schedule("08:00")] }),
            &[
                ("spec.schedules[1].name", "duplicate"),
                ("spec.schedules[1]", "overlaps"),
            ],
        ),
        (
            json!({ "schedules": [] }),
            &[("spec.schedules", "must not be empty")],
        ),
    ]
}

fn rules_of_sources() -> Vec<Rule> {
    let source =
        |fields: Value| json!({ "metricsSources": [good_source(), with(good_source(), &fields)] });
    let value = |value: &str| source(json!({ "targetValue": value }));
    let not_a_number = &[(
        "spec.metricsSources[1].targetValue",
        "must be a valid number",
    )];
    let not_positive = &[(
        "spec.metricsSources[1].targetValue",
        "must be greater than 0",
    )];
    vec![
        (
            json!({ "metricsSources": [] }),
            &[("spec.metricsSources", "at least one metricsSource")],
        ),
        (
            source(json!({ "targetMetric": "" })),
            &[("spec.metricsSources[1].targetMetric", "targetMetric")],
        ),
        (value(""), not_a_number),
        (value("100m"), not_a_number),
        (value("1Gi"), not_a_number),
        (value("0"), not_positive),
        (value("-1"), not_positive),
        (
            source(json!({ "metricSourceType": "disk" })),
            &[("spec.metricsSources[1].metricSourceType", "disk")],
        ),
        (
            source(json!({ "protocolType": "", "port": "", "path": "" })),
            &[
                ("spec.metricsSources[1].port", "must be set"),
                ("spec.metricsSources[1].path", "must be set"),
                ("spec.metricsSources[1].protocolType", "must be set"),
            ],
        ),
    ]
}

fn rules_of_other_types() -> Vec<Rule> {
    let source = |fields: Value| {
        let base = json!({ "targetMetric": "cpu", "targetValue": "70" });
        json!({ "metricsSources": [with(base, &fields)] })
    };
    let mut rules: Vec<Rule> = vec![
        (
            source(json!({ "metricSourceType": "resource", "targetMetric": "CPU" })),
            &[("spec.metricsSources[0].targetMetric", "cpu or memory")],
        ),
        (
            source(json!({
                "metricSourceType": "resource", "port": "80", "endpoint": "gpu:80",
                "path": "/", "protocolType": "http",
            })),
            &[
                ("spec.metricsSources[0].port", "not allowed"),
                ("spec.metricsSources[0].endpoint", "not allowed"),
                ("spec.metricsSources[0].path", "not allowed"),
                ("spec.metricsSources[0].protocolType", "not allowed"),
            ],
        ),
    ];
    for kind in ["external", "domain"] {
        rules.push((
            source(json!({ "metricSourceType": kind, "endpoint": "gpu:8080" })),
            &[
                ("spec.metricsSources[0].path", "must be set"),
                ("spec.metricsSources[0].protocolType", "must be set"),
            ],
        ));
        rules.push((source(json!({ "metricSourceType": kind })), &[]));
    }
    for metric in ["cpu", "memory"] {
        let resource = json!({ "metricSourceType": "resource", "targetMetric": metric });
        rules.push((source(resource), &[]));
    }
    rules.push((source(json!({ "metricSourceType": "custom" })), &[]));
    rules
}

fn rules() -> Vec<Rule> {
    [
        rules_of_the_target(),
        rules_of_bounds_and_windows(),
        rules_of_sources(),
        rules_of_other_types(),
    ]
    .concat()
}

fn cause(cause: &Value) -> Option<(&str, &str)> {
    Some((cause["field"].as_str()?, cause["message"].as_str()?))
}

/// Paths and messages of a response.
fn causes(response: &Value) -> Vec<(&str, &str)> {
    let causes = response["status"]["details"]["causes"].as_array();
    causes.into_iter().flatten().filter_map(cause).collect()
}

#[tokio::test]
async fn each_rule_is_judged_at_creation_and_at_update_alike() {
    let mut refused = 0;
    for (fields, expected) in rules() {
        for operation in ["CREATE", "UPDATE"] {
            let object = object(&with(good_spec(), &fields));
            let response = judged(&review(operation, &object)).await;
            assert_eq!(
                response["allowed"],
                expected.is_empty(),
                "{fields}: {response}"
            );
            let found = causes(&response);
            let paths: Vec<&str> = found.iter().map(|(path, _)| *path).collect();
            let wanted: Vec<&str> = expected.iter().map(|(path, _)| *path).collect();
            assert_eq!(paths, wanted, "{fields}");
            for ((_, message), (path, part)) in found.iter().zip(expected) {
                assert!(message.contains(part), "{path}: {message}");
                let whole = response["status"]["message"].as_str().unwrap();
                assert!(whole.contains(path) && whole.contains(part), "{whole}");
            }
            refused += usize::from(!expected.is_empty());
        }
    }
    assert_eq!(refused, 2 * 31);
}

/// Rules that do not touch the same fields, all in one object.
#[tokio::test]
async fn all_violations_are_named_at_once() {
    let fields = json!({
        "scaleTargetRef": {},
        "minReplicas": -1,
        "maxReplicas": 0,
        "observeWindowSeconds": 0,
        "panicWindowSeconds": 3601,
        "schedules": [],
        "scalingStrategy": "",
        "metricsSources": [],
    });
    let response = judged(&review("CREATE", &object(&with(good_spec(), &fields)))).await;
    let paths: Vec<&str> = causes(&response)
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let expected = [
        "spec.scaleTargetRef.name",
        "spec.scaleTargetRef.kind",
        "spec.minReplicas",
        "spec.maxReplicas",
        "spec.scalingStrategy",
        "spec.observeWindowSeconds",
        "spec.panicWindowSeconds",
        "spec.schedules",
        "spec.metricsSources",
    ];
    assert_eq!(paths, expected);
}
