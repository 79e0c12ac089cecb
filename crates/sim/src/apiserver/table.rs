//! Objects as the rows of `kubectl get`.

use serde_json::{Value, json};

use super::kind::{Column, Kind};
use super::{list, view};

type Cell = fn(&Value, &str) -> Value;

/// A column of a built-in kind: its title, from which priority on it is shown, its text, and what of.
type Built = (&'static str, i64, Cell, &'static str);

/// The definition of a column, and its cell of an object.
type Shown<'a> = (Value, Box<dyn Fn(&Value) -> Value + 'a>);

pub(super) fn of(kind: &Kind, objects: &[Value], version: &Value, now: i64) -> Value {
    let name = json!({
        "name": "Name", "type": "string", "format": "name", "priority": 0,
        "description": "Name of the object.",
    });
    let columns = shown(kind, now);
    let rows = objects.iter().map(|object| {
        let name = object["metadata"]["name"].clone();
        let cells = columns.iter().map(|(_, cell)| cell(object));
        let cells: Vec<Value> = std::iter::once(name).chain(cells).collect();
        json!({"cells": cells, "object": view::metadata_only(object)})
    });
    let rows: Vec<Value> = rows.collect();
    let definitions = columns.iter().map(|(definition, _)| definition.clone());
    let definitions: Vec<Value> = std::iter::once(name).chain(definitions).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version}, "columnDefinitions": definitions, "rows": rows,
    })
}

fn shown(kind: &Kind, now: i64) -> Vec<Shown<'_>> {
    if let Some(columns) = &kind.columns {
        return columns.iter().map(|column| custom(column, now)).collect();
    }
    let created = |object: &Value| object["metadata"]["creationTimestamp"].clone();
    let last = match &*kind.kind {
        "CustomResourceDefinition" => built("Created At", 0, created),
        _ => built("Age", 0, move |object| age(&created(object), now)),
    };
    let columns = columns(kind).iter();
    let columns = columns.map(|(name, priority, cell, argument)| {
        built(name, *priority, move |object| cell(object, argument))
    });
    columns.chain([last]).collect()
}

fn built<'a>(name: &str, priority: i64, cell: impl Fn(&Value) -> Value + 'a) -> Shown<'a> {
    let definition = json!({
        "name": name, "type": "string", "format": "", "description": name, "priority": priority,
    });
    (definition, Box::new(cell))
}

fn custom(column: &Column, now: i64) -> Shown<'_> {
    let definition = json!({
        "name": column.name, "type": column.kind, "format": "",
        "description": column.description, "priority": column.priority,
    });
    let cell = move |object: &Value| match follow(object, &column.path) {
        Some(value) if column.kind == "date" => age(&value, now),
        Some(value) if column.kind == "string" && !value.is_string() => value.to_string().into(),
        Some(value) => value,
        None => Value::Null,
    };
    (definition, Box::new(cell))
}

fn follow(object: &Value, path: &str) -> Option<Value> {
    let (before, rest) = match path.split_once("[?(@.") {
        Some((before, rest)) => (before, Some(rest)),
        None => (path, None),
    };
    let mut place = object;
    for step in before.split('.').filter(|step| !step.is_empty()) {
        place = place.get(step)?;
    }
    let Some(rest) = rest else {
        return Some(place.clone()).filter(|value| !value.is_null());
    };
    let (test, rest) = rest.split_once(")]")?;
    let equal = test.split_once("==").map(|sides| (sides, true));
    let ((field, given), is_equal) =
        equal.or_else(|| test.split_once("!=").map(|sides| (sides, false)))?;
    let given = given.trim_matches(['\'', '"']);
    let mut elements = list(place).iter();
    let found = elements.find(|one| {
        let value = one.get(field).and_then(Value::as_str);
        value.is_some() && (value == Some(given)) == is_equal
    })?;
    follow(found, rest)
}

fn age(time: &Value, now: i64) -> Value {
    let parsed = time.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let Some(then) = parsed else {
        return "<unknown>".into();
    };
    let seconds = now.saturating_sub(then.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 && seconds % 60 > 0 => format!("{minutes}m{}s", seconds % 60),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 && minutes % 60 > 0 => format!("{hours}h{}m", minutes % 60),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 && hours % 24 > 0 => format!("{days}d{}h", hours % 24),
        () => format!("{days}d"),
    }
    .into()
}

fn columns(kind: &Kind) -> &'static [Built] {
    match &*kind.kind {
        "Pod" => &[
            ("Ready", 0, containers_ready, ""),
            ("Status", 0, pod_status, ""),
            ("Restarts", 0, restarts, ""),
            ("IP", 1, text, "/status/podIP"),
            ("Node", 1, text, "/spec/nodeName"),
        ],
        "Deployment" => &[
            ("Ready", 0, replicas_ready, ""),
            ("Up-to-date", 0, number, "/status/updatedReplicas"),
            ("Available", 0, number, "/status/availableReplicas"),
        ],
        "StatefulSet" => &[("Ready", 0, replicas_ready, "")],
        "ReplicaSet" => &[
            ("Desired", 0, number, "/spec/replicas"),
            ("Current", 0, number, "/status/replicas"),
            ("Ready", 0, number, "/status/readyReplicas"),
        ],
        "HorizontalPodAutoscaler" => &[
            ("Reference", 0, reference, "/spec/scaleTargetRef"),
            ("MinPods", 0, number, "/spec/minReplicas"),
            ("MaxPods", 0, number, "/spec/maxReplicas"),
            ("Replicas", 0, number, "/status/currentReplicas"),
        ],
        "Node" => &[
            ("Status", 0, node_status, ""),
            ("Version", 0, text, "/status/nodeInfo/kubeletVersion"),
        ],
        "Namespace" => &[("Status", 0, text, "/status/phase")],
        "ConfigMap" => &[("Data", 0, size, "/data")],
        "Secret" => &[("Type", 0, text, "/type"), ("Data", 0, size, "/data")],
        "Service" => &[("Type", 0, text, "/spec/type"), ("Cluster-IP", 0, text, "/spec/clusterIP")],
        "Lease" => &[("Holder", 0, text, "/spec/holderIdentity")],
        "Event" => &[
            ("Type", 0, text, "/type"),
            ("Reason", 0, text, "/reason"),
            ("Object", 0, event_object, ""),
            ("Message", 0, event_message, ""),
        ],
        _ => &[],
    }
}

fn text(object: &Value, path: &str) -> Value {
    let found = object.pointer(path).and_then(Value::as_str);
    found.unwrap_or("<none>").into()
}

fn number(object: &Value, path: &str) -> Value {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(0).into()
}

fn size(object: &Value, path: &str) -> Value {
    let map = object.pointer(path).and_then(Value::as_object);
    map.map_or(0, serde_json::Map::len).into()
}

fn replicas_ready(object: &Value, _argument: &str) -> Value {
    let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(0);
    format!("{ready}/{wanted}").into()
}

fn containers_ready(object: &Value, _argument: &str) -> Value {
    let statuses = list(&object["status"]["containerStatuses"]).iter();
    let ready = statuses.filter(|one| one["ready"] == true);
    let all = list(&object["spec"]["containers"]).len();
    format!("{}/{all}", ready.count()).into()
}

fn restarts(object: &Value, _argument: &str) -> Value {
    let counts = list(&object["status"]["containerStatuses"]).iter();
    let counts = counts.map(|one| one["restartCount"].as_i64().unwrap_or(0));
    counts.sum::<i64>().into()
}

fn pod_status(object: &Value, _argument: &str) -> Value {
    if object["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating".into();
    }
    let mut statuses = list(&object["status"]["containerStatuses"]).iter();
    let waiting = statuses.find_map(|one| one["state"]["waiting"]["reason"].as_str());
    let reason = object["status"]["reason"].as_str();
    let phase = object["status"]["phase"].as_str();
    waiting.or(reason).or(phase).unwrap_or("Unknown").into()
}

fn node_status(object: &Value, _argument: &str) -> Value {
    let mut conditions = list(&object["status"]["conditions"]).iter();
    let ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
    if ready { "Ready" } else { "NotReady" }.into()
}

fn reference(object: &Value, path: &str) -> Value {
    let (kind, name) = named(object.pointer(path));
    format!("{kind}/{name}").into()
}

fn named(reference: Option<&Value>) -> (&str, &str) {
    let part = |name: &str| reference.and_then(|one| one[name].as_str());
    (part("kind").unwrap_or_default(), part("name").unwrap_or_default())
}

fn event_object(object: &Value, _argument: &str) -> Value {
    let about = object.get("involvedObject").or_else(|| object.get("regarding"));
    let (kind, name) = named(about);
    format!("{}/{name}", kind.to_lowercase()).into()
}

fn event_message(object: &Value, _argument: &str) -> Value {
    let message = object.get("message").or_else(|| object.get("note"));
    message.cloned().unwrap_or_else(|| "".into())
}
