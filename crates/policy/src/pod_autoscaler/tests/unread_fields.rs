//! Fields of another form than that of the kind, as a server stores them.

use crate::pod_autoscaler::PodAutoscalerObject;
use crate::pod_autoscaler::object::{UnreadableField, read_known};
use serde_json::{Value, json};

/// An object as a server stores it, with what was left out in reading.
fn stored(spec: &Value) -> Result<PodAutoscalerObject, Vec<UnreadableField>> {
    let document = json!({"metadata": {"namespace": "default", "name": "pa"}, "spec": spec});
    let (object, skipped) = read_known::<PodAutoscalerObject>(document)?;
    Ok(PodAutoscalerObject { skipped, ..object })
}

#[test]
fn fields_of_another_form_are_named_at_once_with_all_else() {
    let mut spec = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
        "minReplicas": 2, "maxReplicas": 4, "scalingStrategy": "KPA",
        "observeWindowSeconds": 300, "panicWindowSeconds": 200,
        "schedules": [{
            "name": "day", "daysOfWeek": ["Mon"], "startTime": "09:00", "endTime": "17:00", "minReplicas": 3,
        }],
        "metricsSources": [{"metricSourceType": "external", "targetMetric": "q", "targetValue": "1"}],
    });
    assert!(stored(&spec).unwrap().check().is_ok());
    let pod = json!({"metricSourceType": "pod", "port": 8000, "path": "/m", "protocolType": "http", "targetMetric": "",
        "targetValue": 10});
    for (field, value) in [
        ("/scaleTargetRef/kind", json!(7)),
        ("/scaleTargetRef/name", json!(["llm"])),
        ("/minReplicas", json!("two")),
        ("/maxReplicas", json!(0)),
        ("/observeWindowSeconds", json!("long")),
        ("/schedules/0/daysOfWeek", json!(["Mon", 2])),
        ("/schedules/0/minReplicas", json!("one")),
        ("/metricsSources", json!([5, pod])),
    ] {
        *spec.pointer_mut(field).unwrap() = value;
    }
    spec["subTargetSelector"] = json!({"roleName": "decode"});
    let violations = stored(&spec).unwrap().check().unwrap_err();
    let mut lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let rest = lines.split_off(9);
    lines.sort();
    let expected = [
        "spec.metricsSources[0]: invalid type: integer `5`, expected a mapping",
        "spec.metricsSources[1].port: invalid type: integer `8000`, expected a string; write it in quotes",
        "spec.metricsSources[1].targetValue: invalid type: integer `10`, expected a string; write it in quotes",
        "spec.minReplicas: invalid type: string \"two\"; write a whole number from 0 to 2147483647",
        "spec.observeWindowSeconds: invalid type: string \"long\"; write a whole number from 1 to 3600",
        "spec.scaleTargetRef.kind: invalid type: integer `7`, expected a string; write it in quotes",
        "spec.scaleTargetRef.name: invalid type: list, expected a string",
        "spec.schedules[0].daysOfWeek[1]: invalid type: integer `2`, expected a string; write it in quotes",
        "spec.schedules[0].minReplicas: invalid type: string \"one\"; write a whole number from 0 to 2147483647",
    ];
    assert_eq!(lines, expected);
    let expected = [
        "spec.maxReplicas: 0 must be positive; write at least 1",
        "spec.metricsSources[1].targetMetric: metricsSource[1] targetMetric must be set",
    ];
    assert_eq!(rest, expected);
    // They are bounded in number.
    spec["metricsSources"] = json!(vec![5; 40]);
    assert_eq!(stored(&spec).unwrap_err().len(), 33);
}

#[test]
fn a_number_out_of_range_is_named_with_the_range() {
    let refused = |number: u64| {
        let spec = json!({
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
            "maxReplicas": number, "scalingStrategy": "KPA",
            "metricsSources": [{"metricSourceType": "external", "targetMetric": "q", "targetValue": "1"}],
        });
        let violations = stored(&spec).unwrap().check().err();
        violations.map(|violations| violations.to_string())
    };
    assert_eq!(refused(2_147_483_647), None);
    let expected = "PodAutoscaler default/pa: spec.maxReplicas: invalid value: integer `2147483648`; write a whole number from 1 to 2147483647";
    assert_eq!(refused(2_147_483_648), Some(expected.to_owned()));
}
