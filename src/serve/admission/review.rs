//! An `AdmissionReview` as the API server sends it.

use serde::Deserialize;
use serde_json::Value;
use wva_base::text::shortened;

pub(super) const API_VERSION: &str = "admission.k8s.io/v1";
pub(super) const KIND: &str = "AdmissionReview";

#[derive(Debug, thiserror::Error)]
#[error("the body is no {KIND} of {API_VERSION}: {0}")]
pub(super) struct NotAReview(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: AdmissionRequest,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AdmissionRequest {
    /// By which the answer is recognised.
    pub(super) uid: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    operation: String,
    #[serde(default)]
    sub_resource: String,
    /// Name of the object; empty where the API server makes one.
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    object: Value,
}

impl AdmissionRequest {
    pub(super) fn read(body: &[u8]) -> Result<Self, NotAReview> {
        let review: Review = serde_json::from_slice(body)
            .map_err(|error| NotAReview(shortened(&error.to_string())))?;
        if review.api_version != API_VERSION || review.kind != KIND {
            let why = format!("it is {} of {}", review.kind, review.api_version);
            return Err(NotAReview(shortened(&why)));
        }
        if review.request.uid.is_empty() {
            return Err(NotAReview("its request has no uid".to_owned()));
        }
        Ok(review.request)
    }

    /// The object, with name and namespace, if it is one to judge: a deletion, with all that it still
    /// writes, is never held up.
    pub(super) fn judged(self) -> Option<Value> {
        let is_write = matches!(&*self.operation, "CREATE" | "UPDATE");
        if !is_write || !self.sub_resource.is_empty() {
            return None;
        }
        let mut object = self.object;
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return Some(object);
        };
        let is_going = metadata.get("deletionTimestamp").is_some_and(|at| !at.is_null());
        if is_going {
            return None;
        }
        // An object without a name gets one after admission.
        let prefix = metadata.get("generateName").cloned();
        metadata.entry("name").or_insert_with(|| prefix.unwrap_or(Value::String(self.name)));
        metadata.entry("namespace").or_insert(Value::String(self.namespace));
        Some(object)
    }
}
