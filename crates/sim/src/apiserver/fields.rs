//! Sets of fields, in the form in which `metadata.managedFields` holds them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value};

/// A set of fields as a tree. A step is written as there: `f:name`, `k:{"key":"value"}`, `v:value`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) member: bool,
    pub(super) below: BTreeMap<String, Fields>,
}

impl Fields {
    pub(super) fn leaf() -> Self {
        Self { member: true, below: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    pub(super) fn put(&mut self, step: String, fields: Self) {
        if !fields.is_empty() {
            self.below.insert(step, fields);
        }
    }

    pub(super) fn read(document: &Value) -> Self {
        let mut fields = Self::default();
        let Value::Object(steps) = document else {
            return fields;
        };
        for (step, value) in steps {
            if step == "." {
                fields.member = true;
            } else if value.as_object().is_some_and(Map::is_empty) {
                fields.below.insert(step.clone(), Self::leaf());
            } else {
                fields.put(step.clone(), Self::read(value));
            }
        }
        fields
    }

    pub(super) fn into_document(self) -> Value {
        let mut document = Map::new();
        if self.member && !self.below.is_empty() {
            document.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (step, fields) in self.below {
            document.insert(step, fields.into_document());
        }
        Value::Object(document)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.member |= other.member;
        for (step, fields) in other.below {
            match self.below.entry(step) {
                Entry::Occupied(own) => own.into_mut().add(fields),
                Entry::Vacant(place) => drop(place.insert(fields)),
            }
        }
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self { member: self.member && other.member, below: BTreeMap::new() };
        for (step, fields) in &self.below {
            if let Some(others) = other.below.get(step) {
                result.put(step.clone(), fields.intersection(others));
            }
        }
        result
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.member &= !other.member;
        for (step, others) in &other.below {
            if let Some(own) = self.below.get_mut(step) {
                own.subtract(others);
                if own.is_empty() {
                    self.below.remove(step);
                }
            }
        }
    }

    pub(super) fn cut(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => {
                self.below.remove(*last);
            }
            [first, rest @ ..] => {
                if let Some(fields) = self.below.get_mut(*first) {
                    fields.cut(rest);
                    if fields.is_empty() {
                        self.below.remove(*first);
                    }
                }
            }
        }
    }

    /// The members' paths below one as conflicts name them: `.spec.replicas`,
    /// `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self, path: &str) -> Vec<String> {
        let own = (self.member && !path.is_empty()).then(|| path.to_owned());
        let below = self.below.iter();
        let below =
            below.flat_map(|(step, fields)| fields.paths(&format!("{path}{}", readable(step))));
        own.into_iter().chain(below).collect()
    }
}

fn readable(step: &str) -> String {
    let (kind, rest) = step.split_once(':').unwrap_or(("f", step));
    match (kind, serde_json::from_str::<Value>(rest)) {
        ("k", Ok(Value::Object(keys))) => {
            let keys: Vec<_> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        ("v", Ok(value)) => format!("[={value}]"),
        _ => format!(".{rest}"),
    }
}
