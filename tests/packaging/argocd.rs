//! Health scripts for Argo CD, run by the version of Lua that it has.

use mlua::{Lua, Table};
use serde_json::{Value, json};

use super::yaml;

/// A document as Lua has it.
fn value(lua: &Lua, document: &Value) -> mlua::Value {
    let table = |fields: Vec<(mlua::Value, mlua::Value)>| {
        let table = lua.create_table().unwrap();
        for (key, value) in fields {
            table.set(key, value).unwrap();
        }
        mlua::Value::Table(table)
    };
    let text = |text: &str| mlua::Value::String(lua.create_string(text).unwrap());
    match document {
        Value::Object(fields) => {
            table((fields.iter()).map(|(name, field)| (text(name), value(lua, field))).collect())
        }
        Value::Array(items) => table(
            (1..)
                .map(mlua::Value::Integer)
                .zip(items.iter().map(|item| value(lua, item)))
                .collect(),
        ),
        Value::String(string) => text(string),
        Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap()),
        Value::Bool(flag) => mlua::Value::Boolean(*flag),
        Value::Null => mlua::Value::Nil,
    }
}

/// Health of an object, as Argo CD computes it.
fn health(kind: &str, object: &Value) -> (String, String) {
    let map = yaml("config/argocd/argocd-cm.yaml");
    let script = map["data"][format!("resource.customizations.health.{kind}")].as_str();
    let lua = Lua::new();
    lua.globals().set("obj", value(&lua, object)).unwrap();
    let found: Table = lua.load(script.unwrap()).eval().unwrap();
    (found.get("status").unwrap(), found.get("message").unwrap())
}

fn object(conditions: &[(&str, &str, i64)]) -> Value {
    let conditions: Vec<_> = (conditions.iter())
        .map(|(kind, status, seen)| {
            json!({"type": kind, "status": status, "reason": "Why", "message": "text", "observedGeneration": seen})
        })
        .collect();
    json!({"metadata": {"generation": 2}, "status": {"conditions": conditions}})
}

#[test]
fn argo_cd_shows_what_conditions_say() {
    let variant = "llmd.ai_VariantAutoscaling";
    let autoscaler = "autoscaling.aibrix.ai_PodAutoscaler";
    for (kind, conditions, status, message) in [
        (variant, &[][..], "Progressing", "no decision yet"),
        (variant, &[("Ready", "True", 1)], "Progressing", "no decision yet"),
        (variant, &[("Ready", "True", 2)], "Healthy", "text"),
        (variant, &[("Ready", "Unknown", 2)], "Progressing", "no decision yet"),
        (
            variant,
            &[("Ready", "True", 2), ("ActuationReady", "False", 2)],
            "Degraded",
            "ActuationReady: Why: text",
        ),
        (
            variant,
            &[("Ready", "False", 2), ("MetricsAvailable", "False", 2)],
            "Degraded",
            "MetricsAvailable: Why: text",
        ),
        (
            variant,
            &[("Ready", "True", 2), ("ControllerConflict", "True", 2)],
            "Degraded",
            "ControllerConflict: text",
        ),
        (autoscaler, &[], "Progressing", "no decision yet"),
        (autoscaler, &[("AbleToScale", "True", 2), ("Ready", "False", 2)], "Healthy", "text"),
        // A part without effect may be meant.
        (
            autoscaler,
            &[("AbleToScale", "True", 2), ("AnnotationsAccepted", "False", 2)],
            "Healthy",
            "text",
        ),
        (
            autoscaler,
            &[("AbleToScale", "True", 2), ("MetricsAvailable", "False", 2)],
            "Degraded",
            "MetricsAvailable: Why: text",
        ),
    ] {
        let found = health(kind, &object(conditions));
        assert_eq!(found, (status.to_owned(), message.to_owned()), "{kind} {conditions:?}");
    }
    let fresh = json!({"metadata": {"generation": 1}});
    for kind in [variant, autoscaler] {
        assert_eq!(health(kind, &fresh).0, "Progressing");
    }
}
