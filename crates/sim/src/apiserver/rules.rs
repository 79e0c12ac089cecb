//! The patterns of definitions, and the rules of our own, written out: the server has no engine for CEL. Rules of
//! foreign definitions are not enforced.

use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

/// A pattern of a schema, of bytes: the engine for text refuses to exclude ASCII alone. `None` where the engine does
/// not know it.
pub(super) fn pattern(text: &str) -> Option<Regex> {
    RegexBuilder::new(text).unicode(false).build().ok()
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
