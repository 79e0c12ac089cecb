//! Series of a `/metrics` page at several moments, and statuses, as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

/// Families that are left out: those of the process and of the build, and counts of messages between
/// roles, which depend on how the controller is divided.
const LEFT_OUT: [&str; 3] = ["process_", "wva_build_info", "wva_actor_"];
/// Parts of histograms that are left out: real clocks measure some durations.
const MEASURED: [&str; 2] = ["_duration_seconds_bucket", "_duration_seconds_sum"];

/// Returns the series of a page with their values.
pub(crate) fn series(page: &str) -> BTreeMap<String, String> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let split = lines.filter_map(|line| line.rsplit_once(' '));
    let kept = split.filter(|(series, _)| {
        let is_left_out = LEFT_OUT.iter().any(|family| series.starts_with(family));
        !is_left_out && !MEASURED.iter().any(|part| series.contains(part))
    });
    kept.map(|(series, value)| (series.to_owned(), value.to_owned())).collect()
}

/// Writes one line for each series, with its value at each moment; `-` where it is absent.
pub(crate) fn write_series(text: &mut String, pages: &[BTreeMap<String, String>]) {
    let names: BTreeSet<&String> = pages.iter().flat_map(BTreeMap::keys).collect();
    for name in names {
        write!(text, "{name} ").unwrap();
        for page in pages {
            write!(text, " {}", page.get(name).map_or("-", String::as_str)).unwrap();
        }
        text.push('\n');
    }
}

/// Writes the stored status of an object: one line for each condition, one for each other field.
pub(crate) fn write_status(text: &mut String, object: &Value) {
    let at = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    writeln!(text, "{}/{}", at("/metadata/namespace"), at("/metadata/name")).unwrap();
    let fields = object.get("status").and_then(Value::as_object);
    for (field, value) in fields.into_iter().flatten() {
        match value.as_array().filter(|_| field == "conditions") {
            Some(conditions) => {
                for condition in conditions {
                    let part =
                        |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or("-");
                    let generation = condition.get("observedGeneration").unwrap_or(&Value::Null);
                    writeln!(
                        text,
                        "  {} {} {} since {} generation {generation}: {}",
                        part("type"),
                        part("status"),
                        part("reason"),
                        part("lastTransitionTime"),
                        part("message")
                    )
                    .unwrap();
                }
            }
            None => writeln!(text, "  {field}: {value}").unwrap(),
        }
    }
}
