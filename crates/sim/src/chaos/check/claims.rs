//! W: who may write.

use std::sync::Arc;

use http::{Method, Uri};

use super::InvariantViolation;
use crate::chaos::api_server_proxy::is_write;
use crate::workloads::object::Object;
use crate::world::objects::SYSTEM;

/// W1: no two processes hold a valid claim at one time.
pub(crate) fn overlap(holders: &[usize]) -> Option<InvariantViolation> {
    match holders {
        [first, second, ..] => {
            let text = format!("c{first} and c{second} both hold a valid claim");
            Some(InvariantViolation::new("W1", text))
        }
        _ => None,
    }
}

#[derive(Debug, Clone, Copy)]
pub(in crate::chaos) struct Sent<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) body: &'a [u8],
}

impl<'a> Sent<'a> {
    pub(crate) fn new(method: &'a Method, uri: &'a Uri, body: &'a [u8]) -> Self {
        Self { method, path: uri.path(), query: uri.query().unwrap_or_default(), body }
    }

    /// What is sent; where that is no object, one without fields.
    pub(crate) fn object(&self) -> Object {
        Object(Arc::new(serde_json::from_slice(self.body).unwrap_or_default()))
    }

    fn is_event_of(&self, pod: &str) -> bool {
        let events = format!("/namespaces/{SYSTEM}/events");
        let Some((_, rest)) = self.path.split_once(&events) else {
            return false;
        };
        // An event is called after what it is about.
        let counted = rest.strip_prefix('/');
        if let Some(name) = counted.and_then(|name| name.strip_prefix(pod)) {
            return name.starts_with('.');
        }
        let event = self.object();
        let about = ["kind", "namespace", "name"];
        let about = about.map(|field| event.at(&format!("/regarding/{field}")));
        rest.is_empty() && about == ["Pod", SYSTEM, pod]
    }
}

/// W2, W3: no write starts without a claim. The lease itself is how one comes by it, a review only asks,
/// and of its own pod every process may send events.
pub(crate) fn write(
    place: usize,
    pod: &str,
    sent: &Sent<'_>,
    leads: bool,
    ever_led: bool,
) -> Option<InvariantViolation> {
    let Sent { method, path, .. } = sent;
    let exempt = path.contains("/leases") || path.contains("reviews") || sent.is_event_of(pod);
    if leads || exempt || !is_write(method) {
        return None;
    }
    let text = format!("c{place} sends {method} {path} without a claim");
    let invariant = if ever_led { "W3" } else { "W2" };
    Some(InvariantViolation::new(invariant, text))
}
