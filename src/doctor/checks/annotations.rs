//! Annotations of scalers that are to make variants of them.

use serde_json::Value;

use crate::api::{MANAGED_ANNOTATION, MODEL_ANNOTATION};
use crate::cluster::project::scaler::nearly_stated;
use crate::doctor::object::LiveObject;
use wva_base::text::shortened;

/// What is wrong with the annotation that makes a scaler a variant. That of a generated one is a copy.
pub(super) fn unclear_switch(object: &LiveObject, is_switch: bool) -> Option<String> {
    let value = object.annotation(MANAGED_ANNOTATION)?;
    (is_switch && !matches!(value, "true" | "false")).then(|| {
        let value = shortened(value);
        format!("annotation {MANAGED_ANNOTATION}={value:?} is neither true nor false, and makes no variant; write one")
    })
}

/// Annotations of a variant that are no keys of ours, and nearly. Others may be keys of llm-d. An object that states a
/// model and nearly the switch was meant to be a variant.
pub(super) fn misspelt(object: &LiveObject, is_variant: bool, is_switch: bool) -> Vec<String> {
    let annotations = object.0.pointer("/metadata/annotations");
    let annotations = annotations.and_then(Value::as_object).into_iter().flatten();
    let near = annotations.filter_map(|(key, _)| Some((key, nearly_stated(key)?)));
    let near: Vec<(&String, &str)> = near.collect();
    let states = |own| object.annotation(own).is_some();
    let means = |own| near.iter().any(|(_, known)| *known == own);
    let lacks_switch = !states(MANAGED_ANNOTATION) && means(MANAGED_ANNOTATION);
    let is_meant = lacks_switch && (states(MODEL_ANNOTATION) || means(MODEL_ANNOTATION));
    if !(is_variant || is_switch && is_meant) {
        return Vec::new();
    }
    let found = near.into_iter().map(|(key, known)| {
        let key = shortened(key);
        format!("annotation {key:?} has no effect; write {known}, or remove it")
    });
    found.collect()
}
