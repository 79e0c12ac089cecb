//! W: who may write.

use http::{Method, Uri};
use serde_json::Value;

use super::InvariantViolation;
use crate::chaos::api_server_proxy::is_write;
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
        Self {
            method,
            path: uri.path(),
            query: uri.query().unwrap_or_default(),
            body,
        }
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

impl Sent<'_> {
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
        let Ok(event) = serde_json::from_slice::<Value>(self.body) else {
            return false;
        };
        let about = |field: &str| event.pointer(&format!("/regarding/{field}"));
        let is = |field, text: &str| about(field).and_then(Value::as_str) == Some(text);
        rest.is_empty() && is("kind", "Pod") && is("namespace", SYSTEM) && is("name", pod)
    }
}
