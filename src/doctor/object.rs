//! Objects as the API server or a file has them.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::policy::key::ObjectKey;

/// A field that does not have the shape of its type, by its path.
pub(crate) type MisshapenField = serde_path_to_error::Error<serde_json::Error>;

/// Names an object for people and for commands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ObjectName {
    pub kind: String,
    /// Its namespace; empty for kinds that have none.
    pub namespace: String,
    /// Its name; empty for a finding about the cluster.
    pub name: String,
    /// The file that it is in, where it was read from one. Several files may hold one object.
    #[serde(skip)]
    pub file: Option<Arc<str>>,
}

impl ObjectName {
    pub fn new(
        kind: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self { kind: kind.into(), namespace: namespace.into(), name: name.into(), file: None }
    }

    /// Whether both name one object, in whichever files.
    pub fn is_of_same(&self, other: &Self) -> bool {
        (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }
}

wva_base::display_of! { ObjectName:
    Self { kind, namespace, name, .. } => "{kind} {}", ObjectKey::new(namespace.as_str(), name.as_str());
}

/// One object, with every field that it has.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveObject(pub Value, Option<Arc<str>>);

impl LiveObject {
    /// An object of an API server.
    pub const fn new(value: Value) -> Self {
        Self(value, None)
    }

    /// The same in a file.
    #[must_use]
    pub fn in_file(self, file: Option<Arc<str>>) -> Self {
        Self(self.0, file)
    }

    /// The file that it is in, where it was read from one.
    pub fn file(&self) -> Option<&Arc<str>> {
        self.1.as_ref()
    }

    /// The text at a JSON pointer; empty where there is none.
    pub fn text(&self, pointer: &str) -> &str {
        text(&self.0, pointer)
    }

    /// The whole number at a JSON pointer.
    pub fn number(&self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer)?.as_i64()
    }

    /// The elements at a JSON pointer.
    pub fn list(&self, pointer: &str) -> &[Value] {
        list(&self.0, pointer)
    }

    /// Whether there is something at a JSON pointer.
    pub fn has(&self, pointer: &str) -> bool {
        self.0.pointer(pointer).is_some()
    }

    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// Its namespace; empty where it states none.
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// Kind, namespace, name and file.
    pub fn title(&self) -> ObjectName {
        ObjectName {
            file: self.1.clone(),
            ..ObjectName::new(self.kind(), self.namespace(), self.name())
        }
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        member(&self.0, "/metadata/labels", name)
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        member(&self.0, "/metadata/annotations", name)
    }

    pub fn service_account(&self) -> &str {
        match self.text("/spec/template/spec/serviceAccountName") {
            "" => "default",
            account => account,
        }
    }

    /// Whether it is being deleted.
    pub fn is_leaving(&self) -> bool {
        self.has("/metadata/deletionTimestamp")
    }

    /// Reads it as a type.
    ///
    /// # Errors
    /// The field that does not have the type's shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, MisshapenField> {
        serde_path_to_error::deserialize(&self.0)
    }
}

pub(crate) fn member<'a>(value: &'a Value, pointer: &str, name: &str) -> Option<&'a str> {
    value.pointer(pointer)?.get(name)?.as_str()
}

/// The text at a JSON pointer; empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut conditions = list(object, "/status/conditions").iter();
    conditions.find(|one| text(one, "/type") == kind)
}

/// The elements at a JSON pointer.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}
