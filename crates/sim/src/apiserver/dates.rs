//! Events as a reader sees them whose clock shows another date.
//!
//! `kubectl describe` counts the age of an event from its own clock. Where the world runs faster, that
//! age would be negative, so its reader gets times of his own.

use serde_json::Value;

const TIMES: [&str; 6] = [
    "/firstTimestamp",
    "/lastTimestamp",
    "/deprecatedFirstTimestamp",
    "/deprecatedLastTimestamp",
    "/eventTime",
    "/series/lastObservedTime",
];

/// Moves the times of an event, or of a list of them, by so many seconds.
pub(super) fn shift(document: &mut Value, seconds: i64) {
    if let Some(items) = document.get_mut("items").and_then(Value::as_array_mut) {
        for item in items {
            shift_one(item, seconds);
        }
    } else {
        shift_one(document, seconds);
    }
}

fn shift_one(event: &mut Value, seconds: i64) {
    for pointer in TIMES {
        if let Some(time) = event.pointer_mut(pointer)
            && let Some(moved) = time.as_str().and_then(|text| moved(text, seconds))
        {
            *time = moved.into();
        }
    }
}

/// The same precision as before: some readers insist on it.
fn moved(text: &str, seconds: i64) -> Option<String> {
    let time: jiff::Timestamp = text.parse().ok()?;
    let time = time.checked_add(jiff::SignedDuration::from_secs(seconds)).ok()?;
    Some(if text.contains('.') { format!("{time:.6}") } else { time.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_of_events_move_and_nothing_else_does() {
        let event = json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": null,
            "eventTime": "2026-01-01T00:00:00.250000Z", "message": "2026-01-01T00:00:00Z",
        });
        let mut alone = event.clone();
        shift(&mut alone, -90);
        assert_eq!(alone["firstTimestamp"], "2025-12-31T23:58:30Z");
        assert_eq!(alone["eventTime"], "2025-12-31T23:58:30.250000Z");
        for kept in ["metadata", "lastTimestamp", "message"] {
            assert_eq!(alone[kept], event[kept], "{kept}");
        }
        let mut list = json!({"items": [event.clone(), event]});
        shift(&mut list, -90);
        assert_eq!(list["items"][1], alone);
    }
}
