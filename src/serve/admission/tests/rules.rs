//! Every published rule, with its paths and what its messages contain.

use serde_json::{Value, json};

use super::{good_source, good_spec, judged, object, review, with};

/// Fields of a specification in place of good ones, and the violations: path and part of the message.
type Rule = (Value, Vec<(String, &'static str)>);

const OF_SPECIFICATIONS: &str = "
{scaleTargetRef: {kind: Deployment, name: ''}} | scaleTargetRef.name: must be set
{scaleTargetRef: {kind: '', name: llm}} | scaleTargetRef.kind: must be set
{scalingStrategy: HPA, subTargetSelector: {roleName: decode}, scaleTargetRef: {apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: pd}} | subTargetSelector.roleName: subTargetSelector
{scalingStrategy: VPA} | scalingStrategy: VPA
{minReplicas: -1} | minReplicas: must not be negative
{maxReplicas: 0} | maxReplicas: must be positive
{maxReplicas: -3} | maxReplicas: must be positive
{minReplicas: 5, maxReplicas: 3} | minReplicas: greater than | maxReplicas: less than
{observeWindowSeconds: 0} | observeWindowSeconds: observeWindowSeconds
{observeWindowSeconds: -1} | observeWindowSeconds: observeWindowSeconds
{observeWindowSeconds: 3601} | observeWindowSeconds: less than or equal to 3600
{observeWindowSeconds: 30} | panicWindowSeconds: panicWindowSeconds
{panicWindowSeconds: 0} | panicWindowSeconds: panicWindowSeconds
{panicWindowSeconds: 3601} | panicWindowSeconds: panicWindowSeconds
{panicWindowSeconds: 181} | panicWindowSeconds: panicWindowSeconds
{schedules: [{name: office, startTime: '20:00', endTime: '19:00', minReplicas: 2}]} | schedules[0]: startTime must be earlier than endTime
{schedules: [{name: office, startTime: '07:30', endTime: '19:00', minReplicas: 2}, {name: office, startTime: '08:00', endTime: '19:00', minReplicas: 2}]} | schedules[1].name: duplicate | schedules[1]: overlaps
{schedules: []} | schedules: must not be empty
{metricsSources: []} | metricsSources: at least one metricsSource
";

/// Of the second source; the first one is good.
const OF_SOURCES: &str = "
{targetMetric: ''} | targetMetric: targetMetric
{targetValue: ''} | targetValue: must be a valid number
{targetValue: 100m} | targetValue: must be a valid number
{targetValue: 1Gi} | targetValue: must be a valid number
{targetValue: 'Inf'} | targetValue: must be a valid number; write for example 50
{targetValue: 'NaN'} | targetValue: must be a valid number; write for example 50
{targetValue: '0x1p4'} | targetValue: must be a valid number; write for example 50
{targetValue: '1e400'} | targetValue: must be a valid number; write for example 50
{targetValue: '0'} | targetValue: must be greater than 0
{targetValue: '-1'} | targetValue: must be greater than 0
{metricSourceType: disk} | metricSourceType: disk
{protocolType: '', port: '', path: ''} | port: must be set | path: must be set | protocolType: must be set
";

/// Of a source that states its metric and its value alone.
const OF_OTHER_TYPES: &str = "
{metricSourceType: resource, targetMetric: CPU} | targetMetric: cpu or memory
{metricSourceType: resource, port: '80', endpoint: 'gpu:80', path: /, protocolType: http} | port: not allowed | endpoint: not allowed | path: not allowed | protocolType: not allowed
{metricSourceType: external, endpoint: 'gpu:8080'} | path: must be set | protocolType: must be set
{metricSourceType: domain, endpoint: 'gpu:8080'} | path: must be set | protocolType: must be set
{metricSourceType: external}
{metricSourceType: domain}
{metricSourceType: resource, targetMetric: cpu}
{metricSourceType: resource, targetMetric: memory}
{metricSourceType: custom}
";

/// The rules of a table, whose fields stand below a path; `whole` makes fields of a specification of them.
fn rules_of(table: &'static str, below: &str, whole: fn(Value) -> Value) -> Vec<Rule> {
    let rule = |line: &'static str| -> Rule {
        let mut cells = line.split(" | ");
        let fields: Value = serde_yaml::from_str(cells.next().unwrap()).unwrap();
        let violations = cells.map(|cell| {
            let (path, part) = cell.split_once(": ").unwrap();
            (format!("{below}{path}"), part)
        });
        (whole(fields), violations.collect())
    };
    table.trim().lines().map(rule).collect()
}

fn rules() -> Vec<Rule> {
    let second =
        |fields: Value| json!({ "metricsSources": [good_source(), with(good_source(), &fields)] });
    let bare = |fields: Value| {
        let base = json!({ "targetMetric": "cpu", "targetValue": "70" });
        json!({ "metricsSources": [with(base, &fields)] })
    };
    [
        rules_of(OF_SPECIFICATIONS, "spec.", |fields| fields),
        rules_of(OF_SOURCES, "spec.metricsSources[1].", second),
        rules_of(OF_OTHER_TYPES, "spec.metricsSources[0].", bare),
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
            assert_eq!(response["allowed"], expected.is_empty(), "{fields}: {response}");
            let found = causes(&response);
            let paths: Vec<&str> = found.iter().map(|(path, _)| *path).collect();
            let wanted: Vec<&str> = expected.iter().map(|(path, _)| path.as_str()).collect();
            assert_eq!(paths, wanted, "{fields}");
            for ((_, message), (path, part)) in found.iter().zip(&expected) {
                assert!(message.contains(part), "{path}: {message}");
                let whole = response["status"]["message"].as_str().unwrap();
                assert!(whole.contains(path) && whole.contains(part), "{whole}");
            }
            refused += usize::from(!expected.is_empty());
        }
    }
    assert_eq!(refused, 2 * 35);
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
    let paths: Vec<&str> = causes(&response).into_iter().map(|(path, _)| path).collect();
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
