//! What the server itself writes into objects, and what no other writer may write.

use serde_json::{Value, json};

use super::kind::Kind;
use super::list;
use super::refusal::{ApiRefusal, Cause};
use super::request::RequestTarget;
use super::store::Key;
use wva_base::names::{is_dns_label, is_dns_subdomain};

const OURS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Fields of the spec of a workload that stay as they were created.
const FIXED: [&str; 4] = ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"];

/// Makes a body name its kind and namespace, or refuses another kind or namespace than the path's.
pub(super) fn identify(target: &RequestTarget, object: &mut Value) -> Result<(), ApiRefusal> {
    let kind = &*target.kind;
    if !object.is_object() {
        return Err(ApiRefusal::bad_request("the body is not an object"));
    }
    for (field, wanted) in [("apiVersion", kind.api_version()), ("kind", kind.kind.clone())] {
        match object[field].as_str() {
            None | Some("") => object[field] = wanted.into(),
            Some(text) if text == wanted => {}
            Some(text) => {
                return Err(ApiRefusal::bad_request(format!(
                    "the {field} in the data ({text}) does not match the expected {field} ({wanted})"
                )));
            }
        }
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    match &target.namespace {
        Some(namespace) if own.is_empty() => {
            object["metadata"]["namespace"] = namespace.clone().into();
        }
        Some(namespace) if own != namespace => {
            return Err(ApiRefusal::bad_request(format!(
                "the namespace of the provided object does not match the namespace sent on the \
                 request ({own} is not {namespace})"
            )));
        }
        _ => {}
    }
    if let Some(name) = &target.name
        && let Some(own) = object["metadata"]["name"].as_str()
        && own != name
    {
        return Err(ApiRefusal::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

pub(super) fn name(kind: &Kind, object: &Value) -> Result<String, ApiRefusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let why = if name.is_empty() {
        let cause = Cause::required("metadata.name", ": name or generateName is required");
        return Err(ApiRefusal::invalid(kind, name, &[cause]));
    } else if matches!(&*kind.kind, "Namespace" | "Service") {
        (!is_dns_label(name)).then_some(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character",
        )
    } else {
        (!is_dns_subdomain(name)).then_some(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
        )
    };
    match why {
        Some(why) => {
            let cause = Cause::invalid("metadata.name", &json!(name), why);
            Err(ApiRefusal::invalid(kind, name, &[cause]))
        }
        None => Ok(name.to_owned()),
    }
}

fn cut(object: &mut Value, fields: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        for field in fields {
            object.remove(*field);
        }
    }
}

pub(super) fn newborn(kind: &Kind, object: &mut Value) {
    cut(&mut object["metadata"], &OURS);
    cut(&mut object["metadata"], &["resourceVersion", "selfLink"]);
    if kind.status && kind.kind != "Node" {
        cut(object, &["status"]);
    }
    match &*kind.kind {
        "Pod" => object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"}),
        "Deployment" | "ReplicaSet" if !kind.is_custom() => object["status"] = json!({}),
        "StatefulSet" if !kind.is_custom() => {
            object["status"] = json!({"replicas": 0, "availableReplicas": 0});
        }
        "Namespace" => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"] = json!({"phase": "Active"});
        }
        _ => {}
    }
}

pub(super) fn defaults(kind: &Kind, object: &mut Value) {
    match (&*kind.group, &*kind.kind) {
        ("", "Service") => {
            let ports = object["spec"]["ports"].as_array_mut();
            for port in ports.into_iter().flatten() {
                if port.get("targetPort").is_none() {
                    let number = port["port"].clone();
                    port["targetPort"] = number;
                }
            }
        }
        ("apps", "ReplicaSet") if object["metadata"]["labels"].is_null() => {
            let labels = object["spec"]["template"]["metadata"]["labels"].clone();
            if labels.is_object() {
                object["metadata"]["labels"] = labels;
            }
        }
        _ => {}
    }
}

/// A patch may not change the unique id; one of a custom resource's status is not even asked.
pub(super) fn same_uid(
    target: &RequestTarget,
    live: &Value,
    next: &mut Value,
) -> Result<(), ApiRefusal> {
    let kind = &*target.kind;
    let own = live["metadata"]["uid"].clone();
    let asked = &next["metadata"]["uid"];
    if asked.is_null() || *asked == own || (kind.is_custom() && target.subresource == "status") {
        next["metadata"]["uid"] = own;
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", asked, "field is immutable");
    let name = target.name.as_deref().unwrap_or_default();
    Err(ApiRefusal::invalid(kind, name, &[cause]))
}

/// Refuses a new version of an object that is made from another object or an older version.
pub(super) fn same_object(
    kind: &Kind,
    key: &Key,
    live: &Value,
    next: &Value,
) -> Result<(), ApiRefusal> {
    let text = |object: &Value, field: &str| {
        let text = object["metadata"].get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let (asked, own) = (text(next, "uid"), text(live, "uid"));
    if !asked.is_empty() && asked != own {
        let why =
            format!("Precondition failed: UID in precondition: {asked}, UID in object meta: {own}");
        return Err(ApiRefusal::conflict(kind, &key.name, &why));
    }
    let (asked, own) = (text(next, "resourceVersion"), text(live, "resourceVersion"));
    if !asked.is_empty() && asked != "0" && asked != own {
        return Err(ApiRefusal::outdated(kind, &key.name));
    }
    let renamed = text(next, "name");
    if !renamed.is_empty() && renamed != key.name {
        let text = format!("the name of the object ({renamed}) does not match ({})", key.name);
        return Err(ApiRefusal::bad_request(text));
    }
    Ok(())
}

/// Takes over from the live object what this write may not change, and counts the generation.
pub(super) fn succeed(kind: &Kind, subresource: &str, live: &Value, next: &mut Value) {
    if subresource == "status" {
        let status = next.get("status").cloned();
        let fields = next["metadata"].get("managedFields").cloned();
        let version = next["metadata"].get("resourceVersion").cloned();
        *next = live.clone();
        put(next, "status", status);
        put(&mut next["metadata"], "managedFields", fields);
        put(&mut next["metadata"], "resourceVersion", version);
    } else if kind.status {
        put(next, "status", live.get("status").cloned());
    }
    for field in OURS.iter().chain(&["name", "namespace", "resourceVersion"]) {
        let own = live["metadata"].get(field).cloned();
        put(&mut next["metadata"], field, own);
    }
    let apart: &[&str] = if kind.status { &["metadata", "status"] } else { &["metadata"] };
    if kind.generation && subresource != "status" && !same_apart(live, next, apart) {
        let generation = live["metadata"]["generation"].as_i64().unwrap_or(0);
        next["metadata"]["generation"] = json!(generation.saturating_add(1));
    }
}

fn put(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) => object[field] = value,
        None => cut(object, &[field]),
    }
}

fn same_apart(one: &Value, other: &Value, apart: &[&str]) -> bool {
    let fields = |object: &Value| {
        let fields = object.as_object().map_or(0, serde_json::Map::len);
        let apart = apart.iter().filter(|field| object.get(**field).is_some());
        fields.saturating_sub(apart.count())
    };
    let mut own = one.as_object().into_iter().flatten();
    fields(one) == fields(other)
        && own.all(|(name, value)| apart.contains(&&**name) || other.get(name) == Some(value))
}

/// Whether a write changes nothing, except perhaps when fields were last written.
pub(super) fn same_apart_from_times(live: &Value, next: &Value) -> bool {
    same_apart(live, next, &["metadata"])
        && same_apart(&live["metadata"], &next["metadata"], &["managedFields"])
        && same_entries(&live["metadata"]["managedFields"], &next["metadata"]["managedFields"])
}

fn same_entries(live: &Value, next: &Value) -> bool {
    match (live.as_array(), next.as_array()) {
        (Some(live), Some(next)) => {
            let mut pairs = live.iter().zip(next);
            live.len() == next.len() && pairs.all(|(one, other)| same_apart(one, other, &["time"]))
        }
        _ => live == next,
    }
}

pub(super) fn check(kind: &Kind, live: Option<&Value>, object: &Value, found: &mut Vec<Cause>) {
    let spec = &object["spec"];
    match (&*kind.group, &*kind.kind) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => {
            if spec["replicas"].as_i64().is_some_and(|replicas| replicas < 0) {
                let why = "must be greater than or equal to 0";
                found.push(Cause::invalid("spec.replicas", &spec["replicas"], why));
            }
            let wanted = spec["selector"]["matchLabels"].as_object();
            let labels = &spec["template"]["metadata"]["labels"];
            let fits = |(name, value): (&String, &Value)| labels.get(name) == Some(value);
            if !wanted.into_iter().flatten().all(fits) {
                let why = "`selector` does not match template `labels`";
                found.push(Cause::invalid("spec.template.metadata.labels", labels, why));
            }
            let before = live.map_or(spec, |live| &live["spec"]);
            let changed = FIXED.iter().filter(|field| before[**field] != spec[**field]);
            found.extend(changed.map(|field| {
                let path = format!("spec.{field}");
                Cause::invalid(&path, &spec[*field], "field is immutable")
            }));
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            let most = &spec["maxReplicas"];
            let bound = |value: &Value| value.as_i64().unwrap_or(0);
            let why = if bound(most) < 1 {
                Some("must be greater than 0")
            } else {
                (bound(most) < bound(&spec["minReplicas"]))
                    .then_some("must be greater than or equal to `minReplicas`")
            };
            found.extend(why.map(|why| Cause::invalid("spec.maxReplicas", most, why)));
        }
        ("coordination.k8s.io", "Lease")
            if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) =>
        {
            let seconds = &spec["leaseDurationSeconds"];
            let why = "must be greater than 0";
            found.push(Cause::invalid("spec.leaseDurationSeconds", seconds, why));
        }
        _ => {}
    }
    let deleting = live.is_some_and(|live| live["metadata"].get("deletionTimestamp").is_some());
    if let Some(live) = live.filter(|_| deleting) {
        let old = list(&live["metadata"]["finalizers"]);
        let mut finalizers = list(&object["metadata"]["finalizers"]).iter();
        if finalizers.any(|finalizer| !old.contains(finalizer)) {
            let why = "no new finalizers can be added if the object is being deleted";
            found.push(Cause::forbidden("metadata.finalizers", why));
        }
    }
}
