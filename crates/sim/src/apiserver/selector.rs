//! Label and field selectors.

use serde_json::Value;

use super::refusal::ApiRefusal;
use wva::policy::params::LabelSelector;

#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    labels: LabelSelector,
    fields: Vec<FieldTest>,
}

#[derive(Debug, Clone)]
struct FieldTest {
    pointer: String,
    value: String,
    is_equal: bool,
}

impl Selector {
    pub(super) fn read(labels: &str, fields: &str) -> Result<Self, ApiRefusal> {
        let labels = LabelSelector::parse(labels);
        let parts = fields.split(',').map(str::trim);
        let fields = parts.filter(|part| !part.is_empty()).map(|part| {
            let why = || format!("invalid selector: {part:?}; can't understand '{part}'");
            FieldTest::read(part).ok_or_else(|| ApiRefusal::bad_request(why()))
        });
        Ok(Self {
            labels: labels.map_err(|error| ApiRefusal::bad_request(error.to_string()))?,
            fields: fields.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.labels.requirements.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.matches(|label| labels.get(label).and_then(Value::as_str))
            && self.fields.iter().all(|one| one.holds(object))
    }
}

impl FieldTest {
    fn read(part: &str) -> Option<Self> {
        let operators = [("!=", false), ("==", true), ("=", true)];
        operators.into_iter().find_map(|(operator, is_equal)| {
            let (field, value) = part.split_once(operator)?;
            Some(Self {
                pointer: format!("/{}", field.trim().replace('.', "/")),
                value: value.trim().to_owned(),
                is_equal,
            })
        })
    }

    fn holds(&self, object: &Value) -> bool {
        let value = match object.pointer(&self.pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        (value == self.value) == self.is_equal
    }
}
