//! `docs/user-guide/crd-reference.md`.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::{check, code, row};
use crate::api::variant_autoscaling::definition;
use crate::policy::condition::ConditionType;

const INTRODUCTION: &str = "\
# VariantAutoscaling

<!-- Made from config/crd/bases/llmd.ai_variantautoscalings.yaml. Do not edit: run the tests with UPDATE=1. -->

`llmd.ai/v1alpha1`, kind `VariantAutoscaling`, short `va`: one way to serve a model. [Samples](../../config/samples), one
per feature.

| label | meaning |
|---|---|
| `inference.optimization/acceleratorName` | the accelerator, where nothing in the target's pod template names one |
| `wva.llmd.ai/controller-instance` | only the controller with this instance handles the object |
| `wva.llmd.ai/service-class` | the class whose latency targets hold |
";

const SPEC: &str = "
## `spec`

| Field | Type | Default | Limits | Meaning |
|---|---|---|---|---|
";

const STATUS: &str = "
## `status`

`kubectl explain va.status` describes its fields: `desiredOptimizedAlloc.numReplicas` is the count that was decided last,
`actuation.applied` whether the target has it.

";

const COLUMNS: &str = "\
Optimized is the count that was decided last, MetricsReady the status of `MetricsAvailable`, Followed that of
`ActuationReady`. Reason is that of `Ready` where it is not True, else of `ActuationReady`, else of any other condition
that is not True. It is empty where all are True.
";

fn page() -> String {
    let definition = definition();
    let version = &definition.spec.versions[0];
    let schema = version.schema.as_ref().unwrap();
    let schema = schema.open_api_v3_schema.as_ref().unwrap();
    let mut text = INTRODUCTION.to_owned();
    let spec = &schema.properties.as_ref().unwrap()["spec"];
    text.push_str(SPEC);
    fields(&mut text, "", spec);
    text.push_str("\nThe API server has a further rule:\n\n");
    for rule in spec.x_kubernetes_validations.iter().flatten() {
        writeln!(text, "- {}", rule.message.clone().unwrap_or_default()).unwrap();
    }
    text.push_str(STATUS);
    let types = [
        (ConditionType::TargetResolved, "the target is there, and this object's alone"),
        (ConditionType::MetricsAvailable, "its replicas are seen"),
        (ConditionType::OptimizationReady, "a decision was made, and why"),
        (ConditionType::ActuationReady, "an HPA or ScaledObject follows, or what keeps it from it"),
        (ConditionType::Ready, "target, metrics and decision in one word"),
        (
            ConditionType::ControllerConflict,
            "another controller claims or publishes the object; absent while none does",
        ),
    ];
    text.push_str("| Condition | True means |\n|---|---|\n");
    for (kind, meaning) in types {
        text.push_str(&row(&[code(kind.as_str()), meaning.to_owned()]));
    }
    text.push_str("\nWhat each reason means and what to do: [operations](../operations.md).\n");
    let columns = version.additional_printer_columns.iter().flatten();
    let columns: Vec<&str> = columns.map(|column| &*column.name).collect();
    let columns = columns.join(", ");
    write!(text, "\n`kubectl get va` shows {columns}.\n{COLUMNS}").unwrap();
    text
}

fn fields(text: &mut String, parent: &str, schema: &JSONSchemaProps) {
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{parent}{name}");
        let required = schema.required.iter().flatten().any(|given| given == name);
        let default = field.default.as_ref().map(|value| code(&value.0.to_string()));
        text.push_str(&row(&[
            code(&path),
            kind(field),
            default.unwrap_or_default(),
            limits(field, required),
            field.description.clone().unwrap_or_default().replace('\n', " "),
        ]));
        fields(text, &format!("{path}."), field);
    }
}

fn kind(field: &JSONSchemaProps) -> String {
    let kind = field.type_.clone().unwrap_or_default();
    match &field.format {
        Some(format) if format == "date-time" => "time".to_owned(),
        _ => kind,
    }
}

fn limits(field: &JSONSchemaProps, required: bool) -> String {
    let mut limits = Vec::new();
    if required {
        limits.push("required".to_owned());
    }
    if let Some(minimum) = field.minimum {
        limits.push(format!("at least {minimum}"));
    }
    if field.min_length == Some(1) {
        limits.push("not empty".to_owned());
    }
    if let Some(pattern) = &field.pattern {
        limits.push(code(pattern));
    }
    limits.join(", ")
}

#[test]
fn the_page_in_the_repository_is_the_one_made_from_the_definition() {
    check("docs/user-guide/crd-reference.md", &page());
}

#[test]
fn the_page_names_every_field_that_can_be_written() {
    let page = page();
    for field in ["scaleTargetRef.kind", "modelID", "variantCost", "minReplicas", "maxReplicas"] {
        assert!(page.contains(&format!("| `{field}` |")), "{field}");
    }
}
