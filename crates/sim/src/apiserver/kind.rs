//! The kinds that are served.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::list;
use super::schema::Schema;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Column {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(rename = "jsonPath")]
    pub(super) path: String,
    pub(super) priority: i64,
    pub(super) description: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScalePaths {
    pub(super) spec: String,
    pub(super) status: String,
    pub(super) selector: Option<String>,
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_field_names, reason = "the names of the API")]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) namespaced: bool,
    pub(super) status: bool,
    pub(super) scale: Option<ScalePaths>,
    /// Whether `metadata.generation` counts changes.
    pub(super) generation: bool,
    pub(super) schema: Arc<Schema>,
    /// Under which name objects are stored; two kinds may share objects.
    pub(super) stored_as: String,
    pub(super) columns: Option<Vec<Column>>,
}

impl Kind {
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The resource as messages name it: `deployments.apps`.
    pub(super) fn qualified(&self) -> String {
        self.in_group(&self.plural)
    }

    pub(super) fn title(&self) -> String {
        self.in_group(&self.kind)
    }

    fn in_group(&self, name: &str) -> String {
        if self.group.is_empty() { name.to_owned() } else { format!("{name}.{}", self.group) }
    }

    pub(super) fn is_custom(&self) -> bool {
        self.columns.is_some()
    }

    pub(super) fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

pub(super) fn defined(definition: &Value, definitions: &Map<String, Value>) -> Vec<Kind> {
    let spec = &definition["spec"];
    list(&spec["versions"])
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| of_version(spec, version, definitions))
        .collect()
}

fn of_version(spec: &Value, version: &Value, definitions: &Map<String, Value>) -> Kind {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> { list(value).iter().map(text).collect() };
    let names = &spec["names"];
    let (group, kind, plural) =
        (text(&spec["group"]), text(&names["kind"]), text(&names["plural"]));
    let mut document = version["schema"]["openAPIV3Schema"].clone();
    if !document.is_object() {
        document = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    if !document["properties"].is_object() {
        document["properties"] = json!({});
    }
    document["properties"]["apiVersion"] = json!({"type": "string"});
    document["properties"]["kind"] = json!({"type": "string"});
    document["properties"]["metadata"] =
        json!({"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"});
    let subresources = &version["subresources"];
    let or = |value: &Value, other: String| value.as_str().map_or(other, str::to_owned);
    Kind {
        stored_as: format!("{plural}.{group}"),
        version: text(&version["name"]),
        list_kind: or(&names["listKind"], format!("{kind}List")),
        singular: or(&names["singular"], kind.to_lowercase()),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        status: subresources["status"].is_object(),
        scale: scale_paths(&subresources["scale"]),
        generation: true,
        schema: Schema::read(&document, definitions),
        columns: Some(columns(&version["additionalPrinterColumns"])),
        group,
        kind,
        plural,
    }
}

fn scale_paths(document: &Value) -> Option<ScalePaths> {
    let pointer = |name: &str| {
        let path = document.get(name)?.as_str()?;
        Some(path.replace('.', "/"))
    };
    Some(ScalePaths {
        spec: pointer("specReplicasPath")?,
        status: pointer("statusReplicasPath")?,
        selector: pointer("labelSelectorPath"),
    })
}

fn columns(document: &Value) -> Vec<Column> {
    let columns = Vec::<Column>::deserialize(document).unwrap_or_default();
    if !columns.is_empty() {
        return columns;
    }
    vec![Column {
        name: "Age".to_owned(),
        kind: "date".to_owned(),
        path: ".metadata.creationTimestamp".to_owned(),
        priority: 0,
        description: "When the object was made.".to_owned(),
    }]
}
