//! Reading what was learned: strictly, like every other part, though its types ignore what they do not
//! know and its clock cannot be checked by a type.

use serde::Deserialize;
use serde_json::Value;

use super::read::Reader;
use crate::learned::{LEARNED_VERSION, Learned};
use wva_base::moment::Moment;
use wva_base::nearest::nearest;

const ROOT: &str = "learned";

/// Fields that hold a quantity, wherever they stand.
const QUANTITIES: [&str; 15] = [
    "alpha",
    "beta",
    "full_latencies",
    "gamma",
    "hit_rate",
    "input",
    "input_tokens",
    "inter_token_latency",
    "latency",
    "occupancy",
    "output",
    "output_tokens",
    "per_replica",
    "time_to_first_token",
    "x",
];

impl Reader {
    pub(super) fn learned(&mut self, written: &Value) -> Option<Learned> {
        let version = written.get("version").and_then(Value::as_u64);
        if version != Some(u64::from(LEARNED_VERSION)) {
            let found = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
            self.fault(
                "learned.version",
                format!(
                    "{found} is not read, {LEARNED_VERSION} is; leave learned out to start from \
                     nothing"
                ),
            );
            return None;
        }
        // Deserialised from a value, since tagged unions are written as mappings.
        match serde_path_to_error::deserialize::<_, Learned>(written) {
            Ok(learned) => {
                if let Ok(read) = serde_json::to_value(&learned) {
                    self.check_unread(ROOT, written, &read);
                }
                self.check_moments(ROOT, written);
                self.check_quantities(ROOT, "", written);
                if let Some(ended) = learned.collected {
                    self.check_past("learned.collected", ended);
                }
                Some(learned)
            }
            Err(error) => {
                let path = match error.path().to_string() {
                    root if root == "." => ROOT.to_owned(),
                    path => format!("{ROOT}.{path}"),
                };
                let why = format!("{}; copy it from where it was written", error.inner());
                self.fault(path, why);
                None
            }
        }
    }

    /// Names every field that was written and is not among what was read.
    fn check_unread(&mut self, path: &str, written: &Value, read: &Value) {
        match (written, read) {
            (Value::Object(written), Value::Object(read)) => {
                for (name, value) in written {
                    let path = format!("{path}.{name}");
                    match read.get(name) {
                        Some(read) => self.check_unread(&path, value, read),
                        // Absence may be written, too.
                        None if value.is_null() => {}
                        None => {
                            let free = read.keys().map(String::as_str);
                            let free = free.filter(|known| !written.contains_key(*known));
                            let remedy = match nearest(name, free) {
                                Some(known) => format!("did you mean {known:?}?"),
                                None => "remove it".to_owned(),
                            };
                            self.fault(path, format!("unknown field; {remedy}"));
                        }
                    }
                }
            }
            (Value::Array(written), Value::Array(read)) if written.len() == read.len() => {
                for (index, (written, read)) in written.iter().zip(read).enumerate() {
                    self.check_unread(&format!("{path}[{index}]"), written, read);
                }
            }
            _ => {}
        }
    }

    pub(super) fn check_moments(&mut self, path: &str, written: &Value) {
        for (path, moment) in moments(path, written) {
            self.check_past(&format!("{path}.monotonic"), moment.monotonic);
        }
    }

    /// Names every quantity below zero, like a latency. What the tuner tried last is only shown.
    fn check_quantities(&mut self, path: &str, name: &str, written: &Value) {
        match written {
            Value::Object(fields) => {
                for (name, value) in fields.iter().filter(|(name, _)| *name != "last") {
                    self.check_quantities(&format!("{path}.{name}"), name, value);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.check_quantities(&format!("{path}[{index}]"), name, item);
                }
            }
            Value::Number(number)
                if QUANTITIES.contains(&name)
                    && number.as_f64().is_some_and(|number| number < 0.0) =>
            {
                let why = format!("{number} is below 0; copy it from where it was written");
                self.fault(path, why);
            }
            _ => {}
        }
    }

    fn check_past(&mut self, path: &str, at: std::time::Duration) {
        let now = self.now.monotonic;
        if at > now {
            self.fault(
                path,
                format!(
                    "{} s after the start of the process is after now, which is {} s after it; write \
                     less, or the right time.uptime",
                    at.as_secs(),
                    now.as_secs()
                ),
            );
        }
    }
}

pub(super) fn moments(path: &str, written: &Value) -> Vec<(String, Moment)> {
    match written {
        Value::Object(fields) => {
            let is_moment = fields.len() == 2 && fields.contains_key("monotonic");
            let moment = is_moment.then(|| Moment::deserialize(written));
            if let Some(Ok(moment)) = moment {
                return vec![(path.to_owned(), moment)];
            }
            let fields = fields.iter();
            fields.flat_map(|(name, value)| moments(&format!("{path}.{name}"), value)).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.flat_map(|(index, item)| moments(&format!("{path}[{index}]"), item)).collect()
        }
        _ => Vec::new(),
    }
}
