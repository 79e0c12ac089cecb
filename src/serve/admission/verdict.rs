//! The answer of a webhook.

use serde_json::{Map, Value, json};
use wva_base::text::bounded;

use super::review::{API_VERSION, AdmissionRequest, KIND};
use crate::policy::pod_autoscaler::PodAutoscalerObject;
use crate::policy::pod_autoscaler::object::{UnreadableField, read_known};
use crate::policy::pod_autoscaler::tuning::WithoutEffect;

/// The group of the objects, which a message names after the kind.
const GROUP: &str = "autoscaling.aibrix.ai";

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AdmissionVerdict {
    name: String,
    /// All that forbids it; empty admits it.
    causes: Vec<UnreadableField>,
    /// What the user is to know although the object is admitted.
    warnings: Vec<String>,
}

impl AdmissionVerdict {
    pub(super) fn on(request: AdmissionRequest) -> Self {
        let Some(object) = request.judged() else {
            return Self::default();
        };
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let name = bounded(name.unwrap_or_default(), 253);
        let object = match read_known::<PodAutoscalerObject>(object) {
            Ok((object, skipped)) => PodAutoscalerObject { skipped, ..object },
            Err(causes) => {
                return Self { name, causes, warnings: Vec::new() };
            }
        };
        let (causes, warnings) = match object.check() {
            Ok(policy) => (Vec::new(), warnings(&policy.faults)),
            Err(violations) => {
                let causes = violations.iter().map(|violation| UnreadableField {
                    path: violation.path.clone(),
                    why: violation.why.clone(),
                });
                (causes.collect(), warnings(violations.faults()))
            }
        };
        Self { name, causes, warnings }
    }

    /// The `AdmissionReview` that says so.
    pub(super) fn review(&self, uid: &str) -> Value {
        let mut response = Map::new();
        response.insert("uid".to_owned(), json!(uid));
        response.insert("allowed".to_owned(), json!(self.causes.is_empty()));
        if !self.causes.is_empty() {
            response.insert("status".to_owned(), self.status());
        }
        if !self.warnings.is_empty() {
            response.insert("warnings".to_owned(), json!(self.warnings));
        }
        json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
    }

    /// A status as the API server itself makes it of an object that its schema refuses.
    fn status(&self) -> Value {
        let kind = crate::policy::pod_autoscaler::object::KIND;
        let lines: Vec<String> = self.causes.iter().map(UnreadableField::to_string).collect();
        let lines = match lines.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", lines.join(", ")),
        };
        let causes: Vec<Value> = self
            .causes
            .iter()
            .map(|cause| {
                json!({
                    "reason": "FieldValueInvalid",
                    "field": cause.path,
                    "message": cause.why,
                })
            })
            .collect();
        json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("{kind}.{GROUP} {:?} is invalid: {lines}", self.name),
            "reason": "Invalid",
            "details": {
                "name": self.name,
                "group": GROUP,
                "kind": kind,
                "causes": causes,
            },
            "code": 422,
        })
    }
}

fn warnings(faults: &[WithoutEffect]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}
