//! Refusals, in the form and with the codes of Kubernetes.

use serde_json::{Value, json};

use super::kind::Kind;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiRefusal {
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) details: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) field: String,
}

impl Cause {
    pub(super) fn new(field: &str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), field: field.to_owned() }
    }

    pub(super) fn required(field: &str, why: &str) -> Self {
        let message = format!("Required value{why}");
        Self::new(field, "FieldValueRequired", message)
    }

    pub(super) fn invalid(field: &str, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self::new(field, "FieldValueInvalid", message)
    }

    pub(super) fn forbidden(field: &str, why: &str) -> Self {
        Self::new(field, "FieldValueForbidden", format!("Forbidden: {why}"))
    }
}

impl ApiRefusal {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: json!({}) }
    }

    fn with(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details = json!({"name": name, "kind": kind.plural});
        if !kind.group.is_empty() {
            self.details["group"] = json!(kind.group);
        }
        self
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub(super) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", kind.qualified());
        Self::new(404, "NotFound", message).about(kind, name)
    }

    pub(super) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.qualified());
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub(super) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        Self::unfulfilled(kind, (&kind.qualified(), name), why)
    }

    /// A new object that names a version: the real server answers this without a reason.
    pub(super) fn versioned_newborn() -> Self {
        let message = "resourceVersion should not be set on objects to be created";
        Self::new(500, "", message)
    }

    pub(super) fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        Self::unfulfilled(kind, (&kind.title(), name), why)
    }

    fn unfulfilled(kind: &Kind, (title, name): (&str, &str), why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {title} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(kind, name)
    }

    pub(super) fn outdated(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(kind, name, why)
    }

    pub(super) fn owned(causes: &[Cause]) -> Self {
        let list: Vec<_> =
            causes.iter().map(|cause| format!("{}: {}", cause.message, cause.field)).collect();
        let plural = if causes.len() == 1 { "" } else { "s" };
        let message =
            format!("Apply failed with {} conflict{plural}: {}", causes.len(), list.join("; "));
        Self::new(409, "Conflict", message).with(json!({"causes": documents(causes)}))
    }

    pub(super) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let list: Vec<_> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let list = match &*list {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {list}", kind.title());
        let mut refusal = Self::new(422, "Invalid", message).about(kind, name);
        refusal.details["kind"] = json!(kind.kind);
        refusal.details["causes"] = documents(causes);
        refusal
    }

    pub(super) fn options(kind: &str, cause: Cause) -> Self {
        let why = format!("{}: {}", cause.field, cause.message);
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {why}");
        Self::new(422, "Invalid", message).with(json!({
            "group": "meta.k8s.io", "kind": kind, "causes": documents(&[cause]),
        }))
    }

    pub(super) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", kind.qualified());
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    pub(super) fn terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut refusal = Self::forbidden(kind, name, &why);
        refusal.details["causes"] = json!([{
            "reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": format!("namespace {namespace} is being terminated"),
        }]);
        refusal
    }

    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(super) fn ahead(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", message).with(json!({"retryAfterSeconds": 1, "causes": [{
            "reason": "ResourceVersionTooLarge", "message": "Too large resource version",
        }]}))
    }

    pub(super) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message)
    }

    pub(super) fn unsupported_media(kind: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             application/merge-patch+json, application/apply-patch+yaml ({kind:?} is not one of them)"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(super) fn protobuf() -> Self {
        let message = "the embedded server reads JSON and YAML, no protobuf; write the object into \
                       a file and use kubectl apply -f or kubectl create -f";
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub(super) fn not_simulated(what: &str) -> Self {
        let message = format!(
            "{what} is not available: pods of the embedded world are simulated and run no processes"
        );
        Self::new(501, "NotImplemented", message)
    }

    /// What is refused for a test, and after how many seconds it may come again.
    pub(super) fn injected(code: u16, after: Option<u64>) -> Self {
        let reason = match code {
            403 => "Forbidden",
            409 => "Conflict",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "InternalError",
        };
        let refusal = Self::new(code, reason, "the way to the server is disturbed");
        match after {
            Some(seconds) => refusal.with(json!({"retryAfterSeconds": seconds})),
            None => refusal,
        }
    }

    pub(super) fn document(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if self.details.as_object().is_some_and(|map| !map.is_empty()) {
            status["details"] = self.details.clone();
        }
        status
    }
}

fn documents(causes: &[Cause]) -> Value {
    causes
        .iter()
        .map(
            |cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}),
        )
        .collect()
}
