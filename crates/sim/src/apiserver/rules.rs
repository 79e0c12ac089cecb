//! The patterns and rules of our own definition, written out: the server has neither an engine for
//! regular expressions nor one for CEL. Those of foreign definitions are not enforced.

use serde_json::Value;

/// Whether a text matches; `None` if the pattern is not known.
pub(super) fn matches(pattern: &str, text: &str) -> Option<bool> {
    match pattern {
        r"^\d+(\.\d+)?$" => Some(is_decimal(text)),
        r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$" => Some(is_reason(text)),
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$" => {
            Some(is_qualified(text))
        }
        _ => None,
    }
}

/// Whether an object obeys; `None` if the rule is not known.
pub(super) fn obeys(rule: &str, object: &Value) -> Option<bool> {
    (rule
        == "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas")
        .then(|| {
            let bound = |name: &str| object.get(name).and_then(Value::as_i64);
            match (bound("minReplicas"), bound("maxReplicas")) {
                (Some(low), Some(high)) => low <= high,
                _ => true,
            }
        })
}

fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(text),
    }
}

fn is_reason(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte);
    text.bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic())
        && text.bytes().all(inner)
        && !text.ends_with([',', ':'])
}

fn is_qualified(text: &str) -> bool {
    let (domain, name) = match text.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, text),
    };
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let named = edge(name.bytes().next())
        && edge(name.bytes().last())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    named && domain.is_none_or(is_subdomain)
}

pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

pub(super) fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}
