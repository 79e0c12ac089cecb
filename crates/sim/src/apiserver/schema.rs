//! Structural schemas: what the server knows of the fields of a kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::bytes::Regex;
use serde_json::{Map, Value};

use super::rules;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ListKind {
    /// They are not: the list is one value.
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword of schemas")]
pub(super) struct Schema {
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) properties: BTreeMap<String, Arc<Schema>>,
    pub(super) values: Option<Arc<Schema>>,
    pub(super) items: Option<Arc<Schema>>,
    pub(super) required: Vec<String>,
    pub(super) default: Option<Value>,
    pub(super) choices: Vec<Value>,
    pub(super) pattern: Option<Regex>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) nullable: bool,
    /// Fields that are not named here are kept.
    pub(super) open: bool,
    pub(super) int_or_string: bool,
    pub(super) list: ListKind,
    pub(super) atomic: bool,
    pub(super) merge_key: Option<String>,
    pub(super) merges: bool,
    pub(super) rules: Vec<(String, String)>,
}

impl Schema {
    pub(super) fn anything() -> Self {
        Self { open: true, nullable: true, ..Self::default() }
    }

    /// Reads a schema document. Its references point into `definitions`; what refers to itself may
    /// hold anything.
    pub(super) fn read(document: &Value, definitions: &Map<String, Value>) -> Arc<Self> {
        Reader { definitions, known: BTreeMap::new(), open: Vec::new() }.read(document)
    }

    pub(super) fn field(&self, name: &str) -> Option<&Arc<Self>> {
        self.properties.get(name).or(self.values.as_ref())
    }
}

struct Reader<'a> {
    definitions: &'a Map<String, Value>,
    known: BTreeMap<String, Arc<Schema>>,
    open: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, document: &Value) -> Arc<Schema> {
        let Some(name) = reference(document) else {
            return Arc::new(self.node(document));
        };
        let resolved = self.resolve(name);
        match document.get("default") {
            // A default belongs to the place, not to the type.
            Some(default) => {
                Arc::new(Schema { default: Some(default.clone()), ..Schema::clone(&resolved) })
            }
            None => resolved,
        }
    }

    fn resolve(&mut self, name: &str) -> Arc<Schema> {
        if let Some(known) = self.known.get(name) {
            return Arc::clone(known);
        }
        let definition = self.definitions.get(name);
        let Some(definition) = definition.filter(|_| !self.open.iter().any(|one| one == name))
        else {
            return Arc::new(Schema::anything());
        };
        self.open.push(name.to_owned());
        let schema = self.read(definition);
        self.open.pop();
        self.known.insert(name.to_owned(), Arc::clone(&schema));
        schema
    }

    fn node(&mut self, document: &Value) -> Schema {
        let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| document.get(name) == Some(&Value::Bool(true));
        let list = |name: &str| document.get(name).and_then(Value::as_array).cloned();
        let texts = |name: &str| -> Vec<String> {
            let values = list(name).unwrap_or_default();
            let texts = values.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let properties = document.get("properties").and_then(Value::as_object);
        let values = document.get("additionalProperties").filter(|values| values.is_object());
        let rules = list("x-kubernetes-validations").unwrap_or_default();
        Schema {
            kind: text("type").unwrap_or_default(),
            format: text("format").unwrap_or_default(),
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, one)| (name.clone(), self.read(one)))
                .collect(),
            values: values.map(|values| self.read(values)),
            items: document.get("items").map(|items| self.read(items)),
            required: texts("required"),
            default: document.get("default").cloned(),
            choices: list("enum").unwrap_or_default(),
            pattern: text("pattern").as_deref().and_then(rules::pattern),
            min_length: document.get("minLength").and_then(Value::as_u64),
            max_length: document.get("maxLength").and_then(Value::as_u64),
            minimum: document.get("minimum").and_then(Value::as_f64),
            maximum: document.get("maximum").and_then(Value::as_f64),
            nullable: flag("nullable"),
            open: flag("x-kubernetes-preserve-unknown-fields"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            list: match text("x-kubernetes-list-type").as_deref() {
                Some("set") => ListKind::Set,
                Some("map") => ListKind::Map(texts("x-kubernetes-list-map-keys")),
                _ => ListKind::Atomic,
            },
            atomic: text("x-kubernetes-map-type").as_deref() == Some("atomic"),
            merge_key: text("x-kubernetes-patch-merge-key"),
            merges: text("x-kubernetes-patch-strategy").is_some_and(|how| how.contains("merge")),
            rules: rules.iter().filter_map(rule).collect(),
        }
    }
}

fn reference(document: &Value) -> Option<&str> {
    let target = document.get("$ref")?.as_str()?;
    target.rsplit('/').next()
}

fn rule(document: &Value) -> Option<(String, String)> {
    let rule = document.get("rule")?.as_str()?.to_owned();
    let message = document.get("message").and_then(Value::as_str);
    let message = message.map_or_else(|| format!("failed rule: {rule}"), str::to_owned);
    Some((rule, message))
}
