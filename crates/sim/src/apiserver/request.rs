//! Requests, taken apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use http::request::Parts;
use hyper::body::Bytes;
use serde_json::Value;

use super::kind::Kind;
use super::managers::{Operation, Writer};
use super::refusal::ApiRefusal;
use super::store::Key;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseForm {
    Full,
    Metadata,
    Table,
}

#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) path: Vec<String>,
    pub(super) query: BTreeMap<String, String>,
    pub(super) accept: String,
    pub(super) content_type: String,
    pub(super) agent: String,
    pub(super) body: Payload,
}

#[derive(Debug, Clone)]
pub(super) enum Payload {
    Bytes(Bytes),
    Document(Value),
}

#[derive(Debug, Clone)]
pub(super) struct RequestTarget {
    pub(super) kind: Arc<Kind>,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: String,
}

impl Ask {
    pub(super) fn new(head: &Parts, body: Bytes) -> Self {
        let header = |name: &str| {
            let value = head.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Self {
            method: head.method.clone(),
            path: steps(head.uri.path()),
            query: form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect(),
            accept: header("accept"),
            content_type: header("content-type"),
            agent: header("user-agent"),
            body: Payload::Bytes(body),
        }
    }

    pub(super) fn inside(
        method: Method,
        path: &str,
        (manager, media): (&str, &str),
        body: Value,
    ) -> Self {
        Self {
            method,
            path: steps(path),
            query: BTreeMap::from([("fieldManager".to_owned(), manager.to_owned())]),
            accept: String::new(),
            content_type: media.to_owned(),
            agent: String::new(),
            body: Payload::Document(body),
        }
    }

    /// A parameter; empty counts as absent.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let value = self.query.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.query.get(name).is_some_and(|value| value != "false" && value != "0")
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ApiRefusal> {
        let Some(text) = self.parameter(name) else {
            return Ok(None);
        };
        let refuse = |_| ApiRefusal::bad_request(format!("{name}={text:?} is not a number"));
        text.parse().map(Some).map_err(refuse)
    }

    pub(super) fn shape(&self) -> ResponseForm {
        let first = self.accept.split(',').next().unwrap_or_default();
        if first.contains("as=Table") {
            ResponseForm::Table
        } else if first.contains("as=PartialObjectMetadata") {
            ResponseForm::Metadata
        } else {
            ResponseForm::Full
        }
    }

    /// Who writes: by parameter, else the program that asks.
    pub(super) fn writer(&self, target: &RequestTarget, operation: Operation) -> Writer {
        let program = self.agent.split('/').next().filter(|name| !name.is_empty());
        let manager = self.parameter("fieldManager").or(program);
        Writer {
            manager: manager.unwrap_or("unknown").to_owned(),
            operation,
            api_version: target.kind.api_version(),
            subresource: target.subresource.clone(),
        }
    }

    pub(super) fn document(&self) -> Result<Value, ApiRefusal> {
        if self.content_type.contains("protobuf") {
            return Err(ApiRefusal::protobuf());
        }
        let bytes = match &self.body {
            Payload::Bytes(bytes) => bytes,
            Payload::Document(document) => return Ok(document.clone()),
        };
        // JSON is YAML, and read faster as what it is.
        let parsed = match serde_json::from_slice(bytes) {
            Err(_) if self.content_type.contains("yaml") => {
                serde_yaml::from_slice(bytes).map_err(|error| error.to_string())
            }
            parsed => parsed.map_err(|error| error.to_string()),
        };
        parsed.map_err(|why| ApiRefusal::bad_request(format!("the body cannot be read: {why}")))
    }
}

impl RequestTarget {
    pub(super) fn key(&self) -> Result<Key, ApiRefusal> {
        let name = self.name.as_ref().ok_or_else(ApiRefusal::method_not_allowed)?;
        Ok(self.key_of(name))
    }

    pub(super) fn key_of(&self, name: &str) -> Key {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        Key::of(&self.kind.stored_as, namespace, name)
    }
}

/// The parts of a path, decoded. In a path `+` is itself, unlike in a query.
fn steps(path: &str) -> Vec<String> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let decoded = |part: &str| {
        let part = part.replace('+', "%2B");
        let mut texts = form_urlencoded::parse(part.as_bytes());
        texts.next().map(|(text, _)| text.into_owned())
    };
    parts.filter_map(decoded).collect()
}
